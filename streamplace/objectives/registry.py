"""Objectives: functions that value placements, with their explanations and bounds.

The attributes of an objective are optional; their defaults suit any numeric value.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast

import numpy as np

from streamplace.display.assumptions import assumptions
from streamplace.display.report import percent, quantity
from streamplace.errors import PlacementError, SettingError
from streamplace.model.arrays import ROUNDING, Floats, Ints
from streamplace.model.graph import StreamGraph
from streamplace.model.message_text import quoted
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.units import exact_digits
from streamplace.objectives.explanation import Explanation, PassTimeline, Picture, PlainExplanation
from streamplace.registry import Registry

if TYPE_CHECKING:
    from streamplace.model.relocation import Relocation

Sense = Literal["max", "min"]
Kind = Literal["rate", "pass", "devices", ""]
"""Steady rate of the sources, seconds of one pass, devices in use; "" for anything else."""
Evaluate = Callable[[Problem, Ints], Floats]
Registered = TypeVar("Registered", bound=Evaluate)
EvaluateOrdered = Callable[[Problem, Ints, Floats | None, str], Floats]
"""With priorities of the operators [B, N], None for the default order, and their discipline."""


def _nothing(problem: Problem) -> None:
    return None


def _no_measures(problem: Problem, value: float) -> Mapping[str, float]:
    return {}


@dataclass(frozen=True, slots=True)
class Objective:
    """A value of placements to maximise or minimise.

    Attributes
    ----------
    evaluate
        Function from a batch of placements [B, N], given as device rows, to their values [B].
    ordered
        Whether it also values priorities, the order in which devices serve operators.
    unit
        Unit of a value; "" for a share of 1.
    of
        Words after a value in a sentence, such as " per pass".
    money
        Unit of a value if devices have prices; empty if prices do not matter.
    explain
        Function that explains the value of a placement.
    bound
        Proven bound on the values of a problem, found without search; None if unknown.
    limit
        Best possible value in any problem; None if there is none.
    refuses
        Reason why it cannot evaluate a problem, in one sentence; None if it can.
    picture
        Function that marks operators and streams in a drawing.
    timeline
        Function that returns one pass in time, to be drawn or written as a trace.
    measures
        Further numbers by name that a comparison averages, computed from a value.
    culprit
        Function that returns two clauses: the value of a placement with its cause, and the largest
        part of it.
    variant
        Function that returns the objective with options, such as another model of the network.
    kind
        Valued quantity, regardless of options and conditions; placers for this quantity are
        chosen by it.
    usual
        Whether the values are those of the kind in `streamsim`, without options and conditions.
        Only then can a search that simulates the kind itself optimise them.
    quick
        Whether an evaluation takes microseconds, so that a search may finish its minimum of work
        after the time limit.
    guide
        Name of the objective whose best placements are good starts for a search by this one.
    ties
        Name of the objective that decides between placements of equal value.
    beside
        Name of the objective that is reported in addition for stream graphs, where the best
        placement by this one may be of little use.
    base, conditions
        Objective to optimise, and limits to keep; see `streamplace.objectives.conditions`.
    relocation
        Present placement, if moves have costs; see `streamplace.objectives.relocation`.
    """

    name: str
    sense: Sense
    summary: str
    evaluate: Evaluate
    ordered: bool = False
    unit: str = ""
    of: str = ""
    money: str = ""
    explain: Callable[[Problem, Placement], Explanation] | None = None
    bound: Callable[[Problem], float | None] = _nothing
    limit: float | None = None
    refuses: Callable[[Problem], str | None] = _nothing
    picture: Callable[[Problem, Placement], Picture] | None = None
    timeline: Callable[[Problem, Placement], PassTimeline] | None = None
    measures: Callable[[Problem, float], Mapping[str, float]] = _no_measures
    culprit: Callable[[Problem, Placement], tuple[str, str]] | None = None
    variant: "Callable[[Mapping[str, str]], Objective] | None" = None
    kind: Kind = ""
    usual: bool = True
    quick: bool = False
    guide: str = ""
    ties: str = ""
    beside: str = ""
    base: "Objective | None" = None
    conditions: "tuple[Condition, ...]" = ()
    relocation: "Relocation | None" = None

    def __repr__(self) -> str:
        return f"<Objective {self.name}>"

    @property
    def quantity(self) -> str:
        """Name of the measured quantity, regardless of options and conditions.

        >>> named_objective("makespan:network=link").quantity
        'makespan'
        """
        return re.split("[:(]", self.plain.name, maxsplit=1)[0]

    @property
    def plain(self) -> "Objective":
        """The objective without conditions and without the cost of moves."""
        return self if self.base is None else self.base.plain

    def on(self, problem: Problem) -> "Objective":
        """The objective in the unit that it has for a problem; without conditions."""
        if not self.money or not problem.cluster.devices.price.any():
            return self
        return replace(self, unit=self.money, of="", money="")

    def values(
        self,
        problem: Problem,
        placements: Ints,
        priorities: Floats | None = None,
        queue: str = "priority",
    ) -> Floats:
        """Values [B] of placements [B, N], optionally with priorities of the operators [B, N].

        ``queue`` is the discipline of the priorities, as in a `Placement`.
        """
        if self.ordered:
            return cast(EvaluateOrdered, self.evaluate)(problem, placements, priorities, queue)
        return self.evaluate(problem, placements)

    def value(self, problem: Problem, placement: Placement) -> float:
        """Value of one placement."""
        order = None if placement.priority is None else placement.priority[None, :]
        return float(self.values(problem, placement.index[None, :], order, placement.queue)[0])

    def better(self, a: float, b: float) -> bool:
        """Whether value a is strictly better than value b."""
        return a > b if self.sense == "max" else a < b

    def best(self, values: Floats) -> int:
        """Position of the best value, the first of equal ones."""
        return int(np.argmax(values) if self.sense == "max" else np.argmin(values))

    def check(self, problem: Problem) -> None:
        """Raise SettingError if it cannot evaluate a problem."""
        for condition in self.conditions:
            condition.check(problem)
        self._check_refusal(problem)

    def check_use(self, problem: Problem) -> None:
        """Raise SettingError if it, or a condition, cannot evaluate a placement of a problem."""
        for condition in self.conditions:
            condition.objective.check_use(problem)
        self._check_refusal(problem)

    def _check_refusal(self, problem: Problem) -> None:
        reason = self.refuses(problem)
        if reason is not None:
            raise SettingError(
                f"{self.name} cannot evaluate {quoted(problem.graph.name)}: {reason}"
            )

    def format(self, value: float) -> str:
        """Value with its unit.

        >>> OBJECTIVES["throughput"].format(0.625)
        '62.5 %'
        """
        if self.unit:
            return quantity(value, self.unit)
        return percent(value) if self.is_share else f"{value:.4g}"

    @property
    def usual_kind(self) -> Kind:
        """Its kind if it is usual, so that searches and proofs of the kind suit it; else ""."""
        return self.kind if self.usual else ""

    @property
    def is_share(self) -> bool:
        """Whether values are shares of the sources' rate, which are shown as percentages."""
        return self.kind == "rate" and not self.unit

    def explained(self, problem: Problem, placement: Placement) -> Explanation:
        """Explain a placement by ``explain``, or else by its value alone."""
        if self.explain is not None:
            return self.explain(problem, placement)
        value = self.value(problem, placement)
        text = self.format(value)
        reached = text if self.quantity == self.unit else f"{self.quantity} {text}{self.of}"
        words = [reached, *(condition.text for condition in self.conditions)]
        beside = None
        if self.beside and suggested_by(problem.graph) == DEFAULT:
            beside = OBJECTIVES[self.beside].explained(problem, placement)
            words.append(beside.words)
        sentence = ", ".join(words)
        return PlainExplanation(
            self.quantity, value, sentence, placement, beside, assumptions(problem)
        )

    def condition_sentences(self, problem: Problem, placement: Placement) -> tuple[str, ...]:
        """Sentences on the conditions whose values have causes."""
        limits = [c for c in self.conditions if c.objective.culprit is not None]
        return tuple(f"Condition: {c.in_words(problem, placement)}" for c in limits)

    def condition_facts(self, problem: Problem, placement: Placement) -> dict[str, Any]:
        """Conditions with the values of a placement, for a document; nothing without any."""
        facts = [
            {"condition": c.text, "value": c.objective.value(problem, placement)}
            for c in self.conditions
        ]
        return {"conditions": facts} if facts else {}

    def pictured(self, problem: Problem, placement: Placement) -> Picture:
        """Marks for a drawing; only the value if the objective has no picture."""
        if self.picture is not None:
            return self.picture(problem, placement)
        title = self.format(self.value(problem, placement))
        operators = np.zeros(problem.n_operators, np.bool_)
        return Picture(title, "", operators, np.zeros(problem.graph.n_streams, np.bool_))


@dataclass(frozen=True, slots=True)
class Condition:
    """Limit on the value of an objective: at least (max) or at most (min) this value."""

    objective: Objective
    sense: Sense
    limit: float

    @property
    def text(self) -> str:
        """Condition as written on the command line."""
        sign = ">=" if self.sense == "max" else "<="
        return f"{self.objective.name}{sign}{exact_digits(self.limit)}"

    @property
    def looser(self) -> str:
        """Direction in which more placements meet it."""
        return "less" if self.sense == "max" else "more"

    def in_words(self, problem: Problem, placement: Placement) -> str:
        """Value of a placement, the limit, and the cause of the value, if it is known."""
        judge, verb = self.objective, "required" if self.sense == "max" else "allowed"
        if judge.culprit is None:
            value, text = judge.value(problem, placement), judge.format
            if text(value) == text(self.limit):  # they differ beyond its digits
                text = exact_digits
            return f"{judge.name} {text(value)}, {text(self.limit)} {verb}"
        reached, largest_part = judge.culprit(problem, placement)
        return f"{reached}, {judge.format(self.limit)} {verb}; {largest_part}"

    def is_met(self, problem: Problem, placement: Placement) -> bool:
        """Whether a placement meets it."""
        return not self.shortfall(np.array(self.objective.value(problem, placement)))

    def shortfall(self, values: Floats) -> Floats:
        """Shortfall of values as a share of the limit (of 1 if that is 0); 0 if they meet it."""
        missing = self.limit - values if self.sense == "max" else values - self.limit
        share = missing / (abs(self.limit) or 1.0)
        return np.where(share > ROUNDING, share, 0.0)

    def check(self, problem: Problem) -> None:
        """Raise PlacementError if a bound proves that no placement meets it."""
        self.objective.check(problem)
        if self.objective.is_share and self.limit < 0:
            raise SettingError(f"{self.text} asks for a share below 0; give one from 0 to 1")
        bound = self.objective.bound(problem)
        bound = self.objective.limit if bound is None else bound
        if bound is None or self.sense != self.objective.sense:
            return
        beyond = abs(self.limit - bound) > ROUNDING * abs(bound)
        if beyond and self.objective.better(self.limit, bound):
            raise PlacementError(
                f"no placement meets {self.text}: {self.objective.name} is "
                f"{self.objective.format(bound)} at best; ask for that or {self.looser}"
            )


_CALL = re.compile(r"(\w[\w-]*)\((.*)\)")
OBJECTIVES: Registry[Objective] = Registry("streamplace.objectives", "objective")
DEFAULT: Final = "throughput"
"""Default objective of stream graphs."""
OF_TASKS: Final = "makespan"
"""Default objective of task graphs."""


def objective(name: str, *, sense: Sense, **attributes: Any) -> Callable[[Registered], Registered]:
    """Register an objective; the first line of the docstring describes it.

    ``evaluate(problem, placements)`` values a batch. With further parameters ``priorities`` and
    ``queue`` it also values the order in which devices serve operators, and by which discipline.
    ``attributes`` are further attributes of `Objective`.
    """

    def made(summary: str, evaluate: Evaluate) -> Objective:
        ordered = "priorities" in inspect.signature(evaluate).parameters
        return Objective(name, sense, summary, evaluate, ordered, **attributes)

    return OBJECTIVES.decorator(name, made)


def named_objective(text: str) -> Objective:
    """Objective by name, with options after colons, as in ``makespan:network=link``.

    >>> named_objective("latency(camera->alarm)").quantity
    'latency'
    """
    if (call := _CALL.fullmatch(text)) is not None:
        plain = OBJECTIVES[call[1]]
        if plain.variant is None:
            raise SettingError(f"objective {call[1]} takes no path; write {call[1]} alone")
        return replace(plain.variant({"path": call[2]}), name=text, usual=False)
    name, *parts = text.split(":")
    plain = OBJECTIVES[name]
    if not parts:
        return plain
    if plain.variant is None:
        raise SettingError(f"objective {name} takes no options; write {name} alone")
    options = {}
    for part in parts:
        key, sign, value = part.partition("=")
        if not (key and sign and value):
            raise SettingError(
                f"option {quoted(part)} of objective {name} cannot be read; write KEY=VALUE"
            )
        if key in options:
            raise SettingError(f"option {key} of objective {name} is given twice; drop one")
        options[key] = value
    suffix = "".join(f":{key}={value}" for key, value in sorted(options.items()))
    return replace(plain.variant(options), name=name + suffix, usual=False)


def suggested_by_all(graphs: Iterable[StreamGraph]) -> str:
    """Default objective of all graphs; throughput if they differ."""
    names = {suggested_by(graph) for graph in graphs}
    return names.pop() if len(names) == 1 else DEFAULT


def suggested_by(graph: StreamGraph) -> str:
    """Default objective of a graph: makespan for task graphs, else throughput."""
    return OF_TASKS if graph.operators.fires_all.all() else DEFAULT

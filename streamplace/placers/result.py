"""Results of placers: value, verdict, bottleneck, report, picture and files."""

import importlib
import logging
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from math import ceil, floor, isfinite
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from streamplace.display.assumptions import assumed, assumptions
from streamplace.display.report import Bar, Detail, Heading, Report, Sheet, duration, percent
from streamplace.display.sheets import operators_sheet
from streamplace.errors import PlacementError, SettingError
from streamplace.io.files import spot
from streamplace.io.placements import order_facts, prediction_facts, write_placement
from streamplace.model.arrays import ROUNDING
from streamplace.model.mixins import PICTURES, Pictured
from streamplace.model.placement import Placement
from streamplace.model.prediction_intervals import PredictionErrors, RateInterval
from streamplace.model.problem import Problem
from streamplace.model.units import digits
from streamplace.objectives.conditions import require_conditions
from streamplace.objectives.explanation import Explanation
from streamplace.objectives.registry import Objective

if TYPE_CHECKING:
    from pandas import DataFrame

    from streamplace.objectives.throughput.loads import FullestResource

LOG = logging.getLogger(__name__)
CURVE = "streamplace.drawing.curves"
"""Module that draws what moves reach. It imports this one, so it is loaded by name."""
PROVEN = 1e-6
"""Relative distance within which a value equals its bound, or the value its search claims."""


@dataclass(frozen=True, slots=True)
class Improvement:
    """An improvement during a search: its time, value and number of evaluations."""

    seconds: float
    value: float
    evaluations: int = 1


@dataclass(frozen=True, slots=True)
class MoveStep:
    """The best value that a number of moves from the present placement reaches."""

    moves: int
    value: float
    proven: bool  # whether no placement with so many moves or fewer is better
    moved: Mapping[str, str]  # new device of every operator that moves


class PlacementDrawing(Protocol):
    """Drawing of a placement, which notebooks show."""

    def svg(self) -> str:
        """Text of the drawing as SVG."""
        ...

    def save(self, path: Path) -> None:
        """Write an .svg or .html file."""
        ...


@dataclass(frozen=True)
class Result(Pictured):
    """A placer's answer, evaluated by the objective; ``print`` shows it like ``streamplace place``.

    Attributes
    ----------
    objective
        Name of the objective, conditions included.
    value
        Value of the placement by that objective.
    seconds
        Running time of the placer.
    bound
        Proven bound of the value of every placement; None if unknown.
    trace
        Improvements during the search.
    least_load
        Proven lower bound of the load of the fullest resource of every placement that carries
        the full rate; None if unknown.
    steps
        Best value for each number of moves, for an objective that is not measured in seconds.
    levels
        Proven bounds of the shares of sources beside stuck ones, level by level.
    problem, judge
        The problem, and the objective itself.
    by_subtasks
        Value of a quick placement of the subtasks one by one, if it is a tenth better.
    errors
        Errors of predictions for the graph; None if it was not measured.
    parallelism
        Number of subtasks by operator, if more than one, before the problem was expanded into
        subtasks; None for the parallelism of the problem.
    """

    placement: Placement
    objective: str
    value: float
    placer: str
    seed: int
    seconds: float
    bound: float | None = None
    trace: tuple[Improvement, ...] = ()
    least_load: float | None = field(default=None, kw_only=True)
    steps: tuple[MoveStep, ...] = field(default=(), kw_only=True)
    levels: tuple[float, ...] = field(default=(), kw_only=True)
    problem: Problem = field(kw_only=True, repr=False, compare=False)
    judge: Objective = field(kw_only=True, repr=False, compare=False)
    by_subtasks: float | None = field(default=None, kw_only=True, repr=False, compare=False)
    errors: PredictionErrors | None = field(default=None, kw_only=True, repr=False, compare=False)
    parallelism: Mapping[str, int] | None = field(
        default=None, kw_only=True, repr=False, compare=False
    )

    @property
    def interval(self) -> RateInterval | None:
        """Interval of the tuples/s that the sources emit; None for graphs that were not measured.

        Sources emit at most the offered rate, so both ends may be equal.
        """
        carries = self.capacity
        if carries is None:
            return None
        facts = self.explain().headline()
        share = facts["relative_throughput"]
        return carries.up_to(facts["throughput"] / share if share else 0.0)

    @property
    def capacity(self) -> RateInterval | None:
        """Interval of the tuples/s that the placement carries, however few are offered.

        None for graphs that were not measured.
        """
        from streamsim import bottleneck, resource_loads

        facts = self.explain().headline() if self.errors is not None else {}
        if self.errors is None or "throughput" not in facts or "bottleneck" not in facts:
            return None
        share, emits = facts["relative_throughput"], facts["throughput"]
        # Constant loads do not grow with the rate, so what counts is not how full a resource is.
        load = bottleneck(resource_loads(self.problem.instance, self.placement.index)).load
        return self.errors.interval(emits if share < 1 or load <= 0 else emits / share / load)

    @property
    def gap(self) -> float | None:
        """Distance of the value from the bound, in the objective's unit; None without a bound."""
        return None if self.bound is None else abs(self.value - self.bound)

    @property
    def proven(self) -> bool:
        """Whether the value meets its bound."""
        return proven(self.value, self.bound)

    def explain(self) -> Explanation:
        """Explain the value of the placement, its bottleneck, and moves that would help."""
        return self._explanation

    @cached_property
    def _explanation(self) -> Explanation:
        return self.judge.explained(self.problem, self.placement)

    def report(self) -> Report:
        """Report the devices and their operators, the bound, and the verdict."""
        explanation = self.explain()
        graph, parts = self.problem.graph, explanation.brief().parts
        sentences = [part for part in parts if isinstance(getattr(part, "part", part), str)]
        heading = f" by {self.placer}: {explanation.words}, search time {duration(self.seconds)}"
        bound = bound_in_words(self.judge, self.value, self.bound)
        if self.bound is None and any(step.proven for step in self.steps):
            bound = "Bound: none for all numbers of moves; the table marks the proven ones"
        hint = []
        if self.by_subtasks is not None:
            reached, value = self.judge.format(self.by_subtasks), self.judge.format(self.value)
            hint = [f"Subtasks placed one by one (--subtasks): {reached} instead of {value}"]
        return Report(
            (
                *(part for part in parts if part not in sentences),
                *self._steps(),
                Detail(operators_sheet(graph.operators, self.placement)),
                Heading(graph.name, heading),
                *sentences,
                *([] if bound is None else [bound]),
                *(f"Bound beside stuck sources: {percent(share)}" for share in self.levels),
                *hint,
                *self.judge.condition_sentences(self.problem, self.placement),
                *self.likely(),
                *assumed(assumptions(self.problem)),
                *self.spare(),
                f"Verdict: {self.verdict}",
            ),
            subject=self,
        )

    page = report

    def _steps(self) -> Iterator[Sheet]:
        """Yield the table of what each number of moves reaches."""
        whole = max((abs(step.value) for step in self.steps), default=0.0) or 1.0
        rows = tuple(
            (
                str(step.moves),
                self.judge.format(step.value),
                Bar(step.value if self.judge.is_share else step.value / whole),
                "proven" if step.proven else "found",
                ", ".join(f"{name} → {device}" for name, device in step.moved.items()),
            )
            for step in self.steps
        )
        if rows:
            yield Sheet(("moves", self.judge.quantity, "", "", "to"), rows)

    def likely(self) -> Iterator[str]:
        """Yield a sentence with the interval of the throughput, if the graph was measured."""
        interval = self.interval
        if interval is not None and self.errors is not None:
            low, high = digits(interval.low), digits(interval.high)
            rates = low if low == high else f"{low} to {high}"
            yield f"Throughput: {rates} tuples/s, with {self.errors.words}"

    def spare(self) -> Iterator[str]:
        """Yield a sentence on the load of the fullest resource, if it is known to be little."""
        limit = self.bottleneck
        if self.least_load is None or limit is None or limit.constant:
            return
        load = percent(limit.load)
        if proven(limit.load, self.least_load) or limit.load <= self.least_load:
            yield f"Fullest resource: {load}, proven the least of all that carry the full rate"
        else:
            yield f"Fullest resource: {load}; no less than {percent(self.least_load)} is possible"

    def to_json(self) -> dict[str, Any]:
        """Return the document that ``streamplace place --json`` prints."""
        headline, name, interval = self.explain().headline(), self.judge.quantity, self.interval
        parallel, likely = self._parallel, {}
        if interval is not None and self.errors is not None:
            likely = {"interval": interval._asdict(), "errors": self.errors.to_json()}
        return {
            "graph": self.problem.graph.name,
            **({"parallelism": parallel} if parallel else {}),
            "rate": self.problem.graph.source_rate,
            "objective": self.objective,
            "assignment": self.placement.as_dict(),
            **order_facts(self.placement),
            **{**headline, name: headline.get(name, self.value)},
            **self.judge.condition_facts(self.problem, self.placement),
            "bound": self.bound,
            "gap": self.gap,
            **({} if self.least_load is None else {"least_load": self.least_load}),
            **({"levels": list(self.levels)} if self.levels else {}),
            **({"steps": [asdict(step) for step in self.steps]} if self.steps else {}),
            **self._advice(),
            "verdict": self.verdict,
            "assumptions": list(assumptions(self.problem)),
            **likely,
            "placer": self.placer,
            "seed": self.seed,
            "seconds": self.seconds,
        }

    def _advice(self) -> dict[str, Any]:
        """Remedies of a throughput, and the value of placing subtasks one by one."""
        remedies = getattr(self.explain(), "remedies", None)
        facts = {} if remedies is None else {"remedies": [asdict(remedy) for remedy in remedies]}
        by_subtasks = self.by_subtasks
        return facts | ({} if by_subtasks is None else {"by_subtasks": by_subtasks})

    @property
    def _parallel(self) -> Mapping[str, int]:
        return self.parallelism or self.problem.graph.operators.parallel

    @property
    def verdict(self) -> str:
        """Distance from the best possible value, and the bottleneck, in one sentence."""
        return verdict(self.value, self.bound, self.explain())

    @property
    def bottleneck(self) -> "FullestResource | None":
        """Fullest resource, with its ``label``, ``load`` and the operators that it carries.

        None for objectives of a single pass, which no resource limits alone.
        """
        explanation: Any = self.explain()
        limit: FullestResource | None = getattr(
            getattr(explanation, "beside", None) or explanation, "bottleneck", None
        )
        return limit

    def to_pandas(self) -> "DataFrame":
        """Table of the operators with their devices, one row each."""
        return self.placement.to_pandas()

    def facts(self) -> dict[str, Any]:
        """Return what a placement file says besides the placement."""
        share = self.explain().headline().get("relative_throughput")
        return {
            "graph": self.problem.graph.name,
            "placer": self.placer,
            "rate": self.problem.graph.source_rate,
            "objective": self.objective,
            "value": self.value,
            **({} if share is None else {"relative_throughput": share}),
            **prediction_facts(self.capacity, self.errors.supported if self.errors else 0.0),
            "parallelism": self._parallel,
        }

    def plot(self) -> PlacementDrawing:
        """Draw the graph with its placement, as `draw` does; notebooks show the drawing."""
        drawing: PlacementDrawing = importlib.import_module(PICTURES).drawing_of(self)
        return drawing

    def save(self, path: str | PathLike[str]) -> None:
        """Write a file.

        A placement for other commands if its name ends in .json, a report for .html, a picture
        for .svg: the placement, or what each number of moves reaches.
        """
        target = Path(path)
        if target.suffix == ".html":
            self.report().save(target)
        elif target.suffix in (".svg", ".json"):
            self.write(target)
        else:
            raise SettingError(
                f"{spot(target)} must end in .json (a placement), .html (a report), or .svg (a "
                "picture)"
            )

    def write(self, path: Path) -> str:
        """Write a picture if the name ends in .svg, else a placement; return the noun."""
        if path.suffix != ".svg":
            write_placement(self.placement, path, **self.facts())
            return "placement"
        if self.steps:
            importlib.import_module(CURVE).save_steps(self, path)
        else:
            self.plot().save(path)
        return "picture"

    def __repr__(self) -> str:
        value = self.judge.format(self.value)
        return f"<Result of {self.placer}: {self.objective} {value}, {self.placement!r}>"


def verified(result: Result, claim: float | None) -> Result:
    """Return a result without its bound if the value refutes it; log a wrong claim of its search.

    A placement that misses a condition raises PlacementError, and so does one whose value is no
    finite number.
    """
    objective, value, bound = result.judge, result.value, result.bound
    require_conditions(result.problem, objective, result.placement)
    if not isfinite(value):
        raise PlacementError(
            f"the {objective.name} of the placement is {value}: it carries nothing, or the numbers "
            "of the problem are too far apart to be calculated with; correct loads and units"
        )
    if claim is not None and not _equal(value, claim):
        name = result.placer, objective.name
        LOG.error("placer %s: %s is %.9g, but its search claims %.9g", *name, value, claim)
    if bound is not None and not isfinite(bound):
        LOG.error("placer %s: drops its bound of %s, %s", result.placer, objective.name, bound)
        bound = None
    if bound is not None and objective.better(value, bound) and not _equal(value, bound):
        name = result.placer, objective.name
        LOG.error("placer %s: drops its bound: %s is %.9g, better than %.9g", *name, value, bound)
        bound = None
    return replace(result, bound=bound)


def _equal(a: float, b: float) -> bool:
    return abs(a - b) <= PROVEN * max(abs(a), abs(b))


def proven(value: float, bound: float | None) -> bool:
    """Whether a value meets its bound up to rounding."""
    return bound is not None and abs(value - bound) <= PROVEN * abs(bound)


def verdict(value: float, bound: float | None, explanation: Explanation) -> str:
    """Verdict in one sentence."""
    if bound is None:
        return explanation.verdict
    if proven(value, bound):
        return f"the best possible, proven; {explanation.verdict}"
    if min(value, bound) <= 0:
        return explanation.verdict
    if value < bound:
        share = floor(1000 * value / bound * (1 + ROUNDING)) / 1000
        return f"at least {percent(share)} of the best possible; {explanation.verdict}"
    excess = ceil(1000 * (value / bound - 1) * (1 - ROUNDING)) / 1000
    return f"at most {percent(excess)} above the best possible; {explanation.verdict}"


def bound_in_words(objective: Objective, value: float, bound: float | None) -> str | None:
    """The bound in one sentence, with the gap if there is one.

    None if the placer looked for no bound, but others can prove one.
    """
    if bound is None:
        has_proofs = objective.usual_kind in ("rate", "pass")
        return None if has_proofs else "Bound: none; it is not proven that no placement is better"
    text = f"Bound: no placement is better than {objective.format(bound)}"
    if proven(value, bound):
        return text
    return f"{text} (gap {objective.format(abs(value - bound))})"

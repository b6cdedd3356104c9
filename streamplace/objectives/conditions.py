"""Conditions: the best by one objective among the placements that reach something by others."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from streamplace.errors import PlacementError, SettingError
from streamplace.model.arrays import Floats, Ints
from streamplace.model.messages import quoted
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.units import seconds
from streamplace.objectives.registry import Objective, named_objective

BEYOND: Final = 1e18
"""No value that a placement can have is as large."""
MET: Final = 1e-9
"""A condition is met up to this share of its limit."""

_WRITTEN = re.compile(r"\s*([\w-]+(?::[\w-]+=[\w-]+)*)\s*(>=|<=)\s*(.+?)\s*")


@dataclass(frozen=True, slots=True)
class Condition:
    """Another objective has to reach a limit: at least (max) or at most (min) so much.

    Examples
    --------
    >>> Condition.of("throughput >= 0.99").text
    'throughput>=0.99'
    """

    objective: Objective
    sense: str
    limit: float

    @classmethod
    def of(cls, text: str) -> "Condition":
        """Condition as people write it, such as ``throughput>=0.99`` or ``latency<=20ms``."""
        written = _WRITTEN.fullmatch(text)
        if written is None:
            raise SettingError(
                f"condition {quoted(text)} cannot be read; write OBJECTIVE>=NUMBER or "
                "OBJECTIVE<=NUMBER, as in throughput>=0.99 or latency<=20ms"
            )
        name, sign, number = written.groups()
        objective = named_objective(name)
        return cls(objective, "max" if sign == ">=" else "min", _number(number, objective, text))

    @property
    def text(self) -> str:
        """The condition as people write it."""
        return f"{self.objective.name}{'>=' if self.sense == 'max' else '<='}{self.limit:g}"

    def shortfall(
        self,
        problem: Problem,
        placements: Ints,
        priorities: Floats | None = None,
        queue: str = "priority",
    ) -> Floats:
        """How much is missing, as a share of the limit [B]; 0 where the condition is met."""
        values = self.objective.values(problem, placements, priorities, queue)
        lack = self.limit - values if self.sense == "max" else values - self.limit
        share = lack / max(abs(self.limit), 1e-300)
        return np.where(share > MET, share, 0.0)

    def check(self, problem: Problem) -> None:
        """Raise where it is known beforehand that no placement can meet it."""
        self.objective.check(problem)
        bound = self.objective.bound(problem)
        bound = self.objective.limit if bound is None else bound
        if bound is None or self.sense != self.objective.sense:
            return
        if self.objective.better(self.limit, bound) and abs(self.limit - bound) > MET * abs(bound):
            raise PlacementError(
                f"no placement meets {self.text}: {self.objective.name} is "
                f"{self.objective.told(bound)} at best; ask for that or less"
            )


def subject_to(objective: Objective, conditions: Sequence[Condition]) -> Objective:
    """Return the same objective, counting only placements that meet all conditions.

    A placement that does not is worse than any that does, and the worse the more is missing, so
    that a search finds its way.

    Examples
    --------
    >>> fewest = subject_to(named_objective("devices"), [Condition.of("throughput>=1")])
    >>> fewest.name, fewest.sense
    ('devices with throughput>=1', 'min')
    """
    if not conditions:
        return objective

    def evaluate(
        problem: Problem,
        placements: Ints,
        priorities: Floats | None = None,
        queue: str = "priority",
    ) -> Floats:
        values = objective.values(problem, placements, priorities, queue)
        missing = sum(
            (c.shortfall(problem, placements, priorities, queue) for c in conditions),
            np.zeros(len(values)),
        )
        worst = BEYOND * (1.0 + missing)
        return np.where(missing > 0, worst if objective.sense == "min" else -worst, values)

    texts = ", ".join(sorted(condition.text for condition in conditions))
    return replace(
        objective,
        name=f"{objective.name} with {texts}",
        evaluate=evaluate,
        ordered=objective.ordered or any(c.objective.ordered for c in conditions),
        usual=False,
        quick=False,
        base=objective,
        conditions=tuple(conditions),
    )


def demanded(problem: Problem, objective: Objective, placement: Placement) -> None:
    """Raise PlacementError where a placement misses a condition, saying what it reaches."""
    order = None if placement.priority is None else placement.priority[None, :]
    for condition in objective.conditions:
        missing = condition.shortfall(problem, placement.index[None, :], order, placement.queue)
        if missing[0] > 0:
            best = condition.objective
            reached = best.told(best.value(problem, placement))
            raise PlacementError(
                f"no placement was found with {condition.text}: the best one reaches "
                f"{best.name} {reached}; ask for less, or give a larger budget or more devices"
            )


def _number(text: str, objective: Objective, whole: str) -> float:
    if objective.unit == "s":
        return seconds(text)
    share = not objective.unit and text.endswith("%")
    try:
        number = float(text.removesuffix("%")) / (100 if share else 1)
    except ValueError:
        number = np.nan
    if not np.isfinite(number):
        raise SettingError(f"condition {quoted(whole)}: {quoted(text)} is no number")
    return number

"""Explanations of placements: their value and its causes, for people, machines and drawings."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from streamplace.display.assumptions import assumed
from streamplace.display.report import Names, Report, Sheet, brief_and_detail
from streamplace.display.sheets import with_counts, with_rest
from streamplace.model.arrays import Bools
from streamplace.model.mixins import Displayed, verdict_of
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.subtasks import operators_by_subtask

if TYPE_CHECKING:
    from pandas import DataFrame
    from streamsim.passes import Schedule

MAX_CANDIDATES = 64
"""Operators, and pairs of them, whose moves are tried for advice."""
MAX_LISTED, MAX_NAMED = 3, 2
"""Rows of a secondary table that a terminal lists, and things that a sentence names."""


class Explanation(Protocol):
    """Value of a placement, and its causes."""

    @property
    def value(self) -> float:
        """Value of the placement."""
        ...

    @property
    def words(self) -> str:
        """Value in words."""
        ...

    @property
    def verdict(self) -> str:
        """One sentence on the quality of the placement and its limit."""
        ...

    def headline(self) -> dict[str, Any]:
        """Main facts, which ``place --json`` prints in addition to the value."""
        ...

    def document(self) -> dict[str, Any]:
        """All facts as a JSON document."""
        ...

    def brief(self) -> Report:
        """Short report, which ``place`` prints."""
        ...

    def report(self) -> Report:
        """Full report: the limits, and what to move."""
        ...


@dataclass(frozen=True, slots=True)
class MoveAdvice:
    """Operators to move to a device, and the resulting value by the objective."""

    operators: tuple[str, ...]
    device: str
    value: float


def together(problem: Problem, groups: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Extend groups by the operators that must share a device with theirs, without duplicates."""
    if problem.rules is None:
        return groups
    unit = problem.rules.unit
    whole = (np.flatnonzero(np.isin(unit, unit[list(group)])) for group in groups)
    return list(dict.fromkeys(tuple(rows.tolist()) for rows in whole))


@dataclass(frozen=True)
class AdvisingExplanation(Displayed):
    """Base of explanations with the move that helps most."""

    # The search takes longer than everything else, so it runs at the first access of ``move``.
    find_move: Callable[[], MoveAdvice | None] = field(repr=False, compare=False)

    @cached_property
    def move(self) -> MoveAdvice | None:
        """Move that helps most; None if none helps or nothing limits."""
        return self.find_move()

    def move_facts(self, quantity: str) -> dict[str, Any] | None:
        """The move as a JSON document, with the name of the value."""
        move = self.move
        if move is None:
            return None
        return {"operators": [*move.operators], "device": move.device, quantity: move.value}

    def move_words(self, tell: Callable[[float], str]) -> str:
        """The move in a sentence, with its value in words."""
        if self.move is None:
            return "No move of one operator or two neighbours helps; try: streamplace place"
        who, then = " and ".join(self.move.operators), tell(self.move.value)
        return f"What to move: {who} to {self.move.device} would give {then}"


@dataclass(frozen=True, slots=True)
class PlainExplanation(Displayed):
    """Explanation of any objective: the value, and the operators by device."""

    quantity: str  # name of the value
    value: float
    words: str  # the value in words, and the conditions that it meets
    placement: Placement
    beside: Explanation | None = None  # by another objective that is reported in addition
    assumptions: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """Value in words."""
        return self.words

    __repr__ = verdict_of

    def headline(self) -> dict[str, Any]:
        """Facts of the additional objective, or none."""
        return {} if self.beside is None else self.beside.headline()

    def document(self) -> dict[str, Any]:
        """Facts as a JSON document."""
        return {
            self.quantity: self.value,
            **self.headline(),
            "pes": self.placement.pes(),
            "assumptions": self.assumptions,
        }

    def to_pandas(self) -> "DataFrame":
        """Table of the operators with their devices, one row each."""
        return self.placement.to_pandas()

    def brief(self) -> Report:
        """Operators by device."""
        lines = getattr(self.beside, "source_lines", ())
        return Report((*brief_and_detail(self._sheet), *lines))

    def report(self) -> Report:
        """Operators by device, and the value."""
        return Report((*self.brief().parts, *assumed(self.assumptions)), self.words)

    def _sheet(self, is_brief: bool) -> Sheet:
        """Operators by device, subtasks by their operators."""
        operators = operators_by_subtask(self.placement.operators)
        rows = [
            (device, Names.of(with_counts(names, operators) if is_brief else names, lines=2))
            for device, names in self.placement.pes().items()
        ]
        return with_rest(Sheet(("device", "operators"), tuple(rows)))


@dataclass(frozen=True, slots=True)
class Picture:
    """Marks of one placement."""

    title: str  # value in a few words
    subtitle: str  # smaller text below the title, such as the bottleneck
    operators: Bools  # [N] operators with a red frame
    streams: Bools  # [M] streams in red, in the graph's order
    devices: tuple[str, ...] = ()  # [D] text of the legend for every device; empty without any


class PassTimeline(NamedTuple):
    """One pass under a placement, and the rule by which a free core chooses."""

    schedule: "Schedule"
    queue: str  # as in `streamsim.passes.Rules`

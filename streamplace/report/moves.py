"""A move of a running job as the subject of a report."""

from collections.abc import Mapping
from dataclasses import dataclass

from streamplace.drawing.named_placements import NamedPlacements
from streamplace.model.display import Displayed
from streamplace.model.report import Report, Sheet

MovedSubtasks = Mapping[str, tuple[Mapping[str, int], Mapping[str, int]]]
"""Operator → its subtasks by device before and after, for operators that move."""


@dataclass(frozen=True, slots=True)
class PlannedMoves(Displayed):
    """Operators that move, and the new placement if the job was measured."""

    moved: MovedSubtasks
    placed: NamedPlacements | None = None

    def report(self) -> Report:
        """Operators with their devices before and after."""
        rows = tuple(
            (name, in_words(before), in_words(after))
            for name, (before, after) in self.moved.items()
        )
        parts = () if self.placed is None else self.placed.report().parts
        return Report((Sheet(("moves", "from", "to"), rows, names=0), *parts), "", self)


def in_words(counts: Mapping[str, int]) -> str:
    """Numbers of subtasks by device, in words."""
    return ", ".join(f"{d} × {n}" if n > 1 else d for d, n in sorted(counts.items())) or "—"

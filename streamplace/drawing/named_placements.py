"""Named placements of one problem, for drawings and reports."""

from dataclasses import dataclass

from streamplace.model.display import Displayed
from streamplace.model.messages import shown
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.report import Report, Sheet
from streamplace.objectives.registry import Objective


@dataclass(frozen=True, slots=True)
class NamedPlacements(Displayed):
    """A problem, placements of it by name, and the objective that evaluates them."""

    problem: Problem
    placements: tuple[tuple[str, Placement], ...]
    judge: Objective

    def report(self) -> Report:
        """Value and bottleneck of every placement."""
        pictures = [
            self.judge.pictured(self.problem, placement) for _, placement in self.placements
        ]
        rows = tuple(
            (shown(name), picture.title, picture.subtitle)
            for (name, _), picture in zip(self.placements, pictures, strict=True)
        )
        sheet = Sheet(("placement", self.judge.name, ""), rows, names=0)
        return Report((sheet,), self.problem.graph.report().title, self)

"""Answers of placers as users see them: verdict, bottleneck, picture, and files."""

import importlib
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from streamplace.errors import SettingError
from streamplace.model.display import PICTURES, Pictured
from streamplace.placers.verdict import verdict

if TYPE_CHECKING:
    from streamplace.model.placement import Placement
    from streamplace.model.problem import Problem
    from streamplace.objectives.explanation import Explanation
    from streamplace.objectives.throughput.loads import FullestResource

DRAWN = (".svg", ".png", ".pdf")


class PlacementDrawing(Protocol):
    """Drawing of a placement, which notebooks show."""

    def svg(self) -> str:
        """Text of the drawing as SVG."""
        ...

    def save(self, path: Path) -> None:
        """Write an .svg, .png, .pdf or .html file."""
        ...


class Answer(Pictured):
    """Base of `Result` with what follows from its placement."""

    __slots__ = ()

    if TYPE_CHECKING:
        placement: Placement
        objective: str
        value: float
        placer: str
        bound: float | None
        problem: Problem

        def explain(self) -> Explanation:
            """Explain the value of the placement."""

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

    def plot(self) -> PlacementDrawing:
        """Draw the graph with its placement, as `draw` does; notebooks show the drawing."""
        drawing: PlacementDrawing = importlib.import_module(PICTURES).drawing_of(self)
        return drawing

    def save(self, path: str | PathLike[str]) -> None:
        """Write a file.

        A placement for other commands if its name ends in .json, a report for .html, a picture
        for .svg, .png or .pdf.
        """
        target = Path(path)
        if target.suffix == ".html":
            self.report().save(target)
        elif target.suffix in DRAWN:
            self.plot().save(target)
        elif target.suffix == ".json":
            from streamplace.io.placements import write_placement

            share = self.explain().headline().get("relative_throughput")
            write_placement(
                self.placement,
                target,
                graph=self.problem.graph.name,
                placer=self.placer,
                objective=self.objective,
                value=self.value,
                **({} if share is None else {"relative_throughput": share}),
            )
        else:
            raise SettingError(
                f"{target} must end in .json (a placement), .html (a report), or "
                f"{', '.join(DRAWN)} (a picture)"
            )

"""Pictures that notebooks show of graphs, problems and results."""

from typing import TYPE_CHECKING, Protocol

from streamplace.drawing.figures import svg_text
from streamplace.drawing.graphs import draw_graph, draw_placements
from streamplace.model.graph import StreamGraph
from streamplace.model.problem import Problem
from streamplace.placers.registry import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_SHOWN = 1000
"""Operators up to which a picture is drawn unasked."""


class Plotted(Protocol):
    """Something that draws itself."""

    def figure(self) -> "Figure":
        """Return its picture."""
        ...


def svg_of(item: StreamGraph | Problem | Result | Plotted) -> str | None:
    """SVG of what draws itself, of a graph, or of a placement of one.

    None where the graph is too large to read.
    """
    if not isinstance(item, StreamGraph | Problem | Result):
        return svg_text(item.figure())
    if isinstance(item, Result):
        graph = item.problem.graph
    else:
        graph = item.graph if isinstance(item, Problem) else item
    if graph.n_operators > MOST_SHOWN:
        return None
    if isinstance(item, Result):
        placed = [(item.placer, item.placement)]
        return draw_placements(item.problem, placed, item.judge).svg()
    return draw_graph(graph).svg()

"""Pictures of graphs, problems and results in notebooks."""

from typing import TYPE_CHECKING, Protocol

from streamplace.drawing.figures import svg_text
from streamplace.drawing.graphs import Drawing, draw_graph, draw_placements
from streamplace.model.graph import StreamGraph
from streamplace.model.problem import Problem
from streamplace.placers.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_SHOWN = 1000
"""Most operators of a graph that notebooks draw by default."""


class Plotted(Protocol):
    """Object that draws itself."""

    def figure(self) -> "Figure":
        """Draw the object."""
        ...


def svg_of(item: StreamGraph | Problem | Result | Plotted) -> str | None:
    """Render an object that draws itself, a graph, or a placement, as SVG.

    None if the graph is too large to be legible.
    """
    if not isinstance(item, StreamGraph | Problem | Result):
        return svg_text(item.figure())
    if isinstance(item, Result):
        graph = item.problem.graph
    else:
        graph = item.graph if isinstance(item, Problem) else item
    if graph.n_operators > MOST_SHOWN:
        return None
    return drawing_of(item).svg() if isinstance(item, Result) else draw_graph(graph).svg()


def drawing_of(result: Result) -> Drawing:
    """Draw the placement of a result, however large the graph is."""
    placed = [(result.placer, result.placement)]
    return draw_placements(result.problem, placed, result.judge)

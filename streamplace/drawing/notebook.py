"""Pictures that notebooks show of graphs, problems and results."""

from streamplace.drawing.graphs import draw_graph, draw_placements
from streamplace.model.graph import StreamGraph
from streamplace.model.problem import Problem
from streamplace.placers.registry import Result

MOST_SHOWN = 1000
"""Operators up to which a picture is drawn unasked."""


def svg_of(item: StreamGraph | Problem | Result) -> str | None:
    """SVG of a graph, or of a placement of one; None where the graph is too large to read."""
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

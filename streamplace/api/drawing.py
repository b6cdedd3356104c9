"""Drawing graphs and placements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING

from streamplace.api.arguments import (
    GraphLike,
    PandasSeries,
    PlacementLike,
    graph_of,
    objective_of,
    placed_problem,
    problem_of,
)
from streamplace.errors import SettingError
from streamplace.io.files import check_suffix
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.units import Quantity
from streamplace.objectives.registry import Objective
from streamplace.placers.result import Result
from streamplace.settings.convert import ClusterLike, FilePath, is_path, path_of, wrong

if TYPE_CHECKING:
    from streamplace.drawing.graphs import Drawing


def draw(
    graph: GraphLike,
    placements: PlacementLike | Iterable[PlacementLike] | Mapping[str, PlacementLike] = (),
    cluster: ClusterLike | None = None,
    *,
    objective: str | Objective = "",
    rate: Quantity | None = None,
    out: FilePath | None = None,
) -> Drawing:
    """Draw a graph alone, or placements of it side by side.

    A box is an operator; its colour is the device, and a stream is as wide as its traffic. Dashed
    streams cross the network. The bottleneck, or for makespan the critical chain, is red. Without
    placements, darker boxes need more CPU. Above 200 operators, chains of operators share a box.

    Parameters
    ----------
    graph, cluster, rate
        As for `place`.
    placements
        One placement as for `simulate`, several, or several by name. Files are titled by their
        names, results by their placers.
    objective
        Objective that evaluates the placements, as for `place`.
    out
        File to write: .svg, or .html for a report, a page on which operators can be
        moved. Nothing is written without it.

    Returns
    -------
    Drawing
        Drawing that notebooks show; ``svg()`` is its text, ``save(path)`` writes a file.

    Examples
    --------
    >>> from streamplace import Operator, Stream, StreamGraph
    >>> graph = StreamGraph.of("pipe", [Operator("a", ipt=2e5, rate=1e4), Operator("b", ipt=2e5)],
    ...                        [Stream("a", "b")])
    >>> draw(graph, {"a": "d0", "b": "d1"}).svg().startswith("<svg")
    True
    """
    from streamplace.drawing.graphs import SUFFIXES, draw_graph, draw_placements

    target = None if out is None else path_of("out", out)
    if target is not None:
        check_suffix(target, "a drawing", *SUFFIXES)
    named = _by_name(placements)
    if named:
        problem = problem_of(graph, cluster, rate=rate)
        placed = [(name, whole_placement(problem, placement)) for name, placement in named.items()]
        drawing = draw_placements(problem, placed, objective_of(problem, objective))
    else:
        if objective or cluster is not None:
            raise SettingError(
                "a graph alone has no devices and no value; give placements, or drop the "
                "objective and the cluster"
            )
        drawing = draw_graph(graph_of(graph, rate))
    if target is not None:
        drawing.save(target)
    return drawing


def whole_placement(problem: Problem, placement: PlacementLike) -> Placement:
    """Placement of the operators of a problem; raise SettingError for one of subtasks."""
    unit_problem, whole = placed_problem(problem, placement)
    if unit_problem is not problem:
        raise SettingError("the placement places subtasks; draw their graph: expand(graph).graph")
    return whole


def _by_name(
    placements: PlacementLike | Iterable[PlacementLike] | Mapping[str, PlacementLike],
) -> dict[str, PlacementLike]:
    """Placements by their titles."""
    if isinstance(placements, Placement | Result | PandasSeries) or is_path(placements):
        return {_name(placements): placements}
    if isinstance(placements, Mapping):
        several = all(
            isinstance(value, Placement | Result | PandasSeries | Mapping | Path)
            for value in placements.values()
        )
        alone = not several or "assignment" in placements
        return {"placement": placements} if alone else dict(placements)
    if isinstance(placements, Iterable):
        named: dict[str, PlacementLike] = {}
        for placement in placements:
            name = _name(placement)
            titles = chain([name], (f"{name} ({number})" for number in count(2)))
            named[next(title for title in titles if title not in named)] = placement
        return named
    raise wrong("placements", placements, "a placement, several, or several by name")


def _name(placement: PlacementLike) -> str:
    if isinstance(placement, Result):
        return placement.placer
    return Path(placement).stem if is_path(placement) else "placement"

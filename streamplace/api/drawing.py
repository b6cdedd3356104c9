"""``draw``: a graph alone, or placements of it side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamplace.errors import SettingError
from streamplace.io.suffixes import DRAWINGS
from streamplace.model.paths import FilePath
from streamplace.settings.convert import Objective
from streamplace.settings.option import argument, output
from streamplace.settings.shared import DeviceOptions, ObjectiveOptions
from streamplace.settings.verb import SILENT, Progress, Verb, Written

if TYPE_CHECKING:
    from streamplace.drawing.graphs import Drawing
    from streamplace.io.given import ClusterLike, GraphLike, PlacementLike
    from streamplace.model.placement import Placement
    from streamplace.model.problem import Problem
    from streamplace.model.units import Quantity


class Draw(ObjectiveOptions, DeviceOptions, Verb):
    """Draw GRAPH alone, or PLACEMENTS of it side by side.

    A box is an operator; its colour is the device, and a stream is as wide as its traffic. Dashed
    streams cross the network. What limits the objective is red: for throughput what uses the
    bottleneck, for makespan the critical chain. The title is the value of the placement. Without
    placements, darker boxes need more CPU. Above 200 operators, chains of operators share a box.
    """

    graph: Any = argument()
    placements: Any = argument(is_repeatable=True, is_needed=False)
    out: Path | None = output(
        "File to write: a drawing (.svg), or a report (.html).", suffixes=DRAWINGS, is_needed=True
    )

    def run(self, progress: Progress = SILENT) -> Written:
        """Draw, and name the placements."""
        from streamplace.io.given import title_of

        assert self.out is not None
        drawing, names = self.draw(), [title_of(each) for each in self.placements]
        noun = "report" if self.out.suffix == ".html" else "drawing"
        return Written(
            {"output": str(self.out), "placements": names},
            (f"{noun} → {self.out}",),
            write=drawing.save,
            page=drawing.subject.report if names else None,
        )

    def draw(self) -> Drawing:
        """Draw the placements, or the graph alone."""
        from streamplace.api.arguments import objective_of
        from streamplace.drawing.graphs import draw_graph, draw_placements
        from streamplace.io.given import graph_of, named_placements, problem_of

        machines = self.machines()
        if named := named_placements(self.placements):
            problem = problem_of(self.graph, machines, rate=self.rate)
            placed = [(name, whole_placement(problem, each)) for name, each in named.items()]
            return draw_placements(problem, placed, objective_of(problem, self.objective))
        if self.objective or machines is not None:
            raise SettingError(
                f"a graph alone has no devices and no value; add a placement, or drop "
                f"{self.name('objective')} and the options of the cluster"
            )
        return draw_graph(graph_of(self.graph, self.rate))


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
    from streamplace.io.files import check_suffix

    request = Draw.of(locals())
    if request.out is not None:
        check_suffix(request.out, "a drawing", *DRAWINGS)
    drawing = request.draw()
    if request.out is not None:
        drawing.save(request.out)
    return drawing


def whole_placement(problem: Problem, placement: PlacementLike) -> Placement:
    """Placement of the operators of a problem; raise SettingError for one of subtasks."""
    from streamplace.api.arguments import placed_problem

    unit_problem, whole = placed_problem(problem, placement)
    if unit_problem is not problem:
        raise SettingError("the placement places subtasks; draw their graph: expand(graph).graph")
    return whole

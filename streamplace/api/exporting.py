"""Export of placements in the formats of engines and other tools."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path

from streamplace.api.arguments import (
    GraphLike,
    PlacementLike,
    given_graph,
    given_placement,
    problem_of,
)
from streamplace.engines.deployment import Deployment
from streamplace.engines.reading import implied_cluster, read_assignment, read_placed_problem
from streamplace.engines.registry import EXPORTS, Export
from streamplace.io.files import located, make_folder, spot, write_texts
from streamplace.model.problem import Problem
from streamplace.settings.convert import (
    ClusterLike,
    ConstraintsLike,
    FilePath,
    cluster_of,
    constraints_of,
    path_of,
    wrong,
)


def export(
    graph: GraphLike,
    placement: PlacementLike,
    to: str,
    cluster: ClusterLike | None = None,
    *,
    constraints: ConstraintsLike | None = None,
    out: FilePath | None = None,
) -> dict[str, str]:
    """Export a placement in the format of an engine or of another tool.

    Parameters
    ----------
    graph, constraints
        As for `place`.
    placement
        As for `simulate`; files may also have a format that `export` writes and reads back.
    to
        Name of the format, such as ``flink`` or ``csv``. A warning tells if the format cannot
        hold the order of a schedule.
    cluster
        As for `place`; by default the devices that the placement names.
    out
        File to write, or a folder if the format has several files. Nothing is written without it.

    Returns
    -------
    dict
        Texts by file name.

    Examples
    --------
    >>> from streamplace import Operator, Stream, StreamGraph
    >>> graph = StreamGraph.of("pipe", [Operator("a", ipt=2e5, rate=1e4), Operator("b", ipt=2e5)],
    ...                        [Stream("a", "b")])
    >>> files = export(graph, {"a": "d0", "b": "d1"}, "csv")
    >>> files["placement.csv"].splitlines()[-1]
    'b,1,d1,,,'
    """
    if not isinstance(to, str):
        raise wrong("to", to, f"one of {', '.join(EXPORTS)}")
    form = EXPORTS[to]
    target = None if out is None else path_of("out", out)
    deployment = deployment_of(graph, given_placement(placement), cluster, constraints)
    files = dict(form.files(deployment))
    if loss := form.loss(deployment):
        warnings.warn(loss, stacklevel=2)
    if target is not None:
        write_export(form, files_at(form, files, target))
    return files


def deployment_of(
    graph: GraphLike,
    placement: Path | Mapping[str, str],
    cluster: ClusterLike | None,
    constraints: ConstraintsLike | None,
) -> Deployment:
    """Deployment of a graph by a placement, or by a file with one."""
    if not isinstance(placement, Path):
        return Deployment.of(_problem(graph, placement, cluster, constraints), placement)
    assignment = read_assignment(placement)
    problem = _problem(graph, assignment, cluster, constraints)
    with located(spot(placement)):
        return Deployment.of(problem, assignment)


def _problem(
    graph: GraphLike,
    assignment: Mapping[str, str],
    cluster: ClusterLike | None,
    constraints: ConstraintsLike | None,
) -> Problem:
    """Problem on its own cluster, on the cluster of the argument, or on the named devices."""
    known = given_graph(graph)
    if isinstance(known, Problem):
        return problem_of(known, cluster, constraints)
    devices, rules = cluster_of(cluster), constraints_of(constraints)
    if isinstance(known, Path):
        return read_placed_problem(known, assignment, devices, rules)
    return Problem(known, devices or implied_cluster(known, assignment), rules)


def files_at(form: Export, files: Mapping[str, str], target: Path) -> dict[Path, str]:
    """Texts by path: of the one file of a format, or of several in a folder."""
    return {target if form.suffix else target / name: text for name, text in files.items()}


def write_export(form: Export, texts: Mapping[Path, str]) -> None:
    """Write the files of an export, with the folders of a format of several files."""
    if not form.suffix:
        for folder in dict.fromkeys(path.parent for path in texts):
            make_folder(folder)
    write_texts(texts)

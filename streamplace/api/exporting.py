"""Export of placements in the formats of engines and other tools."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

from streamplace.api.arguments import (
    GraphLike,
    PlacementLike,
    given_graph,
    given_placement,
    problem_of,
)
from streamplace.engines.deployment import Deployment
from streamplace.engines.reading import implied_cluster, read_assignment, read_problem_for
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
    assigned = given_placement(placement)
    file = assigned if isinstance(assigned, Path) else None
    assignment = read_assignment(assigned) if isinstance(assigned, Path) else assigned
    deployment = deployment_of(graph, assignment, cluster, constraints, file)
    files = dict(form.files(deployment))
    if loss := form.loss(deployment):
        warnings.warn(loss, stacklevel=2)
    if target is not None:
        write_export(form, files_at(form, files, target))
    return files


def deployment_of(
    graph: GraphLike,
    assignment: Mapping[str, str],
    cluster: ClusterLike | None,
    constraints: ConstraintsLike | None,
    file: Path | None,
) -> Deployment:
    """Deployment of a graph on its own cluster, on that of the argument, or on the named devices.

    Errors of an assignment that was read name its file.
    """
    source = given_graph(graph)
    if isinstance(source, Problem):
        problem = problem_of(source, cluster, constraints)
    else:
        devices, rules = cluster_of(cluster), constraints_of(constraints)
        if isinstance(source, Path):
            problem = read_problem_for(source, assignment, devices, rules)
        else:
            problem = Problem(source, devices or implied_cluster(source, assignment), rules)
    with nullcontext() if file is None else located(spot(file)):
        return Deployment.of(problem, assignment)


def files_at(form: Export, files: Mapping[str, str], target: Path) -> dict[Path, str]:
    """Texts by path: of the one file of a format, or of several in a folder."""
    return {target if form.suffix else target / name: text for name, text in files.items()}


def write_export(form: Export, texts: Mapping[Path, str]) -> None:
    """Write the files of an export, with the folders of a format of several files."""
    if not form.suffix:
        for folder in dict.fromkeys(path.parent for path in texts):
            make_folder(folder)
    write_texts(texts)

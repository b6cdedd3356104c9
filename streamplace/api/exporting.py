"""``export``: a placement in the format of an engine or of another tool."""

from __future__ import annotations

import logging
import warnings
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamplace.errors import SettingError
from streamplace.io.suffixes import FILES
from streamplace.model.paths import FilePath, wrong
from streamplace.settings.convert import ClusterFile, Count
from streamplace.settings.option import WHERE, argument, names_in, option, output
from streamplace.settings.shared import ConstraintOptions
from streamplace.settings.verb import SILENT, Progress, Verb, Written

if TYPE_CHECKING:
    from streamplace.engines.deployment import Deployment
    from streamplace.io.given import ClusterLike, ConstraintsLike, GraphLike, PlacementLike

LOG = logging.getLogger(__name__)


class ExportPlacement(ConstraintOptions, Verb):
    """Write PLACEMENT as files for an engine, with instructions how to use and check them.

    PLACEMENT is a file that place wrote, or that export wrote in a form that can be read back.
    Without --cluster and --devices the devices are those that the placement names.
    """

    placement: Any = argument()
    to: str | None = option(
        "--to NAME", "Export to write.", choices=names_in("streamplace.engines.registry:EXPORTS")
    )
    graph: Any = option(
        "--graph FILE",
        "Graph that the placement is for.  [default: NAME.json or graph.json beside it]",
    )
    devices: Count | None = option(
        "--devices N",
        "Number of equal devices d0…  [default: the devices that the placement names]",
        WHERE,
    )
    cluster: ClusterFile = option(
        "--cluster FILE",
        "TOML file that describes the cluster (see: streamplace schema cluster).",
        WHERE,
    )
    out: Path | None = output(
        "File to write, or folder if the export consists of several files.",
        folder=None,
        keys=frozenset(),
    )

    def check(self) -> None:
        """Refuse a missing format, and two descriptions of the devices."""
        super().check()
        self.check_set("to")
        self.exclude("devices", "cluster")

    def run(self, progress: Progress = SILENT) -> Written:
        """Export a placement."""
        from streamplace.engines.registry import EXPORTS

        form, out = EXPORTS[self.to or ""], self.out
        if not (form.suffix or out or progress.as_json):
            raise SettingError(f"{form.name} has several files; give -o FOLDER")
        progress.check_kind(out, is_folder=not form.suffix)
        if form.suffix and out and out.suffix in FILES - {form.suffix}:
            raise SettingError(f"-o {out}: the name of this file must end in {form.suffix}")
        deployment = self.deployment(progress)
        if form.all_devices and deployment.is_split and not (self.cluster or self.devices):
            raise SettingError(
                "the placement assigns subtasks one by one, so Flink must know all devices of the "
                "cluster, including unused ones; give --cluster or --devices"
            )
        files = form.files(deployment)
        if loss := form.loss(deployment):
            progress.say(f"note: {loss}")
        if out is None:
            facts = {"export": form.name, "files": dict(files)}
            return Written(facts, text="".join(files.values()))
        texts = form.texts_at(out, files)
        progress.spare_inputs(*texts)
        if form.read or form.suffix != ".json":  # a device map is any mapping
            progress.spare_others(*texts)
        return Written(
            {"export": form.name, "output": str(out), "files": list(files)},
            (f"{form.name if form.suffix else ', '.join(files)} → {out}",),
            write=lambda _: form.save(texts),
        )

    def deployment(self, progress: Progress = SILENT) -> Deployment:
        """Deployment of the graph, by default of one beside the placement.

        The cluster is that of the problem or of the request, or the devices that the placement
        names. Errors of a placement from a file name the file.
        """
        from streamplace.engines.deployment import Deployment
        from streamplace.engines.reading import assignment_of, implied_cluster, read_problem_for
        from streamplace.io.files import located, read_bytes, spot
        from streamplace.io.given import cluster_of, given_graph, given_placement, problem_of
        from streamplace.io.graphs import Document
        from streamplace.model.problem import Problem

        assignment, graph = given_placement(self.placement), self.graph
        place: AbstractContextManager[None] = nullcontext()
        if isinstance(assignment, Path):
            content, path, place = read_bytes(assignment), assignment, located(spot(assignment))
            graph = _graph_beside(path, content, progress) if graph is None else graph
            assignment = assignment_of(content, path)
        assert graph is not None
        source, cluster = given_graph(graph), cluster_of(self.cluster or self.devices)
        if isinstance(source, Problem | Document):
            problem = problem_of(graph, cluster, self.constraints)
        elif isinstance(source, Path):
            problem = read_problem_for(source, assignment, cluster, self.constraints)
        else:
            cluster = cluster or implied_cluster(source, assignment)
            problem = Problem(source, cluster, self.constraints)
        with place:
            return Deployment.of(problem, assignment)


def _graph_beside(placement: Path, content: bytes, progress: Progress) -> Path:
    """File beside a placement that is named after its graph, or graph.json."""
    from streamplace.io.files import is_file, spot
    from streamplace.io.placements import parse_document

    name = ""
    if placement.suffix == ".json":
        name = parse_document(content, spot(placement)).get("graph", "")
    names = [f"{name}.json"] if name and Path(name).name == name else []
    names.append("graph.json")
    for name in names:
        path = placement.with_name(name)
        if path != placement and is_file(path):
            LOG.info("the graph is %s", path)
            progress.reads(path)
            return path
    raise SettingError(
        f"which graph does {placement} place? Give --graph FILE (there is no "
        f"{' or '.join(names)} beside it)"
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
    from streamplace.engines.registry import EXPORTS

    if not isinstance(to, str):
        raise wrong("to", to, f"one of {', '.join(EXPORTS)}")
    request, form = ExportPlacement.of(locals()), EXPORTS[to]
    deployment = request.deployment()
    files = dict(form.files(deployment))
    if loss := form.loss(deployment):
        warnings.warn(loss, stacklevel=2)
    if request.out is not None:
        form.save(form.texts_at(request.out, files))
    return files

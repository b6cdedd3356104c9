"""``streamplace export``: a placement in the format of an engine or another tool."""

import logging
from pathlib import Path

import click

from streamplace.cli import _options
from streamplace.cli._command import verb
from streamplace.cli._options import FILE
from streamplace.cli._output import print_file, print_json, say
from streamplace.errors import SettingError
from streamplace.settings.convert import ClusterFile, Count
from streamplace.settings.option import WHERE, names_in, option
from streamplace.settings.shared import ConstraintOptions

LOG = logging.getLogger(__name__)


class ExportSettings(ConstraintOptions):
    """What is exported, and for which devices."""

    to: str | None = option(
        "--to NAME", "Export to write.", choices=names_in("streamplace.engines.registry:EXPORTS")
    )
    graph: Path | None = option(
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

    def check(self) -> None:
        """Refuse what does not go together."""
        super().check()
        self.check_given("to")
        self.exclude("devices", "cluster")


@verb(
    "export",
    "Write a placement as files for an engine.",
    "export placement.json --graph graph.json --to ray -o ray/",
    settings=ExportSettings,
)
@click.argument("placement", type=FILE)
@_options.common(
    "File to write, or folder if the export consists of several files.",
    folder=None,
    keys=frozenset(),
)
def command(placement: Path, settings: ExportSettings, as_json: bool, output: Path | None) -> None:
    """Write PLACEMENT as files for an engine, with instructions how to use and check them.

    PLACEMENT is a file that place wrote, or that export wrote in a form that can be read back.
    Without --cluster and --devices the devices are those that the placement names.
    """
    from streamplace.api.exporting import deployment_of, files_at, write_export
    from streamplace.engines.reading import assignment_of
    from streamplace.engines.registry import EXPORTS
    from streamplace.io.files import read_bytes

    export = EXPORTS[settings.to or ""]
    if not (export.suffix or output or as_json):
        raise SettingError(f"{export.name} has several files; give -o FOLDER")
    _options.check_output(output, is_folder=not export.suffix)
    if export.suffix and output and output.suffix in _options.SUFFIXES - {export.suffix}:
        raise SettingError(f"-o {output}: the name of this file must end in {export.suffix}")
    content = read_bytes(placement)
    graph = settings.graph or _graph_beside(placement, content)
    assignment, cluster = assignment_of(content, placement), settings.cluster or settings.devices
    deployment = deployment_of(graph, assignment, cluster, settings.constraints, placement)
    if export.all_devices and deployment.is_split and not cluster:
        raise SettingError(
            "the placement assigns subtasks one by one, so Flink must know all devices of the "
            "cluster, including unused ones; give --cluster or --devices"
        )
    files = export.files(deployment)
    if loss := export.loss(deployment):
        say(f"note: {loss}")
    if output is not None:
        texts = files_at(export, files, output)
        _options.spare_inputs(*texts)
        if export.read or export.suffix != ".json":  # a device map is any mapping
            _options.spare_others(*texts)
        write_export(export, texts)
        facts = {"export": export.name, "output": str(output), "files": list(files)}
        if as_json:
            print_json(facts)
        else:
            say(f"{', '.join(files) if not export.suffix else export.name} → {output}")
    elif as_json:
        print_json({"export": export.name, "files": dict(files)})
    else:
        print_file("".join(files.values()))


def _graph_beside(placement: Path, content: bytes) -> Path:
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
            return _options.reads(path)
    raise SettingError(
        f"which graph does {placement} place? Give --graph FILE (there is no "
        f"{' or '.join(names)} beside it)"
    )

"""``streamplace flink jar``: a jar that pins its job, for clusters without uploads."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamplace.cli import _options
from streamplace.cli._flink import HOME, PLACEMENT
from streamplace.cli._options import FILE
from streamplace.cli._output import say, say_written
from streamplace.errors import SettingError

if TYPE_CHECKING:
    from streamplace.engines.flink.pin.pinning import Pinning, Vectors


@click.command(
    "jar",
    short_help="Write a jar that runs a job where it is placed.",
    epilog="Example: streamplace flink jar job.jar --placement placement.json "
    "--cluster cluster.toml -o placed.jar",
)
@click.argument("jar", type=FILE)
@PLACEMENT
@click.option(
    "--cluster",
    "cluster_file",
    type=FILE,
    help="Cluster file (TOML) of all devices, including those that are not used.",
)
@click.option(
    "--room",
    type=click.IntRange(0, 1000),
    default=0,
    show_default=True,
    help="Number of devices that may join later, as given to 'flink config'.",
)
@click.option("--entry-class", help="Main class of the job.  [default: the jar's own]")
@click.option(
    "--library",
    "libraries",
    type=FILE,
    multiple=True,
    help="Further jar that the job needs; it is packed into the new jar. May be repeated.",
)
@click.option(
    "--managed-memory",
    default="64MiB",
    show_default=True,
    help="Managed memory of each TaskManager (taskmanager.memory.managed.size).",
)
@_options.writes("Write the jar to this file.", required=True)
@HOME
def jar_(
    jar: Path,
    placement: Path,
    cluster_file: Path | None,
    room: int,
    entry_class: str | None,
    libraries: tuple[Path, ...],
    managed_memory: str,
    output: Path,
    flink_home: Path | None,
) -> None:
    """Write a jar that runs JAR's job where it is placed, for clusters that take no uploads.

    The new jar holds JAR and two small classes. Flink runs the class Placed, whose first argument
    is the job's own main class. Use it with 'flink run' or in application mode, also where
    web.submit.enable is false. Of jobs that spread operators over the same devices, only one at a
    time can run from such a jar, because each takes the group indexes from 0 on; 'apply' asks the
    cluster for free ones.
    """
    from streamplace.engines.flink.local.dist import find_flink
    from streamplace.engines.flink.pin.pinning import read_vectors
    from streamplace.engines.flink.program.jars import MAIN, check_jar, placed_jar
    from streamplace.engines.flink.program.program import Program
    from streamplace.model.units import size_bytes

    _options.spare_inputs(output)
    vectors = read_vectors(placement)
    answer = _pinning(vectors, cluster_file, room)
    for one in (jar, *libraries):
        check_jar(one)
    entry = Program(jar, entry_class).entry
    memory = int(size_bytes(managed_memory) // 2**20)
    managed = dict.fromkeys(_devices(vectors), memory)
    with placed_jar(find_flink(flink_home), jar, libraries, answer, managed) as made:
        shutil.copyfile(made, output)
    say_written("jar", output)
    say(f"run it by: flink run -c {MAIN} {output} {entry} ARGUMENTS")


def _pinning(vectors: "Vectors", cluster_file: Path | None, room: int) -> "Pinning":
    """Pinning on an empty cluster."""
    from streamplace.engines.flink.pin.names import unborn
    from streamplace.engines.flink.pin.pinning import devices_of, pinning
    from streamplace.engines.flink.pin.spread import SpreadLimits
    from streamplace.io.clusters import read_cluster

    if cluster_file is not None:
        devices = list(read_cluster(cluster_file).devices.name)
    elif any(len(set(devices_of(vector))) > 1 for vector in vectors.values()):
        raise SettingError(
            "the placement assigns subtasks one by one, so Flink must know all devices of the "
            "cluster, including unused ones; give --cluster"
        )
    else:
        devices = sorted(_devices(vectors))
    return pinning(vectors, SpreadLimits.untouched([*devices, *unborn(devices, room)]))


def _devices(vectors: "Vectors") -> set[str]:
    from streamplace.engines.flink.pin.pinning import devices_of

    return {device for vector in vectors.values() for device in devices_of(vector)}

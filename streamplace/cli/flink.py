"""``streamplace flink``: a running Flink, from measuring a job to seeing it placed."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamplace.cli._flink import BANDWIDTH, HOME, JOB, JSON, MIPS, SECONDS, asks
from streamplace.cli._flink_jar import jar_
from streamplace.cli._flink_jobs import apply_, cancel_, verify_
from streamplace.cli._flink_move import move_, savepoints_
from streamplace.cli._flink_union import split_, union_
from streamplace.cli._flink_watch import watch_
from streamplace.cli._options import FILE, writes
from streamplace.cli._output import print_about, print_file, print_json, print_line, say, waiting

if TYPE_CHECKING:
    from streamplace.engines.flink.rest import Rest


@click.group(
    "flink",
    epilog="Example: streamplace flink local --devices 5",
)
def command() -> None:
    """Measure, place and check jobs on a running Flink cluster."""


@command.command("fetch", epilog="Example: streamplace flink fetch")
@click.option("--version", help="Version of Flink.  [default: the one streamplace is tested with]")
def fetch(version: str | None) -> None:
    """Download Flink's libraries (230 MB) from PyPI into the user's cache folder, once."""
    from streamplace.engines.flink.dist import VERSION, fetch_flink

    flink = fetch_flink(version or VERSION)
    say(f"Flink {flink.version} is in {flink.home}")


@command.command("local", epilog="Example: streamplace flink local --devices 5")
@click.option("--devices", type=click.IntRange(1, 64), default=5, show_default=True)
@click.option("--port", type=click.IntRange(1, 65535), help="Port of REST.  [default: a free one]")
@click.option(
    "--keep",
    is_flag=True,
    help="Go on when a TaskManager ends, and tell the number of each process, so that a loss can "
    "be tried: kill -9 NUMBER.",
)
@HOME
def local(devices: int, port: int | None, keep: bool, flink_home: Path | None) -> None:
    """Run a session cluster on this machine, one TaskManager per device, until Ctrl-C.

    The devices are called dev-0, dev-1, …; each takes about 250 MB of memory. When one of them
    ends, so does the cluster, unless --keep is given.
    """
    import signal

    from streamplace.engines.flink.dist import find_flink
    from streamplace.engines.flink.local import check_port, local_cluster

    if port is not None:
        check_port(port)
    flink = find_flink(flink_home)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        say(f"starting Flink {flink.version} with {devices} TaskManagers")
        with local_cluster(flink, [f"dev-{i}" for i in range(devices)], port=port) as cluster:
            print_line(cluster.url)
            for device in cluster.devices if keep else ():
                say(f"TaskManager {device} is process {cluster.processes[device].pid}")
            say("ready; Ctrl-C stops it")
            cluster.watch_job_manager(say) if keep else cluster.watch()
    except KeyboardInterrupt:
        say("stopped")


@command.command("cluster", epilog="Example: streamplace flink cluster -o cluster.toml")
@asks
@MIPS
@BANDWIDTH
@JOB
@click.option(
    "--beside",
    multiple=True,
    help="Id of a job that stays where it runs: what its tasks take of each CPU is reserved.",
)
@SECONDS
@writes("Write the cluster to this TOML file.")
def cluster_(
    rest: "Rest",
    mips: str,
    bandwidth: str,
    job: str | None,
    beside: tuple[str, ...],
    seconds: float,
    output: Path | None,
) -> None:
    """Write the TaskManagers of a cluster as devices, for place and the others.

    What Java itself takes of TaskManagers on this machine is measured and reserved, and, where a
    job runs, what sending and receiving a tuple costs. Limits of their CPU are taken from their
    cgroups. With --beside, the others are placed around jobs that stay. --mips is the speed of a
    core of the devices, as for profile. Everything can be changed in the file.
    """
    from streamplace.engines.flink.cluster import unpinnable
    from streamplace.engines.flink.engine import FlinkEngine
    from streamplace.io.files import write_text

    with waiting(f"watching for {seconds:g} s"):
        engine = FlinkEngine(rest, mips=mips, bandwidth=bandwidth)
        measured = engine.cluster(job, seconds, beside=beside)
    size, text = measured.cluster().n_devices, measured.as_toml()
    if measured.java is None:
        say("note: what Java itself takes is not measured, no TaskManager is on this machine")
    for device in unpinnable(rest):
        say(f"note: nothing can be pinned to {device}; see: streamplace export --to flink")
    if output is None:
        print_file(text)
    else:
        write_text(output, text)
        say(f"{size} devices → {output}")


@command.command(
    "config", epilog="Example: streamplace flink config --cluster cluster.toml --room 3 -o config/"
)
@click.option("--cluster", "cluster_file", type=FILE, required=True, help="TOML file.")
@click.option(
    "--room",
    type=click.IntRange(0, 1000),
    default=0,
    show_default=True,
    help="Devices that may be added later, as new-1, new-2, …, while the others go on running.",
)
@click.option(
    "--layers",
    type=click.IntRange(1, 1000),
    help="Operators that may be spread in unequal numbers over one device at a time, of all jobs.  "
    "[default: 32 on up to 8 devices, 2 on 100]",
)
@writes("Folder for DEVICE.yaml files.", required=True)
def config_(cluster_file: Path, room: int, layers: int | None, output: Path) -> None:
    """Write what makes each TaskManager a device of the cluster.

    Append each file to conf/config.yaml of its TaskManager, once, and start it again. Whatever is
    placed later needs no restart. A TaskManager that is added later needs room from the start to
    have single subtasks of an operator placed on it: one that is started with new-1.yaml is the
    device new-1. Whole operators can be placed on any that offers its own resource.
    """
    from streamplace.engines.flink.config import cluster_settings
    from streamplace.io.clusters import read_cluster
    from streamplace.io.files import make_folder, write_text

    files = cluster_settings(read_cluster(cluster_file).devices.name, room, layers)
    make_folder(output)
    for name, text in files.items():
        write_text(output / name, text)
    say(f"{len(files)} files → {output}")


@command.command(
    "profile",
    epilog="Example: streamplace flink profile --rest http://localhost:8081 -o graph.json",
)
@asks
@JOB
@SECONDS
@MIPS
@writes("Write the graph to this file.")
@JSON
def profile_(
    rest: "Rest", job: str | None, seconds: float, mips: str, output: Path | None, as_json: bool
) -> None:
    """Measure a running job: rates, selectivities, payloads, CPU per tuple and parallelism.

    Run the job with chaining off (pipeline.operator-chaining.enabled: false), else operators that
    Flink fused are measured, and placed, as one. --mips is the speed of the devices that it runs
    on, as the cluster file has it. What could not be measured is told, and so is what the model
    predicts for the present placement, beside what was measured there.
    """
    from streamplace.engines.flink.jobs import only_job
    from streamplace.engines.flink.profile import profile
    from streamplace.io.graphs import graph_to_dict, write_graph
    from streamplace.model.graph import CONSISTENCY
    from streamplace.model.units import mips as parsed_mips

    speed = parsed_mips(mips)
    with waiting(f"watching for {seconds:g} s"):
        seen = profile(rest, only_job(rest, job), seconds)
    graph = seen.graph(speed)
    if output is not None:
        write_graph(graph, output)
    if as_json:
        print_json(graph_to_dict(graph))
    else:
        where = "" if output is None else f" → {output}"
        say(f"{graph.n_operators} operators, {graph.source_rate:g} tuples/s{where}")
        print_about(graph)
    if CONSISTENCY in graph.attributes:
        say(f"{CONSISTENCY}: {graph.attributes[CONSISTENCY]}")
    for doubt in seen.doubts:
        say(f"note: {doubt}")


for further in (apply_, jar_, move_, savepoints_, cancel_, verify_, watch_, union_, split_):
    command.add_command(further)

"""``streamplace flink``: a running Flink, from measuring a job to seeing it placed."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamplace.cli._options import DEFAULTS, FILE, writes
from streamplace.cli._output import console, print_file, print_json, print_line, say, waiting
from streamplace.errors import SettingError

if TYPE_CHECKING:
    from streamplace.engines.flink.rest import Rest
    from streamplace.engines.flink.verify import Verification

REST = click.option(
    "--rest",
    "url",
    default="http://localhost:8081",
    show_default=True,
    help="Address of Flink's REST interface, such as https://USER:PASSWORD@HOST:8081.",
)
JOB = click.option("--job", help="Id of the job; may be left out where only one runs.")
PLACEMENT = click.option(
    "--placement", type=FILE, required=True, help="Placement of its operators or subtasks (JSON)."
)
MIPS = click.option(
    "--mips", default=DEFAULTS["mips"], show_default=True, help="Speed of a core of the devices."
)
UNCOUNTED = (
    "the placement does not say how many subtasks its operators have, so they were not counted; "
    "a placement that 'streamplace place' writes does"
)
HOME = click.option("--flink-home", type=FILE, help="Home of a Flink, instead of $FLINK_HOME.")


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
@HOME
def local(devices: int, port: int | None, flink_home: Path | None) -> None:
    """Run a session cluster on this machine, one TaskManager per device, until Ctrl-C.

    The devices are called dev-0, dev-1, …; each takes about 250 MB of memory.
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
            say("ready; Ctrl-C stops it")
            cluster.watch()
    except KeyboardInterrupt:
        say("stopped")


@command.command("cluster", epilog="Example: streamplace flink cluster -o cluster.toml")
@REST
@MIPS
@click.option(
    "--bandwidth",
    default=DEFAULTS["bandwidth"],
    show_default=True,
    help="Of every link; Flink does not measure it.",
)
@writes("Write the cluster to this TOML file.")
def cluster_(url: str, mips: str, bandwidth: str, output: Path | None) -> None:
    """Write the TaskManagers of a cluster as devices, for place and the others."""
    from streamplace.engines.flink.cluster import cluster_toml, unpinnable
    from streamplace.engines.flink.rest import Rest
    from streamplace.io.clusters import parse_cluster
    from streamplace.io.files import write_text

    text = cluster_toml(Rest(url), mips, bandwidth)
    size = parse_cluster(text.encode(), "the cluster").n_devices
    for device in unpinnable(Rest(url)):
        say(f"note: nothing can be pinned to {device}; see: streamplace export --to flink")
    if output is None:
        print_file(text)
    else:
        write_text(output, text)
        say(f"{size} devices → {output}")


@command.command(
    "config", epilog="Example: streamplace flink config --cluster cluster.toml -o config/"
)
@click.option("--cluster", "cluster_file", type=FILE, required=True, help="TOML file.")
@writes("Folder for DEVICE.yaml files.", required=True)
def config_(cluster_file: Path, output: Path) -> None:
    """Write what makes each TaskManager a device of the cluster.

    Append each file to conf/config.yaml of its TaskManager, once, and start it again. Whatever is
    placed later needs no restart, unless the cluster gets another device.
    """
    from streamplace.engines.flink.config import cluster_settings
    from streamplace.io.clusters import read_cluster
    from streamplace.io.files import make_folder, write_text

    files = cluster_settings(read_cluster(cluster_file).devices.name)
    make_folder(output)
    for name, text in files.items():
        write_text(output / name, text)
    say(f"{len(files)} files → {output}")


@command.command(
    "profile",
    epilog="Example: streamplace flink profile --rest http://localhost:8081 -o graph.json",
)
@REST
@JOB
@click.option("--seconds", type=click.FloatRange(2, 3600), default=10.0, show_default=True)
@MIPS
@writes("Write the graph to this file.")
@click.option("--json", "as_json", is_flag=True, help="Print the graph as one JSON document.")
def profile_(
    url: str, job: str | None, seconds: float, mips: str, output: Path | None, as_json: bool
) -> None:
    """Measure a running job: rates, selectivities, payloads, CPU per tuple and parallelism.

    Run the job with chaining off (pipeline.operator-chaining.enabled: false), else operators that
    Flink fused are measured, and placed, as one. --mips is the speed of the devices that it runs
    on, as the cluster file has it. What could not be measured is told.
    """
    from streamplace.engines.flink.profile import profile
    from streamplace.engines.flink.rest import Rest
    from streamplace.io.graphs import graph_to_dict, write_graph
    from streamplace.model.units import mips as parsed_mips

    speed, rest = parsed_mips(mips), Rest(url)
    with waiting(f"watching for {seconds:g} s"):
        seen = profile(rest, _job(rest, job), seconds)
    graph = seen.graph(speed)
    if output is not None:
        write_graph(graph, output)
    if as_json:
        print_json(graph_to_dict(graph))
    else:
        where = "" if output is None else f" → {output}"
        say(f"{graph.n_operators} operators, {graph.source_rate:g} tuples/s{where}")
    for doubt in seen.doubts:
        say(f"note: {doubt}")


@command.command(
    "apply",
    epilog="Example: streamplace flink apply job.jar --placement placement.json -- --input x.csv",
)
@click.argument("jar", type=FILE)
@click.argument("arguments", nargs=-1)
@PLACEMENT
@click.option("--entry-class", help="Main class of the job.  [default: the jar's own]")
@click.option(
    "--savepoint", "saved", help="Savepoint (path or URI) whose state the job takes over."
)
@click.option(
    "--allow-non-restored",
    is_flag=True,
    help="Leave behind state in the savepoint that no operator takes over.",
)
@REST
@HOME
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
def apply_(
    jar: Path,
    arguments: tuple[str, ...],
    placement: Path,
    entry_class: str | None,
    saved: str | None,
    allow_non_restored: bool,
    url: str,
    flink_home: Path | None,
    as_json: bool,
) -> None:
    """Submit JAR, unchanged, so that every operator runs on the device that it is placed on.

    ARGUMENTS, after --, go to the job. A JDK must be installed: a small class is compiled and put
    beside the job, which then runs it. Operators whose parallelism the job leaves open get the one
    that they are placed with.
    """
    from streamplace.engines.flink.apply import apply
    from streamplace.engines.flink.dist import find_flink
    from streamplace.engines.flink.pinning import read_vectors
    from streamplace.engines.flink.rest import Rest
    from streamplace.engines.flink.state import Savepoint, left_behind

    if allow_non_restored and saved is None:
        raise SettingError("--allow-non-restored is for --savepoint; give both or neither")
    flink, rest, vectors = find_flink(flink_home), Rest(url), read_vectors(placement)
    if saved is None and (left := left_behind(rest, vectors)):
        say(f"note: the new job starts without state, but {left}")
    with waiting(f"submitting {jar.name}"):
        job = apply(
            rest,
            flink,
            jar,
            vectors,
            entry_class=entry_class,
            arguments=arguments,
            savepoint=None if saved is None else Savepoint(saved, allow_non_restored),
        )
    print_json({"job": job}) if as_json else print_line(job)


@command.command(
    "cancel",
    epilog="Example: streamplace flink cancel --savepoint file:///var/flink/savepoints",
)
@REST
@JOB
@click.option("--savepoint", "folder", help="Folder (path or URI) to save its state in.")
@click.option("--drop-state", is_flag=True, help="End it even if the state it has saved is lost.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
def cancel_(url: str, job: str | None, folder: str | None, drop_state: bool, as_json: bool) -> None:
    """End a job and wait until its slots are free; with --savepoint, print the path of its state.

    A job that has completed checkpoints has state: say whether to save or to drop it.
    """
    from streamplace.engines.flink.rest import Rest
    from streamplace.engines.flink.state import saved_by, stop

    rest = Rest(url)
    ended, path = _job(rest, job), None
    if folder is not None:
        with waiting("saving"):
            path = stop(rest, ended, folder)
    elif not drop_state and (saved := saved_by(rest, ended)):
        raise SettingError(f"{saved}; to end it without, give --drop-state")
    else:
        rest.cancel(ended)
    print_json({"job": ended, "savepoint": path}) if as_json else print_line(path or ended)


@command.command(
    "verify",
    epilog="Example: streamplace flink verify --rest http://localhost:8081 "
    "--placement placement.json",
)
@REST
@JOB
@PLACEMENT
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
@click.pass_context
def verify_(
    context: click.Context, url: str, job: str | None, placement: Path, as_json: bool
) -> None:
    """Ask Flink where every subtask of a job runs; exit code 1 when anything differs.

    Subtasks on other devices than placed differ, and so do too few or too many of them.
    """
    from streamplace.engines.flink.pinning import read_vectors
    from streamplace.engines.flink.rest import Rest
    from streamplace.engines.flink.verify import verify

    rest = Rest(url)
    found = verify(rest, _job(rest, job), read_vectors(placement))
    print_json(_verification(found)) if as_json else _show(found)
    context.exit(0 if found.fine else 1)


def _job(rest: "Rest", given: str | None) -> str:
    """Id of the job that is meant: the only one that has not ended, in whatever state."""
    if given is not None:
        return given
    from streamplace.model.messages import listed, shown

    states, live = rest.jobs(), rest.live_jobs()
    if len(live) > 1:
        raise SettingError(f"{len(live)} jobs run: {listed(live)}; give --job ID")
    if not live:
        others = "; ".join(f"{shown(name)} is {shown(states[name])}" for name in [*states][:8])
        raise SettingError(f"no job runs{others and f' ({others})'}; start one, or give --job ID")
    return live[0]


def _verification(found: "Verification") -> dict[str, Any]:
    return {
        "ok": found.fine,
        "problems": list(found.problems),
        "uncounted": list(found.uncounted),
        "operators": [
            {
                "name": check.operator,
                "ok": check.fine,
                "expected": dict(check.expected),
                "actual": dict(check.actual),
            }
            for check in found.checks
        ],
    }


def _show(found: "Verification") -> None:
    from rich.table import Table

    out = console()
    table = Table("operator", "expected", "actual", "", box=None)
    for check in found.checks:
        columns = (_counts(check.expected), _counts(check.actual))
        table.add_row(check.operator, *columns, "ok" if check.fine else "differs")
    out.print(table)
    for problem in found.problems:
        out.print(f"problem: {problem}")
    if found.uncounted:
        out.print(f"note: {UNCOUNTED}")
    wrong = sum(not check.fine for check in found.checks)
    out.print(
        "Every subtask runs where it was placed."
        if found.fine
        else f"{wrong} of {len(found.checks)} operators differ."
    )


def _counts(counts: Any) -> str:
    return ", ".join(f"{d} × {n}" if n > 1 else d for d, n in sorted(counts.items())) or "—"

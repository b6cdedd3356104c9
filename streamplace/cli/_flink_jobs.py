"""``streamplace flink`` on jobs: apply, move, cancel and verify."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamplace.cli._flink import (
    ALLOW_NON_RESTORED,
    HOME,
    JOB,
    JSON,
    MIPS,
    PLACEMENT,
    SECONDS,
    TIMEOUT,
    asks,
    in_words,
    job_id,
    program_of,
    show,
    submits,
    verification,
)
from streamplace.cli._options import DEFAULTS, FILE
from streamplace.cli._output import print_json, print_line, say, waiting
from streamplace.errors import SettingError

if TYPE_CHECKING:
    from streamplace.engines.flink.move import Plan
    from streamplace.engines.flink.pinning import Vectors
    from streamplace.engines.flink.rest import Rest


@click.command(
    "apply",
    epilog="Example: streamplace flink apply job.jar --placement placement.json -- --input x.csv",
)
@submits
@PLACEMENT
@click.option(
    "--savepoint", "saved", help="Savepoint (path or URI) whose state the job takes over."
)
@ALLOW_NON_RESTORED
@TIMEOUT
@asks
@HOME
@JSON
def apply_(
    placement: Path,
    saved: str | None,
    allow_non_restored: bool,
    timeout: float,
    rest: "Rest",
    flink_home: Path | None,
    as_json: bool,
    **submitted: Any,
) -> None:
    """Submit JAR, unchanged, so that every operator runs on the device that it is placed on.

    ARGUMENTS, after --, go to the job. A JDK must be installed: two small classes are compiled and
    put beside the job, which then run it. Operators whose parallelism the job leaves open get the
    one that they are placed with.
    """
    from streamplace.engines.flink.apply import apply
    from streamplace.engines.flink.dist import find_flink
    from streamplace.engines.flink.pinning import read_vectors
    from streamplace.engines.flink.rest import FINISHED, finished
    from streamplace.engines.flink.state import Savepoint, left_behind

    if allow_non_restored and saved is None:
        raise SettingError("--allow-non-restored is for --savepoint; give both or neither")
    program = program_of(**submitted)
    flink, vectors = find_flink(flink_home), read_vectors(placement)
    if saved is None and (left := left_behind(rest, vectors)):
        say(f"note: the new job starts without state, but {left}")
    savepoint = None if saved is None else Savepoint(saved, allow_non_restored)
    with waiting(f"submitting {program.jar.name}"):
        job = apply(rest, flink, program, vectors, savepoint=savepoint, seconds=timeout)
    if rest.job(job)["state"] == FINISHED:
        say(f"note: {finished(job)}")
    print_json({"job": job}) if as_json else print_line(job)


@click.command(
    "move",
    epilog="Example: streamplace flink move job.jar --savepoints file:///var/flink/savepoints "
    "--placement placement.json -- --input x.csv",
)
@submits
@JOB
@click.option(
    "--placement",
    type=FILE,
    help="Placement of its operators or subtasks (JSON).  [default: measure and place it]",
)
@click.option("--cluster", "cluster_file", type=FILE, help="Devices to place it on (TOML).")
@SECONDS
@MIPS
@click.option(
    "--savepoints", "folder", help="Folder (path or URI) for its state.  [default: the cluster's]"
)
@ALLOW_NON_RESTORED
@TIMEOUT
@click.option("--dry-run", is_flag=True, help="Only tell what would be done.")
@asks
@HOME
@JSON
def move_(
    job: str | None,
    placement: Path | None,
    cluster_file: Path | None,
    seconds: float,
    mips: str,
    folder: str | None,
    allow_non_restored: bool,
    timeout: float,
    dry_run: bool,
    rest: "Rest",
    flink_home: Path | None,
    as_json: bool,
    **submitted: Any,
) -> None:
    """Move a running job, with its state, to where it is placed.

    JAR, its options and ARGUMENTS are what the job was submitted with. It is stopped with a
    savepoint, started from there where it is placed, and verified; if that fails it is started
    where it ran, from the same savepoint. Before it is stopped, its main method is run twice
    without submitting anything, so that what does not fit is told while the job runs.
    """
    from streamplace.engines.flink.dist import find_flink
    from streamplace.engines.flink.move import Move
    from streamplace.engines.flink.pinning import read_vectors

    program, flink = program_of(**submitted), find_flink(flink_home)
    running = job_id(rest, job)
    if placement is None:
        vectors = _placed_anew(rest, running, seconds, mips, cluster_file)
    else:
        vectors = read_vectors(placement)
    move = Move(rest, flink, program, say, folder, allow_non_restored, timeout)
    plan = move.plan(running, vectors)
    new, path = running, None
    _tell(plan)
    if plan.moved and not dry_run:
        new, path = move.run(plan)
    if as_json:
        print_json(
            {
                "job": new,
                "before": running,
                "savepoint": path,
                "moved": {
                    name: {"from": source, "to": target}
                    for name, (source, target) in plan.moved.items()
                },
            }
        )
    else:
        print_line(new)


def _placed_anew(
    rest: "Rest", job: str, seconds: float, mips: str, cluster_file: Path | None
) -> "Vectors":
    """Placement of a running job, measured now."""
    from streamplace.api import place
    from streamplace.engines.flink.background import background
    from streamplace.engines.flink.cluster import cluster_toml
    from streamplace.engines.flink.pinning import vectors_of
    from streamplace.engines.flink.profile import profile
    from streamplace.io.clusters import parse_cluster, read_cluster
    from streamplace.model.units import mips as parsed_mips

    with waiting(f"watching for {seconds:g} s"):
        seen = profile(rest, job, seconds)
    graph = seen.graph(parsed_mips(mips))
    for doubt in seen.doubts:
        say(f"note: {doubt}")
    if cluster_file is None:
        with waiting(f"watching the TaskManagers for {seconds:g} s"):
            java, overhead = background(rest, job, seconds)
        bandwidth = str(DEFAULTS["bandwidth"])
        text = cluster_toml(rest, mips, bandwidth, java.java if java.managers else None, overhead)
        cluster = parse_cluster(text.encode(), "the cluster")
    else:
        cluster = read_cluster(cluster_file)
    found = place(graph, cluster)
    say(f"placed by {found.placer}: relative throughput {found.value:.4g}")
    return vectors_of(found.placement.as_dict(), graph.operators.parallel)


def _tell(plan: "Plan") -> None:
    for name, (source, target) in plan.moved.items():
        say(f"  {name}: {in_words(source)} → {in_words(target)}")
    if not plan.moved:
        say("every subtask is already where it is placed; nothing is moved")


@click.command(
    "cancel",
    epilog="Example: streamplace flink cancel --savepoint file:///var/flink/savepoints",
)
@asks
@JOB
@click.option("--savepoint", "folder", help="Folder (path or URI) to save its state in.")
@click.option("--drop-state", is_flag=True, help="End it even if the state it has saved is lost.")
@JSON
def cancel_(
    rest: "Rest", job: str | None, folder: str | None, drop_state: bool, as_json: bool
) -> None:
    """End a job and wait until its slots are free; with --savepoint, print the path of its state.

    A job that has completed checkpoints has state: say whether to save or to drop it.
    """
    from streamplace.engines.flink.rest import FINISHED, finished
    from streamplace.engines.flink.state import saved_by, stop

    ended, path = job_id(rest, job), None
    if rest.jobs().get(ended) == FINISHED:
        raise SettingError(f"{finished(ended)}; there is nothing to end")
    if folder is not None:
        with waiting("saving"):
            path = stop(rest, ended, folder)
    elif not drop_state and (saved := saved_by(rest, ended)):
        raise SettingError(f"{saved}; to end it without, give --drop-state")
    else:
        rest.cancel(ended)
    print_json({"job": ended, "savepoint": path}) if as_json else print_line(path or ended)


@click.command(
    "verify",
    epilog="Example: streamplace flink verify --rest http://localhost:8081 "
    "--placement placement.json",
)
@asks
@JOB
@PLACEMENT
@JSON
@click.pass_context
def verify_(
    context: click.Context, rest: "Rest", job: str | None, placement: Path, as_json: bool
) -> None:
    """Ask Flink where every subtask of a job runs; exit code 1 when anything differs.

    Subtasks on other devices than placed differ, and so do too few or too many of them.
    """
    from streamplace.engines.flink.pinning import read_vectors
    from streamplace.engines.flink.verify import verify

    found = verify(rest, job_id(rest, job), read_vectors(placement))
    print_json(verification(found)) if as_json else show(found)
    context.exit(0 if found.fine else 1)

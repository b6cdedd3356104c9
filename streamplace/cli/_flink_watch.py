"""``streamplace flink watch`` and ``history``: jobs that are watched, and what was predicted."""

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamplace.cli._command import GroupedCommand
from streamplace.cli._flink import (
    HOME,
    JOB,
    KNOWN_CLUSTER,
    MIPS,
    NIC,
    TIMEOUT,
    WINDOW,
    asks,
    given_program,
    may_submit,
)
from streamplace.cli._flink_move import NATIVE, SAVEPOINTS
from streamplace.cli._options import (
    AS_JSON,
    CONFIDENCE,
    FILE,
    LAG,
    TRUST,
    OneOf,
    control_policies,
    refuse_unused,
    spare_inputs,
    writes,
)
from streamplace.cli._output import print_json, print_report, say, say_written
from streamplace.cli._watch_request import STOPPED, WatchRequest
from streamplace.errors import SettingError

if TYPE_CHECKING:
    from streamplace.engines.flink.rest.client import Rest

MOVING = ("not_between", "least_time", "folder", "native")
"""Options of a watch that moves the job."""


@click.command(
    "watch",
    cls=GroupedCommand,
    short_help="Keep a job on TaskManagers that carry its rate.",
    epilog="Example: streamplace flink watch --rest http://localhost:8081",
)
@may_submit
@JOB
@click.option(
    "--placement",
    type=FILE,
    help="Placement of the job's operators or subtasks (JSON).  [default: where it runs]",
)
@click.option(
    "--apply",
    "acts",
    is_flag=True,
    help="Move the job when that pays, and replace lost TaskManagers by free ones. Without it, the "
    "command says what would pay.",
)
@click.option(
    "--every",
    type=click.FloatRange(10, 86_400),
    default=60.0,
    show_default=True,
    help="Seconds from one round to the next.",
)
@click.option(
    "--policy",
    type=OneOf("policy", control_policies),
    default="work-function",
    show_default=True,
    help="Rule that decides on the number of TaskManagers.",
)
@click.option(
    "--move-price",
    default="30 min",
    show_default=True,
    help="Price of a move: as much as running the mean of both layouts for this time.",
)
@LAG
@click.option(
    "--least-time",
    type=click.FloatRange(0, 604_800),
    default=300.0,
    show_default=True,
    help="Seconds from one move to the next, at least. Replacements of lost TaskManagers do not "
    "wait.",
)
@click.option(
    "--not-between",
    multiple=True,
    metavar="HH:MM-HH:MM",
    help="Hours of every day in which the job is not moved for its rate, by the clock of this "
    "machine. May be repeated.",
)
@click.option(
    "--at-most",
    type=click.IntRange(1),
    help="Largest number of TaskManagers that the job is moved to.  [default: all that are there]",
)
@click.option(
    "--spare",
    "spares",
    multiple=True,
    help="TaskManager without operators that replaces a lost one, also without --apply. Repeat the "
    "option for several; they are used in the given order.",
)
@click.option(
    "--patience",
    type=click.FloatRange(0),
    default=30.0,
    show_default=True,
    help="Seconds to wait for a lost TaskManager before a spare takes its place.",
)
@click.option(
    "--metrics",
    metavar="PORT",
    type=click.IntRange(1, 65535),
    help="Serve metrics for Prometheus at this port of the loopback address, under /metrics.",
)
@WINDOW
@TRUST
@CONFIDENCE
@MIPS
@KNOWN_CLUSTER
@NIC
@SAVEPOINTS
@NATIVE
@TIMEOUT
@writes("Write the current placement to this file after every change.")
@asks
@HOME
def watch_(rest: "Rest", flink_home: Path | None, **options: Any) -> None:
    """Watch a job, say what would pay, and with --apply move it when it does.

    Every --every seconds, the command prints the rate of the job and what its layout carries, with
    an interval. It knows layouts on one, two and more TaskManagers. A larger one pays when tuples
    would be late because the rate exceeds what the present one surely carries, or is expected to; a
    smaller one pays when it saves more than moving there and back costs (see --policy). With
    --apply, the command moves the job as 'flink move' does, and prints its new id. It moves nothing
    while checkpoints fail, when others change the job, or without a record of its decision. Rounds,
    decisions and outcomes are kept (see: streamplace flink history). A watch that was killed
    continues from there, and never moves the job twice.

    A job that Flink's adaptive scheduler runs is refused, because it ignores placements: the
    parallelism of such a job is up to Flink's autoscaler.

    TaskManagers are measured with the job as 'flink move' does. Where their speeds or their CPU
    limits differ, describe them with --cluster; a TaskManager that the file lacks is not used.
    Without that file, the CPU limits of TaskManagers on other machines are assumed, unless Flink's
    settings for Kubernetes state them; as long as any is assumed, the job is not moved to fewer
    TaskManagers.

    A placed job cannot run without its TaskManagers. When one is lost for longer than --patience,
    the command ends the job and starts it from its last checkpoint, with a spare in place of the
    lost TaskManager. A TaskManager that comes back is a spare from then on. If the job fails, the
    command first waits until Flink knows which TaskManagers are alive. Checkpoints must be
    retained for this: submit the job with an execution.checkpointing.dir that all machines reach
    and with -D execution.checkpointing.externalized-checkpoint-retention=RETAIN_ON_CANCELLATION.

    With --apply or --spare, give JAR, options and ARGUMENTS as the job was submitted with, for the
    command submits it again; leave them out if streamplace has submitted or moved the job on this
    machine. That needs a JDK and Flink's libraries (see: streamplace flink fetch). The command ends
    when the job ends: with exit code 0 if it has finished or was cancelled, and with 2 if it
    failed, or was moved or stopped with a savepoint by others.
    """
    refuse_unused(dict.fromkeys(MOVING, "acts"))
    request = WatchRequest(
        **{field.name: options.pop(field.name) for field in fields(WatchRequest)}
    )
    if request.output is not None:
        spare_inputs(request.output)
    try:
        request.run(rest, flink_home, given_program(**options))
    except KeyboardInterrupt:
        say(STOPPED)


@click.command(
    "history",
    cls=GroupedCommand,
    short_help="Show what was predicted and measured, and what watches did.",
    epilog="Example: streamplace flink history --job clicks",
)
@click.option("--job", help="Name of the job whose runs are shown.  [default: all]")
@click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.9,
    show_default=True,
    help="Confidence of the interval of the next prediction.",
)
@writes("Picture of the watches to write (.svg, .png or .pdf).")
@AS_JSON
def history_(job: str | None, confidence: float, output: Path | None, as_json: bool) -> None:
    """Show the runs of the ledger, and the rounds and decisions of watches.

    The ledger has predicted and measured rates, and whether intervals held; 'flink move' and
    'flink watch' write it. 'flink move', 'flink advise', 'plan' and 'place' learn from it
    how wide the intervals of their predictions have to be.

    Of every job that 'flink watch' has watched on this machine, the last rounds and all decisions
    are shown, with their reasons and outcomes. The picture shows rate, capacity, TaskManagers and
    moves over time.
    """
    from streamplace.drawing.figures import check_suffix, save
    from streamplace.evaluate.history import PredictionHistory, WatchHistory
    from streamplace.io.ledger import user_runs
    from streamplace.io.store import Store
    from streamplace.io.watch_store import read_records
    from streamplace.model.report import Report

    if output is not None:
        check_suffix(output)
    history = PredictionHistory(user_runs(), confidence, job)
    records = read_records(Store.usual())
    watches = WatchHistory([one for one in records if job in (None, one.name)])
    if output is not None:
        if not any(record.rounds for record in watches.records):
            raise SettingError(f"-o {output}: no watch has rounds to draw; leave out -o")
        save(watches.figure(), output)
        say_written("picture", output)
    if as_json:
        print_json(history.to_json() | {"watches": watches.to_json()})
    else:
        print_report(Report((*history.report().parts, *watches.report().parts)))

"""``streamplace flink move``."""

import sys
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamplace.cli._command import GroupedCommand
from streamplace.cli._flink import (
    ALLOW_NON_RESTORED,
    HOME,
    JOB,
    KNOWN_CLUSTER,
    MIPS,
    NIC,
    PATIENCE,
    TIMEOUT,
    WINDOW,
    asks,
    given_program,
    may_submit,
)
from streamplace.cli._move_request import MoveRequest
from streamplace.cli._options import AS_JSON, FILE, TIME
from streamplace.cli._output import print_json, print_line, say, say_report, waiting
from streamplace.cli._process import interruptible
from streamplace.model.defaults import SAVEPOINT_SECONDS, TRIES
from streamplace.model.report import by_device, duration

if TYPE_CHECKING:
    from streamplace.engines.flink.decide.improving import JobImprover
    from streamplace.engines.flink.move.move import MovePlan
    from streamplace.engines.flink.move.outcomes import FlinkMoved
    from streamplace.engines.flink.rest.client import Rest

STRICT = (
    "note: pins are strict: if the job loses one of these TaskManagers, it cannot run until that "
    "is back; 'streamplace flink watch --apply' starts it on others"
)
UNMOVED = "every subtask is already where it is placed; nothing is moved"
SAVEPOINTS = click.option(
    "--savepoints",
    "folder",
    help="Folder of savepoints (path or URI), to which the JobManager can write.  "
    "[default: the cluster's]",
)
NATIVE = click.option(
    "--native",
    is_flag=True,
    help="Save in the native format of the state backend, which is faster to write.",
)


@click.command(
    "move",
    cls=GroupedCommand,
    short_help="Move a running job, with its state.",
    epilog="Example: streamplace flink move job.jar --savepoints file:///var/flink/savepoints "
    "--placement placement.json -- --input x.csv",
)
@may_submit
@JOB
@click.option(
    "--placement",
    type=FILE,
    help="Placement of the job's operators or subtasks (JSON).  "
    "[default: measure the job and place it]",
)
@KNOWN_CLUSTER
@click.option(
    "--rate",
    help="Rate that all sources are offered together, as in '10 k/s', to place the job for.  "
    "[default: their rate, or as much as possible where they are held back]",
)
@WINDOW
@PATIENCE
@MIPS
@NIC
@SAVEPOINTS
@click.option(
    "--savepoint-timeout",
    type=click.FloatRange(1),
    default=SAVEPOINT_SECONDS,
    show_default=True,
    help="Seconds within which the savepoint must be complete.",
)
@NATIVE
@ALLOW_NON_RESTORED
@TIMEOUT
@click.option(
    "--settle",
    type=click.FloatRange(0),
    default=30.0,
    show_default=True,
    help="Seconds for which the moved job is watched. If it fails, completes no checkpoint or, "
    "with --placement, reads less than 80 % of its previous rate, it is moved back.",
)
@click.option(
    "--tries",
    type=click.IntRange(0),
    default=TRIES,
    show_default=True,
    help="Layouts that are tried at most. Each stops the job for some seconds.",
)
@click.option(
    "--max-interruption",
    "most_interruption",
    type=TIME,
    help="Time for which the job may be stopped by all trials together.  [default: no limit]",
)
@click.option("--yes", is_flag=True, help="Try layouts without asking on a terminal.")
@click.option(
    "--resume",
    is_flag=True,
    help="Finish an interrupted move, with the placement that it was begun with.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be moved, and move nothing.")
@asks
@HOME
@AS_JSON
@interruptible()
def move_(rest: "Rest", flink_home: Path | None, **options: Any) -> None:
    """Move a running job, with its state, to the devices of a placement.

    Give JAR, options and ARGUMENTS as the job was submitted with; leave them out if streamplace has
    submitted or moved the job on this machine. The command stops the job with a savepoint, starts
    it from there on the new devices, verifies and watches it. If a step fails, the job is started
    again on its previous devices. Before the job is stopped, its main method is run twice without
    submitting anything, to check that the job fits the placement. The command needs a JDK and
    Flink's libraries (see: streamplace flink fetch).

    At most one copy of the job runs at any moment. If this command is killed, or Flink does not
    answer for a minute, run it again with --resume on the same machine to finish the move. Only one
    command at a time can move a job.

    Without --placement the command measures the job and predicts other layouts: those that Flink
    itself would choose, shares by the speed of the TaskManagers, an even spread, and the best one
    that it finds. It tries the most promising ones (--tries), measures the job there, and leaves it
    in the best layout that was measured. If a line of Flink's configuration gives that layout, the
    command prints it. A job that keeps up is not moved, unless --rate asks for more.
    """
    from streamplace.engines.flink.move.commands import resume_typed
    from streamplace.engines.flink.pin.pinning import read_vectors

    request = MoveRequest(**{field.name: options.pop(field.name) for field in fields(MoveRequest)})
    request.check()
    engine = request.engine(rest, flink_home)
    program = request.program(engine, given_program(**options))
    if program is None:
        _improve(request.improver(engine, None), engine.job(request.job), request)
        return
    move = engine.moving(program, partial(resume_typed, sys.argv[1:], program.jar))
    if request.resume:
        _show(move.resume(request.job), request.job or "", {}, request.as_json)
        return
    running = move.running_job(request.job)
    if not request.dry_run:
        move.savepoint_folder()  # before the job is measured for minutes
    if request.placement is None:
        _improve(request.improver(engine, move), running, request)
        return
    plan = move.plan(running, read_vectors(request.placement))
    _tell(plan)
    moved = move.run(plan) if plan.is_needed and not request.dry_run else None
    if moved is not None:
        request.follow(move, moved)
    _show(moved, running, plan.moved, request.as_json)


def _improve(improver: "JobImprover", job: str, request: MoveRequest) -> None:
    """Measure a job, try layouts, and leave it in the best one that was measured."""
    from streamplace.engines.flink.move.outcomes import FlinkMoved

    with waiting(f"watching for {improver.seconds:g} s"):
        proposal = improver.propose(job)
    for note in proposal.measured.notes:
        say(f"note: {note}")
    for sentence in proposal.sentences():
        say(sentence)
    proposal = improver.planned(proposal)
    if request.dry_run or proposal.target is None or improver.move is None:
        operators = {} if proposal.plan is None else proposal.plan.moved
        if proposal.plan is not None:
            _tell(proposal.plan)
        say_report(proposal.report())
        _show(None, job, operators, request.as_json, proposal.to_json())
        return
    proposal = improver.run(proposal)
    say_report(proposal.report())
    moved = None
    if proposal.job != job:
        moved = FlinkMoved(proposal.job, proposal.stopped, proposal.savepoint)
    _show(moved, job, proposal.moved, request.as_json, proposal.to_json())


def _tell(plan: "MovePlan") -> None:
    for name, (source, target) in plan.moved.items():
        say(f"  {name}: {by_device(source)} → {by_device(target)}")
    if not plan.is_needed:
        say(UNMOVED)
    elif not plan.moved:
        say(
            "every subtask is already where it is placed, but the job was submitted without a "
            "placement and holds whole TaskManagers; to pin it there, it has to be stopped with a "
            "savepoint and started again"
        )


def _show(
    moved: "FlinkMoved | None",
    before: str,
    operators: dict[str, tuple[dict[str, int], dict[str, int]]],
    as_json: bool,
    decision: dict[str, Any] | None = None,
) -> None:
    """Print the id of the present job."""
    job = before if moved is None else moved.job
    outage = None if moved is None else moved.outage
    if outage is not None:
        say(f"the job was interrupted for {duration(outage)}")
    if job != before:
        say(STRICT)
    if not as_json:
        print_line(job)
        return
    print_json(
        {
            "job": job,
            "before": before or None,
            "savepoint": None if moved is None else moved.savepoint,
            "outage": outage,
            "moved": {
                name: {"from": source, "to": target} for name, (source, target) in operators.items()
            },
            **({} if decision is None else {"decision": decision}),
        }
    )

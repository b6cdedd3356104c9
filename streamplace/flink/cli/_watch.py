"""``streamplace flink watch`` and ``history``: watched jobs and recorded predictions."""

from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamplace.cli._command import verb
from streamplace.cli._options import ARGUMENTS, AS_JSON, JAR, writes
from streamplace.cli._printing import print_json, print_line, print_report, say, say_written
from streamplace.cli._process import interruptible
from streamplace.errors import SettingError, StreamplaceError
from streamplace.flink.cli._move import access, refuse_for_operator
from streamplace.flink.settings import FlinkWatchSettings
from streamplace.io.extras import extra
from streamplace.io.suffixes import PICTURES
from streamplace.settings.option import PLACEMENT

if TYPE_CHECKING:
    from streamplace.flink.engine import FlinkEngine
    from streamplace.flink.layout import Layout
    from streamplace.flink.operator.resource import FlinkResource
    from streamplace.flink.program.program import Program
    from streamplace.flink.watch.acting import WatchMover
    from streamplace.flink.watch.log import WatchLog
    from streamplace.flink.watch.rounds import JobRounds

STOPPED = "stopped watching; the job keeps running"
INTERRUPTED = (
    "stopped while the job was being started elsewhere; run the same command again to finish the "
    "start"
)


@verb(
    "watch",
    "Keep a job on TaskManagers that carry its rate.",
    "flink watch --rest http://localhost:8081",
    settings=FlinkWatchSettings,
)
@JAR
@ARGUMENTS
@writes("Write every new placement to this file.", keys=PLACEMENT)
def watch_(
    jar: Path | None, arguments: tuple[str, ...], settings: FlinkWatchSettings, output: Path | None
) -> None:
    """Watch a job, print which moves would pay, and with --apply carry them out.

    Every --every seconds, the command prints the rate of the job, and whether it keeps up. With
    --apply, a job that falls behind is moved where it may carry more, and returns if it carries
    less there; one that keeps up is moved to fewer TaskManagers when that saves more than the moves
    cost; and a job that has lost a TaskManager is started on others. A watch that was killed can be
    started again, and never moves the job twice (see: streamplace flink history).

    With --apply or --spare, give JAR, its options and ARGUMENTS as the job was submitted with, or
    leave them out if streamplace has submitted or moved the job on this machine. The exit code is 0
    if the job has finished or was cancelled, and 2 if it failed, or others moved or stopped it.
    """
    from streamplace.flink.decide.improving import JobImprover
    from streamplace.flink.layout import Layout
    from streamplace.flink.operator.resource import FlinkResource
    from streamplace.flink.store import Store
    from streamplace.flink.watch.log import WatchLog
    from streamplace.flink.watch.modelling import JobModeller
    from streamplace.flink.watch.rounds import JobRounds
    from streamplace.flink.watch.watch import Watch, first_job, watchable

    log: WatchLog | None = None
    try:
        with ExitStack() as stack:
            stack.enter_context(interruptible())
            engine, program = settings.engine(say), settings.program(jar, arguments)
            settings = settings.annotated(engine.rest.resource)
            guards, judge = settings.guards(), settings.judge()
            store = Store.usual()
            if settings.apply and isinstance(engine.rest.resource, FlinkResource):
                given = {"JAR": jar, "-o": output}
                refuse_for_operator(settings, "spare", "cluster", **given)
                return _watch_pods(settings, engine, engine.rest.resource, stack)
            job = first_job(engine.rest, store, settings.job)
            document = engine.rest.job(job)
            deployment, may_start = watchable(engine.rest, job), settings.apply or settings.spare
            if may_start:
                deployment.check_moves()
            log = WatchLog.claimed(store, job, str(document["name"]), say)
            mover = _mover(settings, engine, program, job, log) if may_start else None
            improver = JobImprover(
                engine, None, settings.seconds, cluster=settings.cluster, tell=say
            )
            model_of = JobModeller(improver, settings.at_most)
            moves = mover if settings.apply else None
            rounds = JobRounds(engine.rest, log, judge, guards, model_of, moves)
            _serve_metrics(settings, rounds, str(document["name"]), stack)
            say(f"deployment: {deployment}")
            if deployment.obstacle:
                say(f"note: the watch only looks, because {deployment.obstacle}")
            placement = None if settings.placement is None else Layout.read(settings.placement)
            started = partial(_started, output)
            rest = engine.rest.patient(inf, say)
            watch = Watch(rest, log, mover, rounds, started, settings.patience)
            watch.begin(job, placement)
    except KeyboardInterrupt:
        say(INTERRUPTED if log is not None and log.is_starting else STOPPED)


def _watch_pods(
    settings: FlinkWatchSettings,
    engine: "FlinkEngine",
    resource: "FlinkResource",
    stack: ExitStack,
) -> None:
    """Let the number of pods of a job that Flink's operator owns follow its rate, by patches."""
    from streamplace.flink.operator.api import usual_api
    from streamplace.flink.operator.journal import JournalMap
    from streamplace.flink.operator.patching import check_change
    from streamplace.flink.store import Store
    from streamplace.flink.watch.log import WatchLog
    from streamplace.flink.watch.pods import (
        MAX_GROWTH,
        PodModeller,
        PodMover,
        PodRounds,
        watch_pods,
    )
    from streamplace.flink.watch.watch import watchable

    api = usual_api()
    _, unfinished = JournalMap(api, resource.namespace, resource.name).read()
    if unfinished is None:
        check_change(api, resource)
    job = engine.job(settings.job)
    deployment, name = watchable(engine.rest, job), str(engine.rest.job(job)["name"])
    log = WatchLog.claimed(Store.usual(), resource.title, name, say)
    max_pods = settings.at_most or MAX_GROWTH * deployment.task_managers
    mover = None
    if not deployment.has_autoscaler:
        resume_by = f"streamplace flink move --rest {settings.rest} --resume"
        mover = PodMover(api, resource, log, settings.timeout, resume_by)
    model_of, judge = PodModeller(engine, settings.seconds, max_pods), settings.judge()
    guards = settings.guards()
    rounds = PodRounds(engine.rest, log, judge, guards, model_of, mover, max_pods=max_pods)
    _serve_metrics(settings, rounds, name, stack)
    say(f"deployment: {deployment}")
    if mover is None:
        say("note: the watch only looks, because Flink's autoscaler chooses the parallelism")
    elif not log.is_starting:  # otherwise the first round finishes the change and its decision
        mover.finish_unrecorded()
    watch_pods(api, resource, rounds)


def _serve_metrics(
    settings: FlinkWatchSettings, rounds: "JobRounds", name: str, stack: ExitStack
) -> None:
    """Serve the metrics of all rounds, if a port is given, until the stack is closed."""
    if settings.metrics is not None:
        extra("prometheus_client", "flink")
        from streamplace.flink.watch.prometheus import WatchMetrics, served

        metrics = WatchMetrics(name)
        stack.enter_context(served(metrics, settings.metrics))
        rounds.on_round = metrics.add


def _mover(
    settings: FlinkWatchSettings,
    engine: "FlinkEngine",
    program: "Program | None",
    job: str,
    log: "WatchLog",
) -> "WatchMover":
    """Mover of the job, for its rate and after a loss of TaskManagers."""
    from streamplace.flink.program.program import SubmittedProgram, known_program
    from streamplace.flink.watch.acting import Spares, WatchMover

    program = program or known_program(job)
    spares = Spares(engine.rest, [*settings.spare], takes_free=settings.apply)
    move = replace(engine.moving(program, access(settings)), without_lost=spares.of_move)
    return WatchMover(move, spares, log, SubmittedProgram.of(program).check)


def _started(output: Path | None, job: str, layout: "Layout") -> None:
    """Print the id of a job that was started, and write its placement.

    A failure is only printed: if it ended the watch, nobody would watch the job.
    """
    from streamplace.io.files import json_text, write_text

    try:
        print_line(job)
        if output is not None:
            write_text(output, json_text({"assignment": layout.assignment()}))
            say_written("placement", output)
    except StreamplaceError as error:
        say(f"warning: {error}")


@verb(
    "history",
    "Show predicted and measured rates, and decisions of watches.",
    "flink history --job clicks",
)
@click.option("--job", help="Name of the job whose runs are shown.  [default: all]")
@writes("Picture of the watches to write (.svg, .png or .pdf).", suffixes=PICTURES)
@AS_JSON
def history_(job: str | None, output: Path | None, as_json: bool) -> None:
    """Show the runs of the ledger, and the rounds and decisions of watches.

    The ledger has predicted and measured rates, and whether the measured rates were in their
    intervals; 'flink move' and 'flink watch' write it. No command uses it for decisions.

    For every job that 'flink watch' has watched on this machine, the command shows the last rounds
    and all decisions, with their reasons and outcomes. The picture shows rate, capacity,
    TaskManagers and moves over time.
    """
    from streamplace.display.report import Report
    from streamplace.drawing.figures import save
    from streamplace.flink.history import PredictionHistory, WatchHistory
    from streamplace.flink.ledger import user_runs
    from streamplace.flink.store import Store
    from streamplace.flink.watches import read_watches

    history = PredictionHistory(user_runs(), job)
    records = read_watches(Store.usual())
    watches = WatchHistory([record for record in records if job in (None, record.name)])
    if output is not None:
        if not any(record.rounds for record in watches.records):
            raise SettingError(f"-o {output}: no watch has rounds to draw; leave out -o")
        save(watches.figure(), output)
        say_written("picture", output)
    if as_json:
        print_json(history.to_json() | {"watches": watches.to_json()})
    else:
        print_report(Report((*history.report().parts, *watches.report().parts)))

"""``streamplace flink move``."""

import logging
import sys
from contextlib import suppress
from dataclasses import replace
from inspect import get_annotations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamplace.cli._command import verb
from streamplace.cli._options import ARGUMENTS, AS_JSON, JAR
from streamplace.cli._printing import (
    print_json,
    print_line,
    say,
    say_notes,
    say_report,
    verbose,
    waiting,
)
from streamplace.cli._process import interruptible
from streamplace.display.report import by_device, duration
from streamplace.errors import SettingError
from streamplace.flink.settings import (
    FlinkMoveSettings,
    FlinkSettings,
    JobMoveSettings,
    ProgramSettings,
)

if TYPE_CHECKING:
    from streamplace.flink.decide.improving import JobImprover
    from streamplace.flink.engine import FlinkEngine
    from streamplace.flink.move.journal import MovePlan
    from streamplace.flink.move.move import FlinkMove
    from streamplace.flink.move.transaction import FlinkMoved
    from streamplace.flink.program.program import Program

LOG = logging.getLogger(__name__)
Moves = dict[str, tuple[dict[str, int], dict[str, int]]]
STRICT = (
    "note: pins are strict: if the job loses one of these TaskManagers, it cannot run until the "
    "TaskManager is back; 'streamplace flink watch --apply' starts it on others"
)
OF_SUBMISSION = (
    *get_annotations(ProgramSettings),
    *("placement", "savepoints", "native", "allow_non_restored"),
)
"""Settings by which streamplace submits a job or places its subtasks."""
UNMOVED = "every subtask is already where it is placed; nothing is moved"


@verb(
    "move",
    "Move a running job, with its state.",
    "flink move job.jar --savepoints file:///var/flink/savepoints -- --input x.csv",
    settings=FlinkMoveSettings,
)
@JAR
@ARGUMENTS
@AS_JSON
@verbose
@interruptible()
def move_(
    jar: Path | None, arguments: tuple[str, ...], settings: FlinkMoveSettings, as_json: bool
) -> None:
    """Try layouts of a running job, measure its rate in each, and end in the best one.

    The command measures the job, moves it with its state to the most promising layout, measures it
    there, and repeats this (--tries); the job ends in the best measured layout. With --placement,
    it moves the job to that placement. If a step fails, the job runs again where it was. At most
    one copy of it runs at any time; --resume finishes an interrupted move.

    Give JAR, its options and ARGUMENTS as the job was submitted with; leave them out if streamplace
    has submitted or moved the job on this machine.
    """
    from streamplace.flink.layout import Layout
    from streamplace.flink.operator.resource import named

    if resource := named(settings.rest):
        refuse_for_operator(settings, "tries", "max_interruption", JAR=jar)
        _predict_modes(*resource, settings, as_json)
        return
    engine = settings.engine(say)
    is_known = settings.resume and jar is None and not arguments
    program = None if is_known else settings.program(jar, arguments)
    has_tries = not (settings.resume or settings.dry_run or settings.placement)
    if has_tries and not settings.yes and (sys.stdin is None or not sys.stdin.isatty()):
        raise SettingError(
            "a try interrupts the job, and without a terminal nobody can agree to it; add --yes to "
            "agree now, or --dry-run to see what would be tried"
        )
    facts: dict[str, Any] = {}
    if not settings.resume:
        with suppress(SettingError):  # no job runs, perhaps because a move was interrupted
            deployment = engine.deployment(engine.job(settings.job))
            deployment.check_moves()
            say(f"deployment: {deployment}")
            if deployment.unpinned:
                say(f"note: {deployment.obstacle_to_pins}, if the job is to use them")
            facts = {"deployment": deployment.to_json()}
    program = program or _known_program(engine, settings)
    if program is None:
        _improve(settings, engine, None, engine.job(settings.job), as_json, facts)
        return
    move = engine.moving(program, access(settings))
    if settings.resume:
        _show(move.resume(settings.job), settings.job or "", {}, as_json)
        return
    running = move.running_job(settings.job)
    move.savepoint_folder()  # before the job is measured for minutes
    if settings.placement is None:
        _improve(settings, engine, move, running, as_json, facts)
        return
    plan = move.plan(running, Layout.read(settings.placement))
    _say_plan(plan)
    moved = move.run(plan) if plan.is_needed and not settings.dry_run else None
    if moved is not None:
        _follow(move, moved, settings.placement)
    _show(moved, running, plan.moved, as_json, facts)


def access(settings: FlinkSettings) -> list[str]:
    """Options by which another command reaches the same cluster, from any folder."""
    files = {"--authorization": settings.authorization, "--settings": settings.file}
    return [word for name, path in files.items() if path for word in (name, str(path.resolve()))]


def refuse_for_operator(settings: JobMoveSettings, *fields: str, **arguments: object) -> None:
    """Refuse arguments and fields that have no effect on a job of Flink's operator."""
    reason = "is not for a job that Flink's operator owns; drop it"
    for name, value in arguments.items():
        if value:
            raise SettingError(f"{name} {reason}")
    for field in (*OF_SUBMISSION, *fields):
        settings.refuse(field, reason)


def _known_program(engine: "FlinkEngine", settings: FlinkMoveSettings) -> "Program | None":
    """Program that streamplace has submitted; None if it is unknown and a dry run goes on."""
    from streamplace.flink.program.program import known_program

    if settings.resume and settings.job is None:
        raise SettingError("--resume without JAR needs --job; name the job that was moved")
    try:
        program = known_program(engine.job(settings.job))
    except SettingError as error:
        if not settings.dry_run or settings.placement is not None:
            raise
        say(f"note: {error}")
        return None
    say(f"the job was submitted with {program.jar}; its options and arguments are used again")
    return program


def _predict_modes(namespace: str, name: str, settings: FlinkMoveSettings, as_json: bool) -> None:
    """Predict a job of Flink's operator in Flink's balance modes, or finish a change of it."""
    from streamplace.flink.operator.api import ApiRefusal, usual_api
    from streamplace.flink.operator.journal import JournalMap, PatchClaim
    from streamplace.flink.operator.modes import mode_advice, modes_beside
    from streamplace.flink.operator.patching import PatchTransaction
    from streamplace.flink.operator.resource import FlinkResource

    owner = f"{namespace}/{name}"
    api = usual_api()
    if settings.resume:  # the resource may be in any state, and the job may not run
        claim = PatchClaim.take(api, namespace, name)
        ended = PatchTransaction(api, claim, say, settings.savepoint_timeout).run()
        if as_json:
            step = ended.step.name.lower()
            print_json({"resource": owner, "step": step, "reason": ended.reason})
        else:
            print_line(f"{owner}: {ended.step.value}, because {ended.reason}")
        return
    with suppress(ApiRefusal):  # a prediction does not need the right to read the journal
        if (journal := JournalMap(api, namespace, name).read()[1]) is not None:
            raise journal.unfinished()
    engine = settings.engine(say)
    resource = engine.rest.resource
    settings = settings.annotated(resource)
    assert isinstance(resource, FlinkResource)
    resource.refuse_shared()
    job = engine.job(settings.job)
    say(f"deployment: {engine.deployment(job)}")
    modes = modes_beside(resource.as_run(engine.rest))
    improver = replace(_improver(settings, engine, None), decides=modes)
    with waiting(f"watching in windows of {settings.seconds:g} s"):
        proposal = improver.propose(job)
    for sentence in (*proposal.sentences(), *mode_advice(resource, proposal)):
        say(sentence)
    say_report(proposal.report())
    if as_json:
        print_json({"resource": owner, "decision": proposal.to_json()})


def _improver(
    settings: FlinkMoveSettings, engine: "FlinkEngine", move: "FlinkMove | None"
) -> "JobImprover":
    """Improver of a job, which asks before a try."""
    from streamplace.flink.decide.improving import JobImprover
    from streamplace.flink.rest.client import RETRY_SECONDS

    def agrees(question: str) -> bool:
        if settings.yes:
            say(question)
            return True
        try:
            return click.confirm(question, default=True, err=True)
        except click.Abort:  # Ctrl-C, after which the job goes back
            raise KeyboardInterrupt from None

    return JobImprover(
        replace(engine, rest=engine.rest.patient(RETRY_SECONDS, say)),
        move,
        seconds=settings.seconds,
        rate=settings.rate,
        cluster=settings.cluster,
        tell=say,
        tries=settings.tries,
        max_interruption=settings.max_interruption,
        agrees=agrees,
    )


def _improve(
    settings: FlinkMoveSettings,
    engine: "FlinkEngine",
    move: "FlinkMove | None",
    job: str,
    as_json: bool,
    facts: dict[str, Any],
) -> None:
    """Measure a job, try layouts, and end in the best measured one."""
    from streamplace.flink.measure.profile import Remedy
    from streamplace.flink.move.transaction import FlinkMoved
    from streamplace.flink.rest.client import FlinkError
    from streamplace.model.message_text import listed

    improver = _improver(settings, engine, move)
    with waiting(f"watching in windows of {settings.seconds:g} s"):
        proposal = improver.propose(job)
    notes = proposal.measured.notes
    if unknown := proposal.measured.unknown_cpu:
        raise FlinkError(
            f"the CPU of {listed(unknown)} is unknown, so no layout of the job can be predicted; "
            "allow thread dumps (see -v), or give the TaskManagers the reporter "
            "(docs/how-to/flink-measure.md), or move the job to a --placement"
        )
    say_notes(note for note in notes if isinstance(note, Remedy))
    for note in notes:
        if not isinstance(note, Remedy):
            LOG.info("note: %s", note)
    for sentence in (*proposal.sentences(), proposal.next_step):
        say(sentence)
    proposal = improver.planned(proposal)
    if settings.dry_run and move is not None and proposal.plan is None:
        move.check(job, proposal.where.layout)  # without a target, checked as a move to here
    if settings.dry_run or proposal.target is None or move is None:
        plan = proposal.plan
        if plan is not None:
            _say_plan(plan)
        say_report(proposal.report())
        moves = {} if plan is None else plan.moved
        _show(None, job, moves, as_json, facts | {"decision": proposal.to_json()})
        return
    proposal = improver.run(proposal)
    say_report(proposal.report())
    moved = None
    if proposal.job != job:
        moved = FlinkMoved(proposal.job, proposal.stopped, proposal.savepoint)
    _show(moved, job, proposal.moved, as_json, facts | {"decision": proposal.to_json()})


def _follow(move: "FlinkMove", moved: "FlinkMoved", placement: Path) -> None:
    """Compare the rate of a moved job with the prediction for its placement."""
    from streamplace.flink.move.settling import compare
    from streamplace.io.placements import read_prediction

    if (predicted := read_prediction(placement)) is not None:
        compare(move.rest, moved.job, predicted, say)


def _say_plan(plan: "MovePlan") -> None:
    for name, (source, target) in plan.moved.items():
        say(f"  {name}: {by_device(source)} → {by_device(target)}")
    if not plan.is_needed:
        say(UNMOVED)
    elif not plan.moved:
        say(
            "every subtask is already where it is placed, but the job was submitted without a "
            "placement and holds whole TaskManagers; to pin it there, the job is stopped with a "
            "savepoint and started again"
        )


def _show(
    moved: "FlinkMoved | None",
    before: str,
    operators: Moves,
    as_json: bool,
    facts: dict[str, Any] | None = None,
) -> None:
    """Print the id of the present job, or a document with further facts."""
    job, interruption = (before, None) if moved is None else (moved.job, moved.interruption)
    if interruption is not None:
        say(f"the job was interrupted for {duration(interruption)}")
    if job != before:
        say(STRICT)
    if not as_json:
        print_line(job)
        return
    moves = {name: {"from": source, "to": target} for name, (source, target) in operators.items()}
    document = {
        "job": job,
        "before": before or None,
        "savepoint": None if moved is None else moved.savepoint,
        "interruption": interruption,
        "moved": moves,
    }
    print_json(document | (facts or {}))

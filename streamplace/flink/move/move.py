"""Moving: transfer a running job with its state to other devices, and back if that fails."""

import logging
import shlex
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from streamplace.errors import PlacementError, SettingError
from streamplace.flink.deployment import deployment_of
from streamplace.flink.layout import Layout
from streamplace.flink.measure.source_lag import RATE_SECONDS, SourceFlow, source_flow
from streamplace.flink.move.decision_table import Stop
from streamplace.flink.move.journal import (
    MOVES,
    Journal,
    MoveClaim,
    MovePlan,
    MoveUnderWay,
    interrupted_move,
    unfinished,
)
from streamplace.flink.move.running_settings import (
    LATER,
    RETENTION,
    Settings,
    changed_settings,
    checkpoint_folder,
    running_settings,
)
from streamplace.flink.move.savepoints import (
    RETAINED,
    SAVEPOINT_FOLDERS,
    latest,
    path_of,
    resumable,
    savepoint_folder,
    stop_of,
    suppress_missing,
)
from streamplace.flink.move.settling import MoveSettings
from streamplace.flink.move.transaction import (
    FlinkMoved,
    Submission,
    Transaction,
    is_unfinished,
)
from streamplace.flink.pin.apply import check, placed_upload
from streamplace.flink.pin.free_resources import fitted, is_placed, managers_without
from streamplace.flink.program.program import (
    Program,
    Savepoint,
    kept_program,
    remember,
    stored_program,
)
from streamplace.flink.program.submission import ClusterJar, chain_states
from streamplace.flink.rest.client import (
    ENDED,
    RETRY_SECONDS,
    FlinkError,
    Refusal,
    Rest,
    chain_of,
    only_job,
    stop_trigger,
)
from streamplace.flink.rest.plan import job_operators, layout_of
from streamplace.model.message_text import listed

LOG = logging.getLogger(__package__)
Tell = Callable[[str], None]
TRANSACTION_TIMEOUT = "transaction.timeout.ms"
"""Setting of Kafka's producers, which a check reports if a sink delivers exactly once."""
UNCOMPARED = "the rates before and after the move are not compared"
UNREPORTED = (
    "of the settings that the job was submitted with, Flink reports those of checkpoints, state, "
    "restarts and chaining; give all others with -D, or they are lost"
)


@dataclass(frozen=True, slots=True)
class FlinkMove:
    """Moves jobs of a cluster."""

    rest: Rest
    program: Program
    tell: Tell  # function that receives a message for every step
    settings: MoveSettings = field(default_factory=MoveSettings)  # how jobs are moved
    # Options by which printed commands reach the cluster, such as --settings FILE.
    options: Sequence[str] = ()
    # Placements after and before a move without lost devices; None waits for lost devices.
    without_lost: Callable[[Journal], tuple[Layout, Layout]] | None = None

    def for_trials(self) -> "FlinkMove":
        """Return this object for tries, which measure the job after the move.

        Therefore its rate is no condition, it is watched only briefly, and the steps are logged.
        """
        settle = min(RATE_SECONDS, self.settings.settle)
        settings = replace(self.settings, settle=settle, least_rate=0.0)
        return replace(self, settings=settings, tell=LOG.info)

    def plan(self, job: str, layout: Layout) -> MovePlan:
        """Find out where a job runs, and whether it can be moved and moved back.

        Nothing is stopped; the job's main method runs twice, but submits nothing.
        """
        job = only_job(self.rest, job)
        document = self.rest.running_job(job)
        deployment_of(self.rest, job).check_moves()
        now = layout_of(self.rest, job, document)
        before = Layout({name: sorted(devices) for name, devices in now.items()})
        after = layout.counted(before)
        if differing := sorted(before.keys() ^ after.keys()):
            raise PlacementError(
                f"the job and the placement do not have the same operators: {listed(differing)}; "
                "place the graph that 'streamplace flink profile' writes"
            )
        self.tell("checking that the job fits the new placement and its current one")
        program = kept_program(job, self.program)
        settings = self._checked(job, program, before, after)
        is_moved = after.moved_from(before)
        return MovePlan(
            job=job,
            before=before,
            after=after,
            settings=settings,
            pins=not is_moved and is_placed(job, managers_without(self.rest, job)) is False,
            name=document["name"],
            checkpoints=checkpoint_folder(self.rest, job, {**settings, **program.settings}),
        )

    def check(self, job: str, layout: Layout) -> None:
        """Raise an error if a job does not fit a placement; only its main method runs."""
        program = kept_program(job, self.program)
        check(self.rest, program, layout, job, self._saved(job))

    def run(self, plan: MovePlan) -> FlinkMoved:
        """Move a job.

        Raises MoveUnderWay when another command moves it. Raises FlinkError when it cannot be
        saved, and continues to run, or when it does not run on its new devices, and runs on its
        previous ones again. Raises Undecided when Flink no longer answers; the move must then be
        resumed.
        """
        self._end_earlier(plan.job)
        rate = self.rate(plan)
        trigger, folder = self._next_trigger(plan.job), self.savepoint_folder()
        journal = self._journal(plan, trigger=trigger, folder=folder)
        return self._carry_out(journal, lambda: MoveClaim.begin(journal), rate)

    def restart(self, job: str, layout: Layout) -> FlinkMoved:
        """Start a job that has lost devices on others, from its last checkpoint.

        `without_lost` chooses them. The job is cancelled, because it cannot be stopped with a
        savepoint. Raises FlinkError when no saved state outlives it, and leaves it as it is;
        otherwise the errors of `run`.
        """
        path = resumable(self.rest, job)
        if path is None:
            raise FlinkError(f"job {job} has no checkpoint or savepoint to continue from")
        program, settings = kept_program(job, self.program), Settings()
        with suppress_missing():  # the program makes its own settings again
            running = running_settings(self.rest, job)
            settings = {key: value for key, value in running.items() if value != LATER}
        document = self.rest.job(job)
        tasks = zip(document["vertices"], job_operators(document), strict=True)
        subtasks = {o.name: [""] * row["parallelism"] for row, task in tasks for o in task}
        counted = layout.counted(Layout(subtasks))
        plan = MovePlan(
            job=job,
            before=counted,
            after=counted,
            settings=settings,
            name=document["name"],
            checkpoints=checkpoint_folder(self.rest, job, {**settings, **program.settings}),
        )
        folder = path.rpartition("/")[0]
        with suppress(SettingError):
            folder = self.savepoint_folder()
        journal = self._journal(
            plan, trigger=stop_trigger(job, 0), folder=folder, cancels=True, savepoint=path
        )
        self._end_earlier(job)
        move = replace(self, settings=replace(self.settings, settle=0.0))
        return move._carry_out(journal, lambda: MoveClaim.begin(journal))

    def resume(self, job: str | None = None) -> FlinkMoved:
        """Finish an interrupted move, so that exactly one copy of the job runs.

        Raises SettingError when no move was interrupted.

        ``job``: the job that was moved, or its successor; None if only one move was interrupted.
        """
        journal = interrupted_move(self.unfinished_moves(), job and only_job(self.rest, job))
        if self.settings.compares_rates:
            self.tell(f"note: the rate before the interruption is not known, so {UNCOMPARED}")
        return self._carry_out(journal, lambda: MoveClaim.take(journal.job))

    def rate(self, plan: MovePlan) -> SourceFlow | None:
        """Return the rates of a job's sources; None if they are not needed, or the job is gone."""
        if self.settings.compares_rates:
            with suppress(Refusal):
                flow = source_flow(self.rest, plan.job)
                if flow is None:
                    self.tell(f"note: Flink reports no rate of the sources, so {UNCOMPARED}")
                return flow
        return None

    def _journal(self, plan: MovePlan, **progress: Any) -> Journal:
        """Return the journal of a new move."""
        return Journal(
            **dict(plan),
            url=self.rest.url,
            allow_non_restored=self.settings.allow_non_restored,
            resume_by=self.resume_line(plan.job),
            **progress,
        )

    def _carry_out(
        self, journal: Journal, claim: Callable[[], MoveClaim], rate: SourceFlow | None = None
    ) -> FlinkMoved:
        """Claim a move, and carry it out."""
        program = kept_program(journal.job, self.program)
        remember(journal.job, program)  # so that the printed command for --resume needs no jar
        program = replace(program, entry_class=program.entry)
        back = program.with_settings(journal.settings)
        # Retained checkpoints let it return from its last one.
        forward = program.with_settings({**journal.settings, RETENTION: RETAINED.upper()})
        after, before = journal.after, journal.before
        if self.without_lost is not None:
            after, before = self.without_lost(journal)
        rest, jobs = self.rest.patient(RETRY_SECONDS, self.tell), chain_of(journal.job)

        def upload(submission: Submission) -> AbstractContextManager[ClusterJar]:
            managed_mb = submission.program.managed_mb
            pinning = fitted(rest, submission.places, managed_mb, jobs)
            return placed_upload(rest, submission.program, pinning)

        return Transaction(
            rest,
            claim(),
            Submission(forward, after),
            Submission(back, before),
            upload,
            self.tell,
            self.settings,
            rate,
            awaits_lost=self.without_lost is None,
        ).run()

    def savepoint_folder(self) -> str:
        """Folder of savepoints: of the options, else of the settings of the job or its cluster."""
        known = savepoint_folder(self.program.settings, self.rest.settings())
        if folder := self.settings.savepoints or known:
            return folder
        raise SettingError(
            f"the cluster has no folder for savepoints ({SAVEPOINT_FOLDERS[0]}); name one with "
            "--savepoints"
        )

    def resume_line(self, job: str) -> str:
        """Command that finishes a move of a job, whose program is in the store."""
        words = ["streamplace", "flink", "move", "--rest", self.rest.url, *self.options]
        return shlex.join([*words, "--job", job, "--resume"])

    def running_job(self, name: str | None) -> str:
        """Job ID: given, or the only active one, or the resource's.

        Raises an error when a move of it is in progress, or was interrupted and must be resumed.
        """
        try:
            job = only_job(self.rest, name)
        except SettingError:
            if self.rest.live_jobs():
                raise
            job = None
        self._end_earlier(job)
        return job if job is not None else only_job(self.rest, name)

    def unfinished_moves(self) -> list[Journal]:
        """Moves on this cluster, by its address or its jobs, in progress or interrupted."""
        here = self.rest.url
        return [m for m in unfinished() if m.url == here or chain_states(self.rest, m.job)]

    def _end_earlier(self, job: str | None) -> None:
        """End interrupted moves of a job, or of all jobs, that need no further step.

        Raises MoveUnderWay when a command still carries one out, and FlinkError when one must be
        resumed.
        """
        for journal in self.unfinished_moves():
            if job is not None and not journal.concerns(job):
                continue
            journal.refuse_held()
            if is_unfinished(self.rest, journal):
                raise journal.interrupted()
            MoveClaim(MOVES, journal.job, journal).end()

    def _next_trigger(self, job: str) -> str:
        """Id of the request that stops a job; all commands that stop it now choose the same id.

        Flink carries out one request with an id, and reports its result for some minutes. Raises
        MoveUnderWay when a request of another command stops the job, or has stopped it.
        """
        for number in count():
            trigger = stop_trigger(job, number)
            stop, _ = stop_of(self.rest, job, trigger)
            if stop is Stop.UNKNOWN:
                return trigger
            if stop is Stop.UNDER_WAY or self.rest.state(job) in ENDED:
                raise MoveUnderWay(f"another command moves job {job}, and stops it for that")
        raise AssertionError

    def _checked(self, job: str, program: Program, before: Layout, after: Layout) -> Settings:
        """Return the settings to repeat; raise an error if the job does not fit a placement."""
        running, saved = running_settings(self.rest, job), self._saved(job)
        planned = check(self.rest, program, after, job, saved)
        self._refuse_short_transactions(planned)
        changes = changed_settings(running, planned)
        repeated = {
            key: was
            for key, (was, _) in changes.items()
            if key not in program.settings and was != LATER
        }
        repeating = program.with_settings(repeated)
        remaining = changed_settings(running, check(self.rest, repeating, before, job))
        for key, (was, will_be) in sorted((changes | remaining).items()):
            if key in repeated and key not in remaining:
                self.tell(f"  {key}: {was}, as in the running job")
            elif was == LATER:
                self.tell(f"note: {key} is {was} and is not preserved; set it with -D")
            else:
                why = "as -D says" if key in program.settings else "as the job's program says"
                self.tell(f"note: {key} is {was or 'not set'} and becomes {will_be}, {why}")
        if not program.settings and stored_program(job) is None:
            self.tell(f"note: {UNREPORTED}")
        return repeated

    def _saved(self, job: str) -> Savepoint | None:
        """Last checkpoint of a job; None if it has completed none, or keeps it in memory."""
        path = path_of(latest(self.rest, job).get("completed", {}))
        return None if path is None else Savepoint(path, self.settings.allow_non_restored)

    def _refuse_short_transactions(self, planned: Settings) -> None:
        """Raise SettingError if Kafka may drop the output of a sink during the move."""
        timeout = int(planned.get(TRANSACTION_TIMEOUT, 0)) / 1000
        longest = self.settings.savepoint_seconds + self.settings.seconds  # without a return
        if 0 < timeout < longest:
            raise SettingError(
                f"{TRANSACTION_TIMEOUT} of a sink is {timeout:g} s, after which Kafka drops "
                f"uncommitted output; a move may take {longest:g} s, so raise it in the program, "
                "or lower savepoint-timeout and timeout in a file for --settings"
            )

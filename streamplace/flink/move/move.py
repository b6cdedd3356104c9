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
    broken_off,
    unfinished,
)
from streamplace.flink.move.running_settings import (
    LATER,
    RETENTION,
    Settings,
    checkpoint_folder,
    lost,
    running_settings,
    submitted_settings,
)
from streamplace.flink.move.savepoints import (
    RETAINED,
    chosen_folder,
    latest,
    path_of,
    resumable,
    stop_of,
)
from streamplace.flink.move.settling import MoveSettings
from streamplace.flink.move.transaction import (
    FlinkMoved,
    Submission,
    Transaction,
    has_to_go_on,
)
from streamplace.flink.pin.apply import check, placed_upload
from streamplace.flink.pin.free_resources import fitted, is_placed, left_without
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
    # Placements after and before a move, without devices that were lost; None waits for these.
    without_lost: Callable[[Journal], tuple[Layout, Layout]] | None = None

    def for_trials(self) -> "FlinkMove":
        """Return the same, for moves after which the job is measured; their steps are logged.

        So its rate is no condition, and it is watched only until it seems to run.
        """
        settle = min(RATE_SECONDS, self.settings.settle)  # it is measured for longer afterwards
        settings = replace(self.settings, settle=settle, least_rate=0.0)
        return replace(self, settings=settings, tell=LOG.info)

    def plan(self, job: str, layout: Layout) -> MovePlan:
        """Find out where a job runs, and whether it can be moved and, if necessary, moved back.

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
            pins=not is_moved and is_placed(job, left_without(self.rest, job)) is False,
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
        saved, and so continues to run; or when it does not run on its new devices, and runs on its
        previous ones again. Raises Undecided when Flink no longer answers, so that the move must be
        resumed.
        """
        self._end_earlier(plan.job)
        rate = self.rate(plan)
        trigger, folder = self._next_trigger(plan.job), self.savepoint_folder()
        journal = self._journal(plan, trigger=trigger, folder=folder)
        return self._carry_out(journal, lambda: MoveClaim.begin(journal), rate)

    def restart(self, job: str, layout: Layout) -> FlinkMoved:
        """Start a job that has lost devices on others, from its last checkpoint.

        `without_lost` says where. The job is cancelled, as it cannot be stopped with a savepoint.
        Raises FlinkError when it has saved nothing that outlives it, so that it is left as it is;
        otherwise the errors of `run`.
        """
        path = resumable(self.rest, job)
        if path is None:
            raise FlinkError(f"job {job} has no checkpoint or savepoint to continue from")
        settings, program = submitted_settings(self.rest, job), kept_program(job, self.program)
        document = self.rest.job(job)
        tasks = zip(document["vertices"], job_operators(document), strict=True)
        whole = {own.name: [""] * row["parallelism"] for row, task in tasks for own in task}
        where = layout.counted(Layout(whole))
        plan = MovePlan(
            job=job,
            before=where,
            after=where,
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
        own = replace(self, settings=replace(self.settings, settle=0.0))
        return own._carry_out(journal, lambda: MoveClaim.begin(journal))

    def resume(self, job: str | None = None) -> FlinkMoved:
        """Finish an interrupted move, so that exactly one copy of the job runs.

        Raises SettingError when no move was interrupted.

        ``job``: the job that was moved, or its successor; None if only one move was interrupted.
        """
        found = broken_off(self.unfinished_moves(), job and only_job(self.rest, job))
        if self.settings.compares_rates:
            self.tell(f"note: the rate before the interruption is not known, so {UNCOMPARED}")
        return self._carry_out(found, lambda: MoveClaim.take(found.job))

    def rate(self, plan: MovePlan) -> SourceFlow | None:
        """Return the output of a job's sources; None if it is not needed, or the job has gone."""
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
        kept = kept_program(journal.job, self.program)
        remember(journal.job, kept)  # so that the command that is printed needs no jar
        program = replace(kept, entry_class=kept.entry)
        back = program.with_settings(journal.settings)
        # so that it can return to its last checkpoint
        forward = program.with_settings({**journal.settings, RETENTION: RETAINED.upper()})
        after, before = journal.after, journal.before
        if self.without_lost is not None:
            after, before = self.without_lost(journal)
        rest, jobs = self.rest.patient(RETRY_SECONDS, self.tell), chain_of(journal.job)

        def upload(submission: Submission) -> AbstractContextManager[ClusterJar]:
            program, places = submission.program, submission.places
            pinning = fitted(rest, places, program.managed_mb, jobs)
            return placed_upload(rest, program, pinning)

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
        """Folder of savepoints; see `chosen_folder`."""
        return chosen_folder(self.rest, self.settings.savepoints, self.program.settings)

    def resume_line(self, job: str) -> str:
        """Command that finishes a move of a job, whose program is in the store."""
        words = ["streamplace", "flink", "move", "--rest", self.rest.url, *self.options]
        return shlex.join([*words, "--job", job, "--resume"])

    def running_job(self, name: str | None) -> str:
        """Job ID: given, or the only active one, or the resource's.

        Raises an error when a move of it is in progress, or was interrupted and has to go on.
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
        """End interrupted moves of a job, or of all jobs, that have no steps left.

        Raises MoveUnderWay when a command still carries one out, and FlinkError when one was
        interrupted half-way.
        """
        for journal in self.unfinished_moves():
            if job is not None and not journal.concerns(job):
                continue
            journal.refuse_held()
            if has_to_go_on(self.rest, journal):
                raise journal.interrupted()
            MoveClaim(MOVES, journal.job, journal).end()

    def _next_trigger(self, job: str) -> str:
        """Id of the request that stops a job: the same for all commands that would stop it now.

        Flink carries out one request of an id, and answers it for some minutes. Raises MoveUnderWay
        when one of another command stops the job, or has stopped it.
        """
        for number in count():
            trigger = stop_trigger(job, number)
            stop, _ = stop_of(self.rest, job, trigger)
            if stop is Stop.UNKNOWN:
                return trigger
            if stop is Stop.UNDER_WAY or self.rest.state(job) in ENDED:
                raise MoveUnderWay(f"job {job} is stopped by another command, which moves it")
        raise AssertionError

    def _checked(self, job: str, program: Program, before: Layout, after: Layout) -> Settings:
        """Return settings to carry over; raise an error if the job does not fit a placement."""
        running, saved = running_settings(self.rest, job), self._saved(job)
        planned = check(self.rest, program, after, job, saved)
        self._refuse_short_transactions(planned)
        given = program.settings
        changes = lost(running, planned)
        carried = {
            key: was for key, (was, _) in changes.items() if key not in given and was != LATER
        }
        again = program.with_settings(carried)
        left = lost(running, check(self.rest, again, before, job))
        for key, (was, will_be) in sorted((changes | left).items()):
            if key in carried and key not in left:
                self.tell(f"  {key}: {was}, as in the running job")
            elif was == LATER:
                self.tell(f"note: {key} is {was} and is not preserved; set it with -D")
            else:
                why = "as -D says" if key in given else "as the job's program says"
                self.tell(f"note: {key} is {was or 'not set'} and becomes {will_be}, {why}")
        if not given and stored_program(job) is None:
            self.tell(f"note: {UNREPORTED}")
        return carried

    def _saved(self, job: str) -> Savepoint | None:
        """Last checkpoint of a job; None if it has completed none, or keeps none in a file."""
        path = path_of(latest(self.rest, job).get("completed", {}))
        return None if path is None else Savepoint(path, self.settings.allow_non_restored)

    def _refuse_short_transactions(self, planned: Settings) -> None:
        """Raise SettingError if Kafka may drop the output of a sink during the move."""
        timeout = int(planned.get(TRANSACTION_TIMEOUT, 0)) / 1000
        longest = self.settings.savepoint_seconds + self.settings.seconds  # if it does not return
        if 0 < timeout < longest:
            raise SettingError(
                f"{TRANSACTION_TIMEOUT} of a sink is {timeout:g} s, after which Kafka drops what "
                f"is not committed; a move may take {longest:g} s, so raise it in the program, or "
                "lower savepoint-timeout and timeout in a file for --settings"
            )

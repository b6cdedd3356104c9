"""The transaction of a move: in the end one copy of the job runs, or a message says what to do.

The first Ctrl-C takes the job back to where it ran; the second one leaves the move for --resume.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from streamplace.errors import StreamplaceError
from streamplace.flink.layout import Layout
from streamplace.flink.measure.source_lag import SourceFlow
from streamplace.flink.move.decision_table import (
    ENDS,
    OPTIONAL_STEPS,
    UNFINISHED_ENDS,
    Copy,
    JobState,
    MoveObservation,
    Step,
    StepOutcome,
    Stop,
    decide,
)
from streamplace.flink.move.interruption import interruption_of, last_checkpoint_seconds
from streamplace.flink.move.journal import (
    Journal,
    MoveClaim,
    MoveUnderWay,
    is_local,
    last_path,
)
from streamplace.flink.move.savepoints import (
    LEFT_NOTHING,
    CopyRuns,
    EndedByOthers,
    begin_stop,
    checkpoint_totals,
    last_kept,
    refuse_copy,
    refuse_ended,
    resumable,
    saved_at,
    state_clause,
    stop_of,
    stopped_with,
)
from streamplace.flink.move.settling import MoveSettings, settle
from streamplace.flink.pin.apply import StillStarting, check_placed, refuse_lost, wait_started
from streamplace.flink.program.program import Program, Savepoint
from streamplace.flink.program.submission import (
    ClusterJar,
    chain_states,
    is_spent,
    live_states,
    submit,
    use_up,
    withdraw,
)
from streamplace.flink.rest.answers import MAX_TEXT
from streamplace.flink.rest.client import (
    EFFECT_SECONDS,
    ENDED,
    FINISHED,
    RUNNING,
    FlinkError,
    NoAnswer,
    Rest,
    chain_of,
    return_trigger,
    turns,
)
from streamplace.flink.store import StoreError, TakenOver
from streamplace.model.message_text import listed, shown

LONG_AGO = timedelta(hours=1)
"""Age of a move whose job is no longer just starting (judgement)."""
MAX_STARTS = 2
"""Maximum number of starts in a process for a JobManager that forgets its jobs."""
TWICE = "its output since then may be written twice"


class Undecided(FlinkError):
    """The state of the job is unknown, or it does not run: the move must be resumed."""

    def __init__(self, clause: str, advice: str = "") -> None:
        super().__init__(clause + advice)
        self.clause = clause  # the message without the advice, for commands that continue


class StoppedByOthers(Undecided):
    """Another user stopped the job before the move did; only --resume starts it."""


class NotSaved(FlinkError):
    """The savepoint of the job failed; the job runs where it ran before."""


@dataclass(frozen=True, slots=True)
class FlinkMoved:
    """A job that was moved."""

    job: str  # id of the job that runs now
    # Interruption in seconds, until all subtasks run again; None if unknown.
    interruption: float | None
    # Savepoint or checkpoint of its start; None if it did not move.
    savepoint: str | None


@dataclass(frozen=True, slots=True, eq=False)
class Submission:
    """Program and devices with which the job is submitted: the new ones, or the previous ones."""

    program: Program
    places: Layout


def observe(rest: Rest, journal: Journal) -> MoveObservation:
    """Observe the jobs of a move; raise FlinkError if their states are not known."""
    job, states = journal.job, chain_states(rest, journal.job)
    last = next(reversed(states), "")
    status = rest.state(last) if last else None
    copy, state, stop, path = Copy.NONE, JobState.GONE, Stop.UNKNOWN, journal.savepoint
    if status is None:
        path = last_path(journal)
        path = None if path is not None and _may_have_run(journal, path) else path
    else:
        stopped = stopped_with(rest, last) if status == FINISHED else None
        state = JobState.STOPPED if stopped else _STATES.get(status, JobState.CHANGING)
        copy = Copy.of(last, job)
        if copy is Copy.MOVED:
            stop, text = stop_of(rest, job, journal.trigger)
            if state is JobState.FAILED or (journal.cancels and state is JobState.CANCELED):
                path = resumable(rest, job) or path
            else:
                path = path or (text if stop is Stop.SAVED else stopped)
        elif copy is Copy.RETURNED:
            path = last_kept(rest, last) or path or last_path(journal)
    return MoveObservation(
        Copy.of(journal.requested_job, job) if journal.requested_job else Copy.NONE,
        journal.savepoint is not None,
        journal.returns,
        journal.cancels,
        copy,
        state,
        stop,
        path,
        job=last,
        status=status or "",
    )


_STATES = {s.name: s for s in JobState if s not in (JobState.GONE, JobState.STOPPED)}
"""Flink's word for a state → state."""


def _may_have_run(journal: Journal, path: str) -> bool:
    """Whether a forgotten job may have newer checkpoints that this machine cannot see."""
    was_started = journal.requested_job not in ("", journal.job)
    is_old = datetime.now(UTC) - journal.began > LONG_AGO
    is_first = path == journal.savepoint
    return was_started and is_old and is_first and not is_local(journal.checkpoints)


def is_unfinished(rest: Rest, journal: Journal) -> bool:
    """Whether a move has to be resumed: no copy of its job runs, or the running one is stopped."""
    try:
        observation = observe(rest, journal)
    except FlinkError:
        return True
    # After STEADY, the table regards a job that no request has stopped as kept.
    return decide(replace(observation, after=Step.STEADY)) not in OPTIONAL_STEPS


@dataclass(slots=True)
class Transaction:
    """A move that this process has claimed."""

    rest: Rest  # a patient client
    claim: MoveClaim
    there: Submission  # to the new devices
    back: Submission  # to the previous devices
    # Uploads the jar of a submission, and removes it when the block ends.
    upload: Callable[[Submission], AbstractContextManager[ClusterJar]]
    tell: Callable[[str], None]
    settings: MoveSettings
    rate: SourceFlow | None  # rates of its sources before the move, if known
    # Whether to wait for lost devices; otherwise, a start on one of them fails at once.
    awaits_lost: bool = True
    # This process: its last step with the outcome and error, and why the job has to return.
    _after: Step | None = field(default=None, init=False)
    _outcome: StepOutcome = field(default=StepOutcome.DONE, init=False)
    _error: StreamplaceError | None = field(default=None, init=False)
    _reason: str = field(default="", init=False)
    _interrupts: int = field(default=0, init=False)
    _starts: int = field(default=0, init=False)
    _used: set[str] = field(default_factory=set, init=False)  # ids that Flink does not take again
    _jars: dict[Submission, tuple[ClusterJar, ExitStack]] = field(default_factory=dict, init=False)
    _uploads: ExitStack = field(default_factory=ExitStack, init=False)

    @property
    def journal(self) -> Journal:
        """Journal of the move."""
        return self.claim.journal

    def run(self) -> FlinkMoved:
        """Carry the move out, or finish it from any state.

        Raises the error of the end, and KeyboardInterrupt after an interrupt.
        """
        step = Step.LEFT  # if an interrupt arrives while another one is handled
        with self._uploads:
            try:
                step, end = self._until_end()
            except KeyboardInterrupt:
                end = KeyboardInterrupt()
            finally:
                self.claim.leave() if step in UNFINISHED_ENDS else self.claim.end()
        if step is Step.LEFT:
            self.tell(f"the move is not finished; finish it with: {self.journal.resume_by}")
        if isinstance(end, FlinkMoved):
            return end
        if self._interrupts and step not in UNFINISHED_ENDS:
            self.tell(str(end))
            end = KeyboardInterrupt()
        raise end

    def _until_end(self) -> tuple[Step, FlinkMoved | BaseException]:
        """Observe, decide and act until the end; return it with its result or error.

        Every step and end has a method of the same name.
        """
        while True:
            step: Step | None = None
            try:
                observation = self._observed()
                step = decide(observation)
                act: Callable[[MoveObservation], Any] = getattr(self, f"_{step.name.lower()}")
                result = act(observation)
                if step in ENDS:
                    return step, result
                self._after, self._outcome, self._error = step, StepOutcome.DONE, None
            except KeyboardInterrupt:
                self._interrupts += 1
                self._after, self._outcome, self._error = None, StepOutcome.DONE, None
                self._reason = self._reason or "interrupted"
            except TakenOver:
                raise
            except StreamplaceError as error:
                self._after, self._error = step, error
                is_answer = step is not None and step not in ENDS
                self._outcome = outcome_of(error) if is_answer else StepOutcome.SILENT
                if self._outcome is StepOutcome.SPENT:
                    self._used.add(self.journal.requested_job)
                if self._outcome in (StepOutcome.FAILED, StepOutcome.SPENT):
                    self._reason = self._reason or str(error)

    def _observed(self) -> MoveObservation:
        """Input of the next decision; Flink is asked only if its answers matter."""
        is_decided = self._outcome in (StepOutcome.SILENT, StepOutcome.STARTING, StepOutcome.OTHERS)
        observation = MoveObservation(Copy.MOVED if self.journal.requested_job else Copy.NONE)
        if not is_decided and self._interrupts < 2:
            observation = observe(self.rest, self.journal)
            if observation.last is Copy.NONE and self._starts >= MAX_STARTS:
                raise FlinkError(f"the JobManager no longer knows job {self.journal.job}")
        interrupts = min(self._interrupts, 2)
        return replace(observation, after=self._after, outcome=self._outcome, interrupts=interrupts)

    # Steps.

    def _prepare(self, _: MoveObservation) -> None:
        """Upload both jars while the job runs."""
        for submission in (self.there, self.back):
            self._jar(submission)

    def _stop(self, _: MoveObservation) -> None:
        journal = self.journal
        self._save(requested_job=journal.job)
        self.tell(f"stopping job {journal.job} with a savepoint")
        self._ask_to_stop(journal.job, journal.trigger)

    def _await_stop(self, _: MoveObservation) -> None:
        path = self._stopped_at(self.journal.job, self.journal.trigger)
        self.tell(f"its state is in {path}")
        self._save(savepoint=path)

    def _steady(self, _: MoveObservation) -> None:
        """Wait until the moved job is in a lasting state, or for a limited time."""
        for limit, steady in ((EFFECT_SECONDS, ()), (self.settings.seconds, (RUNNING,))):
            for _turn in turns(limit):
                state = self.rest.state(self.journal.job)
                if state is None or state in (*ENDED, *steady):
                    break

    def _cancel(self, observation: MoveObservation) -> None:
        job = self.journal.job
        self._save(requested_job=job)
        if observation.status not in ENDED:
            self.tell(f"cancelling job {job}")
            self.rest.cancel(job)

    def _start(self, observation: MoveObservation) -> None:
        if observation.last is Copy.NONE:
            job, path = self.journal.job, observation.path
            self.tell(f"the JobManager no longer knows job {job}; continuing from {path}")
        self._starts += 1
        self._submit(self.journal.successor, self.there, str(observation.path))

    def _settle(self, observation: MoveObservation) -> None:
        """Wait until the successor runs as placed, and has settled."""
        job = observation.job
        self._await_started(job, self.there)
        if check_placed(self.rest, job, self.there.places):
            self.tell(f"job {job} runs; every subtask is where it is placed")
        if self.there in self._jars:
            self._jars.pop(self.there)[1].close()
        if self.settings.settle > 0:
            self.tell(f"watching the job for {self.settings.settle:g} s")
            # The first checkpoint may contain all of the state, as the savepoint does.
            usual = last_checkpoint_seconds(self.rest, self.journal.job, "savepoint")
            settle(self.rest, job, self.settings, self.rate, usual)

    def _end(self, observation: MoveObservation) -> None:
        """End the successor, or use up its id, so that the job can return with its state."""
        if observation.last is Copy.MOVED and observation.state is JobState.FAILED:
            job, path = self.journal.job, observation.path
            self.tell(f"note: job {job} has failed, and continues from {path}; {TWICE}")
        if not self._reason:
            self._reason = "the move failed"
            if observation.state is JobState.FAILED and not self.journal.returns:
                self._reason = f"job {observation.job} is FAILED: {self._failure(observation.job)}"
        self._save(returns=True, savepoint=observation.path)
        path = self._last_state(str(observation.path))
        if path is not None:
            self._save(savepoint=path)
            self.tell(f"the move failed: {self._reason}")

    def _return(self, observation: MoveObservation) -> None:
        if observation.last is Copy.RETURNED:
            job = observation.job
            self.tell(f"job {job} is {observation.status}: {self._failure(job)}")
        self._reason = self._reason or "the move failed"
        chain = chain_of(self.journal.job)
        later = chain[chain.index(observation.job) + 1 :] if observation.job in chain else chain
        returns = (name for name in later if Copy.of(name, chain[0]) is Copy.RETURNED)
        job = next(name for name in returns if name not in self._used)
        self._save(returns=True)
        self._submit(job, self.back, str(observation.path))

    def _await_return(self, observation: MoveObservation) -> None:
        self._reason = self._reason or "the move failed"
        self._await_started(observation.job, self.back)

    # Shared by steps.

    def _jar(self, submission: Submission) -> ClusterJar:
        """Jar of a submission; it is uploaded when it is first needed."""
        if submission not in self._jars:
            await_devices(self.rest, submission.places.devices, self.settings.seconds, self.tell)
            upload = self._uploads.enter_context(ExitStack())
            self._jars[submission] = upload.enter_context(self.upload(submission)), upload
        return self._jars[submission][0]

    def _submit(self, job: str, submission: Submission, path: str) -> None:
        """Start a job from a savepoint, unless another job already continues from it.

        A job that Flink did not know may run nevertheless: a new JobManager answers some time
        before it takes over its jobs.
        """
        jar, devices = self._jar(submission), submission.places.devices
        chain = chain_of(self.journal.job)
        if alive := [name for name in live_states(self.rest, self.journal.job) if name != job]:
            raise MoveUnderWay(
                f"a JobManager has taken over job {alive[-1]}; nothing was started. Move it again"
            )
        savepoint = Savepoint(path, self.journal.allow_non_restored)
        request = submission.program.run_request(savepoint)
        was_requested = self.journal.requested_job == job

        def await_ready() -> None:
            if self.awaits_lost:  # after a restart of the JobManager, they join one by one
                await_devices(self.rest, devices, self.settings.seconds, self.tell)
            else:
                refuse_lost(self.rest, devices)
            self.rest.wait_released()

        refuse_copy(self.rest, path, chain, self.journal.name)
        self.tell(f"starting it from its saved state on {listed(sorted(devices))}")
        self._save(requested_job=job, savepoint=path)
        if not submit(self.rest, jar, request, job, await_ready) and not was_requested:
            raise moved_by_others(self.journal.job, job)
        try:  # another user may have submitted a copy at the same time
            refuse_copy(self.rest, path, chain, self.journal.name)
        except CopyRuns:
            withdraw(self.rest, lambda: jar, job)
            raise

    def _await_started(self, job: str, submission: Submission) -> None:
        needed = set[str]() if self.awaits_lost else submission.places.devices
        wait_started(self.rest, job, self.settings.seconds, needed)

    def _last_state(self, path: str) -> str | None:
        """End the successor; return the path of its last state, None if it finished by itself.

        A running job is stopped with a savepoint, so it loses no progress. The last state of any
        other job is its last checkpoint, if that outlives the job, else its initial state. The job
        may finish at any moment; a finished one cannot be saved.
        """
        job = self.journal.successor
        if self.rest.state(job) is None:
            use_up(self.rest, lambda: self._jar(self.back), job)
        if (state := self.rest.state(job)) is None:
            return path
        trigger = return_trigger(job)
        is_stopping = stop_of(self.rest, job, trigger)[0] is not Stop.UNKNOWN
        if state == RUNNING or is_stopping:
            try:
                if not is_stopping:
                    self._ask_to_stop(job, trigger)
                return self._stopped_at(job, trigger)
            except NoAnswer:
                raise
            except FlinkError:  # the savepoint failed, so the last checkpoint counts
                pass
        withdraw(self.rest, lambda: self._jar(self.back), job)
        if self.rest.state(job) == FINISHED:
            return stopped_with(self.rest, job)
        checkpoint = last_kept(self.rest, job)
        if checkpoint is not None or checkpoint_totals(self.rest, job).completed:
            self.tell(f"note: job {job} continues from {checkpoint or path}; {TWICE}")
        return checkpoint or path

    def _ask_to_stop(self, job: str, trigger: str) -> None:
        begin_stop(self.rest, job, self.journal.folder, trigger, native=self.settings.native)

    def _stopped_at(self, job: str, trigger: str) -> str:
        path = saved_at(self.rest, job, trigger, self.settings.savepoint_seconds)
        self.rest.wait(job, ENDED)
        return path

    def _save(self, **changes: object) -> None:
        """Write the next step; once the job is down, a failure to write does not stop the move."""
        try:
            self.claim.save(**changes)
        except StoreError:
            if not self.journal.requested_job:
                raise
            self.claim.journal = self.journal.model_copy(update=changes)

    def _failure(self, job: str) -> str:
        """Cause of a job's failure, if Flink reports it."""
        with suppress(FlinkError):
            return self.rest.failure(job)
        return "its cause is not known"

    # Ends: the result of a move, or its error.

    def _moved(self, observation: MoveObservation) -> FlinkMoved:
        journal, job = self.journal, self.journal.successor
        # Flink does not report how long a failed job was down before it was cancelled.
        seconds = None if journal.cancels else interruption_of(self.rest, journal.job, job)
        return FlinkMoved(job, seconds, journal.savepoint)

    def _has_returned(self, observation: MoveObservation) -> FlinkError:
        where = "again, without the devices that were lost"
        if self.back.places == self.journal.before:
            where = "on its previous devices again"
        return FlinkError(f"{self._reason}; the job runs {where}, as job {observation.job}")

    def _kept(self, observation: MoveObservation) -> FlinkError:
        job = self.journal.job
        if self.journal.cancels and self.journal.requested_job:
            return FlinkError(f"job {job} was not cancelled yet, and is {observation.status}")
        return NotSaved(f"{self._reason}; job {job} continues where it ran")

    def _refused(self, _: MoveObservation) -> StreamplaceError:
        assert self._error is not None
        return self._error

    def _finished(self, observation: MoveObservation) -> FlinkError:
        if observation.last is Copy.MOVED:
            return FlinkError(
                f"job {observation.job} finished before it could be saved; there is nothing to move"
            )
        reason = self._reason or "the move failed"
        return FlinkError(f"{reason}; job {observation.job} has finished by itself")

    def _taken(self, observation: MoveObservation) -> MoveUnderWay:
        if observation.last is not Copy.MOVED:
            return moved_by_others(self.journal.job, observation.job)
        return MoveUnderWay(
            f"job {observation.job} was stopped by another command, which moves it; this command "
            "started nothing"
        )

    def _ended_by_others(self, observation: MoveObservation) -> StreamplaceError:
        job = observation.job
        try:
            refuse_ended(self.rest, job)
        except EndedByOthers as error:
            return error
        return EndedByOthers(f"job {job} was ended by another user, and is not started again")

    def _not_running(self, observation: MoveObservation) -> FlinkError:
        job = observation.job
        if observation.state is JobState.FAILED:
            why = f"has failed: {self._failure(job)}; nothing was started"
            return FlinkError(f"job {job} {why}{state_clause(self.rest, job)}")
        return FlinkError(
            f"job {job} is {observation.status}, not RUNNING any more; move it when it runs"
        )

    def _lost(self, observation: MoveObservation) -> FlinkError:
        reason = self._reason or f"job {observation.job} was asked to stop"
        return FlinkError(f"{reason}; job {observation.job} failed, and {LEFT_NOTHING}")

    def _forgotten(self, _: MoveObservation) -> FlinkError:
        journal = self.journal
        text = f"the JobManager no longer knows job {journal.requested_job or journal.job}"
        advice = "with 'streamplace flink apply --savepoint'"
        if (path := last_path(journal)) is None:
            return FlinkError(
                f"{text}, because it was restarted without high availability, and no complete "
                f"savepoint of it is known to this machine; if {shown(journal.folder, MAX_TEXT)} "
                f"contains one, start the job from that {advice}, else submit it again"
            )
        return FlinkError(
            f"{text}, which may have newer checkpoints below "
            f"{journal.checkpoints or 'the folder of checkpoints'} that this machine cannot read; "
            f"start the job {advice} from the newest one, or from {path} if there is none"
        )

    def _stopped_by_others(self, observation: MoveObservation) -> StoppedByOthers:
        self._save(requested_job=observation.job, savepoint=observation.path)  # for --resume
        return StoppedByOthers(
            f"job {observation.job} was stopped by somebody else, with its state in "
            f"{observation.path}; this command started nothing",
            f". To start it on the new devices: {self.journal.resume_by}",
        )

    def _not_returned(self, observation: MoveObservation) -> Undecided:
        failure = self._error or self._failure(observation.job)
        path, job = self.journal.savepoint, self.journal.requested_job
        is_live = True  # also if Flink does not answer
        with suppress(FlinkError):
            path = last_kept(self.rest, job) or path
            is_live = self.rest.state(job) not in (None, *ENDED)
        self._save(returns=True, savepoint=path)
        state = f"The job is not running. Its state is in {path}"
        if is_live:
            state = f"Job {job} has not ended, so do not start another one from {path}"
        return Undecided(
            f"{self._reason}; the return to the previous devices failed, too: {failure}. {state}",
            f"; {'when it runs or has ended, ' if is_live else ''}finish the move by: "
            f"{self.journal.resume_by}",
        )

    def _undecided(self, observation: MoveObservation) -> Undecided:
        journal, error = self.journal, self._error
        text, advice = str(error or f"job {observation.job} has not ended"), "finish the move by"
        if isinstance(error, StillStarting):
            text += ". It is not stopped, and nothing else is started"
            advice = "to wait for it again and finish the move, perhaps with a longer timeout"
        elif observation.outcome is not StepOutcome.FAILED:  # otherwise its tasks take long to end
            text += f". It is not known whether job {journal.job} or its successor "
            text += f"{journal.successor} runs"
            advice = f"when Flink answers again, {advice}"
        return Undecided(text, f"; {advice}: {journal.resume_by}")

    def _left(self, _: MoveObservation) -> KeyboardInterrupt:
        return KeyboardInterrupt()


def outcome_of(error: StreamplaceError) -> StepOutcome:
    """Outcome of a step that has raised an error."""
    if isinstance(error, StillStarting):
        return StepOutcome.STARTING
    if isinstance(error, NoAnswer):
        return StepOutcome.SILENT
    if isinstance(error, CopyRuns | EndedByOthers | MoveUnderWay):
        return StepOutcome.OTHERS
    return StepOutcome.SPENT if is_spent(error) else StepOutcome.FAILED


def moved_by_others(job: str, later: str) -> MoveUnderWay:
    """Error about a job that another command has moved, and that has a new id since."""
    return MoveUnderWay(
        f"job {job} was moved by another command meanwhile, and continues as job {later}; this "
        "command started nothing"
    )


def await_devices(
    rest: Rest, needed: set[str], seconds: float, tell: Callable[[str], None]
) -> None:
    """Wait until TaskManagers have joined, and released the slots of jobs that the cluster forgot.

    They release the slots of a job some time after its JobManager is gone. Raises FlinkError when
    that takes longer than ``seconds``.
    """
    before = ""
    for _ in turns(seconds):
        offered, jobs, waiting = rest.offered(), rest.jobs().keys(), ""
        if missing := sorted(needed.difference(offered)):
            waiting = f"{listed(missing)} have to join the cluster"
        elif held := [device for device in sorted(needed) if set(rest.holders(device)) - jobs]:
            waiting = f"{listed(held)} have to give back the slots of a forgotten job"
        if not waiting:
            return
        if waiting != before:
            tell(f"waiting: {waiting}")
        before = waiting
    raise FlinkError(f"{waiting}, and have not done so within {seconds:g} s")

"""The transaction of a move: in the end one copy of the job runs, or the user is told what to do.

Every step first reads the current state, so what is done next is the same whether the move begins
or is resumed. Requests to Flink have ids that are chosen in advance, so they can be repeated: the
stop of the job, its successor, and the successor of that, which is the job on its previous devices.
Flink accepts each of these ids once, so no two copies can run.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import NoReturn

from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.measure.source_lag import SourceFlow
from streamplace.engines.flink.move.interruption import interruption_of, last_checkpoint_seconds
from streamplace.engines.flink.move.journal import (
    Journal,
    MoveClaim,
    MoveUnderWay,
    is_seen,
    last_path,
)
from streamplace.engines.flink.move.savepoints import (
    CANCELLED,
    UNDER_WAY,
    CopyRuns,
    EndedByOthers,
    Savepoint,
    begin_stop,
    checkpoint_totals,
    last_kept,
    moved_by_others,
    refuse_copy,
    refuse_ended,
    resumable,
    state_clause,
    stop_status,
    stopped_at,
    stopped_with,
)
from streamplace.engines.flink.move.settings import MoveSettings
from streamplace.engines.flink.move.settling import settle
from streamplace.engines.flink.pin.apply import (
    StillStarting,
    placed_upload,
    refuse_lost,
    wait_started,
)
from streamplace.engines.flink.pin.free_resources import fitted
from streamplace.engines.flink.pin.verify import check_placed
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.program.submission import (
    ClusterJar,
    chain_states,
    is_spent,
    submit,
    withdraw,
)
from streamplace.engines.flink.rest.answers import LONGEST
from streamplace.engines.flink.rest.client import (
    EFFECT_SECONDS,
    ENDED,
    FINISHED,
    SUSPENDED,
    FlinkError,
    NoAnswer,
    Refusal,
    Rest,
    chain_of,
    return_trigger,
    successor,
    turns,
)
from streamplace.errors import StreamplaceError
from streamplace.io.store import StoreError
from streamplace.model.message_text import listed, shown

PASSING = frozenset({"FAILING", "CANCELLING", "RESTARTING", "RECONCILING"})
TWICE = "what it wrote since then may be written twice"
LONG_AGO = timedelta(hours=1)
"""Age of a move whose job is no longer just starting (taste)."""


class Undecided(FlinkError):
    """What becomes of the job is not known, or it does not run: the move must be resumed.

    Attributes
    ----------
    clause
        What is the case, without the advice for a command that ends now.
    """

    def __init__(self, clause: str, advice: str = "") -> None:
        super().__init__(clause + advice)
        self.clause = clause


class Forgotten(Undecided):
    """The JobManager was restarted without high availability, and no longer knows the job."""


class StoppedByOthers(Undecided):
    """Another user stopped the job before the move did, so it is only started on request."""


class NotSaved(FlinkError):
    """The job was asked to stop with a savepoint, which failed; it runs where it ran before."""


@dataclass(frozen=True, slots=True)
class FlinkMoved:
    """A job that was moved."""

    job: str  # id of the job that runs now
    # Seconds for which it was stopped, until all of it runs again; None if unknown.
    interruption: float | None
    # Savepoint or checkpoint that it was started from; None if it did not move.
    savepoint: str | None


@dataclass(slots=True)
class Way:
    """Program and devices for a submission: with the new placement, or with the previous one."""

    program: Program
    places: Layout
    jar: ClusterJar | None = None  # the jar on the cluster, once it is uploaded


@dataclass(frozen=True, slots=True)
class Transaction:
    """A move that this process has claimed."""

    rest: Rest  # a patient client
    claim: MoveClaim
    flink: Flink  # compiles what is submitted
    there: Way  # submission to the new devices
    back: Way  # submission to the previous ones
    tell: Callable[[str], None]
    settings: MoveSettings
    rate: SourceFlow | None  # output of its sources before the move, if known
    # Whether lost devices are waited for; otherwise, a start on one of them fails at once.
    awaits_lost: bool = True
    _uploads: ExitStack = field(default_factory=ExitStack, init=False)

    @property
    def journal(self) -> Journal:
        """Journal of the move."""
        return self.claim.journal

    def run(self) -> FlinkMoved:
        """Carry the move out, or finish it, from whatever state it is in, and end it.

        It is left for --resume if the state of the job is undecided. An interruption has returned
        the job, unless it was interrupted again.
        """
        try:
            try:
                moved = self._run()
            except Forgotten as error:
                self.tell(f"{error.clause}; the move goes on")
                moved = self._run()
        except StreamplaceError as failure:
            told = undecided(failure, self.journal)
            self.claim.leave() if isinstance(told, Undecided) else self.claim.end()
            raise told from None
        except KeyboardInterrupt:
            is_unfinished = True
            with suppress(FlinkError):
                is_unfinished = has_to_go_on(self.rest, self.journal)
            if is_unfinished:
                self.tell(f"the move is not finished; finish it with: {self.journal.resume_by}")
            self.claim.leave() if is_unfinished else self.claim.end()
            raise
        except BaseException:
            self.claim.leave()
            raise
        self.claim.end()
        return moved

    def _run(self) -> FlinkMoved:
        """Do what is left to do; raise Forgotten if the JobManager forgets the job meanwhile."""
        try:
            moved = self._go_on()
        finally:
            self._uploads.close()
            self.there.jar = self.back.jar = None
        if not chain_states(self.rest, self.journal.job):
            raise forgotten(self.journal)
        return moved

    def _jar(self, way: Way) -> ClusterJar:
        """Jar of a way; it is uploaded when it is first needed, and its devices are there."""
        if way.jar is None:
            await_devices(self.rest, way.places.devices, self.settings.seconds, self.tell)
            jobs, managed_mb = chain_of(self.journal.job), way.program.managed_mb
            pinning = fitted(self.rest, way.places, managed_mb, jobs)
            upload = placed_upload(self.rest, self.flink, way.program, pinning)
            way.jar = self._uploads.enter_context(upload)
        return way.jar

    def _go_on(self) -> FlinkMoved:
        """Go on from the last job of the move that Flink knows.

        - the moved one: it is stopped or cancelled, and its successor started;
        - its successor: it runs where it is placed, and settles, or else goes back;
        - a later one: it went back, and must run there;
        - none, as the JobManager has forgotten them: the next one starts from the last state.
        """
        journal, job = self.journal, self.journal.job
        states = chain_states(self.rest, job)
        if not states:
            if (path := last_path(journal)) is None:
                raise forgotten(journal)
            self._refuse_unseen(path)
            self.tell(f"the JobManager no longer knows job {job}; continuing from {path}")
            return self._forward(path, is_forgotten=True)
        last, state = next(reversed(states.items()))
        if last == job:
            return self._end_first()
        if journal.asked in ("", job) and not journal.returns:
            raise moved_by_others(job, last)
        if last != journal.successor:
            self._report_return(last, state)
        assert journal.savepoint is not None  # it is written with what asks for the successor
        return self._forward(journal.savepoint, state)

    def _end_first(self) -> FlinkMoved:
        """End the moved job, as no successor of it is known, and start it on its new devices."""
        journal, job = self.journal, self.journal.job
        if journal.cancels:
            return self._cancel()
        state = self._first_state()
        if state in ENDED and journal.savepoint is not None:
            return self._forward(journal.savepoint)
        if journal.asked and (state in ENDED or self._stop_is_known()):
            return self._forward(self._await_stop())
        if state == "RUNNING":
            self._prepare()
            state = self._first_state()  # another command may have stopped it meanwhile
        if state in ENDED:
            if self._stop_is_known():
                raise MoveUnderWay(
                    f"job {job} was stopped by another command, which moves it; this command "
                    "started nothing"
                )
            raise self._not_stopped(state)
        if state != "RUNNING":
            raise FlinkError(f"job {job} is {state}, not RUNNING any more; move it when it runs")
        self.claim.save(asked=job)
        self.tell(f"stopping job {job} with a savepoint")
        try:
            self._ask_to_stop(job, journal.trigger)
            path = self._saved(job, journal.trigger)
            self.tell(f"its state is in {path}")
            self._save(savepoint=path)
        except BaseException as error:
            self._fail(error)
        return self._forward(path)

    def _cancel(self) -> FlinkMoved:
        """End a job that has lost devices, and start it from the last state that outlives it."""
        job = self.journal.job
        if self.journal.asked:
            state = self._first_state()
            if state not in (*ENDED, *CANCELLED):  # Flink may run it again by now
                raise FlinkError(f"job {job} was not cancelled yet, and is {state}")
        else:
            self._prepare()
            state = self._first_state()
            if state in (FINISHED, *CANCELLED):
                raise self._not_stopped(state)
            self.claim.save(asked=job)
        if state not in ENDED:
            self.tell(f"cancelling job {job}")
            try:
                state = self.rest.cancel(job)
            except (NoAnswer, Refusal):
                raise
            except FlinkError as error:  # some of its tasks take long to end
                advice = f"; finish the move by: {self.journal.resume_by}"
                raise Undecided(str(error), advice) from None
        if state == FINISHED:
            raise finished_before(job)
        path = resumable(self.rest, job) or self.journal.savepoint
        assert path is not None  # it was known when this began
        self._save(savepoint=path)
        return self._forward(path)

    def _first_state(self) -> str:
        """State of the moved job; Forgotten if the JobManager does not know it any more."""
        if (state := self.rest.state(self.journal.job)) is None:
            raise forgotten(self.journal)
        return state

    def _stop_is_known(self) -> bool:
        """Whether Flink knows that the moved job was asked to stop, which takes a while."""
        return stop_status(self.rest, self.journal.job, self.journal.trigger) is not None

    def _prepare(self) -> None:
        """Upload both jars while the job runs, so that whatever they lack is found before.

        Raises MoveUnderWay or Forgotten when that fails because the job has gone meanwhile.
        """
        job = self.journal.job
        try:
            for way in (self.there, self.back):
                self._jar(way)
        except NoAnswer:
            raise
        except StreamplaceError:
            last = next(reversed(chain_states(self.rest, job)), "")
            if last != job:
                raise (moved_by_others(job, last) if last else forgotten(self.journal)) from None
            raise

    def _await_stop(self) -> str:
        """Path of the savepoint of a job that was asked to stop before."""
        job = self.journal.job
        try:
            return self._saved(job, self.journal.trigger)
        except Refusal as error:  # Flink has forgotten the request
            if self._steady_state() == FINISHED and (path := stopped_with(self.rest, job)):
                return path
            self._fail(NotSaved(f"{error}; job {job} continues where it ran"))
        except FlinkError as error:
            self._fail(error)

    def _refuse_unseen(self, path: str) -> None:
        """Raise FlinkError if a job of the move may have run for long since its savepoint.

        Its checkpoints are newer, and not where this machine sees them.
        """
        journal, ran = self.journal, self.journal.asked not in ("", self.journal.job)
        is_old = datetime.now(UTC) - journal.began > LONG_AGO
        if ran and is_old and path == journal.savepoint and not is_seen(journal.checkpoints):
            raise FlinkError(
                f"the JobManager no longer knows job {journal.asked}, which may have run since, "
                f"and its checkpoints below {journal.checkpoints or 'the folder of checkpoints'} "
                "cannot be seen from here; start it with 'streamplace flink apply --savepoint' "
                f"from the newest one, or from {path} if there is none"
            )

    def _forward(
        self, path: str, state: str | None = None, *, is_forgotten: bool = False
    ) -> FlinkMoved:
        """Have the job run on its new devices, and check that it settles; else go back.

        ``state`` is that of its successor, if Flink knows it from before an interruption.
        ``is_forgotten``: whether Flink knew no job of the move.
        """
        journal, new = self.journal, self.journal.successor
        if journal.returns:
            self._go_back(path, FlinkError("the move failed"))
        try:
            if state is None:
                self._start(new, self.there, path, is_forgotten=is_forgotten)
            else:
                refuse_ended(self.rest, new)
            if state in ENDED and state != FINISHED:
                raise FlinkError(f"job {new} is {state}: {self.rest.failure(new)}")
            if state not in (None, FINISHED):
                self._await_start(new, journal.after)
            if state != FINISHED:
                self._watch(new)
        except BaseException as error:
            self._fail(error, path)
        # Flink does not report how long a job was down before it was cancelled.
        seconds = None if journal.cancels else interruption_of(self.rest, journal.job, new)
        return FlinkMoved(new, seconds, path)

    def _start(self, job: str, way: Way, path: str, *, is_forgotten: bool = False) -> None:
        """Start a job from a savepoint, unless another job already continues from it.

        A job that Flink did not know may run after all: a new JobManager takes over its jobs some
        time after it answers.
        """
        jar, devices, chain = self._jar(way), way.places.devices, chain_of(self.journal.job)
        known = chain_states(self.rest, self.journal.job) if is_forgotten else {}
        if alive := [one for one, state in known.items() if state not in ENDED]:
            raise MoveUnderWay(
                f"a JobManager has taken over job {alive[-1]}; nothing was started. Move it again"
            )
        request = way.program.run_request(Savepoint(path, self.journal.allow_non_restored))
        was_asked = self.journal.asked == job

        def await_ready() -> None:
            if self.awaits_lost:  # after a restart of the JobManager they join one after the other
                await_devices(self.rest, devices, self.settings.seconds, self.tell)
            else:
                refuse_lost(self.rest, devices)
            self.rest.wait_released()

        refuse_copy(self.rest, path, chain, self.journal.name)
        self.tell(f"starting it from its saved state on {listed(sorted(devices))}")
        self._save(asked=job, savepoint=path)
        if not submit(self.rest, jar, request, job, await_ready) and not was_asked:
            raise moved_by_others(self.journal.job, job)
        try:  # another user may have submitted a copy at the same time
            refuse_copy(self.rest, path, chain, self.journal.name)
        except CopyRuns:
            withdraw(self.rest, lambda: jar, job)
            raise
        self._await_start(job, way.places)

    def _await_start(self, job: str, places: Layout) -> None:
        needed = set[str]() if self.awaits_lost else places.devices
        wait_started(self.rest, job, self.settings.seconds, needed)

    def _watch(self, job: str) -> None:
        """Raise FlinkError if a job does not run as placed, or does not settle."""
        if check_placed(self.rest, job, self.there.places):
            self.tell(f"job {job} runs; every subtask is where it is placed")
        if self.settings.settle > 0:
            self.tell(f"watching the job for {self.settings.settle:g} s")
            # The first checkpoint may contain all of the state, as the savepoint does.
            taken = last_checkpoint_seconds(self.rest, self.journal.job, "savepoint")
            settle(self.rest, job, self.settings, self.rate, taken)
        refuse_ended(self.rest, job)

    def _ask_to_stop(self, job: str, trigger: str) -> None:
        begin_stop(self.rest, job, self.journal.folder, trigger, native=self.settings.native)

    def _saved(self, job: str, trigger: str) -> str:
        return stopped_at(self.rest, job, trigger, self.settings.savepoint_seconds)

    def _save(self, **news: object) -> None:
        """Write the next step, if that is possible: the job is down, and must not stay so."""
        with suppress(StoreError):
            self.claim.save(**news)

    def _fail(self, error: BaseException, path: str | None = None) -> NoReturn:
        """Start the job where it was, from a path or what its stop has saved; raise an error.

        No answer, other users and a forgotten job forbid going back.
        """
        if isinstance(error, NoAnswer | CopyRuns | EndedByOthers | MoveUnderWay):
            raise error
        if not is_spent(error) and not chain_states(self.rest, self.journal.job):
            raise forgotten(self.journal) from None
        self._go_back(self._await_savepoint(error) if path is None else path, error)

    def _await_savepoint(self, error: BaseException) -> str:
        """Path to continue from after a failed stop; raise an error if the job needs no restart.

        A stop continues in Flink, even if it is interrupted here.
        """
        job, trigger = self.journal.job, self.journal.trigger
        with suppress(Refusal):
            if stop_status(self.rest, job, trigger) is not None:
                try:
                    return self._saved(job, trigger)
                except NoAnswer:
                    raise
                except FlinkError as failure:
                    error = NotSaved(str(failure)) if isinstance(error, FlinkError) else error
        state = self._steady_state()
        if state is None:
            raise forgotten(self.journal) from None
        if state not in ENDED:
            raise error  # the job continues to run
        if state != "FAILED":
            raise self._not_stopped(state) from None
        if (path := resumable(self.rest, job)) is not None:
            self.tell(f"note: job {job} has failed, and continues from {path}; {TWICE}")
            return path
        raise FlinkError(
            f"{reason(error)}; job {job} failed, and left no checkpoint or savepoint; submit it "
            "again"
        ) from None

    def _steady_state(self) -> str | None:
        """State of the moved job once it is stable, or after a while; None if the job is gone."""
        state: str | None = None
        began = time.monotonic()
        for _ in turns(self.settings.seconds):
            state = self.rest.state(self.journal.job)
            is_steady = state not in PASSING and time.monotonic() - began > EFFECT_SECONDS
            if state is None or state in ENDED or is_steady:
                break
        return state

    def _not_stopped(self, state: str) -> StreamplaceError:
        """Error about a job that this move did not stop."""
        job = self.journal.job
        path = stopped_with(self.rest, job) if state == FINISHED else None
        if path is None:
            if state == FINISHED:
                return finished_before(job)
            why = "was cancelled by another user"
            if state == "FAILED":
                why = f"has failed: {self.rest.failure(job)}"
            return FlinkError(f"job {job} {why}; nothing was started{state_clause(self.rest, job)}")
        later, now = next(reversed(chain_states(self.rest, job).items()), (job, state))
        if later != job and now not in ENDED:
            return moved_by_others(job, later)
        self._save(asked=job, savepoint=path)  # for whoever starts it on request
        return StoppedByOthers(
            f"job {job} was stopped by somebody else, with its state in {path}; this command "
            "started nothing",
            f". To start it on the new devices: {self.journal.resume_by}",
        )

    def _report_return(self, job: str, state: str) -> NoReturn:
        """Report that the job was moved back before the interruption; restart it if it failed."""
        refuse_ended(self.rest, job)
        begun = self.journal.savepoint or last_path(self.journal) or ""
        path = last_kept(self.rest, job) or begun
        if state == "FAILED":
            self.tell(f"job {job} is {state}: {self.rest.failure(job)}")
            raise self._return(successor(job), path, "the move failed")
        raise self._return(job, path, "the move failed", state)

    def _go_back(self, path: str, error: BaseException) -> NoReturn:
        """Start a job on its previous devices; then raise an error, or the interruption."""
        why, new = reason(error), self.journal.successor
        try:
            if not self.journal.returns:
                refuse_ended(self.rest, new)
                self._save(returns=True, savepoint=path)
            path = self._ended_with(new, path)
        except (NoAnswer, EndedByOthers):
            raise
        except StreamplaceError as failure:
            raise self._not_returned(why, failure, path, new) from None
        if not path:
            raise FlinkError(f"{why}; job {new} has finished by itself") from None
        self.tell(f"the move failed: {why}")
        told = self._return(successor(new), path, why)
        if isinstance(error, Exception) or isinstance(told, Undecided):
            raise told from None
        raise error

    def _ended_with(self, job: str, path: str) -> str:
        """End a job and return the path of its last state; empty if it has finished by itself.

        No progress is lost: a running job is stopped with a savepoint. The state of any other job
        is its last checkpoint, if that outlives the job. The path is that of the savepoint or
        checkpoint that the job was to be started from. The job may finish at any moment, and then
        cannot be saved any more.
        """
        state, trigger = self.rest.state(job), return_trigger(job)
        jar = partial(self._jar, self.back)
        if state is None:
            withdraw(self.rest, jar, job)
            return path
        is_asked = stop_status(self.rest, job, trigger) is not None
        if state == "RUNNING" or is_asked:
            try:
                if not is_asked:
                    self._ask_to_stop(job, trigger)
                return self._saved(job, trigger)
            except NoAnswer:
                raise
            except FlinkError:  # it cannot be saved, so its last checkpoint counts
                pass
        withdraw(self.rest, jar, job)
        if self.rest.state(job) == FINISHED:
            return stopped_with(self.rest, job) or ""
        checkpoint = last_kept(self.rest, job)
        if checkpoint is not None or checkpoint_totals(self.rest, job).completed:
            self.tell(f"note: job {job} continues from {checkpoint or path}; {TWICE}")
        return checkpoint or path

    def _return(self, job: str, path: str, why: str, state: str | None = None) -> FlinkError:
        """Have a job run on its previous devices; return the error that says what became of it.

        ``state`` is that of the job if it was started there before; else it starts from a path.
        """
        if state == FINISHED:
            return FlinkError(f"{why}; the job has finished, as job {job}")
        try:
            if state is None:
                self._start(job, self.back, path)
            else:
                self._await_start(job, self.journal.before)
        except (NoAnswer, CopyRuns, EndedByOthers, MoveUnderWay):
            raise
        except StreamplaceError as failure:
            if is_spent(failure):  # it has run there, and ended so long ago that Flink forgot it
                return self._return(successor(job), path, why)
            return self._not_returned(why, failure, last_kept(self.rest, job) or path, job)
        how = "again, without the devices that were lost"
        if self.back.places == self.journal.before:
            how = "on its previous devices again"
        return FlinkError(f"{why}; the job runs {how}, as job {job}")

    def _not_returned(self, why: str, failure: StreamplaceError, path: str, job: str) -> Undecided:
        """Error about a job that could not be started on its previous devices; with advice."""
        self._save(returns=True, savepoint=path)
        words = f"{why}; the return to the previous devices failed, too: {failure}"
        is_live = True  # it may be if Flink does not tell
        with suppress(FlinkError):
            is_live = self.rest.state(job) not in (None, *ENDED)
        if is_live:
            return Undecided(
                f"{words}. Job {job} has not ended, so do not start another one from {path}",
                f"; when it runs or has ended, finish the move by: {self.journal.resume_by}",
            )
        return Undecided(
            f"{words}. The job is not running. Its state is in {path}",
            f"; start it with: {self.journal.resume_by}",
        )


def reason(error: BaseException) -> str:
    """Message of an error, or its type if it has none."""
    return str(error) or type(error).__name__


def finished_before(job: str) -> FlinkError:
    """Error about a job that has finished by itself before it was moved."""
    return FlinkError(f"job {job} finished before it could be saved; there is nothing to move")


def forgotten(journal: Journal) -> FlinkError:
    """Error about a job that the JobManager no longer knows; Forgotten if its state is known."""
    text = (
        f"the JobManager no longer knows job {journal.job}, because it was restarted "
        "without high availability"
    )
    if (path := last_path(journal)) is None:
        return FlinkError(
            f"{text}, and no complete savepoint of it is known to this machine; if "
            f"{shown(journal.folder, LONGEST)} contains one, start the job from that with "
            "'streamplace flink apply --savepoint', else as it was first submitted"
        )
    clause = f"{text}; its last complete state is {path}"
    return Forgotten(clause, f". Finish the move with: {journal.resume_by}")


def undecided(error: StreamplaceError, journal: Journal) -> StreamplaceError:
    """Undecided for an error which says that Flink does not answer, or still starts the job.

    Before anything was asked of Flink, the job is as it was.
    """
    if isinstance(error, StillStarting):
        return Undecided(
            f"{error}. It is not stopped, and nothing else is started",
            "; to wait for it again and finish the move, perhaps with a longer timeout: "
            f"{journal.resume_by}",
        )
    if isinstance(error, NoAnswer) and journal.asked:
        return Undecided(
            f"{error}. Whether job {journal.job} or its successor {journal.successor} runs is not "
            "known",
            f"; when Flink answers again, finish the move by: {journal.resume_by}",
        )
    return error


def has_to_go_on(rest: Rest, journal: Journal) -> bool:
    """Whether a move has to be resumed: no copy of its job runs, or the one that does stops."""

    def is_ending(job: str, state: str) -> bool:
        trigger = journal.trigger if job == journal.job else return_trigger(job)
        is_withdrawn = state == "CANCELLING" and (journal.returns or journal.cancels)
        return is_withdrawn or stop_status(rest, job, trigger) == UNDER_WAY

    states = chain_states(rest, journal.job)
    if SUSPENDED in states.values():  # whether it runs is not known
        return True
    if live := {job: state for job, state in states.items() if state not in ENDED}:
        return any(is_ending(job, state) for job, state in live.items())
    last = next(reversed(states), "")
    if states and states[last] == FINISHED:
        return stopped_with(rest, last) is not None
    return not states or states[last] != "CANCELED" or journal.returns or journal.cancels


def await_devices(
    rest: Rest, needed: set[str], seconds: float, tell: Callable[[str], None]
) -> None:
    """Wait until TaskManagers have joined, and released the slots of jobs that the cluster forgot.

    They release the slots of a job some time after its JobManager has gone. Raises FlinkError when
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
    raise FlinkError(f"{waiting}, and did not within {seconds:g} s")

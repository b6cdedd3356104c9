"""The transaction of a move: in the end one copy of the job runs, or the user is told what to do.

Every step first reads the current state. Requests to Flink have ids that are chosen in advance, so
they can be repeated: the stop of the job, its successor, and the successor of that, which is the
job on its previous devices. Flink accepts each of these ids once, so no two copies can run.
"""

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.measure.sources import SourceFlow
from streamplace.engines.flink.move.interruption import interruption_of, last_checkpoint_seconds
from streamplace.engines.flink.move.journal import (
    Journal,
    MoveClaim,
    MoveUnderWay,
)
from streamplace.engines.flink.move.others import (
    CANCELLED,
    CopyRuns,
    EndedByOthers,
    moved_by_others,
    refuse_ended,
    refuse_other,
)
from streamplace.engines.flink.move.outcomes import (
    FlinkMoved,
    NotSaved,
    StoppedByOthers,
    Undecided,
    decided,
    ended_before,
    forgotten,
    not_returned,
    reason,
)
from streamplace.engines.flink.move.saving import (
    Savepoint,
    begin_stop,
    last_kept,
    last_path,
    resumable,
    saved_by,
    stop_status,
    stopped_at,
    stopped_with,
)
from streamplace.engines.flink.move.settings import MoveSettings
from streamplace.engines.flink.move.settling import settle
from streamplace.engines.flink.pin.apply import refuse_lost, wait_started
from streamplace.engines.flink.pin.verify import check_placed
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.program.submission import chain_states, is_spent, submit, withdraw
from streamplace.engines.flink.program.uploads import ClusterJar
from streamplace.engines.flink.rest.client import (
    ENDED,
    FINISHED,
    POLL_SECONDS,
    FlinkError,
    NoAnswer,
    Refusal,
    Rest,
)
from streamplace.engines.flink.rest.job_ids import chain_of, return_trigger, successor
from streamplace.errors import StreamplaceError
from streamplace.io.store import StoreError
from streamplace.model.messages import listed

LOG = logging.getLogger(__package__)
STOP_SECONDS = 30.0
"""Timeout for the answer to a stop request, after which it is repeated."""
STEADY_SECONDS = 3.0
"""A job that still runs this long after a failed stop is assumed to continue."""
PASSING = frozenset({"FAILING", "CANCELLING", "RESTARTING", "RECONCILING"})
LOOK_SECONDS = 0.5
TWICE = "what it wrote since then may be written twice"


@dataclass(slots=True)
class Way:
    """Program and devices for a submission: with the new placement, or with the previous one."""

    program: Program
    places: Layout
    upload: Callable[[], ClusterJar]  # waits for its devices, and uploads the jar for them
    _jar: ClusterJar | None = field(default=None, init=False)

    def jar(self) -> ClusterJar:
        """The jar on the cluster; it is uploaded when it is first needed."""
        if self._jar is None:
            self._jar = self.upload()
        return self._jar


@dataclass(frozen=True, slots=True)
class Transaction:
    """A move that this process has claimed."""

    rest: Rest  # a patient client
    claim: MoveClaim
    ways: tuple[Way, Way]  # submissions to the new devices, and to the previous ones
    tell: Callable[[str], None]
    settings: MoveSettings
    rate: SourceFlow | None  # output of its sources before the move, if known
    # Whether lost devices are waited for; otherwise, a start on one of them fails at once.
    awaits_lost: bool = True

    @property
    def journal(self) -> Journal:
        """Journal of the move."""
        return self.claim.journal

    def prepare(self) -> None:
        """Upload both jars while the job runs, so that whatever they lack is found before.

        Raises MoveUnderWay or Forgotten when that fails because the job has gone meanwhile.
        """
        job = self.journal.job
        try:
            for way in self.ways:
                way.jar()
        except NoAnswer:
            raise
        except StreamplaceError:
            states = chain_states(self.rest, job)
            if job not in states:
                raise forgotten(self.journal) from None
            if (later := next(reversed(states))) != job and states[later] not in ENDED:
                raise moved_by_others(job, later) from None
            raise

    def begin(self) -> FlinkMoved:
        """Stop the job, and start it on its new devices."""
        with decided(self.journal):
            return self._begin()

    def conclude(self) -> FlinkMoved:
        """Finish an interrupted move, whatever its current state."""
        with decided(self.journal):
            return self._conclude()

    def _begin(self) -> FlinkMoved:
        job, trigger = self.journal.job, self.journal.trigger
        state = self.rest.state(job)
        LOG.debug("job %s is %s before it is stopped", job, state)
        if state is None:
            raise forgotten(self.journal)
        if self.journal.cancels and state not in (FINISHED, *CANCELLED):
            return self._cancel(state)
        if state in ENDED:
            if stop_status(self.rest, job, trigger) is not None:
                raise MoveUnderWay(
                    f"job {job} was stopped by another command, which moves it; this command "
                    "started nothing"
                )
            raise self._not_stopped(state)
        if state != "RUNNING":
            raise FlinkError(f"job {job} is {state}, not RUNNING any more; move it when it runs")
        self.tell(f"stopping job {job} with a savepoint")
        try:
            native, folder = self.settings.native, self.journal.folder
            begin_stop(self.rest, job, folder, trigger, native=native, seconds=STOP_SECONDS)
            path = stopped_at(self.rest, job, trigger, self.settings.savepoint_seconds)
            self.tell(f"its state is in {path}")
            self._save(savepoint=path)
        except BaseException as error:
            self._check_decided(error)
            self._go_back(self._await_savepoint(error), error)
            raise
        return self._forward(path)

    def _conclude(self) -> FlinkMoved:
        job, new, trigger = self.journal.job, self.journal.successor, self.journal.trigger
        states = chain_states(self.rest, job)
        LOG.debug("the move of job %s is finished; Flink knows %s", job, states)
        if not states:
            return self._recover()
        last, state = next(reversed(states.items()))
        if last not in (job, new):
            return self._report_return(last, state)
        if last == new:
            return self._continue(new, state)
        if self.journal.savepoint is not None and (state in ENDED or self.journal.cancels):
            return self._go_on(self.journal.savepoint)
        if state not in ENDED and stop_status(self.rest, job, trigger) is None:
            self.tell(f"job {job} was not stopped yet")
            if state == "RUNNING":
                self.prepare()
            return self._begin()
        try:
            path = stopped_at(self.rest, job, trigger, self.settings.savepoint_seconds)
        except FlinkError as error:
            self._check_decided(error)
            if isinstance(error, Refusal):  # Flink has forgotten the request
                if self._steady_state() == FINISHED and (found := stopped_with(self.rest, job)):
                    return self._forward(found)
                error = NotSaved(f"{error}; job {job} goes on where it ran")
            self._go_back(self._await_savepoint(error), error)
            raise error from None
        return self._forward(path)

    def _go_on(self, path: str) -> FlinkMoved:
        """Continue a move whose job is saved, or was to be cancelled because it lacks devices."""
        if not self.journal.cancels:
            return self._proceed(path)
        job = self.journal.job
        state = self.rest.state(job) or "CANCELED"  # a suspended one is waited for
        if state not in (*ENDED, *CANCELLED):
            raise FlinkError(f"job {job} was not cancelled yet, and is {state}")
        return self._cancel(state)

    def _cancel(self, state: str) -> FlinkMoved:
        """End a job that has lost devices, and start it from the last state that outlives it."""
        job = self.journal.job
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
            raise ended_before(self.rest, job, state)
        path = resumable(self.rest, job) or self.journal.savepoint
        assert path is not None  # it was known when this began
        self._save(savepoint=path)
        return self._proceed(path)

    def _proceed(self, path: str) -> FlinkMoved:
        """Continue while no copy runs: forward, or back if that was begun."""
        if not self.journal.returns:
            return self._forward(path)
        self._go_back(path, error := FlinkError("the move failed"))
        raise error

    def _forward(self, path: str) -> FlinkMoved:
        """Start the job on its new devices, and check that it settles."""
        new = self.journal.successor
        try:
            self._start(new, self.ways[0], path)
            self._watch(new)
        except BaseException as error:
            self._check_decided(error)
            self._go_back(path, error)
            raise
        return self._moved(new, path)

    def _start(self, job: str, way: Way, path: str) -> None:
        """Start a job from a savepoint, unless another job already continues from it."""
        jar, devices, chain = way.jar(), way.places.devices, chain_of(self.journal.job)
        request = way.program.run_request(Savepoint(path, self.journal.allow_non_restored))
        was_asked = self.journal.asked == job

        def await_ready() -> None:
            if self.awaits_lost:  # after a restart of the JobManager they join one after the other
                await_devices(self.rest, devices, self.settings.seconds, self.tell)
            else:
                refuse_lost(self.rest, devices)
            self.rest.wait_released()

        refuse_other(self.rest, path, chain, self.journal.name)
        self.tell(f"starting it from its saved state on {listed(sorted(devices))}")
        self._save(asked=job, savepoint=path)
        if not submit(self.rest, jar, request, job, await_ready) and not was_asked:
            raise moved_by_others(self.journal.job, job)
        try:  # another user may have submitted a copy at the same time
            refuse_other(self.rest, path, chain, self.journal.name)
        except CopyRuns:
            withdraw(self.rest, lambda: jar, job)
            raise
        self._await_start(job, way.places)

    def _await_start(self, job: str, places: Layout) -> None:
        needed = set[str]() if self.awaits_lost else places.devices
        wait_started(self.rest, job, self.settings.seconds, needed)
        LOG.debug("all subtasks of job %s run", job)

    def _watch(self, job: str) -> None:
        """Raise FlinkError if a job does not run as placed, or does not settle."""
        if check_placed(self.rest, job, self.ways[0].places):
            self.tell(f"job {job} runs; every subtask is where it is placed")
        if self.settings.settle > 0:
            self.tell(f"watching the job for {self.settings.settle:g} s")
            taken = last_checkpoint_seconds(self.rest, self.journal.job)
            settle(self.rest, job, self.settings, self.rate, taken)
        refuse_ended(self.rest, job)

    def _save(self, **news: object) -> None:
        """Write the next step, if that is possible: the job is down, and must not stay so."""
        LOG.debug("next step of the move of job %s: %s", self.journal.job, news)
        with suppress(StoreError):
            self.claim.save(self.journal.model_copy(update=news))

    def _await_savepoint(self, error: BaseException) -> str:
        """Path to continue from after a failed stop; raise an error if the job needs no restart.

        A stop continues in Flink, even if it is interrupted here.
        """
        job, trigger = self.journal.job, self.journal.trigger
        with suppress(Refusal):
            if stop_status(self.rest, job, trigger) is not None:
                try:
                    return stopped_at(self.rest, job, trigger, self.settings.savepoint_seconds)
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
            f"{reason(error)}; job {job} failed, and none of its state outlives it; start it "
            "again as it was first submitted"
        ) from None

    def _steady_state(self) -> str | None:
        """State of the moved job once it is stable, or after a while; None if the job is gone."""
        job, state, since = self.journal.job, "", time.monotonic()
        while True:
            seen = self.rest.state(job)
            if seen is None:
                return None
            if seen != state:
                LOG.debug("after its stop failed, job %s is %s", job, seen)
                state, since = seen, time.monotonic()
            stays = time.monotonic() - since
            is_steady = stays > STEADY_SECONDS and state not in PASSING
            if state in ENDED or is_steady or stays > self.settings.seconds:
                return state
            time.sleep(POLL_SECONDS)

    def _not_stopped(self, state: str) -> StreamplaceError:
        """Error about a job that this move did not stop."""
        job = self.journal.job
        path = stopped_with(self.rest, job) if state == FINISHED else None
        if path is None:
            return ended_before(self.rest, job, state)
        later, now = next(reversed(chain_states(self.rest, job).items()), (job, state))
        if later != job and now not in ENDED:
            return moved_by_others(job, later)
        self._save(savepoint=path)
        return StoppedByOthers(
            f"job {job} was stopped by somebody else, with its state in {path}; this command "
            "started nothing",
            f". To start it on the new devices: {self.journal.resume_by}",
        )

    def _recover(self) -> FlinkMoved:
        """Continue a move whose jobs are all unknown to Flink."""
        path = last_path(self.journal)
        if path is None:
            raise forgotten(self.journal)
        self.tell(f"the JobManager no longer knows job {self.journal.job}; continuing from {path}")
        return self._proceed(path)

    def _continue(self, job: str, state: str) -> FlinkMoved:
        """Continue a move whose successor has been started."""
        path = self.journal.savepoint
        if not self.journal.asked or path is None:
            raise moved_by_others(self.journal.job, job)
        if self.journal.returns:
            return self._proceed(path)
        try:
            refuse_ended(self.rest, job)
            if state in ENDED and state != FINISHED:
                raise FlinkError(f"job {job} is {state}: {self.rest.failure(job)}")
            if state not in ENDED:
                self._await_start(job, self.journal.after)
                self._watch(job)
        except BaseException as error:
            self._check_decided(error)
            self._go_back(path, error)
            raise
        return self._moved(job, path)

    def _moved(self, job: str, path: str) -> FlinkMoved:
        """Result; how long the job was down before it was cancelled, Flink does not tell."""
        old, is_known = self.journal.job, not self.journal.cancels
        return FlinkMoved(job, interruption_of(self.rest, old, job) if is_known else None, path)

    def _report_return(self, job: str, state: str) -> FlinkMoved:
        """Report that the job was moved back before the interruption; restart it if it failed."""
        refuse_ended(self.rest, job)
        why, begun = "the move failed", self.journal.savepoint or last_path(self.journal) or ""
        if state not in ENDED:
            try:
                self._await_start(job, self.journal.before)
            except NoAnswer:
                raise
            except FlinkError as failure:
                path = last_kept(self.rest, job) or begun
                raise self._not_returned(why, failure, path, job) from None
            raise FlinkError(f"{why}; the job runs on its previous devices, as job {job}")
        if state == FINISHED:
            raise FlinkError(f"{why}; the job has finished, as job {job}")
        self.tell(f"job {job} is {state}: {self.rest.failure(job)}")
        again = self._start_back(successor(job), last_kept(self.rest, job) or begun, why)
        raise self._returned(why, again)

    def _go_back(self, path: str, error: BaseException) -> None:
        """Start a job on its previous devices; then raise an error, unless interrupted."""
        why, new = reason(error), self.journal.successor
        LOG.debug("the move of job %s failed: %s", self.journal.job, why)
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
        again = self._start_back(successor(new), path, why)
        if isinstance(error, Exception):
            raise self._returned(why, again) from None

    def _ended_with(self, job: str, path: str) -> str:
        """End a job and return the path of its last state; empty if it has finished by itself.

        No progress is lost: a running job is stopped with a savepoint. The state of any other job
        is its last checkpoint, if that outlives the job. The path is that of the savepoint or
        checkpoint that the job was to be started from. The job may finish at any moment, and then
        cannot be saved any more.
        """
        state, trigger, jar = self.rest.state(job), return_trigger(job), self.ways[1].jar
        LOG.debug("job %s is %s, and is ended", job, state)
        if state is None:
            withdraw(self.rest, jar, job)
            return path
        is_asked = stop_status(self.rest, job, trigger) is not None
        if state == "RUNNING" or is_asked:
            try:
                if not is_asked:
                    folder, native = self.journal.folder, self.settings.native
                    begin_stop(self.rest, job, folder, trigger, native=native)
                return stopped_at(self.rest, job, trigger, self.settings.savepoint_seconds)
            except NoAnswer:
                raise
            except FlinkError as error:
                LOG.debug("job %s cannot be saved: %s", job, error)
        withdraw(self.rest, jar, job)
        if self.rest.state(job) == FINISHED:
            return stopped_with(self.rest, job) or ""
        checkpoint = last_kept(self.rest, job)
        if checkpoint is not None or saved_by(self.rest, job) is not None:
            self.tell(f"note: job {job} continues from {checkpoint or path}; {TWICE}")
        return checkpoint or path

    def _returned(self, why: str, job: str) -> FlinkError:
        how = "again, without the devices that were lost"
        if self.ways[1].places == self.journal.before:
            how = "on its previous devices again"
        return FlinkError(f"{why}; the job runs {how}, as job {job}")

    def _start_back(self, job: str, path: str, why: str) -> str:
        """Start a job on its previous devices and return its id, which may be a later one.

        Raises an error with advice if that fails.
        """
        try:
            self._start(job, self.ways[1], path)
        except (NoAnswer, CopyRuns, EndedByOthers, MoveUnderWay):
            raise
        except StreamplaceError as failure:
            if is_spent(failure):  # it has run there, and ended so long ago that Flink forgot it
                return self._start_back(successor(job), path, why)
            raise self._not_returned(why, failure, path, job) from None
        return job

    def _check_decided(self, error: BaseException) -> None:
        """Raise the error that forbids going back: no answer, other users, or a forgotten job."""
        if isinstance(error, NoAnswer | CopyRuns | EndedByOthers | MoveUnderWay):
            raise error
        if not is_spent(error) and not chain_states(self.rest, self.journal.job):
            raise forgotten(self.journal) from None

    def _not_returned(self, why: str, failure: StreamplaceError, path: str, job: str) -> Undecided:
        self._save(returns=True, savepoint=path)
        live: str | None = job
        with suppress(FlinkError):  # it may live if Flink does not tell
            live = job if self.rest.state(job) not in (None, *ENDED) else None
        return not_returned(why, failure, path, self.journal, live)


def await_devices(
    rest: Rest, needed: set[str], seconds: float, tell: Callable[[str], None]
) -> None:
    """Wait until TaskManagers have joined, and released the slots of jobs that the cluster forgot.

    They release the slots of a job some time after its JobManager has gone. Raises FlinkError when
    that takes longer than ``seconds``.
    """
    deadline, before = time.monotonic() + seconds, ""
    while True:
        offered, jobs, waiting = rest.offered(), rest.jobs().keys(), ""
        if missing := sorted(needed.difference(offered)):
            waiting = f"{listed(missing)} have to join the cluster"
        elif held := [device for device in sorted(needed) if set(rest.holders(device)) - jobs]:
            waiting = f"{listed(held)} have to give back the slots of a forgotten job"
        if not waiting:
            LOG.debug("%s are there", listed(sorted(needed)))
            return
        if time.monotonic() > deadline:
            raise FlinkError(f"{waiting}, and did not within {seconds:g} s")
        if waiting != before:
            tell(f"waiting: {waiting}")
        before = waiting
        time.sleep(LOOK_SECONDS)

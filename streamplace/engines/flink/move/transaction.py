"""The transaction of a move: in the end one copy of the job runs, or the user is told what to do.

Every step first reads the current state. Requests to Flink have ids that are chosen in advance, so
they can be repeated: the stop of the job, its successor, and the successor of that, which is the
job on its previous devices. Flink accepts each of these ids once, so no two copies can run.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from streamplace.engines.flink.measure.sources import SourceFlow
from streamplace.engines.flink.move.copies import CopyRuns, alone, goes_on
from streamplace.engines.flink.move.endings import (
    TWICE,
    EndedByOthers,
    last_kept,
    latest_of,
    may_live,
    only_start,
    refuse_ended,
    start_of,
    steady_state,
)
from streamplace.engines.flink.move.journal import (
    Journal,
    MoveClaim,
    MoveUnderWay,
    devices_in,
)
from streamplace.engines.flink.move.outcomes import (
    ABANDONED,
    NOT_TOUCHED,
    FlinkMoved,
    NotSaved,
    StoppedByOthers,
    Undecided,
    decided,
    ended_before,
    forgotten,
    moved_by_others,
    not_returned,
    reason,
    unsaved,
)
from streamplace.engines.flink.move.pause import pause_of
from streamplace.engines.flink.move.resuming import await_devices
from streamplace.engines.flink.move.saved_files import last_path
from streamplace.engines.flink.move.settings import MoveSettings
from streamplace.engines.flink.move.settling import settle
from streamplace.engines.flink.move.state import Savepoint, last_checkpoint_seconds, stopped_with
from streamplace.engines.flink.move.stopping import begin_stop, stop_status, stopped_at
from streamplace.engines.flink.pin.apply import refuse_lost, wait_started
from streamplace.engines.flink.pin.verify import check_placed
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.program.submission import chain_states, is_spent, submit, withdraw
from streamplace.engines.flink.program.uploads import ClusterJar
from streamplace.engines.flink.rest.client import (
    ENDED,
    FINISHED,
    FlinkError,
    NoAnswer,
    Refusal,
    Rest,
)
from streamplace.engines.flink.rest.job_ids import chain_of, successor
from streamplace.errors import StreamplaceError
from streamplace.io.store import StoreError
from streamplace.model.messages import listed

STOP_SECONDS = 30.0
"""Timeout for the answer to a stop request, after which it is repeated."""


@dataclass(slots=True)
class Way:
    """Program and devices for a submission: with the new placement, or with the previous one."""

    program: Program
    places: dict[str, list[str]]
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
    resume_by: str
    # Whether lost devices are waited for; otherwise, a start on one of them fails at once.
    awaits_lost: bool = True

    @property
    def journal(self) -> Journal:
        """Journal of the move."""
        return self.claim.journal

    def begin(self) -> FlinkMoved:
        """Stop the job, and start it on its new devices."""
        with decided(self.journal, self.resume_by):
            return self._begin()

    def conclude(self) -> FlinkMoved:
        """Finish an interrupted move, whatever its current state."""
        with decided(self.journal, self.resume_by):
            return self._conclude()

    def _begin(self) -> FlinkMoved:
        for way in self.ways:  # whatever they lack is found before the job is stopped
            way.jar()
        job = self.journal.job
        state = self.rest.state(job)
        if state is None:
            raise self._forgotten()
        if state in ENDED:
            if stop_status(self.rest, job, self.journal.trigger) is not None:
                raise MoveUnderWay(
                    f"job {job} was stopped by another command, which moves it; this command "
                    "started nothing"
                )
            raise self._not_stopped(state)
        if state != "RUNNING":
            raise FlinkError(
                f"job {job} is {state}, not RUNNING any more; move it when it runs. {NOT_TOUCHED}"
            )
        self.tell(f"stopping job {job} with a savepoint")
        try:
            path = self._stop()
        except BaseException as error:
            self._check_decided(error)
            self._go_back(self._await_savepoint(error), error)
            raise
        return self._forward(path)

    def _conclude(self) -> FlinkMoved:
        job, new = self.journal.job, self.journal.successor
        states = chain_states(self.rest, job)
        if not states:
            return self._recover()
        last, state = next(reversed(states.items()))
        if last not in (job, new):
            return self._report_return(last, state)
        if last == new:
            return self._continue(new, state)
        if state in ENDED and self.journal.savepoint is not None:
            return self._proceed(self.journal.savepoint)
        if state not in ENDED and stop_status(self.rest, job, self.journal.trigger) is None:
            self.tell(f"job {job} was not stopped yet")
            return self._begin()
        try:
            path = stopped_at(self.rest, job, self.journal.trigger, self.settings.saving.seconds)
            self.rest.wait(job, ENDED)
        except Refusal as error:  # Flink has forgotten the request
            path = self._own_savepoint(error)
        except FlinkError as error:
            self._check_decided(error)
            self._go_back(self._await_savepoint(error), error)
            raise
        return self._forward(path)

    def _stop(self) -> str:
        """Stop the job and return the path of its savepoint."""
        job, trigger = self.journal.job, self.journal.trigger
        native, folder = self.settings.saving.native, self.journal.folder
        begin_stop(self.rest, job, folder, trigger, native=native, seconds=STOP_SECONDS)
        path = stopped_at(self.rest, job, trigger, self.settings.saving.seconds)
        self.tell(f"its state is in {path}")
        self._save(savepoint=path)
        self.rest.wait(job, ENDED)
        return path

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
            self._start(new, 0, path)
            self._watch(new)
        except BaseException as error:
            self._check_decided(error)
            self._go_back(path, error)
            raise
        return FlinkMoved(new, pause_of(self.rest, self.journal.job, new), path)

    def _start(self, job: str, way: int, path: str) -> None:
        """Start a job from a savepoint, unless another job already continues from it."""
        chosen, chain = self.ways[way], chain_of(self.journal.job)
        jar, devices = chosen.jar(), devices_in(chosen.places)
        request = chosen.program.run_request(Savepoint(path, self.journal.allow_non_restored))
        was_asked = self.journal.asked == job

        def await_ready() -> None:
            if self.awaits_lost:  # after a restart of the JobManager they join one after the other
                await_devices(self.rest, devices, self.settings.seconds, self.tell)
            else:
                refuse_lost(self.rest, devices)
            self.rest.wait_released()

        def end() -> None:
            withdraw(self.rest, lambda: jar, job)

        with alone(self.rest, path, chain, self.journal.name, end):
            self.tell(f"starting it from its saved state on {listed(sorted(devices))}")
            self._save(asked=job, savepoint=path)
            if not submit(self.rest, jar, request, job, await_ready) and not was_asked:
                raise moved_by_others(self.journal.job, job)
        self._await_start(job, chosen.places)

    def _await_start(self, job: str, places: dict[str, list[str]]) -> None:
        wait_started(self.rest, job, self.settings.seconds, self._needed(places))

    def _needed(self, places: dict[str, list[str]]) -> set[str]:
        return set() if self.awaits_lost else devices_in(places)

    def _watch(self, job: str) -> None:
        """Raise FlinkError if a job does not run as placed, or does not settle."""
        if check_placed(self.rest, job, self.ways[0].places):
            self.tell(f"job {job} runs; every subtask is where it is placed")
        if self.settings.settling.seconds > 0:
            self.tell(f"watching the job for {self.settings.settling.seconds:g} s")
            taken = last_checkpoint_seconds(self.rest, self.journal.job)
            settle(self.rest, job, self.settings.settling, self.rate, taken)
        refuse_ended(self.rest, job)

    def _save(self, **news: object) -> None:
        """Write the next step, if that is possible: the job is down, and must not stay so."""
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
                    path = stopped_at(self.rest, job, trigger, self.settings.saving.seconds)
                    self.rest.wait(job, ENDED)
                    return path
                except NoAnswer:
                    raise
                except FlinkError as failure:
                    error = NotSaved(str(failure)) if isinstance(error, FlinkError) else error
        state = steady_state(self.rest, job, self.settings.seconds)
        if state is None:
            raise self._forgotten() from None
        if state not in ENDED:
            raise error  # the job continues to run
        if state != "FAILED":
            raise self._not_stopped(state) from None
        if (checkpoint := last_kept(self.rest, job)) is not None:
            return checkpoint
        if (begun := only_start(self.rest, job)) is not None:
            self.tell(
                f"note: job {job} has completed no checkpoint, so it goes back to {begun}; {TWICE}"
            )
            return begun
        raise FlinkError(
            f"{reason(error)}; job {job} failed, and none of its state outlives it; start it "
            "again as it was first submitted"
        ) from None

    def _not_stopped(self, state: str) -> FlinkError:
        """Error about a job that this move did not stop."""
        job = self.journal.job
        path = stopped_with(self.rest, job) if state == FINISHED else None
        if path is None:
            return FlinkError(ended_before(self.rest, job, state))
        other = goes_on(self.rest, job, path)
        if other is not None:
            return FlinkError(
                f"job {job} was stopped by another user, {other}; this command started nothing"
            )
        self._save(savepoint=path)
        return StoppedByOthers(
            f"job {job} was stopped by somebody else, with its state in {path}; this command "
            "started nothing",
            f". To start it on the new devices: {self.resume_by}",
        )

    def _own_savepoint(self, error: FlinkError) -> str:
        """Savepoint of the job if Flink has forgotten the request for it.

        A job that was not stopped by it may have gone on for long since that savepoint.
        """
        job = self.journal.job
        state = steady_state(self.rest, job, self.settings.seconds)
        if state is None:
            raise self._forgotten()
        if state not in ENDED:
            raise NotSaved(f"{error}; job {job} is {state}, and goes on where it ran")
        if state == FINISHED and (path := stopped_with(self.rest, job)) is not None:
            return path
        if state == "FAILED" and (path := last_kept(self.rest, job)) is not None:
            self._go_back(path, error)
        raise self._not_stopped(state)

    def _recover(self) -> FlinkMoved:
        """Continue a move whose jobs are all unknown to Flink."""
        job = self.journal.job
        path = last_path(self.journal)
        if path is None:
            raise FlinkError(
                f"Flink no longer knows job {job}, and {unsaved(self.journal)}; {ABANDONED}"
            )
        self.tell(f"the JobManager no longer knows job {job}; continuing from {path}")
        return self._proceed(path)

    def _continue(self, job: str, state: str) -> FlinkMoved:
        """Continue a move whose successor has been started."""
        if not self.journal.asked:
            raise moved_by_others(self.journal.job, job)
        path = start_of(self.rest, self.journal, job)
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
        return FlinkMoved(job, pause_of(self.rest, self.journal.job, job), path)

    def _report_return(self, job: str, state: str) -> FlinkMoved:
        """Report that the job was moved back before the interruption; restart it if it failed."""
        refuse_ended(self.rest, job)
        if state not in ENDED:
            try:
                self._await_start(job, self.journal.before)
            except NoAnswer:
                raise
            except FlinkError as failure:
                path = last_kept(self.rest, job) or start_of(self.rest, self.journal, job)
                raise self._not_returned("the move failed", failure, path, job) from None
            raise FlinkError(f"the move failed; the job runs on its previous devices, as job {job}")
        if state == FINISHED:
            raise FlinkError(f"the move failed; the job has finished, as job {job}")
        path = last_kept(self.rest, job) or start_of(self.rest, self.journal, job)
        self.tell(f"job {job} is {state}: {self.rest.failure(job)}")
        again = self._start_back(successor(job), path, "the move failed")
        raise self._returned("the move failed", again)

    def _go_back(self, path: str, error: BaseException) -> None:
        """Start a job on its previous devices; then raise an error, unless interrupted."""
        why, new = reason(error), self.journal.successor
        try:
            if not self.journal.returns:
                refuse_ended(self.rest, new)
                self._save(returns=True, savepoint=path)
            folder, jar = self.journal.folder, self.ways[1].jar
            path = latest_of(self.rest, folder, jar, new, path, self.settings.saving, self.tell)
        except (NoAnswer, EndedByOthers):
            raise
        except StreamplaceError as failure:
            raise self._not_returned(why, failure, path, new) from None
        if not path:
            raise FlinkError(f"{why}; job {new} has finished by itself") from None
        self.tell(f"the move failed: {why}; the job goes back to its previous devices")
        again = self._start_back(successor(new), path, why)
        if isinstance(error, Exception):
            raise self._returned(why, again) from None

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
            self._start(job, 1, path)
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
            raise self._forgotten() from None

    def _forgotten(self) -> FlinkError:
        return forgotten(self.journal, self.resume_by)

    def _not_returned(self, why: str, failure: StreamplaceError, path: str, job: str) -> Undecided:
        self._save(returns=True, savepoint=path)
        live = job if may_live(self.rest, job) else None
        return not_returned(why, failure, path, self.resume_by, live)

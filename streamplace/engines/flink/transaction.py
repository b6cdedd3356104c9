"""The transaction of a move: one copy of the job runs in the end, or the user is told what to do.

Every step reads first what is the case. What is asked of Flink bears an id that was chosen before,
so it may be asked again: the stop of the job, its successor, and the successor of that, which is
the job where it ran. Each of these ids is used once, whoever uses it, so no two copies can run.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from streamplace.engines.flink.apply import wait_started
from streamplace.engines.flink.folder import SavepointFolder
from streamplace.engines.flink.journal import Journal, MoveLock
from streamplace.engines.flink.pinning import devices_of
from streamplace.engines.flink.program import Program
from streamplace.engines.flink.rest import (
    ENDED,
    FINISHED,
    POLL_SECONDS,
    FlinkError,
    NoAnswer,
    Refusal,
    Rest,
)
from streamplace.engines.flink.savepoints import record
from streamplace.engines.flink.settling import Settling, settle
from streamplace.engines.flink.state import (
    Savepoint,
    Saving,
    begin_stop,
    outlives,
    saved_by,
    stop,
    stop_status,
    stopped_at,
)
from streamplace.engines.flink.submission import submit, successor, withdraw
from streamplace.engines.flink.verify import verify
from streamplace.engines.live import Moved
from streamplace.model.messages import listed, shown

STOP_SECONDS = 30.0
"""In which Flink should say that it stops a job; else it is asked again."""
STEADY_SECONDS = 3.0
"""A job that runs for so long after a stop has failed goes on."""
PASSING = frozenset({"FAILING", "CANCELLING", "RESTARTING", "RECONCILING"})


class Undecided(FlinkError):
    """Flink answers no more; what runs is not known, and the move has to be resumed."""


@dataclass(frozen=True, slots=True)
class FlinkMoved(Moved):
    """A job that was moved; its outage ends when all of it runs again.

    Attributes
    ----------
    savepoint
        What it was started from; None where it did not move.
    """

    savepoint: str | None


@dataclass(frozen=True, slots=True)
class Transaction:
    """A move that is locked, with its jars on the cluster.

    Attributes
    ----------
    rest
        A patient one.
    jars
        What submits the job where it shall run, and where it ran.
    rate
        Tuples/s of its sources before it is stopped, if known.
    """

    rest: Rest
    folder: SavepointFolder
    lock: MoveLock
    program: Program
    jars: tuple[str, str]
    tell: Callable[[str], None]
    seconds: float
    saving: Saving
    settling: Settling
    rate: float | None
    resume_by: str

    @property
    def journal(self) -> Journal:
        """What the move intends."""
        return self.lock.journal

    def begin(self) -> FlinkMoved:
        """Stop the job, and start it where it shall run."""
        job = self.journal.job
        state = self.rest.state(job)
        if state in (None, *ENDED):
            raise FlinkError(self._ended_by_others(state or "gone"))
        if state != "RUNNING":
            raise FlinkError(f"job {job} is {state}, not RUNNING any more; move it when it runs")
        self.lock.cover(self.journal.successor)
        self.tell(f"stopping job {job} with a savepoint")
        asked = time.monotonic()
        try:
            path = self._stop()
        except BaseException as error:
            self._undecided_without(error)
            self._go_back(self._await_savepoint(error), error)
            raise
        return self._forward(path, asked)

    def conclude(self) -> FlinkMoved:
        """Bring a move to its end, from whatever is the case now."""
        job, new = self.journal.job, self.journal.successor
        self.lock.cover(new)
        last = successor(new)
        if (state := self.rest.state(last)) is not None:
            return self._report_return(last, state)
        if (state := self.rest.state(new)) is not None:
            return self._continue(new, state)
        state = self.rest.state(job)
        if state is None:
            return self._forward(self._forgotten_savepoint())
        if state not in ENDED and stop_status(self.rest, job, self.journal.trigger) is None:
            self.tell(f"job {job} was not stopped yet")
            return self.begin()
        try:
            path = stopped_at(self.rest, job, self.journal.trigger, self.saving.seconds)
            self.rest.wait(job, ENDED)
        except Refusal as error:  # Flink has forgotten that it was asked to
            path = self._own_savepoint(error)
        except FlinkError as error:
            self._undecided_without(error)
            path = self._await_savepoint(error)
            self._go_back(path, error)
            raise
        return self._forward(path)

    def _stop(self) -> str:
        """Path of the savepoint that the job was stopped with."""
        job, trigger = self.journal.job, self.journal.trigger
        native, folder = self.saving.native, self.folder.uri
        begin_stop(self.rest, job, folder, trigger, native=native, seconds=STOP_SECONDS)
        path = stopped_at(self.rest, job, trigger, self.saving.seconds)
        self.tell(f"its state is in {path}")
        self.rest.wait(job, ENDED)
        return path

    def _forward(self, path: str, asked: float | None = None) -> FlinkMoved:
        """Start the job where it shall run, and see whether it stays."""
        new = self.journal.successor
        try:
            self._start(new, 0, path)
            outage = None if asked is None else time.monotonic() - asked
            self._remember(path)
            self._verify(new, self.journal.after)
            self._settle(new)
        except BaseException as error:
            self._undecided_without(error)
            self._go_back(path, error)
            raise
        return FlinkMoved(new, outage, path)

    def _start(self, job: str, way: int, path: str) -> None:
        """Start a job from a savepoint, by one of the jars."""
        places = self.journal.before if way else self.journal.after
        devices = tuple(sorted({d for vector in places.values() for d in devices_of(vector)}))
        self.tell(f"starting it from there on {listed(devices)}")
        self.rest.wait_released()
        saved = Savepoint(path, self.journal.allow_non_restored)
        request = self.program.run_request(saved)
        submit(self.rest, self.jars[way], request, job)
        wait_started(self.rest, job, self.seconds)

    def _verify(self, job: str, places: dict[str, list[str]]) -> None:
        """Raise FlinkError where a job does not run as placed; one that has ended by itself may."""
        verification = verify(self.rest, job, places)
        if not verification.fine:
            state = self.rest.state(job)
            if state == FINISHED:
                return
            if state != "RUNNING":
                raise FlinkError(f"job {job} is {state}: {self.rest.failure(job)}")
            wrong = tuple(check.operator for check in verification.checks if not check.fine)
            problems = "; ".join(verification.problems)
            raise FlinkError(problems or f"{listed(wrong)} do not run where they are placed")
        self.tell(f"job {job} runs; every subtask is where it is placed")

    def _settle(self, job: str) -> None:
        if self.settling.seconds > 0:
            self.tell(f"watching it for {self.settling.seconds:g} s")
            settle(self.rest, job, self.settling, self.rate)

    def _remember(self, path: str) -> None:
        """Note the savepoint: for whoever resumes the move, and as one that it has left."""
        with suppress(FlinkError):
            self.lock.save(self.journal.model_copy(update={"savepoint": path}))
            record(self.folder, path, self.journal.job, self.journal.successor)

    def _await_savepoint(self, error: BaseException) -> str:
        """What a job goes back to whose stop failed or was interrupted; raises where it needs not.

        Once asked for, a stop goes on, be it interrupted here.
        """
        job = self.journal.job
        with suppress(Refusal):
            if stop_status(self.rest, job, self.journal.trigger) is not None:
                try:
                    path = stopped_at(self.rest, job, self.journal.trigger, self.saving.seconds)
                    self.rest.wait(job, ENDED)
                    return path
                except NoAnswer as silence:
                    raise self._undecided(silence) from None
                except FlinkError:  # it was not saved
                    pass
        state = self._steady_state(job)
        if state not in ENDED:
            raise error  # it goes on
        if state != "FAILED":
            raise FlinkError(self._ended_by_others(state)) from None
        saved = saved_by(self.rest, job)
        if saved is None or saved.last is None:
            raise FlinkError(
                f"{_reason(error)}; job {job} failed and has saved no state in a file; start it "
                "again with 'streamplace flink apply'"
            ) from None
        return saved.last

    def _steady_state(self, job: str) -> str:
        """State of a job once it stays in it."""
        state, since = "", time.monotonic()
        while True:
            seen = self.rest.state(job) or "gone"
            if seen != state:
                state, since = seen, time.monotonic()
            over = time.monotonic() - since > STEADY_SECONDS
            if state in ENDED or (over and state not in PASSING) or state == "gone":
                return "CANCELED" if state == "gone" else state
            if time.monotonic() - since > self.seconds:
                return state
            time.sleep(POLL_SECONDS)

    def _ended_by_others(self, state: str) -> str:
        """What became of a job that this move did not stop."""
        job, new = self.journal.job, self.journal.successor
        saved = saved_by(self.rest, job) if self.rest.state(job) else None
        if state == FINISHED and not (saved and saved.is_savepoint):
            return f"job {job} finished before it could be saved; there is nothing to move"
        if state == "FAILED":
            return f"job {job} has failed: {self.rest.failure(job)}; nothing was started"
        if state != FINISHED or saved is None or saved.last is None:
            return f"job {job} was cancelled by another user; nothing was started"
        if (other := self.rest.state(new)) is not None:
            return (
                f"job {job}was stopped by another user, and continues as job {new} ({other}); "
                "this command started nothing"
            )
        return (
            f"job {job} was stopped by somebody else, with its state in {saved.last}; this command "
            "started nothing. To start it: streamplace flink apply … --savepoint "
            f"{shown(saved.last, 300)}"
        )

    def _own_savepoint(self, error: FlinkError) -> str:
        """Savepoint of the job, where Flink has forgotten who asked for it."""
        if (path := self._last_savepoint()) is not None:
            return path
        job = self.journal.job
        state, saved = self._steady_state(job), saved_by(self.rest, job)
        if state == "FAILED" and saved is not None and saved.last is not None:
            self._go_back(saved.last, error)
        raise FlinkError(self._ended_by_others(state))

    def _last_savepoint(self) -> str | None:
        """Savepoint of the job, from the journal, else the last thing that it has saved."""
        job = self.journal.job
        if self.journal.savepoint is not None:
            return self.journal.savepoint
        saved = saved_by(self.rest, job) if self.rest.state(job) else None
        return saved.last if saved is not None and saved.is_savepoint else None

    def _forgotten_savepoint(self) -> str:
        """Savepoint of a job that Flink does not know any more."""
        if self.journal.savepoint is not None:
            return self.journal.savepoint
        entries = self.folder.entries(f"savepoint-{self.journal.job[:6]}-")
        if not entries:
            raise FlinkError(
                f"Flink no longer knows job {self.journal.job}, and {shown(self.folder.uri, 300)} "
                "contains no savepoint of it; the move is abandoned"
            )
        return self.folder.path(min(entries, key=lambda entry: entry.age).name)

    def _continue(self, job: str, state: str) -> FlinkMoved:
        """Go on with a move whose job was started."""
        path = self.journal.savepoint or self._start_savepoint()
        try:
            if state in ENDED and state != FINISHED:
                raise FlinkError(f"job {job} is {state}: {self.rest.failure(job)}")
            if state not in ENDED:
                wait_started(self.rest, job, self.seconds)
                self._verify(job, self.journal.after)
                self._settle(job)
        except BaseException as error:
            self._undecided_without(error)
            self._go_back(path, error)
            raise
        return FlinkMoved(job, None, path)

    def _start_savepoint(self) -> str:
        """What a job was started from; else what the job before it was stopped with."""
        with suppress(FlinkError):
            return stopped_at(self.rest, self.journal.job, self.journal.trigger, 1.0)
        return self._last_savepoint() or self._forgotten_savepoint()

    def _report_return(self, job: str, state: str) -> FlinkMoved:
        """Tell of a job that was being moved back when the move was broken off."""
        if state not in ENDED:
            wait_started(self.rest, job, self.seconds)
            raise FlinkError(f"the move failed; the job runs on its previous devices, as job {job}")
        if state == FINISHED:
            raise FlinkError(f"the move failed; the job has finished, as job {job}")
        saved = saved_by(self.rest, job)
        path = (saved and saved.last) or self.journal.savepoint or self._start_savepoint()
        raise FlinkError(
            f"the move failed, and so did the return to the previous devices: job {job} is "
            f"{state}. The job is not running. Its state is in {path}; start it with 'streamplace "
            f"flink apply --savepoint {path}'"
        )

    def _go_back(self, path: str, error: BaseException) -> None:
        """Start a job again where it ran; raises what became of it, unless it was interrupted."""
        reason, new = _reason(error), self.journal.successor
        self.tell(f"that failed: {reason}; going back")
        try:
            path = self._latest(new, path)
            withdraw(self.rest, self.folder, new)
            job = successor(new)
            self._start(job, 1, path)
            self._remember(path)
        except NoAnswer as failure:
            raise self._undecided(failure) from None
        except FlinkError as failure:
            raise FlinkError(
                f"{reason}; the return to the previous devices failed, too: {failure}. The job is "
                f"not running. Its state is in {path}; start it with 'streamplace flink apply "
                f"--savepoint {path}'"
            ) from None
        if isinstance(error, Exception):
            raise FlinkError(
                f"{reason}; the job runs on its previous devices again, as job {job}"
            ) from None

    def _latest(self, job: str, path: str) -> str:
        """Where the state of a job is that shall go back: what it has done since is not undone."""
        state = self.rest.state(job)
        saved = None if state is None else saved_by(self.rest, job)
        if saved is None:  # it has saved nothing since
            return path
        if state == "RUNNING":
            with suppress(FlinkError):
                return stop(self.rest, job, self.folder.uri)
        if saved.last is not None and outlives(self.rest, job):
            return saved.last
        self.tell(
            f"note: the checkpoints of job {job} end with it, so it goes back to {path}; what it "
            "wrote since then may be written twice"
        )
        return path

    def _undecided_without(self, error: BaseException) -> None:
        """Raise Undecided where Flink does not answer, so that nothing can be decided."""
        if isinstance(error, NoAnswer):
            raise self._undecided(error) from None

    def _undecided(self, error: FlinkError) -> Undecided:
        return Undecided(
            f"{error}. Whether job {self.journal.job} or its successor "
            f"{self.journal.successor} runs is not known; when Flink answers again, finish the "
            f"move by: {self.resume_by}"
        )


def _reason(error: BaseException) -> str:
    return str(error) or type(error).__name__

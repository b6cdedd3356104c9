"""Watch a placed job: replace devices that are lost by spare ones, and pass rounds for its rate.

Pins are hard: a job never moves by itself. While a device is lost, the job restarts in vain. So it
is cancelled here and started from its last checkpoint, with a spare in place of the lost device.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.move.move import Tell
from streamplace.engines.flink.move.resuming import apply_command
from streamplace.engines.flink.move.state import Savepoint, resumable, stopped_with
from streamplace.engines.flink.pin.apply import apply
from streamplace.engines.flink.pin.fitting import check_upload
from streamplace.engines.flink.pin.pinning import Vectors
from streamplace.engines.flink.pin.verify import verify
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.program.submission import chain_states
from streamplace.engines.flink.program.submitted import remember
from streamplace.engines.flink.rest.client import (
    ENDED,
    FINISHED,
    FlinkError,
    NoAnswer,
    Refusal,
    Rest,
    finished,
)
from streamplace.engines.flink.watch.health import FAILED, Health, addresses_of, health_of
from streamplace.engines.flink.watch.log import WatchLog
from streamplace.engines.flink.watch.look import running_layout
from streamplace.engines.flink.watch.placed_job import PlacedJob, continues, replacement
from streamplace.engines.flink.watch.rounds import JobRounds
from streamplace.engines.flink.watch.spares import unfit, unkept, without_lost
from streamplace.errors import PlacementError, StreamplaceError
from streamplace.io.watch_store import FAILED as LOST
from streamplace.io.watch_store import MOVED, UNBEGUN, StoreError, WatchDecision
from streamplace.model.messages import listed, quoted

LOOK_SECONDS, FAULT_SECONDS = 1.0, 120.0
"""Seconds between two looks, and for which answers that tell of an error are tried again."""
RUNNING, CANCELLING = "RUNNING", "CANCELLING"
NOT_FOUND = "Could not find Flink job"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Watch:
    """Watches a job on a cluster with spare devices.

    Attributes
    ----------
    flink, program
        What the job is started again with; None if it never is.
    spares
        Devices that replace lost ones, in this order.
    tell
        Function that receives a message for every step.
    moved
        Function that receives every job that was started.
    patience
        Seconds within which a lost device may return.
    seconds
        Maximum number of seconds for the start of a job.
    placement
        File of the placement, for messages.
    rounds
        Rounds that watch the rate of the job; None watches for lost devices only.
    log
        Log to which replacements are written before they are carried out; None writes none.
    takes_free
        Whether devices without subtasks of the job are spares, too.
    """

    rest: Rest
    flink: Flink | None
    program: Program | None
    spares: tuple[str, ...]
    tell: Tell
    moved: Callable[[PlacedJob], None]
    patience: float = 30.0
    seconds: float = 120.0
    placement: str = "PLACEMENT"
    rounds: JobRounds | None = None
    log: WatchLog | None = None
    takes_free: bool = False

    @property
    def replaces(self) -> bool:
        """Whether lost devices are replaced."""
        return bool(self.spares) or self.takes_free

    def check(self, run: PlacedJob) -> None:
        """Raise an error if a spare could not replace a device.

        Spares that a job uses, or lacks, are told of only where a watch has moved it before.
        """
        if not self.spares:
            return
        self._ask(lambda: check_upload(self.rest))
        faults = [
            f"{quoted(one)} is not a spare: operators are placed on it"
            for one in sorted(run.devices.intersection(self.spares))
        ] + [
            f"spare {quoted(one)} is not a TaskManager of the cluster"
            for one in sorted(set(self.spares).difference(self._ask(self.rest.offered)))
        ]
        for fault in faults:
            if self.log is None or not self.log.has_started:
                raise PlacementError(fault)
            self.tell(f"note: {fault} now")
        if why := self._ask(lambda: unkept(self.rest, run.job, self.tell)):
            raise FlinkError(why)

    def run(self, run: PlacedJob) -> str:
        """Watch a job until it ends or is ended by a user; return its last state.

        A failed job is abandoned only when Flink has heard of all its devices since the failure.

        Raises
        ------
        FlinkError
            When it failed although all its devices are present, when it cannot be started with a
            spare, or when the JobManager no longer knows it.
        """
        self.check(run)
        run = self._with_addresses(run)
        since, missing_before = 0.0, set[str]()
        losses, shortages, breaks = (_Notices(self.tell) for _ in range(3))
        while True:
            health = self._look(run)
            if health.has_ended or (health.state == FAILED and not self.replaces):
                return self._end(run, health.state)
            missing = {*health.lost, *health.silent}
            if missing - missing_before:
                since = time.monotonic()
            missing_before = missing
            losses(self._words(run, health))
            if health.is_restartable:
                run = self._move(run, run, shortages)
            elif health.state == RUNNING and (there := self._elsewhere(run, health.lost)):
                run = there
            elif health.lost and self.replaces and time.monotonic() - since > self.patience:
                run = self._replace(run, list(health.lost), shortages)
            elif not missing and health.state == RUNNING:
                run = self._round(run, breaks)
            time.sleep(LOOK_SECONDS)

    def _round(self, run: PlacedJob, breaks: "_Notices") -> PlacedJob:
        """Pass a round if one is due; return the job, which may have been moved."""
        if self.rounds is None or not self.rounds.is_due:
            return run
        try:
            job = self.rounds.pass_round(run.job)
        except NoAnswer:  # the next look at its health tells it, and waits
            return run
        except FlinkError as error:  # it may be restarting, or have ended
            breaks(str(error))
            return run
        breaks("")
        if job == run.job:
            return run
        new = self._with_addresses(PlacedJob(job, self._vectors(run, self.rounds.log, job)))
        self.moved(new)
        return new

    def _vectors(self, run: PlacedJob, log: WatchLog, job: str) -> Vectors:
        """Where a job is placed that a round has moved, or moved back.

        It may have lost a device meanwhile, so that Flink shows no layout of it.
        """
        layout = self._ask(lambda: running_layout(self.rest, job))
        return dict(layout) or log.placed(job) or run.vectors

    def _elsewhere(self, run: PlacedJob, lost: tuple[str, ...]) -> PlacedJob | None:
        """Return a job that Flink itself has started without lost devices; None if it has not.

        It does so with jobs that are not placed.
        """
        if not lost:
            return None
        layout = self._ask(lambda: running_layout(self.rest, run.job))
        used = {device for devices in layout.values() for device in devices}
        if not used or used.intersection(lost):
            return None
        self.tell(f"Flink has started job {run.job} again without {listed(lost)}")
        return self._with_addresses(PlacedJob(run.job, dict(layout)))

    def _words(self, run: PlacedJob, health: Health) -> str:
        """Message on a job that lacks devices; empty if it does not."""
        if health.lost and not self.replaces:
            return f"lost: {listed(health.lost)}; give --spare, so that another replaces it"
        if health.lost:
            return f"lost: {listed(health.lost)}; waiting {self.patience:g} s for it"
        if health.silent:
            return (
                f"job {run.job} has failed; waiting until Flink knows the state of its TaskManagers"
            )
        if health.is_restartable:
            return f"job {run.job} has failed, and {listed(health.renewed)} is back"
        return ""

    def _look(self, run: PlacedJob) -> Health:
        """Return the health of the job, as soon as Flink answers.

        A new leading JobManager does not know the job at once.
        """
        since = time.monotonic()
        while True:
            try:
                return self._ask(lambda: health_of(self.rest, run.job, run.devices, run.addresses))
            except Refusal as error:
                is_forgotten, waited = NOT_FOUND in str(error), time.monotonic() - since
                if waited > (self.patience if is_forgotten else max(self.patience, FAULT_SECONDS)):
                    if is_forgotten:
                        raise _forgotten(run.job) from None
                    raise
            time.sleep(LOOK_SECONDS)

    def _ask(self, ask: Callable[[], T]) -> T:
        """Return Flink's answer, repeating the request until there is one."""
        breakdowns = _Notices(self.tell)
        while True:
            try:
                return ask()
            except NoAnswer as error:
                breakdowns(f"{error}; trying again")
            time.sleep(LOOK_SECONDS)

    def _with_addresses(self, run: PlacedJob) -> PlacedJob:
        """Return the job with the current addresses of its TaskManagers."""
        addresses = self._ask(lambda: addresses_of(self.rest, run.devices))
        return replace(run, addresses=addresses)

    def _end(self, run: PlacedJob, state: str) -> str:
        if state == FAILED:
            cause = self.rest.failure(run.job)
            where = " although all of its devices are available" if self.replaces else ""
            raise FlinkError(f"job {run.job} failed{where}: {cause}")
        self._check_stopped(run.job, state)
        self.tell(finished(run.job) if state == FINISHED else f"job {run.job} is {state}")
        return state

    def _check_stopped(self, job: str, state: str) -> None:
        """Raise FlinkError for a job that others have moved, or stopped with a savepoint."""
        states = self._ask(lambda: chain_states(self.rest, job))
        later = [one for one, now in states.items() if one != job and now not in ENDED]
        if later:
            raise FlinkError(
                f"job {job} was moved by another command, and is job {later[-1]} now; watch that"
            )
        path = self._ask(lambda: stopped_with(self.rest, job))
        if path is not None and state == FINISHED:
            raise FlinkError(f"job {job} was stopped with a savepoint; its state is in {path}")

    def _replace(self, run: PlacedJob, lost: list[str], shortages: "_Notices") -> PlacedJob:
        """Restart a job with spares in place of lost devices, or wait if there are too few spares.

        Devices that were lost and have returned are spares, too. A watch that places the job
        for its rate does not wait: without a spare, the other devices of the job take over.
        """
        new, left = self._ask(
            lambda: without_lost(self.rest, run, lost, self.spares, takes_free=self.takes_free)
        )
        if left:
            shortages(f"no spare is left for {listed(left)}; waiting for it")
            return run
        try:
            why = self._ask(lambda: unfit(self.rest, self.program, new))
        except Refusal as error:  # another TaskManager has just ended
            why = str(error)
        if why is None and not self.spares:  # with spares, this was checked at the start
            why = self._ask(lambda: unkept(self.rest, run.job, self.tell))
        if why is not None:
            shortages(f"{why}; nothing replaces {listed(lost)}")
            return run
        return self._move(run, new, shortages)

    def _move(self, run: PlacedJob, new: PlacedJob, shortages: "_Notices") -> PlacedJob:
        """Cancel a job and start it from its last state, on the devices of another one."""
        path = self._ask(lambda: resumable(self.rest, run.job))
        if self.log is None:
            return self._started_again(run, new, path)
        decision = replacement(run, new, path)
        try:
            number = self.log.begin(decision)
        except StoreError as error:
            shortages(f"{error}; nothing is started without a record")
            return run
        started = self._started_again(run, new, path)
        self.log.end(number, decision, MOVED, "", started.job)
        return started

    def _started_again(self, run: PlacedJob, new: PlacedJob, path: str | None) -> PlacedJob:
        self.tell(f"cancelling job {run.job}; it continues from {path or 'its beginning'}")
        self._cancel(run.job)
        return self._start(new, path)

    def _cancel(self, job: str) -> None:
        """End a job, however long its tasks take to end."""
        delays = _Notices(self.tell)
        while True:
            try:
                return self._ask(lambda: self.rest.cancel(job))
            except Refusal:
                raise
            except FlinkError as error:
                delays(f"{error}; waiting for its end")

    def settle(self, log: WatchLog, number: int, decision: WatchDecision) -> str | None:
        """Find out what became of a replacement, and finish it; return the job that runs."""
        state = self.rest.jobs().get(decision.job, FINISHED)
        if state == CANCELLING:
            self._cancel(decision.job)
        elif state not in ENDED:
            log.end(number, decision, UNBEGUN, "the watch was ended meanwhile", decision.job)
            return decision.job
        path = decision.transaction
        for job in self.rest.live_jobs():
            if self.program is not None and continues(self.rest, job, decision):
                self.rest.wait_running(job, self.seconds)
                remember(job, self.program)
                log.end(number, decision, MOVED, "the watch was ended meanwhile", job)
                self.tell(f"job {job} runs; an earlier watch has started it")
                self.moved(PlacedJob(job, dict(decision.layout)))
                return job
        if not path:
            log.end(number, decision, LOST, "the watch was ended meanwhile", "")
            return None
        self.tell(f"the replacement of a TaskManager of job {decision.job} is finished first")
        started = self._start(PlacedJob(decision.job, dict(decision.layout)), path)
        log.end(number, decision, MOVED, "", started.job)
        return started.job

    def _start(self, run: PlacedJob, path: str | None) -> PlacedJob:
        if self.flink is None or self.program is None:
            raise ValueError("nothing was given to start the job with")
        saved = None if path is None else Savepoint(path)
        try:
            job = apply(
                self.rest,
                self.flink,
                self.program,
                run.vectors,
                savepoint=saved,
                seconds=self.seconds,
            )
        except StreamplaceError as error:  # a further device may have been lost
            if path is None:
                raise FlinkError(str(error)) from None
            command = apply_command(self.program, self.rest.url, self.placement, path)
            raise FlinkError(
                f"{error}; its state is in {path}. When its devices are there, start it with: "
                f"{command}"
            ) from None
        new = self._with_addresses(replace(run, job=job))
        where = "".join(f", {spare} for {device}" for device, spare in run.stand_ins.items())
        fine = verify(self.rest, job, run.vectors).fine
        self.tell(f"job {job} runs{where}")
        if not fine:
            self.tell(f"note: some subtasks of job {job} do not run where they are placed")
        self.moved(new)
        if why := self._ask(lambda: unkept(self.rest, job, self.tell)):
            self.tell(f"note: {why}; give it to 'flink watch', too")
        return new


class _Notices:
    """Messages; equal consecutive ones are given only once."""

    def __init__(self, tell: Tell) -> None:
        self._tell, self._last = tell, ""

    def __call__(self, words: str) -> None:
        """Give a message, unless it is empty or the same as the last one."""
        if words and words != self._last:
            self._tell(words)
        self._last = words


def _forgotten(job: str) -> FlinkError:
    """Error about a job that the JobManager no longer knows, with advice."""
    return FlinkError(
        f"the JobManager no longer knows job {job}: it was restarted without high availability "
        f"(high-availability.type); start the job from its last checkpoint, in folder {job} of "
        "its execution.checkpointing.dir, with 'streamplace flink apply --savepoint'"
    )

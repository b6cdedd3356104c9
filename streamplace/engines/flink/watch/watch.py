"""Watch a placed job, and replace devices that are lost by spare ones.

Pins are hard: a job never moves by itself. While a device is lost, the job restarts in vain. So it
is cancelled here and started from its last checkpoint, with a spare in place of the lost device.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar
from urllib.parse import quote

from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.move.resuming import apply_command
from streamplace.engines.flink.move.state import Savepoint, resumable
from streamplace.engines.flink.pin.apply import apply
from streamplace.engines.flink.pin.fitting import check_upload
from streamplace.engines.flink.pin.pinning import Vectors, devices_of
from streamplace.engines.flink.pin.verify import verify
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.rest.client import (
    FINISHED,
    FlinkError,
    NoAnswer,
    Refusal,
    Rest,
    finished,
)
from streamplace.engines.flink.watch.health import FAILED, Health, addresses_of, health_of
from streamplace.errors import PlacementError, StreamplaceError
from streamplace.model.messages import listed, quoted

RETENTION = "execution.checkpointing.externalized-checkpoint-retention"
LOOK_SECONDS = 1.0
NOT_FOUND = "Could not find Flink job"
Tell = Callable[[str], None]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PlacedJob:
    """A job and its devices.

    Attributes
    ----------
    stand_ins
        Device of the placement → the spare that replaces it.
    addresses
        Device → address of its TaskManager when the job was started, if known.
    """

    job: str
    vectors: Vectors
    stand_ins: Mapping[str, str] = field(default_factory=dict)
    addresses: Mapping[str, str] = field(default_factory=dict)

    @property
    def devices(self) -> set[str]:
        """Devices on which it is placed."""
        return {device for vector in self.vectors.values() for device in devices_of(vector)}

    def without(self, stand_ins: Mapping[str, str]) -> "PlacedJob":
        """Return the same job with some of its devices replaced."""
        vectors: dict[str, list[str] | str] = {
            name: stand_ins.get(vector, vector)
            if isinstance(vector, str)
            else [stand_ins.get(device, device) for device in vector]
            for name, vector in self.vectors.items()
        }
        origins = {new: old for old, new in self.stand_ins.items()}
        new = {origins.get(lost, lost): spare for lost, spare in stand_ins.items()}
        return replace(self, vectors=vectors, stand_ins={**self.stand_ins, **new})


@dataclass(frozen=True, slots=True)
class Watch:
    """Watches a job on a cluster with spare devices.

    Attributes
    ----------
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
    """

    rest: Rest
    flink: Flink
    program: Program
    spares: tuple[str, ...]
    tell: Tell
    moved: Callable[[PlacedJob], None]
    patience: float = 30.0
    seconds: float = 120.0
    placement: str = "PLACEMENT"

    def check(self, run: PlacedJob) -> None:
        """Raise an error if a spare could not replace a device."""
        self._ask(lambda: check_upload(self.rest))
        if taken := run.devices.intersection(self.spares):
            raise PlacementError(f"{quoted(min(taken))} is not a spare: operators are placed on it")
        if missing := set(self.spares).difference(self._ask(self.rest.offered)):
            raise PlacementError(
                f"spare {quoted(min(missing))} is not a TaskManager of the cluster"
            )
        if unkept := self._unkept(run.job):
            raise FlinkError(unkept)

    def _unkept(self, job: str) -> str | None:
        """Why the job could not continue from its checkpoints with a spare; None if it could."""
        try:
            settings = self._ask(
                lambda: self.rest.get(f"/jobs/{quote(job, safe='')}/checkpoints/config")
            )
        except Refusal:
            self.tell(f"note: job {job} takes no checkpoints; it would start without state")
            return None
        retention = settings["externalization"]
        if "JobManager" in settings.get("checkpoint_storage", ""):
            return (
                f"job {job} keeps its checkpoints in the JobManager's memory, so that a spare "
                "could not go on from them; submit it with -D execution.checkpointing.dir=FOLDER"
            )
        if not retention["enabled"] or retention["delete_on_cancellation"]:
            return (
                f"job {job} deletes its checkpoints when it ends, so that a spare could not go "
                f"on from them; submit it with -D {RETENTION}=RETAIN_ON_CANCELLATION"
            )
        return None

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
        losses, shortages = _Notices(self.tell), _Notices(self.tell)
        while True:
            health = self._look(run)
            if health.has_ended:
                return self._end(run, health.state)
            missing = {*health.lost, *health.silent}
            if missing - missing_before:
                since = time.monotonic()
            missing_before = missing
            losses(self._words(run, health))
            if health.is_restartable:
                run = self._move(run, {})
            elif health.lost and time.monotonic() - since > self.patience:
                run = self._replace(run, list(health.lost), shortages)
            time.sleep(LOOK_SECONDS)

    def _words(self, run: PlacedJob, health: Health) -> str:
        """Message on a job that lacks devices; empty if it does not."""
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
                if NOT_FOUND not in str(error):
                    raise
                if time.monotonic() - since > self.patience:
                    raise _forgotten(run.job) from None
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
            raise FlinkError(
                f"job {run.job} failed although all of its devices are available: {cause}"
            )
        self.tell(finished(run.job) if state == FINISHED else f"job {run.job} is {state}")
        return state

    def _replace(self, run: PlacedJob, lost: list[str], shortages: "_Notices") -> PlacedJob:
        """Restart a job with spares in place of lost devices, or wait if there are too few spares.

        Devices that were lost and have returned are spares, too.
        """
        offered, used = self._ask(self.rest.offered), run.devices
        spares = [*self.spares, *run.stand_ins]
        free = [device for device in spares if device in offered and device not in used]
        if len(free) < len(lost):
            shortages(f"no spare is left for {listed(lost[len(free) :])}; waiting for it")
            return run
        return self._move(run, dict(zip(lost, free, strict=False)))

    def _move(self, run: PlacedJob, stand_ins: Mapping[str, str]) -> PlacedJob:
        """Cancel a job and start it from its last state, with some of its devices replaced."""
        path = self._ask(lambda: resumable(self.rest, run.job))
        self.tell(f"cancelling job {run.job}; it continues from {path or 'its beginning'}")
        self._ask(lambda: self.rest.cancel(run.job))
        return self._start(run.without(stand_ins), path)

    def _start(self, run: PlacedJob, path: str | None) -> PlacedJob:
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
        if unkept := self._unkept(job):
            self.tell(f"note: {unkept}; give it to 'flink watch', too")
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

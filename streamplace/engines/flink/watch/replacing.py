"""Start a watched job again on other TaskManagers than lost ones, from its last state.

The decision is stored before it is carried out, so that a watch which is killed meanwhile finishes
it. TaskManagers that are lost while the job starts are replaced, too.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar
from urllib.parse import quote

from streamplace.engines.flink.decide.candidates import occupied_devices
from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.move.carried import submitted_settings
from streamplace.engines.flink.move.commands import apply_command
from streamplace.engines.flink.move.journal import Journal
from streamplace.engines.flink.move.move import RETENTION, Tell
from streamplace.engines.flink.move.others import CANCELLED, CopyRuns, same_place
from streamplace.engines.flink.move.saving import (
    Savepoint,
    restored_path,
    resumable,
    saved_by,
    suppress_missing,
)
from streamplace.engines.flink.pin.apply import apply, check_made, wait_started
from streamplace.engines.flink.pin.fitting import (
    check_cluster,
    check_upload,
    fitted,
    left_without,
)
from streamplace.engines.flink.pin.verify import verify
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.program.submitted import remember
from streamplace.engines.flink.rest.client import (
    ENDED,
    FINISHED,
    SUSPENDED,
    FlinkError,
    NoAnswer,
    Refusal,
    Rest,
)
from streamplace.engines.flink.rest.tasks import StillStarting, refuse_restoring
from streamplace.engines.flink.watch.log import WatchLog
from streamplace.engines.flink.watch.look import addresses_of, running_layout
from streamplace.errors import PlacementError, StreamplaceError
from streamplace.io.store import StoreError
from streamplace.io.watches import FAILED, MOVED, UNBEGUN, WatchDecision, utc_now
from streamplace.model.messages import listed, quoted

LOOK_SECONDS = 1.0
"""Seconds between two looks at what is waited for."""
CANCELLING = "CANCELLING"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PlacedJob:
    """A job and its devices."""

    job: str
    layout: Layout
    # Device of the placement → the spare that replaces it.
    stand_ins: Mapping[str, str] = field(default_factory=dict)
    # Device → address of its TaskManager when the job was started, if known.
    addresses: Mapping[str, str] = field(default_factory=dict)

    @property
    def devices(self) -> set[str]:
        """Devices on which it is placed."""
        return self.layout.devices

    def without(self, stand_ins: Mapping[str, str]) -> "PlacedJob":
        """Return the same job with some of its devices replaced."""
        origins = {new: old for old, new in self.stand_ins.items()}
        new = {origins.get(lost, lost): spare for lost, spare in stand_ins.items()}
        return replace(
            self,
            layout=self.layout.with_spares(stand_ins),
            stand_ins={**self.stand_ins, **new},
        )

    def on_the_others(self, lost: Collection[str]) -> "PlacedJob":
        """Return the same job with the subtasks of lost devices on its others, evenly.

        There must be others; see `Layout.without`.
        """
        return replace(self, layout=self.layout.without(lost))


def replacement(before: PlacedJob, after: PlacedJob, path: str | None) -> WatchDecision:
    """Decision to start a job on other devices than lost ones, written before it is carried out."""
    new = {
        before.stand_ins.get(origin, origin): spare
        for origin, spare in after.stand_ins.items()
        if before.stand_ins.get(origin) != spare
    }
    left = sorted(before.devices - after.devices - new.keys())
    where = ", ".join(f"{spare} for {lost}" for lost, spare in new.items())
    where += f"{where and ', '}none for {', '.join(left)}" if left else ""
    return WatchDecision(
        utc_now(),
        "replace",
        before.job,
        path or "",
        after.layout.to_json(),
        (len(before.devices), len(after.devices)),
        f"lost TaskManagers: {where}" if where else "a lost TaskManager is back",
    )


def continues(rest: Rest, job: str, before: str, path: str | None) -> bool:
    """Whether a job was started in place of another one, from a savepoint or checkpoint of it."""
    if not path or job == before:
        return False
    with suppress_missing():  # it takes no checkpoints
        return same_place(path, restored_path(rest, job))
    return False


def free_spares(rest: Rest, run: PlacedJob, named: Sequence[str], *, takes_free: bool) -> list[str]:
    """Devices that may replace lost ones now, in order.

    First those that the user has named, then those that were lost and have returned, then, if
    wanted, all others that no job uses exclusively.
    """
    offered, spares = rest.offered(), [*named, *run.stand_ins]
    possible = offered.keys() - run.devices
    if takes_free:
        spares += sorted(offered.keys() - set(spares))
        possible -= occupied_devices(rest, run.job)
    return [device for device in spares if device in possible]


def without_lost(
    rest: Rest, run: PlacedJob, lost: Sequence[str], named: Sequence[str], *, takes_free: bool
) -> tuple[PlacedJob, list[str]]:
    """Return a job with spares in place of lost devices, and those that nothing replaces.

    Where devices may be taken that nobody has named, the other devices of the job take over what
    there is no spare for.
    """
    free = free_spares(rest, run, named, takes_free=takes_free)
    new, left = run.without(dict(zip(lost, free, strict=False))), [*lost[len(free) :]]
    if takes_free and new.devices.difference(left):
        return (new.on_the_others(left) if left else new), []
    return new, left


def move_without_lost(rest: Rest, named: Sequence[str], journal: Journal) -> tuple[Layout, Layout]:
    """Placements after and before a move, each without lost devices if others are left for it."""

    def left(layout: Layout) -> Layout:
        run = PlacedJob(journal.job, layout)
        if not (lost := sorted(run.devices.difference(rest.offered()))):
            return layout
        new, awaited = without_lost(rest, run, lost, named, takes_free=True)
        return layout if awaited else new.layout

    return left(journal.after), left(journal.before)


def unfit(rest: Rest, program: Program | None, run: PlacedJob) -> str | None:
    """Why a job does not fit on its devices, once it has left its present ones; None if it does.

    Raises NoAnswer when Flink does not answer.
    """
    most = None if program is None else program.managed_mb
    managers = left_without(rest, run.job)
    try:
        check_cluster(rest, run.layout)
        fitted(rest, run.layout, most, managers)
    except NoAnswer:
        raise
    except StreamplaceError as error:
        return str(error)
    return None


def unkept(rest: Rest, job: str, tell: Tell) -> str | None:
    """Why a job could not continue from its checkpoints with a spare; None if it could.

    A job without checkpoints has none to lose, and this is reported.
    """
    settings = None
    with suppress_missing():
        settings = rest.get(f"/jobs/{quote(job, safe='')}/checkpoints/config")
    if settings is None:
        tell(f"note: job {job} takes no checkpoints; it would start without state")
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


class Notices:
    """Messages; equal consecutive ones are given only once."""

    def __init__(self, tell: Tell) -> None:
        self._tell, self._last = tell, ""

    def __call__(self, words: str) -> None:
        """Give a message, unless it is empty or the same as the last one."""
        if words and words != self._last:
            self._tell(words)
        self._last = words


def answer_of(ask: Callable[[], T], tell: Tell) -> T:
    """Return Flink's answer, repeating the request until there is one."""
    breakdowns = Notices(tell)
    while True:
        try:
            return ask()
        except StillStarting as error:
            breakdowns(f"{error}; waiting for it")
        except NoAnswer as error:
            breakdowns(f"{error}; trying again")
        time.sleep(LOOK_SECONDS)


@dataclass(frozen=True, slots=True)
class Replacing:
    """Starts a watched job again where TaskManagers were lost."""

    rest: Rest
    # What the job is started again with; None if it never is.
    flink: Flink | None
    program: Program | None
    spares: tuple[str, ...]  # devices that replace lost ones, in this order
    tell: Tell  # function that receives a message for every step
    moved: Callable[[PlacedJob], None]  # function that receives every job that was started
    log: WatchLog  # log to which replacements are written before they are carried out
    # Seconds within which a lost device may return, and Flink notices that one was lost.
    patience: float = 30.0
    seconds: float = 120.0  # maximum number of seconds for the start of a job
    placement: str = "PLACEMENT"  # file of the placement, for messages
    takes_free: bool = False  # whether devices without subtasks of the job are spares, too
    # Raises SettingError if the program is not the one any more with which the watch began.
    check_program: Callable[[], None] = lambda: None

    @property
    def is_wanted(self) -> bool:
        """Whether lost devices are replaced."""
        return bool(self.spares) or self.takes_free

    def check(self, run: PlacedJob) -> None:
        """Raise an error if a spare could not replace a device.

        Where a watch has moved the job before, spares that the job uses or lacks are only reported.
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
            if not self.log.has_started:
                raise PlacementError(fault)
            self.tell(f"note: {fault} now")
        if why := self._ask(lambda: unkept(self.rest, run.job, self.tell)):
            raise FlinkError(why)

    def replace_lost(self, run: PlacedJob, lost: list[str], shortages: Notices) -> PlacedJob:
        """Restart a job with spares in place of lost devices, or wait if there are too few spares.

        Devices that were lost and have returned are spares, too. A watch that places the job
        for its rate does not wait: without a spare, the other devices of the job take over.
        """
        new, why = self._without(run, lost)
        if why is None and not self.spares:  # with spares, this was checked at the start
            unsaved = self._ask(lambda: unkept(self.rest, run.job, self.tell))
            why = unsaved and f"{unsaved}; nothing replaces {listed(lost)}"
        if why is not None:
            shortages(why)
            return run
        return self.start_again(run, new, shortages)

    def start_failed(self, run: PlacedJob, shortages: Notices) -> PlacedJob:
        """Start a failed job again where it was, from its last state.

        Raises FlinkError when the job has saved state and none of it outlives the job.
        """
        saved = self._ask(lambda: saved_by(self.rest, run.job))
        if saved is not None and saved.last is None:
            cause = self._ask(lambda: self.rest.failure(run.job))
            raise FlinkError(
                f"job {run.job} failed: {cause}; none of its state outlives it; start it again as "
                "it was first submitted"
            )
        return self.start_again(run, run, shortages)

    def start_again(self, run: PlacedJob, new: PlacedJob, shortages: Notices) -> PlacedJob:
        """Cancel a job and start it from its last state, on the devices of another one.

        A job that has finished meanwhile, or was stopped or cancelled by others, is not started
        again. Until it has ended, it may complete checkpoints, and Flink then deletes the earlier
        ones.
        """
        path = self._ask(lambda: resumable(self.rest, run.job))
        decision = replacement(run, new, path)
        try:
            number = self.log.begin(decision)
        except StoreError as error:
            shortages(f"{error}; nothing is started without a record")
            return run
        self.tell(f"cancelling job {run.job}; it continues from {path or 'its beginning'}")
        why = ""
        if self._ask(lambda: self.rest.state(run.job)) in CANCELLED:
            why = "another user has cancelled the job"
        elif self._cancel(run.job) == FINISHED:
            why = "the job ended by itself"
        if why:
            self.log.end(number, decision, UNBEGUN, why, run.job)
            return run
        decision = self._ended(number, decision)
        return self._start(number, decision, new, decision.transaction or None)

    def settle(self, number: int, decision: WatchDecision) -> str:
        """Find out what became of a replacement, and finish it; return the job that runs.

        Flink cancels the job for its replacement, so a job that has finished was not replaced.
        Raises FlinkError for a job that has saved no state: nothing would tell a copy that runs.
        """
        state = self.rest.jobs().get(decision.job)
        if state == SUSPENDED:
            state = self._ask(lambda: self.rest.state(decision.job))
        if state == CANCELLING:
            self._cancel(decision.job)
        elif state == FINISHED or state not in (None, *ENDED):
            self.log.end(number, decision, UNBEGUN, "the watch was ended meanwhile", decision.job)
            return decision.job
        if state is not None:
            decision = self._ended(number, decision)
        if not (path := decision.transaction):
            self.log.end(number, decision, FAILED, "the watch was ended meanwhile", "")
            raise FlinkError(
                f"an earlier watch has ended job {decision.job} to start it elsewhere, and was "
                "ended itself; the job had saved no state, so start it again as it was first "
                "submitted"
            )
        self.tell(f"the replacement of a TaskManager of job {decision.job} is finished first")
        before = PlacedJob(decision.job, Layout.from_json(decision.layout))
        return self._start(number, decision, before, path, is_begun=True).job

    def with_addresses(self, run: PlacedJob) -> PlacedJob:
        """Return the job with the current addresses of its TaskManagers."""
        return replace(run, addresses=self._ask(lambda: addresses_of(self.rest, run.devices)))

    def _without(self, run: PlacedJob, lost: list[str]) -> tuple[PlacedJob, str | None]:
        """Return a job on other devices than lost ones, and why it is not started there.

        What keeps it from being submitted has to be known before it is ended.
        """
        new, left = self._ask(
            lambda: without_lost(self.rest, run, lost, self.spares, takes_free=self.takes_free)
        )
        if left:
            return new, f"no spare is left for {listed(left)}; waiting for it"
        try:
            why = self._ask(lambda: unfit(self.rest, self.program, new))
            if why is None and self.flink is not None and self.program is not None:
                self.check_program()
                check_made(self.flink, self.program)
        except StreamplaceError as error:  # also if another TaskManager has just ended
            why = str(error)
        return new, why and f"{why}; nothing replaces {listed(lost)}"

    def _ended(self, number: int, decision: WatchDecision) -> WatchDecision:
        """Return the decision on a job that has ended, with what it has saved last."""
        last = self._ask(lambda: resumable(self.rest, decision.job))
        if last in (None, decision.transaction):
            return decision
        later = replace(decision, transaction=last)
        self.log.amend(number, later)
        return later

    def _cancel(self, job: str) -> str:
        """End a job, however long its tasks take to end; return its last state."""
        delays = Notices(self.tell)
        while True:
            try:
                return self._ask(lambda: self.rest.cancel(job))
            except Refusal:
                raise
            except FlinkError as error:
                delays(f"{error}; waiting for its end")

    def _start(
        self,
        number: int,
        decision: WatchDecision,
        run: PlacedJob,
        path: str | None,
        *,
        is_begun: bool = False,
    ) -> PlacedJob:
        """Start a job from its last state, unless this was begun and has been done."""
        run = self._placed(run, path, is_begun=is_begun)
        where = "".join(f", {spare} for {device}" for device, spare in run.stand_ins.items())
        fine = self._ask(lambda: verify(self.rest, run.job, run.layout)).fine
        self.tell(f"job {run.job} runs{where}")
        if not fine:
            self.tell(f"note: some subtasks of job {run.job} do not run where they are placed")
        new = self.with_addresses(run)
        self.moved(new)
        if why := self._ask(lambda: unkept(self.rest, run.job, self.tell)):
            self.tell(f"note: {why}; give that option to 'flink watch', too")
        placed = replace(decision, layout=new.layout.to_json())
        self.log.end(number, placed, MOVED, "", new.job)
        return new

    def _applied(self, run: PlacedJob, saved: Savepoint | None) -> str:
        """Start a job on its devices, and wait for as long as it restores its state.

        It gets the settings that it had, also those that the program was not given here.
        """
        if self.flink is None or self.program is None:
            raise ValueError("nothing was given to start the job with")
        settings = self._ask(lambda: submitted_settings(self.rest, run.job))
        try:
            return apply(
                self.rest,
                self.flink,
                self.program.with_settings(settings),
                run.layout,
                savepoint=saved,
                seconds=self.seconds,
            )
        except StillStarting as error:
            self.tell(f"{error}; waiting for it")
            job = error.job
        try:
            self._ask(lambda: wait_started(self.rest, job, self.seconds, run.devices))
        except FlinkError:
            self._cancel(job)
            raise
        return job

    def _placed(self, run: PlacedJob, path: str | None, *, is_begun: bool) -> PlacedJob:
        """Start a job on its devices, or on others if these are lost; return it as it runs."""
        saved, notices = None if path is None else Savepoint(path), Notices(self.tell)
        is_late = False
        while True:
            try:
                if is_begun and (found := self._begun(run, path)) is not None:
                    return found
                return replace(run, job=self._applied(run, saved))
            except NoAnswer as error:
                if path is None:  # nothing would tell a copy that runs
                    raise self._not_started(error, path) from None
                notices(f"{error}; trying again")
                is_begun = True
                time.sleep(LOOK_SECONDS)
            except StreamplaceError as error:
                if is_begun and not is_late and isinstance(error, Refusal | CopyRuns):
                    is_late = True  # a start without an answer may be known to Flink only now
                    continue
                if not (lost := self._lost(run)):
                    raise self._not_started(error, path) from None
                notices(f"{error}; it is started without {listed(lost)}")
                run = self._without_further(run, notices)

    def _begun(self, run: PlacedJob, path: str | None) -> PlacedJob | None:
        """Return the job that was started from a path already, as it runs; None without one."""
        for job, state in self.rest.jobs().items():
            if state in ENDED or self.program is None:
                continue
            if not continues(self.rest, job, run.job, path):
                continue
            try:
                self._ask(partial(self._await_begun, job))
            except FlinkError:
                self._cancel(job)
                raise
            remember(job, self.program)
            layout = running_layout(self.rest, job)
            return replace(run, job=job, layout=layout or run.layout)
        return None

    def _await_begun(self, job: str) -> None:
        """Wait until a job runs that was started before; raise StillStarting if it restores."""
        try:
            self.rest.wait_running(job, self.seconds)
        except NoAnswer:
            raise
        except FlinkError:
            refuse_restoring(self.rest.job(job), job, self.seconds)
            self.rest.wait_running(job, 0.0)  # it may run by now

    def _lost(self, run: PlacedJob) -> list[str]:
        """Devices that were lost; Flink may take a while to notice it."""
        deadline = time.monotonic() + self.patience
        while True:
            lost = run.devices.difference(self._ask(self.rest.offered))
            if lost or time.monotonic() > deadline:
                return sorted(lost)
            time.sleep(LOOK_SECONDS)

    def _without_further(self, run: PlacedJob, notices: Notices) -> PlacedJob:
        """Return a job on devices that are there, as soon as there are enough."""
        while lost := sorted(run.devices.difference(self._ask(self.rest.offered))):
            new, why = self._without(run, lost)
            if why is None:
                return new
            notices(why)
            time.sleep(LOOK_SECONDS)
        return run

    def _not_started(self, error: StreamplaceError, path: str | None) -> FlinkError:
        if path is None or self.program is None:
            return FlinkError(str(error))
        command = apply_command(self.program, self.rest.url, self.placement, path)
        return FlinkError(
            f"{error}; its state is in {path}. When its devices are there, start it with: {command}"
        )

    def _ask(self, ask: Callable[[], T]) -> T:
        return answer_of(ask, self.tell)

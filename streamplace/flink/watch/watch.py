"""Watch a placed job: check its health, start it without lost TaskManagers, and pass rounds.

Pins are strict: a job never moves by itself, and while it lacks a TaskManager, its restarts fail.
So the watch starts it on other TaskManagers, from its last checkpoint. A watch first finishes an
interrupted move of an earlier watch of the job.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from streamplace.errors import PlacementError, SettingError, StreamplaceError
from streamplace.flink.constants import CHECK_SECONDS, FAULT_SECONDS
from streamplace.flink.deployment import JobDeployment, deployment_of
from streamplace.flink.layout import Layout
from streamplace.flink.move.running_settings import RETENTION
from streamplace.flink.move.savepoints import (
    LEFT_NOTHING,
    RETAINED,
    checkpoint_settings,
    resumable,
    retention_of,
    stopped_with,
)
from streamplace.flink.pin.free_resources import fitted
from streamplace.flink.program.submission import live_states
from streamplace.flink.rest.answers import finished
from streamplace.flink.rest.client import (
    ENDED,
    FINISHED,
    NOT_FOUND,
    RUNNING,
    FlinkError,
    NoAnswer,
    Rest,
    only_job,
)
from streamplace.flink.rest.plan import layout_of
from streamplace.flink.rest.settings import scheduler_fault
from streamplace.flink.store import Store
from streamplace.flink.watch.acting import Notices, WatchMover
from streamplace.flink.watch.log import JobWatched, WatchLog, is_of, unfinished
from streamplace.flink.watch.rounds import JobRounds
from streamplace.flink.watches import BEGUN, UNBEGUN, WATCHES
from streamplace.model.message_text import listed, quoted

NOTICE_SECONDS = 60.0
"""Time in which Flink notices a lost TaskManager: a timeout of 50 s, and heartbeats every 10 s."""
FAILED = "FAILED"


class ProgramCheck(NamedTuple):
    """A check whether the program of the job fits a layout."""

    layout: Layout
    at: float  # time of its end
    misfit: str  # why the program does not fit; empty if it does


@dataclass(slots=True)
class Watch:
    """Watches a job, until it ends or a user ends it."""

    rest: Rest  # waits for an answer without limit
    log: WatchLog
    mover: WatchMover | None  # starts the job without lost TaskManagers; None starts nothing
    rounds: JobRounds
    # Receives every job that was started in place of another, and its layout.
    moved: Callable[[str, Layout], None]
    patience: float  # seconds within which a lost TaskManager may return
    job: str = field(default="", init=False)
    layout: Layout = field(default_factory=Layout, init=False)  # its placement
    # Time since which the job has failed or lacked TaskManagers; None if it runs on all of them.
    _troubled_since: float | None = field(default=None, init=False)
    # Whether the job has lost a TaskManager since it last ran.
    _has_lost: bool = field(default=False, init=False)
    _last_check: ProgramCheck | None = field(default=None, init=False)

    def begin(self, job: str, placement: Layout | None = None) -> str:
        """Finish the move that an earlier watch has begun, and watch the job that runs then.

        Its layout is ``placement`` or the present one, unless a watch has started it elsewhere.
        """
        now = finish_earlier(self.rest, self.mover, self.log, job)
        if any(d.after == now != d.job for d in self.log.decisions.values()):
            placement = self._layout(self.rest, now) or placement
        layout = placement or layout_of(self.rest, now, self.rest.running_job(now))
        if now != job:
            self.moved(now, layout)
        return self.run(now, layout)

    def run(self, job: str, layout: Layout) -> str:
        """Watch a job in a layout; return its last state.

        Raises FlinkError when it failed although all its TaskManagers are present, when it failed
        and left no checkpoint or savepoint, when another user has moved or stopped it, or when the
        JobManager no longer knows it. Raises JobWatched when another process has taken over the
        watch.
        """
        self.job, self.layout = job, layout
        self._check()
        notices = Notices(self.log.tell)
        while True:
            state, lost = self._health()
            if state in ENDED and (state != FAILED or self.mover is None):
                return self._end(state)
            if lost and state == RUNNING and (present := layout_on_present(self.rest, self.job)):
                # Flink itself restarts jobs without pins elsewhere, and a TaskManager whose
                # subtasks have all ended is not needed any more.
                self.log.tell(f"job {self.job} continues without {listed(lost)}")
                self.layout = present
            elif lost or state == FAILED:
                why = self._why_wait(lost)
                if not why and not self._has_lost:
                    return self._end(state)
                notices(why or self._start_again(state, lost))
            else:
                if self._troubled_since is not None:
                    notices("")
                self._troubled_since, self._has_lost = None, self._has_lost and state != RUNNING
                if state == RUNNING:
                    self._pass_round(notices)
            time.sleep(CHECK_SECONDS)

    def _check(self) -> None:
        """Raise an error if the user has named a spare that could not replace a TaskManager."""
        if self.mover is None or not (names := self.mover.spares.names):
            return
        offered = self.rest.offered()
        for spare in [] if self.log.has_started else names:  # later, spares may be in use or lost
            if spare in self.layout.devices:
                raise PlacementError(f"{quoted(spare)} is not a spare: operators are placed on it")
            if spare not in offered:
                raise PlacementError(f"spare {quoted(spare)} is not a TaskManager of the cluster")
        if why := checkpoint_obstacle(self.rest, self.job):
            raise FlinkError(why)

    def _health(self) -> tuple[str, list[str]]:
        """State of the job, and the TaskManagers that it lacks.

        Errors are retried for `FAULT_SECONDS`, as a new leading JobManager first has to load the
        job.
        """
        since = time.monotonic()
        while True:
            try:
                state = str(self.rest.job(self.job)["state"])
                return state, sorted(self.layout.devices.difference(self.rest.offered()))
            except FlinkError as error:
                if time.monotonic() - since > FAULT_SECONDS:
                    raise (
                        _forgotten(self.rest, self.job) if NOT_FOUND in str(error) else error
                    ) from None
            time.sleep(CHECK_SECONDS)

    def _why_wait(self, lost: list[str]) -> str:
        """Reason to wait before a troubled job is started elsewhere; empty to start it now."""
        self._troubled_since = self._troubled_since or time.monotonic()
        waited = time.monotonic() - self._troubled_since
        self._has_lost |= bool(lost)
        if lost and self.mover is None:
            return f"lost: {listed(lost)}; to replace it, give --apply or --spare"
        if lost and waited <= self.patience:
            return f"lost: {listed(lost)}; waiting {self.patience:g} s for it"
        if not self._has_lost and waited <= NOTICE_SECONDS:
            return f"job {self.job} has failed; waiting for Flink to notice a lost TaskManager"
        return ""

    def _start_again(self, state: str, lost: list[str]) -> str:
        """Start a job without lost TaskManagers, or where it was if they are back.

        Returns why the start has to wait; empty if it was attempted. Everything that could prevent
        the start is checked before the job is ended.
        """
        mover, rest = self.mover, self.rest
        assert mover is not None
        try:
            path = resumable(rest, self.job)
            why = "" if state == FAILED else checkpoint_obstacle(rest, self.job)
            layout = mover.spares.without_lost(self.job, self.layout)
        except NoAnswer as error:
            return f"{error}; trying again"
        if path is None and state == FAILED:
            raise FlinkError(f"job {self.job} failed: {rest.failure(self.job)}; it {LEFT_NOTHING}")
        if path is None or why:
            why = why or f"job {self.job} has no checkpoint or savepoint yet"
            return f"{why}; it is not started elsewhere"
        if layout is None:
            return f"no spare is left for {listed(lost)}; waiting for it"
        try:
            mover.check_program()
            fitted(rest, layout, mover.move.program.managed_mb, [self.job])
            if why := self._misfit(layout):
                return f"{why}; the job is not started elsewhere"
            job = mover.start_again(self.job, self.layout, layout)
        except JobWatched:
            raise
        except StreamplaceError as error:
            return f"{error}; the job is not started elsewhere"
        self._troubled_since = None
        mover.spares.names.extend(device for device in lost if device not in mover.spares.names)
        self._follow(job)
        return ""

    def _misfit(self, layout: Layout) -> str:
        """Why the program does not fit a layout; empty if it does.

        A check counts for `FAULT_SECONDS`, as its reason, such as a full disk, may pass.
        """
        assert self.mover is not None
        last = self._last_check
        if last is None or last.layout != layout or time.monotonic() - last.at > FAULT_SECONDS:
            misfit = ""
            try:
                self.mover.move.check(self.job, layout)
            except NoAnswer:
                raise
            except StreamplaceError as error:
                misfit = str(error)
            self._last_check = last = ProgramCheck(layout, time.monotonic(), misfit)
        return last.misfit

    def _pass_round(self, notices: Notices) -> None:
        """Pass a round if one is due, which may move the job."""
        if not self.rounds.is_due:
            return
        try:
            job = self.rounds.pass_round(self.job)
        except NoAnswer:  # the next check of the job's health reports it, and waits
            return
        except FlinkError as error:  # the job may be restarting, or have ended
            notices(str(error))
            return
        notices("")
        self._follow(job)

    def _follow(self, job: str) -> None:
        """Continue with the job that runs now."""
        if job != self.job:
            self.job, self.layout = job, self._layout(self.rest, job) or self.layout
            self.moved(job, self.layout)

    def _layout(self, rest: Rest, job: str) -> Layout:
        """Layout of a job that a watch has started; empty if unknown.

        Flink shows no layout of a job that has lost a TaskManager.
        """
        return layout_on_present(rest, job) or self.log.placed(job)

    def _end(self, state: str) -> str:
        """Log how the job has ended; raise FlinkError if it failed, or another user ended it."""
        job, rest = self.job, self.rest
        if state == FAILED:
            where = "" if self.mover is None else " although all of its devices are available"
            raise FlinkError(f"job {job} failed{where}: {rest.failure(job)}")
        if later := [name for name in live_states(rest, job) if name != job]:
            raise FlinkError(
                f"job {job} was moved by another command, and is now job {later[-1]}; watch the "
                "new job"
            )
        if state == FINISHED and (path := stopped_with(rest, job)) is not None:
            raise FlinkError(f"job {job} was stopped with a savepoint; its state is in {path}")
        self.log.tell(finished(job) if state == FINISHED else f"job {job} is {state}")
        return state


def layout_on_present(rest: Rest, job: str) -> Layout:
    """Layout of a job that is running on present TaskManagers; otherwise empty.

    Raises NoAnswer when Flink does not answer.
    """
    try:
        document = rest.job(job)
        layout = layout_of(rest, job, document) if document["state"] == RUNNING else Layout()
        return layout if layout.devices <= rest.offered().keys() else Layout()
    except NoAnswer:
        raise
    except FlinkError:
        return Layout()


def checkpoint_obstacle(rest: Rest, job: str) -> str:
    """Why a job could not continue from its checkpoints elsewhere; empty if it could."""
    if (settings := checkpoint_settings(rest, job)) is None:
        return f"job {job} takes no checkpoints, so it could not continue elsewhere"
    if "JobManager" in settings.get("checkpoint_storage", ""):
        return (
            f"job {job} keeps its checkpoints in the JobManager's memory, so a spare could not "
            "continue from them; submit it with -D execution.checkpointing.dir=FOLDER"
        )
    if retention_of(settings) != RETAINED:
        return (
            f"job {job} deletes its checkpoints when it ends, so a spare could not continue "
            f"from them; submit it with -D {RETENTION}={RETAINED.upper()}"
        )
    return ""


def _forgotten(rest: Rest, job: str) -> FlinkError:
    """Error about a job that the JobManager no longer knows, with advice.

    If an operator or an application starts the job again, the advice is not to start a copy.
    """
    deployment = deployment_of(rest)
    if deployment.is_operated or deployment.is_application:
        who = "Flink's operator" if deployment.is_operated else "the application"
        return FlinkError(
            f"the JobManager no longer knows job {job}: it was replaced, and {who} starts the job "
            "again under another id; watch the new job"
        )
    return FlinkError(
        f"the JobManager no longer knows job {job}: it was restarted without high availability "
        f"(high-availability.type); start the job from its last checkpoint, in folder {job} of "
        "its execution.checkpointing.dir, with "
        f"'{'flink run -s' if deployment.obstacle else 'streamplace flink apply --savepoint'}'"
    )


def first_job(rest: Rest, store: Store, requested: str | None) -> str:
    """Id of the job to watch: the requested job, or else the only one that runs.

    If no job runs, it is the only job whose start by a watch was interrupted. A job that a watch
    has started elsewhere has the id that this watch knows.
    """
    try:
        job = only_job(rest, requested)
    except SettingError:
        states = rest.jobs()
        ended = [job for job in unfinished(store) if job in states]
        if rest.live_jobs() or len(ended) != 1:
            raise
        return ended[0]
    ids = [watch.job for watch in store.rows(WATCHES).values() if is_of(watch, job)]
    return ids[-1] if ids and rest.state(job) in (None, *ENDED) else job


def watchable(rest: Rest, job: str) -> JobDeployment:
    """How a job is deployed; FlinkError if Flink itself decides on its layout and parallelism."""
    deployment = deployment_of(rest, job)
    if fault := scheduler_fault(deployment.scheduler):
        raise FlinkError(
            f"job {job} cannot be watched: {fault}, or leave its parallelism to Flink's autoscaler"
        )
    return deployment


def finish_earlier(rest: Rest, mover: WatchMover | None, log: WatchLog, job: str) -> str:
    """Finish the move that an earlier watch has begun; return the job that runs.

    Raises SettingError when the watch may not finish it.
    """
    last = max(log.decisions, default=0)
    for number, decision in [*log.decisions.items()]:
        if decision.state != BEGUN:
            continue
        if number != last:  # its outcome could not be written; a later decision was carried out
            log.end(number, UNBEGUN, "unknown; a later decision was carried out", "")
        elif mover is not None:
            log.tell(f"a move of job {decision.job} was interrupted; it is finished first")
            job = mover.finish(number) or job
        elif rest.state(job) in (None, *ENDED):
            raise SettingError(
                f"an earlier watch was ended while it started job {decision.job} elsewhere; give "
                "--apply or --spare to finish the start"
            )
    return job

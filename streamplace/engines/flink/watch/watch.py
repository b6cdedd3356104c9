"""Watch a placed job: replace devices that are lost by spare ones, and pass rounds for its rate.

Pins are hard: a job never moves by itself. While a device is lost, the job restarts in vain. So it
is cancelled here and started from its last checkpoint, with a spare in place of the lost device.

A watch begins by finishing what an earlier one of the job has begun and not finished.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.move.saving import stopped_with
from streamplace.engines.flink.pin.fitting import check_upload
from streamplace.engines.flink.program.submission import chain_states
from streamplace.engines.flink.rest.answers import finished
from streamplace.engines.flink.rest.client import (
    ENDED,
    FINISHED,
    NOT_FOUND,
    FlinkError,
    NoAnswer,
    Rest,
)
from streamplace.engines.flink.rest.job_ids import only_job
from streamplace.engines.flink.rest.settings import is_adaptive, job_fault
from streamplace.engines.flink.watch.acting import WatchMover
from streamplace.engines.flink.watch.log import WatchLog, unfinished, watched_ids
from streamplace.engines.flink.watch.look import (
    FAILED,
    Health,
    assigned_layout,
    health_of,
    running_layout,
)
from streamplace.engines.flink.watch.replacing import (
    Notices,
    PlacedJob,
    Replacing,
    answer_of,
    continues,
)
from streamplace.engines.flink.watch.rounds import JobRounds
from streamplace.errors import SettingError
from streamplace.io.store import Store
from streamplace.io.watches import BEGUN, UNBEGUN
from streamplace.model.messages import listed

LOOK_SECONDS, FAULT_SECONDS = 1.0, 120.0
"""Seconds between two looks, and for which answers that tell of an error are tried again."""
RUNNING = "RUNNING"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Watch:
    """Watches a job on a cluster with spare devices."""

    replacing: Replacing  # starts the job again where devices were lost
    # Rounds that watch the rate of the job; None watches for lost devices only.
    rounds: JobRounds | None = None

    @property
    def rest(self) -> Rest:
        """REST interface of the cluster."""
        return self.replacing.rest

    @property
    def tell(self) -> Callable[[str], None]:
        """Function that receives a message for every step."""
        return self.replacing.tell

    def run(self, run: PlacedJob) -> str:
        """Watch a job until it ends or is ended by a user; return its last state.

        A failed job is abandoned only when Flink has heard of all its devices since the failure.
        Raises FlinkError when it failed although all its devices are present, when it failed and
        none of its state outlives it, when it cannot be started with a spare, or when the
        JobManager no longer knows it. Raises JobWatched when another process has taken over the
        watch.
        """
        self.replacing.check(run)
        run = self.replacing.with_addresses(run)
        since, missing_before, wanted = 0.0, set[str](), self.replacing.is_wanted
        losses, shortages, breaks = (Notices(self.tell) for _ in range(3))
        while True:
            health = self._look(run)
            if health.has_ended or (health.state == FAILED and not wanted):
                return self._end(run, health.state)
            missing = {*health.lost, *health.silent}
            if missing - missing_before:
                since = time.monotonic()
            missing_before = missing
            losses(self._words(run, health))
            if health.is_restartable:
                run = self.replacing.start_failed(run, shortages)
            elif health.state == RUNNING and (there := self._elsewhere(run, health.lost)):
                run = there
            elif health.lost and wanted and time.monotonic() - since > self.replacing.patience:
                run = self.replacing.replace_lost(run, list(health.lost), shortages)
            elif not missing and health.state == RUNNING:
                run = self._round(run, breaks)
            time.sleep(LOOK_SECONDS)

    def _round(self, run: PlacedJob, breaks: Notices) -> PlacedJob:
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
        layout = self._layout(run, self.rounds.log, job)
        new = self.replacing.with_addresses(PlacedJob(job, layout))
        self.replacing.moved(new)
        return new

    def _layout(self, run: PlacedJob, log: WatchLog, job: str) -> Layout:
        """Where a job is placed that a round has moved, or moved back.

        It may have lost a device meanwhile, so that Flink shows no layout of it.
        """
        layout = self._ask(lambda: running_layout(self.rest, job))
        return layout or log.placed(job) or run.layout

    def _elsewhere(self, run: PlacedJob, lost: tuple[str, ...]) -> PlacedJob | None:
        """Return a job that goes on without lost devices; None if it does not.

        Flink itself starts jobs elsewhere that are not placed, which may take long to restore their
        state, and a device is not needed any more when all of its subtasks have ended.
        """
        if not lost:
            return None
        layout = self._ask(lambda: assigned_layout(self.rest, run.job))
        if not layout or layout.devices.intersection(lost):
            return None
        self.tell(f"job {run.job} goes on without {listed(lost)}")
        return self.replacing.with_addresses(PlacedJob(run.job, layout))

    def _words(self, run: PlacedJob, health: Health) -> str:
        """Message on a job that lacks devices; empty if it does not."""
        if health.lost and not self.replacing.is_wanted:
            return f"lost: {listed(health.lost)}; give --spare, so that another replaces it"
        if health.lost:
            return f"lost: {listed(health.lost)}; waiting {self.replacing.patience:g} s for it"
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
            except FlinkError as error:
                is_forgotten, waited = NOT_FOUND in str(error), time.monotonic() - since
                patience = self.replacing.patience
                if waited > (patience if is_forgotten else max(patience, FAULT_SECONDS)):
                    if is_forgotten:
                        raise _forgotten(run.job) from None
                    raise
            time.sleep(LOOK_SECONDS)

    def _ask(self, ask: Callable[[], T]) -> T:
        return answer_of(ask, self.tell)

    def _end(self, run: PlacedJob, state: str) -> str:
        if state == FAILED:
            cause = self.rest.failure(run.job)
            where = " although all of its devices are available" if self.replacing.is_wanted else ""
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


def _forgotten(job: str) -> FlinkError:
    """Error about a job that the JobManager no longer knows, with advice."""
    return FlinkError(
        f"the JobManager no longer knows job {job}: it was restarted without high availability "
        f"(high-availability.type); start the job from its last checkpoint, in folder {job} of "
        "its execution.checkpointing.dir, with 'streamplace flink apply --savepoint'"
    )


def first_job(rest: Rest, store: Store, given: str | None) -> str:
    """Id by which the given job is watched, else the only one that runs or was interrupted.

    Of a job that was started elsewhere while it was watched, the id counts that the watch knows.
    """
    begun = unfinished(store)
    try:
        given = only_job(rest, given)
    except SettingError:
        known = rest.jobs()
        ended = [job for job in begun if job in known]
        if rest.live_jobs() or len(ended) != 1:
            raise
        return ended[0]
    for job, decision in begun.items():
        if decision.kind == "replace" and continues(
            rest, given, decision.job, decision.transaction
        ):
            return job
    known_ids = watched_ids(store, given)
    return known_ids[-1] if known_ids and rest.state(given) in (None, *ENDED) else given


def check_watchable(rest: Rest, job: str, document: Mapping[str, Any]) -> None:
    """Raise FlinkError if Flink itself decides where a job runs and with how many subtasks."""
    if is_adaptive(rest, document):
        raise FlinkError(
            f"job {job} cannot be watched: Flink's adaptive scheduler runs it, which ignores "
            "placements and chooses the numbers of subtasks by itself; leave its parallelism to "
            "Flink's autoscaler, or set jobmanager.scheduler: default (no reactive mode) and "
            "restart the JobManager"
        )


def check_movable(rest: Rest, job: str) -> None:
    """Raise FlinkError if a job can never be moved, so that a watch could only look."""
    if fault := job_fault(rest, rest.job(job)):
        raise FlinkError(f"job {job} cannot be moved: {fault}")
    check_upload(rest)


def settled(watch: Watch, mover: WatchMover | None, log: WatchLog, job: str) -> str:
    """Finish what an earlier watch has begun; return the job that runs.

    Raises SettingError when the watch may not finish it.
    """
    starts = log.decisions
    for number, decision in starts.items():
        if decision.state != BEGUN:
            continue
        if number != max(starts):  # its outcome could not be written; a later one was carried out
            log.end(number, decision, UNBEGUN, "unknown; a later decision was carried out", "")
            continue
        found: str | None = job
        if decision.kind != "replace" and mover is not None:
            found = mover.finish(number, decision)
            if found is not None and found != decision.job:
                layout = running_layout(watch.rest, found)
                watch.replacing.moved(PlacedJob(found, layout or Layout.from_json(decision.layout)))
        elif decision.kind == "replace" and watch.replacing.is_wanted:
            found = watch.replacing.settle(number, decision)
        elif watch.rest.state(job) in (None, *ENDED):
            option = "--spare" if decision.kind == "replace" else "--apply"
            raise SettingError(
                f"an earlier watch has begun to start job {decision.job} elsewhere, and was ended; "
                f"give {option}, so that this is finished"
            )
        job = found or job
    return job

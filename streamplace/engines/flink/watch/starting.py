"""Start of a watch: the job, and what an earlier watch of it has begun and not finished."""

from streamplace.engines.flink.pin.fitting import check_upload
from streamplace.engines.flink.rest.client import ENDED, FlinkError, Refusal, Rest
from streamplace.engines.flink.rest.jobs import only_job
from streamplace.engines.flink.rest.scheduler import is_reactive, job_fault, requirements
from streamplace.engines.flink.watch.acting import Mover
from streamplace.engines.flink.watch.log import WatchLog, is_same_job
from streamplace.engines.flink.watch.look import running_layout
from streamplace.engines.flink.watch.placed_job import PlacedJob, continues
from streamplace.engines.flink.watch.watch import Watch
from streamplace.errors import SettingError
from streamplace.io.watch_store import BEGUN, FOR_RATE, UNBEGUN, WatchStore


def first_job(rest: Rest, store: WatchStore, given: str | None) -> str:
    """Id by which the given job is watched, else the only one that runs or was interrupted.

    Of a job that was started elsewhere while it was watched, the id counts that the watch knows.
    """
    begun = store.unfinished()
    if given is None:
        try:
            given = only_job(rest)
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
    known_ids = [job for job in store.jobs() if is_same_job(job, given)]
    return known_ids[-1] if known_ids and rest.state(given) in (None, *ENDED) else given


def check_movable(rest: Rest, job: str) -> None:
    """Raise FlinkError if a job can never be moved, so that a watch could only look."""
    if fault := job_fault(rest, rest.job(job)):
        raise FlinkError(
            f"job {job} cannot be moved: {fault}. Without --apply, a watch says what would pay; "
            "'streamplace flink advise' prints the request that changes the parallelism"
        )
    check_upload(rest)


def check_rescalable(rest: Rest, job: str) -> None:
    """Raise FlinkError if the adaptive scheduler takes no numbers of subtasks for a job."""
    if is_reactive(rest.settings()):
        raise FlinkError(
            f"job {job} cannot be rescaled: the cluster runs in reactive mode, in which a job uses "
            "all slots; start and stop TaskManagers, or set jobmanager.scheduler: adaptive without "
            "scheduler-mode"
        )
    try:
        requirements(rest, job)
    except Refusal as error:
        raise FlinkError(
            f"job {job} cannot be rescaled: {error}. Flink takes numbers of subtasks since 1.18"
        ) from None


def settled(watch: Watch, mover: Mover | None, log: WatchLog, job: str) -> str:
    """Finish what an earlier watch has begun; return the job that runs.

    Raises SettingError when the watch may not finish it.
    """
    starts = {n: one for n, one in log.decisions.items() if one.starts_job}
    for number, decision in starts.items():
        if decision.state != BEGUN:
            continue
        if number != max(starts):  # its outcome could not be written; a later one was carried out
            log.end(number, decision, UNBEGUN, "unknown; a later decision was carried out", "")
            continue
        found: str | None = job
        if decision.kind in FOR_RATE and mover is not None:
            found = mover.finish(number, decision, watch.rest.job(job)["name"])
            if found is not None and found != decision.job:
                layout = running_layout(watch.rest, found)
                watch.replacing.moved(PlacedJob(found, dict(layout or decision.layout)))
        elif decision.kind == "replace" and watch.replacing.is_wanted:
            found = watch.replacing.settle(log, number, decision)
        elif watch.rest.state(job) in (None, *ENDED):
            option = "--apply" if decision.kind in FOR_RATE else "--spare"
            raise SettingError(
                f"an earlier watch has begun to start job {decision.job} elsewhere, and was ended; "
                f"give {option}, so that this is finished"
            )
        job = found or job
    return job

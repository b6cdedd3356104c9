"""CPU of the tasks of jobs that stay where they are, by device."""

from collections.abc import Iterable

from streamplace.engines.flink.measure.job_watch import JobWatch
from streamplace.engines.flink.rest.client import FlinkError, NoAnswer, Rest
from streamplace.engines.flink.rest.jobs import other_jobs
from streamplace.engines.flink.rest.plan import plan_with_loops
from streamplace.model.messages import shown


def cores_taken(rest: Rest, jobs: Iterable[str], seconds: float) -> dict[str, float]:
    """Device → core seconds per second of the tasks of running jobs.

    Each job takes about ``seconds``.

    Raises
    ------
    FlinkError
        When one of them is not running, or stops running.
    """
    taken: dict[str, float] = {}
    for job in dict.fromkeys(jobs):
        watch = JobWatch(rest, job, plan=plan_with_loops(rest, job))
        watch.watch(seconds)
        for device, cores in watch.cores_by_device(watch.last()).items():
            taken[device] = taken.get(device, 0.0) + cores
    return taken


def cores_of_others(rest: Rest, job: str, seconds: float, doubts: list[str]) -> dict[str, float]:
    """Device → core seconds per second of the tasks of all other jobs.

    Jobs that cannot be measured, such as one that waits for slots, are left out, and doubts say so.
    """
    taken: dict[str, float] = {}
    for other in other_jobs(rest, job):
        try:
            for device, cores in cores_taken(rest, [other], seconds).items():
                taken[device] = taken.get(device, 0.0) + cores
        except NoAnswer:
            raise
        except FlinkError as error:
            doubts.append(
                f"CPU of job {shown(other)} beside this one: counted as 0, because {error}"
            )
    return taken

"""CPU that TaskManagers use besides the tasks of a job: for Java, traffic and other jobs."""

import time
from collections.abc import Iterable

from streamplace.engines.flink.cpu.helpers import cores_by_kind, java_itself
from streamplace.engines.flink.cpu.threads import java_threads, processes_of, spent_between
from streamplace.engines.flink.measure.job_windows import JobWindows
from streamplace.engines.flink.measure.profile import profile
from streamplace.engines.flink.measure.sending_cost import SendingCost
from streamplace.engines.flink.rest.client import FlinkError, NoAnswer, Rest
from streamplace.engines.flink.rest.plan import plan_with_loops


def background(
    rest: Rest, job: str | None, seconds: float
) -> tuple[float | None, SendingCost | None]:
    """Cores that Java itself uses in each TaskManager, and the cost of remote tuples of a job.

    Either is None if it cannot be measured: the threads must be readable on this machine, and for
    the cost, tuples must cross between TaskManagers, hardly any of other jobs.

    ``job``: A job that must be running; None for the only one that runs, or to measure Java alone.
    """
    if not (processes := processes_of(rest)):
        return None, None
    running = [one for one, state in rest.jobs().items() if state == "RUNNING"]
    if job is not None or len(running) == 1:
        try:
            seen = profile(rest, job or running[0], seconds)
        except NoAnswer:
            raise
        except FlinkError:
            if job is not None:
                raise
        else:
            return seen.java, seen.sending
    first = {device: java_threads(pid) for device, pid in processes.items()}
    if not any(first.values()):
        return None, None
    time.sleep(seconds)
    second = {device: java_threads(pid) for device, pid in processes.items()}
    kinds = {
        device: cores_by_kind(spent_between(first[device], second[device]))
        for device in first
        if first[device] and second[device]
    }
    return java_itself(kinds), None


def cores_taken(rest: Rest, jobs: Iterable[str], seconds: float) -> dict[str, float]:
    """Device → core seconds per second of the tasks of running jobs.

    Each job takes about ``seconds``.
    """
    taken: dict[str, float] = {}
    for job in dict.fromkeys(jobs):
        windows = JobWindows(rest, job, plan=plan_with_loops(rest, job))
        windows.add(seconds)
        for device, cores in windows.cores_by_device(windows.last()).items():
            taken[device] = taken.get(device, 0.0) + cores
    return taken

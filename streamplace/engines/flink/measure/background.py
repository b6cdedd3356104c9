"""CPU that TaskManagers use besides the tasks of a job: for Java, traffic and other jobs."""

import time
from collections.abc import Iterable

from streamplace.engines.flink.cpu.helpers import NETWORK, cores_by_kind, java_itself
from streamplace.engines.flink.cpu.limits import cpu_shares
from streamplace.engines.flink.cpu.threads import (
    java_threads,
    processes_of,
    spent_between,
)
from streamplace.engines.flink.measure.job_windows import JobWindows
from streamplace.engines.flink.measure.sampling import IDLE, sample
from streamplace.engines.flink.measure.sending_cost import (
    RemoteFlow,
    SendingCost,
    network_loads,
    remote_flows,
    sending_cost,
)
from streamplace.engines.flink.rest.client import FlinkError, NoAnswer, Rest
from streamplace.engines.flink.rest.job_ids import other_jobs
from streamplace.engines.flink.rest.plan import plan_with_loops, read_plan
from streamplace.engines.flink.rest.tasks import subtask_devices
from streamplace.model.messages import shown


def background(
    rest: Rest, job: str | None, seconds: float
) -> tuple[float | None, SendingCost | None]:
    """Measure what Java uses in each TaskManager, and the cost of remote tuples.

    All running jobs are watched one after the other, each for about ``seconds``, because network
    threads serve all of them. Either is None if it cannot be measured: if the threads of no, or not
    all, TaskManagers can be read on this machine; the cost also if one of the jobs cannot be
    watched, or no tuples go to another TaskManager.

    ``job``: A job that must be running; None if there may be none.
    """
    processes = processes_of(rest)
    if not processes:
        return None, None
    first = {device: java_threads(pid) for device, pid in processes.items()}
    flows = _flows_of_jobs(rest, job, seconds)
    second = {device: java_threads(pid) for device, pid in processes.items()}
    kinds = {
        device: cores_by_kind(spent_between(first[device], second[device]))
        for device in first
        if first[device] and second.get(device)
    }
    if not kinds:
        return None, None
    java = java_itself(kinds)
    if flows is None or len(kinds) != len(rest.task_managers()):
        return java, None
    network = {device: one.get(NETWORK, 0.0) for device, one in kinds.items()}
    used = {device: sum(one.values()) for device, one in kinds.items()}
    full = {d for d, share in cpu_shares(processes, used).items() if share.is_full}
    return java, sending_cost(network_loads(network, flows, full))


def _flows_of_jobs(rest: Rest, job: str | None, seconds: float) -> dict[str, RemoteFlow] | None:
    """Traffic between TaskManagers of all running jobs; None if that of one is unknown."""
    running = [one for one, state in rest.jobs().items() if state == "RUNNING"]
    flows: dict[str, RemoteFlow] = {}
    is_known, is_watched = True, False
    for one in dict.fromkeys([*([] if job is None else [job]), *running]):
        try:
            for device, flow in flows_of_job(rest, one, seconds).items():
                flows[device] = flow.plus(flows.get(device, RemoteFlow(0.0, 0.0)))
            is_watched = True
        except FlinkError as error:
            if one == job or isinstance(error, NoAnswer):
                raise
            is_known = False
    if not is_watched:
        time.sleep(seconds)
    return flows if is_known else None


def flows_of_job(rest: Rest, job: str, seconds: float) -> dict[str, RemoteFlow]:
    """Watch a job for a while and return the traffic between its TaskManagers."""
    _, tasks, edges = read_plan(rest, job)
    running = [task.id for task in tasks if not task.has_ended]
    idle = {task.id: IDLE for task in tasks if task.has_ended}
    seen = sample(rest, job, running, seconds) | idle
    devices = {task.id: subtask_devices(rest, job, task.id) for task in tasks}
    return remote_flows(tasks, edges, seen, devices)


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

"""CPU that TaskManagers use besides the tasks of a job: for Java, traffic and other jobs."""

import time
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from streamplace.engines.flink.cpu.helpers import NETWORK, cores_by_kind, java_itself
from streamplace.engines.flink.cpu.limits import cpu_shares
from streamplace.engines.flink.cpu.threads import (
    JavaThread,
    java_threads,
    processes_of,
    spent_between,
)
from streamplace.engines.flink.measure.job_windows import JobWindows
from streamplace.engines.flink.measure.sampling import IDLE, sample
from streamplace.engines.flink.measure.sending_cost import (
    RemoteFlow,
    SendingCost,
    remote_flows,
    sending_cost,
)
from streamplace.engines.flink.rest.client import FlinkError, NoAnswer, Rest
from streamplace.engines.flink.rest.job_ids import other_jobs
from streamplace.engines.flink.rest.plan import plan_with_loops, read_plan
from streamplace.engines.flink.rest.tasks import subtask_devices
from streamplace.model.messages import shown


class Background(NamedTuple):
    """CPU of the TaskManagers on this machine, without their tasks."""

    # Core seconds per second that Java uses in each of them for heartbeats and metrics: the minimum
    # of all TaskManagers, because any excess is caused by tasks, and no more than Java needs by
    # itself. Garbage is that of tasks. Compilers are left out, because they have little to do once
    # a job has run for a while.
    java: float
    # TaskManager of this machine → core seconds per second of its threads that send and receive;
    # without those whose threads cannot be read.
    network: Mapping[str, float]
    used: Mapping[str, float] = MappingProxyType({})  # cores of all threads of these TaskManagers


def background(
    rest: Rest, job: str | None, seconds: float
) -> tuple[Background, SendingCost | None]:
    """Measure the background of the cluster's TaskManagers, and the cost of remote tuples.

    All running jobs are watched one after the other, each for about ``seconds``, because network
    threads serve all of them. The cost is None if one of them cannot be watched, if no or too few
    tuples go to another TaskManager, or if the threads of not all TaskManagers can be read on this
    machine.

    ``job``: A job that must be running; None if there may be none.
    """
    processes = processes_of(rest)
    if not processes:
        return Background(0.0, {}), None
    first = {device: java_threads(pid) for device, pid in processes.items()}
    flows = _flows_of_jobs(rest, job, seconds)
    measured = background_between(
        first, {device: java_threads(pid) for device, pid in processes.items()}
    )
    if flows is None or len(measured.network) != len(rest.task_managers()):
        return measured, None
    full = {d for d, share in cpu_shares(processes, measured.used).items() if share.is_full}
    return measured, sending_cost(measured.network, flows, full)


def background_between(
    first: Mapping[str, Sequence[JavaThread]], second: Mapping[str, Sequence[JavaThread]]
) -> Background:
    """Background of TaskManagers, from two measurements of their threads."""
    kinds = {
        device: cores_by_kind(spent_between(first[device], second[device]))
        for device in first
        if first[device] and second.get(device)
    }
    return Background(
        java_itself(kinds),
        {device: one.get(NETWORK, 0.0) for device, one in kinds.items()},
        {device: sum(one.values()) for device, one in kinds.items()},
    )


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
    """Watch a job for a while and return the traffic between its TaskManagers.

    Empty if too few tuples cross to measure their cost.
    """
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

"""CPU that TaskManagers use besides the tasks of jobs: for Java itself and for network traffic."""

import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
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
from streamplace.engines.flink.measure.carried_tuples import carried_by_streams
from streamplace.engines.flink.measure.sampling import IDLE, Activity, sample
from streamplace.engines.flink.measure.sending_cost import RemoteFlow, SendingCost, sending_cost
from streamplace.engines.flink.rest.client import FlinkError, NoAnswer, Rest
from streamplace.engines.flink.rest.plan import Edge, FlinkTask, pointwise_pairs, read_plan
from streamplace.engines.flink.rest.tasks import subtask_devices

LEAST_SHARE, ENOUGH = 0.01, 10_000.0
"""Least tuples/s that must cross: this share of all tuples/s of streams, or so many.

The threads that send and receive also work while hardly a tuple crosses: for heartbeats,
checkpoints, and buffers that are sent once per timeout. If few tuples cross, this would be the cost
of each of them; a layout in which the job's other tuples cross, too, would be charged for it many
times. From 10,000 tuples/s on, it is less than what they cost, however many stay.
"""


class Background(NamedTuple):
    """CPU of the TaskManagers on this machine, without their tasks."""

    # Core seconds per second that Java uses in each of them for heartbeats, metrics and garbage
    # collection: the minimum of all TaskManagers, because any excess is caused by tasks, and no
    # more than Java needs by itself. Compilers are left out, because they have little to do once a
    # job has run for a while.
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

    Parameters
    ----------
    job
        A job that must be running; None if there may be none.
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


def remote_flows(
    tasks: Sequence[FlinkTask],
    edges: Sequence[Edge],
    seen: Mapping[str, Activity],
    devices: Mapping[str, Sequence[str]],
) -> dict[str, RemoteFlow]:
    """TaskManager → tuples and bytes of a job that it exchanges with others.

    Empty if too few tuples cross to measure their cost: see `LEAST_SHARE`.

    Parameters
    ----------
    devices
        Task → TaskManager of each of its subtasks, in order.
    """
    tuples: dict[str, float] = defaultdict(float)
    traffic: dict[str, float] = defaultdict(float)
    carried = carried_by_streams(tasks, edges, seen)
    for e, edge in enumerate(edges):
        amount, size = carried.tuples[e], carried.payloads.get(e, 0.0)
        for device, part in _crossing(edge, devices).items():
            tuples[device] += amount * part
            traffic[device] += amount * part * size
    crossing = sum(tuples.values()) / 2  # each counts at both ends
    if crossing < min(LEAST_SHARE * sum(carried.tuples.values()), ENOUGH):
        return {}
    return {device: RemoteFlow(tuples[device], traffic[device]) for device in tuples}


def _flows_of_jobs(rest: Rest, job: str | None, seconds: float) -> dict[str, RemoteFlow] | None:
    """Traffic between TaskManagers of all running jobs; None if that of one is unknown."""
    running = [one for one, state in rest.jobs().items() if state == "RUNNING"]
    flows: dict[str, RemoteFlow] = {}
    is_known, is_watched = True, False
    for one in dict.fromkeys([*([] if job is None else [job]), *running]):
        try:
            for device, flow in _remote_flows(rest, one, seconds).items():
                flows[device] = flow.plus(flows.get(device, RemoteFlow(0.0, 0.0)))
            is_watched = True
        except FlinkError as error:
            if one == job or isinstance(error, NoAnswer):
                raise
            is_known = False
    if not is_watched:
        time.sleep(seconds)
    return flows if is_known else None


def _remote_flows(rest: Rest, job: str, seconds: float) -> dict[str, RemoteFlow]:
    """Watch a job for a while and return the traffic between its TaskManagers."""
    _, tasks, edges = read_plan(rest, job)
    running = [task.id for task in tasks if not task.has_ended]
    idle = {task.id: IDLE for task in tasks if task.has_ended}
    seen = sample(rest, job, running, seconds) | idle
    devices = {task.id: subtask_devices(rest, job, task.id) for task in tasks}
    return remote_flows(tasks, edges, seen, devices)


def _crossing(edge: Edge, devices: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """Device → share of a stream's tuples that it exchanges with other devices."""
    senders, receivers = devices[edge.source], devices[edge.target]
    if not edge.is_pointwise:
        return remote_shares(Counter(senders), Counter(receivers))
    pairs = pointwise_pairs(len(senders), len(receivers))
    outputs = Counter(i for i, _ in pairs)
    shares: dict[str, float] = defaultdict(float)
    for i, j in pairs:
        if senders[i] != receivers[j]:
            for device in (senders[i], receivers[j]):
                shares[device] += 1 / (len(senders) * outputs[i])
    return shares


def remote_shares(senders: Mapping[str, int], receivers: Mapping[str, int]) -> dict[str, float]:
    """Device → share of a stream's tuples that it exchanges with other devices.

    Every sender distributes its tuples evenly over all receivers, as in a stream that is not
    pointwise.

    >>> remote_shares({"a": 1}, {"a": 1, "b": 3})
    {'a': 0.75, 'b': 0.75}
    """
    sent, taken = sum(senders.values()), sum(receivers.values())
    shares = {}
    for device in dict.fromkeys([*senders, *receivers]):
        here, there = senders.get(device, 0) / sent, receivers.get(device, 0) / taken
        shares[device] = here * (1.0 - there) + there * (1.0 - here)
    return shares

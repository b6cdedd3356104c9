"""CPU that TaskManagers use besides the tasks of jobs: for Java itself and for network traffic."""

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from streamplace.engines.flink.cpu.helpers import NETWORK, cores_by_kind, java_itself
from streamplace.engines.flink.cpu.threads import (
    JavaThread,
    java_threads,
    processes_of,
    spent_between,
)
from streamplace.engines.flink.measure.sampling import Activity, sample
from streamplace.engines.flink.measure.sending_cost import RemoteFlow, SendingCost, sending_cost
from streamplace.engines.flink.rest.client import Rest
from streamplace.engines.flink.rest.plan import Edge, read_plan
from streamplace.engines.flink.rest.tasks import read_vertices


class Background(NamedTuple):
    """CPU of the TaskManagers on this machine, without their tasks.

    Attributes
    ----------
    java
        Core seconds per second that Java uses in each of them for heartbeats, metrics and garbage
        collection: the minimum of all TaskManagers, because any excess is caused by tasks.
        Compilers are left out, because they have little to do once a job has run for a while.
    network
        TaskManager of this machine → core seconds per second of its threads that send and receive;
        empty if nothing could be measured.
    """

    java: float
    network: Mapping[str, float]


def background(
    rest: Rest, job: str | None, seconds: float
) -> tuple[Background, SendingCost | None]:
    """Measure the background of the cluster's TaskManagers, and the cost of remote tuples.

    The cost is None if several jobs run and none is named, if no tuple of the job goes to another
    TaskManager, or if not all TaskManagers are on this machine.
    """
    processes = processes_of(rest)
    if not processes:
        return Background(0.0, {}), None
    live = rest.live_jobs() if job is None else [job]
    first = {device: java_threads(pid) for device, pid in processes.items()}
    if len(live) == 1:
        flows = _remote_flows(rest, live[0], seconds)
    else:
        time.sleep(seconds)
        flows = {}
    measured = background_between(
        first, {device: java_threads(pid) for device, pid in processes.items()}
    )
    is_complete = len(measured.network) == len(rest.task_managers())
    return measured, sending_cost(measured.network, flows) if is_complete else None


def background_between(
    first: Mapping[str, Sequence[JavaThread]], second: Mapping[str, Sequence[JavaThread]]
) -> Background:
    """Background of TaskManagers, from two measurements of their threads."""
    kinds = {
        device: cores_by_kind(spent_between(first[device], second[device]))
        for device in first.keys() & second.keys()
    }
    return Background(java_itself(kinds), {d: one.get(NETWORK, 0.0) for d, one in kinds.items()})


def remote_flows(
    edges: Sequence[Edge],
    seen: Mapping[str, Activity],
    devices: Mapping[str, Mapping[str, int]],
) -> dict[str, RemoteFlow]:
    """TaskManager → tuples and bytes of a job that it exchanges with others.

    Parameters
    ----------
    devices
        Task → TaskManager → number of its subtasks there.
    """
    tuples: dict[str, float] = defaultdict(float)
    traffic: dict[str, float] = defaultdict(float)
    for edge, share in _shares(edges):
        target = seen[edge.target]
        remote = remote_shares(devices[edge.source], devices[edge.target])
        for device, part in remote.items():
            tuples[device] += target.records_in * share * part
            traffic[device] += target.rates.get("numBytesIn", 0.0) * share * part
    return {device: RemoteFlow(tuples[device], traffic[device]) for device in tuples}


def _remote_flows(rest: Rest, job: str, seconds: float) -> dict[str, RemoteFlow]:
    """Watch a job for a while and return the traffic between its TaskManagers."""
    _, tasks, edges = read_plan(rest, job)
    seen = sample(rest, job, [task.id for task in tasks], seconds)
    devices = {v.id: v.devices for v in read_vertices(rest, job, rest.job(job))}
    return remote_flows(edges, seen, devices)


def remote_shares(senders: Mapping[str, int], receivers: Mapping[str, int]) -> dict[str, float]:
    """Device → share of a stream's tuples that it exchanges with other devices.

    Every sender distributes its tuples evenly over all receivers.

    >>> remote_shares({"a": 1}, {"a": 1, "b": 3})
    {'a': 0.75, 'b': 0.75}
    """
    sent, taken = sum(senders.values()), sum(receivers.values())
    shares = {}
    for device in dict.fromkeys([*senders, *receivers]):
        here, there = senders.get(device, 0) / sent, receivers.get(device, 0) / taken
        shares[device] = here * (1.0 - there) + there * (1.0 - here)
    return shares


def _shares(edges: Sequence[Edge]) -> Iterator[tuple[Edge, float]]:
    """Every stream with its share of its target's input; inputs of a task have equal shares."""
    for edge in edges:
        yield edge, 1.0 / sum(other.target == edge.target for other in edges)

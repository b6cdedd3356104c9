"""What TaskManagers take besides the tasks of jobs: Java itself, and sending over the network."""

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from streamplace.engines.flink.cpu import JavaThread, java_threads, processes_of, spent_between
from streamplace.engines.flink.helpers import NETWORK, cores_by_kind, java_itself
from streamplace.engines.flink.plan import Edge, read_plan
from streamplace.engines.flink.rest import Rest
from streamplace.engines.flink.sampling import Activity, sample
from streamplace.engines.flink.sending_cost import RemoteFlow, SendingCost, sending_cost
from streamplace.engines.flink.tasks import read_vertices


class Background(NamedTuple):
    """What the TaskManagers on this machine took.

    Attributes
    ----------
    java
        Core seconds per second that it takes of each for itself: heartbeats, metrics, garbage; of
        all TaskManagers the least, for what one takes more is the tasks'. What compiles is not in
        it, for it has little to do once a job has run for a while.
    network
        TaskManager of this machine → core seconds per second of its threads that send and receive;
        empty where nothing could be measured.
    """

    java: float
    network: Mapping[str, float]


def background(
    rest: Rest, job: str | None, seconds: float
) -> tuple[Background, SendingCost | None]:
    """Watch the cluster's TaskManagers for a while; their background, and what remote tuples cost.

    The cost is None where there is not one job alone (unless one is named), no tuple of it goes to
    another TaskManager, or not all TaskManagers are on this machine.
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
    """Background of the TaskManagers that were seen twice, by their threads."""
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
    """TaskManager → what it sends of a job to others and receives from them.

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
    """Watch a job for a while; what its TaskManagers send each other."""
    _, tasks, edges = read_plan(rest, job)
    seen = sample(rest, job, [task.id for task in tasks], seconds)
    devices = {v.id: v.devices for v in read_vertices(rest, job, rest.job(job))}
    return remote_flows(edges, seen, devices)


def remote_shares(senders: Mapping[str, int], receivers: Mapping[str, int]) -> dict[str, float]:
    """Device → what it sends to others and receives from them of a stream's tuples.

    Every sender sends to all receivers alike.

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
    """Every stream with its part of what its target reads; those into one task share it evenly."""
    for edge in edges:
        yield edge, 1.0 / sum(other.target == edge.target for other in edges)

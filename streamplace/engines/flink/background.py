"""What TaskManagers take besides the tasks of jobs: Java itself, and sending over the network."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from streamplace.engines.flink.cpu import JavaThread, java_threads, processes_of, spent_between
from streamplace.engines.flink.helpers import NETWORK, cores_by_kind, java_itself
from streamplace.engines.flink.plan import Edge, read_plan
from streamplace.engines.flink.rest import Rest
from streamplace.engines.flink.sampling import Activity, sample
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
        Core seconds per second of all threads that send and receive.
    managers
        How many there are on this machine; 0 where nothing could be measured.
    """

    java: float
    network: float
    managers: int


def background(rest: Rest, job: str | None, seconds: float) -> tuple[Background, float | None]:
    """Watch the cluster's TaskManagers for a while; their background, and a remote tuple's cost.

    The cost is what the network's threads take per tuple and end, in core seconds, averaged over
    the job's remote streams. It is None where there is not one job alone (unless one is named), no
    tuple of it goes to another TaskManager, or not all TaskManagers are on this machine.
    """
    processes = processes_of(rest)
    if not processes:
        return Background(0.0, 0.0, 0), None
    live = rest.live_jobs() if job is None else [job]
    first = {device: java_threads(pid) for device, pid in processes.items()}
    if len(live) == 1:
        sent = _remote_tuples(rest, live[0], seconds)
    else:
        time.sleep(seconds)
        sent = 0.0
    measured = background_between(
        first, {device: java_threads(pid) for device, pid in processes.items()}
    )
    is_complete = sent > 0 and measured.managers == len(rest.task_managers())
    return measured, measured.network / (2 * sent) if is_complete else None


def background_between(
    first: Mapping[str, Sequence[JavaThread]], second: Mapping[str, Sequence[JavaThread]]
) -> Background:
    """Background of the TaskManagers that were seen twice, by their threads."""
    kinds = {
        device: cores_by_kind(spent_between(first[device], second[device]))
        for device in first.keys() & second.keys()
    }
    network = sum(one.get(NETWORK, 0.0) for one in kinds.values())
    return Background(java_itself(kinds), network, len(kinds))


def remote_tuples(
    edges: Sequence[Edge],
    seen: Mapping[str, Activity],
    devices: Mapping[str, Mapping[str, int]],
) -> float:
    """Tuples/s of a job that go from one TaskManager to another.

    Parameters
    ----------
    devices
        Task → TaskManager → number of its subtasks there.
    """
    return sum(
        seen[edge.target].records_in
        * share
        * remote_share(devices[edge.source], devices[edge.target])
        for edge, share in _shares(edges)
    )


def _remote_tuples(rest: Rest, job: str, seconds: float) -> float:
    """Watch a job for a while; tuples/s that go from one TaskManager to another."""
    _, tasks, edges = read_plan(rest, job)
    seen = sample(rest, job, [task.id for task in tasks], seconds)
    devices = {v.id: v.devices for v in read_vertices(rest, job, rest.job(job))}
    return remote_tuples(edges, seen, devices)


def remote_share(senders: Mapping[str, int], receivers: Mapping[str, int]) -> float:
    """Part of the tuples between two operators that change devices, if each sends to all alike.

    >>> remote_share({"a": 1}, {"a": 1, "b": 3})
    0.75
    """
    pairs = sum(senders.values()) * sum(receivers.values())
    return 1.0 - sum(n * receivers.get(device, 0) for device, n in senders.items()) / pairs


def _shares(edges: Sequence[Edge]) -> Iterator[tuple[Edge, float]]:
    """Every stream with its part of what its target reads; those into one task share it evenly."""
    for edge in edges:
        yield edge, 1.0 / sum(other.target == edge.target for other in edges)

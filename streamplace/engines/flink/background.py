"""What TaskManagers take besides the tasks of jobs: Java itself, and sending over the network."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from streamplace.engines.flink.cpu import (
    BackgroundTimes,
    background_times,
    listening_ports,
    local_task_managers,
)
from streamplace.engines.flink.plan import Edge, read_plan
from streamplace.engines.flink.rest import Rest
from streamplace.engines.flink.sampling import sample
from streamplace.engines.flink.tasks import read_vertices


class Background(NamedTuple):
    """What the TaskManagers on this machine took.

    Attributes
    ----------
    java
        Core seconds per second of one, in the mean: heartbeats, metrics, garbage. What compiles is
        not in it, for it has little to do once a job has run for a while.
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
    managers, processes = rest.task_managers(), _processes_of(rest)
    if not processes:
        return Background(0.0, 0.0, 0), None
    live = rest.live_jobs() if job is None else [job]
    first = background_times(processes)
    if len(live) == 1:
        sent = remote_tuples(rest, live[0], seconds)
    else:
        time.sleep(seconds)
        sent = 0.0
    found = background_between(first, background_times(processes))
    known = sent > 0 and found.managers == len(managers)
    return found, found.network / (2 * sent) if known else None


def _processes_of(rest: Rest) -> list[int]:
    """Ids of the cluster's TaskManagers on this machine: they listen where REST says."""
    ports = {_port(str(manager["path"])) for manager in rest.task_managers()}
    return [pid for pid in local_task_managers() if listening_ports(pid) & ports]


def _port(path: str) -> int | None:
    """Port in an address such as ``pekko.tcp://flink@host:6122/user/rpc``."""
    try:
        return urlsplit(path).port
    except ValueError:
        return None


def background_between(
    first: Mapping[int, BackgroundTimes], second: Mapping[int, BackgroundTimes]
) -> Background:
    """Background of the TaskManagers (by process) that were seen twice."""
    both = [(first[pid], second[pid]) for pid in first.keys() & second.keys()]
    spans = [max(after.elapsed - before.elapsed, 1e-9) for before, after in both]
    java = sum((b.java - a.java) / span for (a, b), span in zip(both, spans, strict=True))
    network = sum((b.network - a.network) / span for (a, b), span in zip(both, spans, strict=True))
    return Background(java / max(1, len(both)), network, len(both))


def remote_tuples(rest: Rest, job: str, seconds: float) -> float:
    """Tuples/s of a job that go from one TaskManager to another."""
    _, tasks, edges = read_plan(rest, job)
    seen = sample(rest, job, [task.id for task in tasks], seconds)
    devices = {v.id: v.devices for v in read_vertices(rest, job, rest.job(job))}
    read = {task.id: seen[task.id].records_in for task in tasks}
    return sum(
        read[edge.target] * share * remote_share(devices[edge.source], devices[edge.target])
        for edge, share in _shares(edges)
    )


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

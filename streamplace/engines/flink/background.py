"""What TaskManagers take besides the tasks of jobs: Java itself, and sending over the network."""

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from streamplace.engines.flink.cpu import (
    JavaThread,
    ThreadLoad,
    java_threads,
    processes_of,
    spent_between,
)
from streamplace.engines.flink.plan import Edge, read_plan
from streamplace.engines.flink.rest import Rest
from streamplace.engines.flink.sampling import sample
from streamplace.engines.flink.tasks import read_vertices

TASKS, NETWORK, GARBAGE, COMPILERS = "tasks", "network", "garbage collection", "compilers"
HELPERS, OBSERVATION, JAVA = "flushing and timers", "the measurement itself", "other Java threads"
_KINDS = (
    (re.compile(r"Flink Netty "), NETWORK),
    (re.compile(r"C[12] CompilerThread|Sweeper thread"), COMPILERS),
    (re.compile(r"Attach Listener"), OBSERVATION),
    (re.compile(r"VM Thread$|GC Thread|G1 |ParGC|ZWorker|ZDriver|Concurrent Mark|CMS "), GARBAGE),
    (re.compile(r"OutputFlusher for |(?:System )?Time Trigger for |.*[Cc]heckpoint"), HELPERS),
    (re.compile(r".+ \(\d+/\d+\)#\d+$", re.DOTALL), TASKS),
)


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


def kind_of(thread: str) -> str:
    """What a thread of a TaskManager does.

    >>> kind_of("Map (1/2)#0"), kind_of("OutputFlusher for Map (1/2)#0"), kind_of("VM Thread")
    ('tasks', 'flushing and timers', 'garbage collection')
    """
    return next((kind for pattern, kind in _KINDS if pattern.match(thread)), JAVA)


def cores_by_kind(loads: Iterable[ThreadLoad]) -> dict[str, float]:
    """Cores that the threads of a TaskManager took, by what they do."""
    found: dict[str, float] = {}
    for load in loads:
        kind = kind_of(load.name)
        found[kind] = found.get(kind, 0.0) + load.cores
    return found


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
        sent = remote_tuples(rest, live[0], seconds)
    else:
        time.sleep(seconds)
        sent = 0.0
    found = background_between(
        first, {device: java_threads(pid) for device, pid in processes.items()}
    )
    known = sent > 0 and found.managers == len(rest.task_managers())
    return found, found.network / (2 * sent) if known else None


def background_between(
    first: Mapping[str, Sequence[JavaThread]], second: Mapping[str, Sequence[JavaThread]]
) -> Background:
    """Background of the TaskManagers that were seen twice, by their threads."""
    both = [
        cores_by_kind(spent_between(first[device], second[device]))
        for device in first.keys() & second.keys()
    ]
    java = sum(kinds.get(kind, 0.0) for kinds in both for kind in (JAVA, GARBAGE, HELPERS))
    network = sum(kinds.get(NETWORK, 0.0) for kinds in both)
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

"""CPU of threads that are not those of tasks: to which task it is charged, and what is Java's.

- Threads whose names end with that of a task's thread are the task's: they flush its output, fire
  its timers, fetch and run its source, or are threads of its program.
- Threads of Kafka's clients, and limiters of rates, are those of sinks and sources: of the subtask
  that a transactional client is called after, else of all on the TaskManager by their records.
- Garbage is that of tuples: its collection is all tasks', in proportion to their CPU.
- Java's and Flink's own threads, and up to `MOST_UNNAMED` of others, work at any rate. They are a
  constant of each TaskManager, and what others use beyond that is all tasks', too.

Threads that send and receive are in `measure.sending_cost`; compilers are counted nowhere, because
they have little to do once a job has run for a while.
"""

import logging
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from streamplace.engines.flink.cpu.threads import ThreadLoad
from streamplace.engines.flink.pin.names import FUSED

LOG = logging.getLogger(__name__)
TASKS, NETWORK, GARBAGE, COMPILERS = "tasks", "network", "garbage collection", "compilers"
HELPERS, SOURCES, SINKS = "helpers of tasks", "helpers of sources", "helpers of sinks"
JAVA = "Java itself"
OTHERS = "other threads"
OBSERVATION = "being looked at"
MOST_UNNAMED = 0.05
"""Most cores of other threads that a TaskManager uses besides its tasks.

Without load these are about 0.01 to 0.03. More of it depends on the rate: in clients of other
systems and state backends.
"""
_OF_TASK = re.compile(
    r"(?:[\w. ]*?(?:OutputFlusher|Trigger|Fetcher) for |Legacy Source Thread - )?"
    r"(.+ \(\d+/\d+\)#\d+)",
    re.DOTALL,
)
_KINDS = (
    (re.compile(r"Flink Netty "), NETWORK),
    (re.compile(r"C[12] CompilerThre|Sweeper thread"), COMPILERS),
    (re.compile(r"Attach Listener|JFR "), OBSERVATION),
    (re.compile(r"VM Thread$|GC Thread|G1 |ParGC|ZWorker|ZDriver|Concurrent Mark"), GARBAGE),
    (re.compile(r"Shenandoah "), GARBAGE),
    (re.compile(r"flink-rate-limiter|kafka-(?:admin-client|coordinator-heartbeat)-"), SOURCES),
    (re.compile(r"kafka-producer-network-"), SINKS),
    (re.compile(r"flink-|Flink Metric|FlinkComplet"), JAVA),
    (re.compile(r"VM Periodic|Common-Cleane|Reference Han|Finalizer|Signal Disp"), JAVA),
    (re.compile(r"Service Thread|Monitor Defl|Notification T"), JAVA),
)


_TRANSACTIONAL = re.compile(r"kafka-producer-network-thread \| .*-(\d+)-\d+")
"""Thread of a client of a Kafka sink, whose transactions are called PREFIX-SUBTASK-NUMBER."""


def kind_of(thread: str) -> str:
    """Kind of work that a thread of a TaskManager does.

    >>> kind_of("Map (1/2)#0"), kind_of("OutputFlusher for Map (1/2)#0"), kind_of("VM Thread")
    ('tasks', 'helpers of tasks', 'garbage collection')
    """
    if match := _OF_TASK.fullmatch(thread):
        return TASKS if match[1] == thread else HELPERS
    return next((kind for pattern, kind in _KINDS if pattern.match(thread)), OTHERS)


def task_of(thread: str, tasks: Collection[str]) -> str | None:
    """Thread of the task that a thread runs or helps; None if it names none of these tasks.

    A chain whose name ends with that of another task is none of its helpers.

    >>> tasks = ["Look for it (1/2)#0", "it (1/2)#0"]
    >>> task_of("OutputFlusher for it (1/2)#0", tasks), task_of("a -> it (1/2)#0", tasks)
    ('it (1/2)#0', None)
    >>> task_of("Look for it (1/2)#0", tasks)
    'Look for it (1/2)#0'
    """
    if thread in tasks:
        return thread
    named = [task for task in tasks if thread.endswith(f" {task}")]
    return max((one for one in named if not thread.endswith(FUSED + one)), key=len, default=None)


def cores_by_kind(loads: Iterable[ThreadLoad]) -> dict[str, float]:
    """Kind of work → cores that the threads of a TaskManager used for it."""
    cores: dict[str, float] = defaultdict(float)
    for load in loads:
        cores[kind_of(load.name)] += load.cores
    return dict(cores)


def java_itself(kinds: Mapping[str, Mapping[str, float]]) -> float:
    """Cores that Java itself uses in each TaskManager at any rate: the mean of those with subtasks.

    Idle TaskManagers count only if none has subtasks: Java uses less there than where it serves
    tasks. Of threads of no known purpose, at most `MOST_UNNAMED` counts, and of garbage collection
    nothing: it grows with the rate.

    ``kinds``: TaskManager → cores of its threads, by kind of work.
    """
    serving = [one for one in kinds.values() if TASKS in one] or [*kinds.values()]
    own = [one.get(JAVA, 0.0) + min(MOST_UNNAMED, one.get(OTHERS, 0.0)) for one in serving]
    return sum(own) / len(own) if own else 0.0


def share_of_others(kinds: Mapping[str, Mapping[str, float]]) -> float:
    """Part of the CPU that is charged to tasks which threads of no known purpose used.

    ``kinds``: TaskManager → cores of its threads, by kind of work.
    """
    busy = [one for one in kinds.values() if one.get(TASKS)]
    charged = sum(_unnamed(one) for one in busy)
    named = sum(one.get(k, 0.0) for one in busy for k in (TASKS, HELPERS, SOURCES, SINKS, GARBAGE))
    return charged / (named + charged) if busy else 0.0


def _unnamed(kinds: Mapping[str, float]) -> float:
    return max(0.0, kinds.get(OTHERS, 0.0) - MOST_UNNAMED)


def shares_of_helpers(
    loads: Mapping[str, Iterable[ThreadLoad]],
    tasks: Mapping[str, Mapping[str, float]],
    sources: Mapping[str, float],
    sinks: Mapping[str, float] = MappingProxyType({}),
) -> dict[str, dict[str, float]]:
    """TaskManager → thread of a task → cores of other threads that are charged to it.

    ``tasks``: TaskManager → thread of a task → its own cores, including threads of the same name.
    ``sources``, ``sinks``: thread of a task that is, or contains, one → records per second.
    """
    shares = {}
    for device, own in tasks.items():
        more = dict.fromkeys(own, 0.0)
        kinds = cores_by_kind(loads[device])
        for load in loads[device]:
            if load.name not in own and (task := task_of(load.name, own)) is not None:
                more[task] += load.cores
                continue
            if kind_of(load.name) == SINKS:
                writers = {thread: sinks[thread] for thread in own if thread in sinks}
                found = _TRANSACTIONAL.fullmatch(load.name)
                mark = f"({int(found[1]) + 1}/" if found else ""
                named = {thread: n for thread, n in writers.items() if mark and mark in thread}
                _deal_out(load.cores, named or writers or own, more)
        readers = {thread: sources[thread] for thread in own if thread in sources}
        _deal_out(kinds.get(SOURCES, 0.0), readers or own, more)
        whole = {thread: own[thread] + more[thread] for thread in own}
        _deal_out(kinds.get(GARBAGE, 0.0) + _unnamed(kinds), whole, more)
        shares[device] = more
        LOG.debug(
            "threads of %s: %s; of Java and unnamed ones, %.4f cores are all tasks'; charged: %s",
            *(device, kinds, _unnamed(kinds), more),
        )
    return shares


def _deal_out(cores: float, weights: Mapping[str, float], more: dict[str, float]) -> None:
    """Add cores to some tasks, in proportion to their weights; evenly if these are unknown."""
    known = {thread: weight if weight > 0 else 0.0 for thread, weight in weights.items()}
    total = sum(known.values())
    for thread, weight in known.items():
        more[thread] += cores * (weight / total if total else 1 / len(known))

"""CPU that jobs use in other threads than those of tasks; it is charged to operators, too.

Threads whose names end with that of a task's thread are charged to the task: they flush its output,
fire its timers, fetch and run its source, or are threads of its program. Threads that limit the
rate of a source are charged to the sources. Garbage is that of tuples, so its collection is charged
to all tasks of a TaskManager, in proportion to their CPU. Its remaining CPU, as in threads of the
job, is compared with that of the TaskManager that uses least, of those with subtasks. The excess is
charged to all tasks as well, and so is what that TaskManager uses beyond `MOST_UNNAMED`, except in
threads of Flink and of Java itself.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from streamplace.engines.flink.cpu.threads import ThreadLoad
from streamplace.engines.flink.pin.names import FUSED

TASKS, NETWORK, GARBAGE, COMPILERS = "tasks", "network", "garbage collection", "compilers"
HELPERS, SOURCES, JAVA = "helpers of tasks", "helpers of sources", "Java itself"
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
    (re.compile(r"flink-rate-limiter"), SOURCES),
    (re.compile(r"flink-(?:pekko|akka|metrics)|Flink Metric|FlinkComplet"), JAVA),
    (re.compile(r"VM Periodic|Common-Cleane|Reference Han|Finalizer|Signal Disp"), JAVA),
    (re.compile(r"Service Thread|Monitor Defl|Notification T"), JAVA),
)


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
    """Cores that Java itself uses in each TaskManager: the minimum of those with subtasks.

    Idle TaskManagers count only if none has subtasks: Java uses less there than where it serves
    tasks. Of threads of no known purpose, at most `MOST_UNNAMED` counts, and of garbage collection
    nothing: it grows with the rate.

    ``kinds``: TaskManager → cores of its threads, by kind of work.
    """
    serving = [one for one in kinds.values() if TASKS in one] or kinds.values()
    return min(
        (one.get(JAVA, 0.0) + min(MOST_UNNAMED, one.get(OTHERS, 0.0)) for one in serving),
        default=0.0,
    )


def share_of_others(kinds: Mapping[str, Mapping[str, float]]) -> float:
    """Part of the CPU that is charged to tasks which threads used that name no task.

    ``kinds``: TaskManager → cores of its threads, by kind of work.
    """
    least, busy = java_itself(kinds), [one for one in kinds.values() if one.get(TASKS)]
    charged = sum(_rest(one) - least for one in busy)
    named = sum(one.get(kind, 0.0) for one in busy for kind in (TASKS, HELPERS, SOURCES))
    return charged / (named + charged) if busy else 0.0


def _rest(kinds: Mapping[str, float]) -> float:
    return sum(kinds.get(kind, 0.0) for kind in (JAVA, OTHERS, GARBAGE))


def shares_of_helpers(
    loads: Mapping[str, Iterable[ThreadLoad]],
    tasks: Mapping[str, Mapping[str, float]],
    sources: Iterable[str],
) -> dict[str, dict[str, float]]:
    """TaskManager → thread of a task → cores of other threads that are charged to it.

    ``tasks``: TaskManager → thread of a task → its own cores, including threads of the same name.
    ``sources``: threads of tasks that are sources.
    """
    kinds = {device: cores_by_kind(own) for device, own in loads.items()}
    least, first = java_itself(kinds), frozenset(sources)
    shares = {}
    for device, own in tasks.items():
        more = dict.fromkeys(own, 0.0)
        for load in loads[device]:
            if load.name not in own and (task := task_of(load.name, own)) is not None:
                more[task] += load.cores
        fed = [thread for thread in own if thread in first] or own.keys()
        _deal_out(kinds[device].get(SOURCES, 0.0), own, more, fed)
        whole = {thread: own[thread] + more[thread] for thread in own}
        _deal_out(_rest(kinds[device]) - least, whole, more, own.keys())
        shares[device] = more
    return shares


def _deal_out(
    cores: float, weights: Mapping[str, float], more: dict[str, float], among: Iterable[str]
) -> None:
    """Add cores to some tasks, in proportion to their weights."""
    total = sum(weights[thread] for thread in among)
    for thread in among if total > 0 else ():
        more[thread] += cores * weights[thread] / total

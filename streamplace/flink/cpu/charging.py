"""CPU of the subtasks of jobs, charged from samples of the threads of their TaskManagers.

Flink's busy time is wall-clock time: it includes waits of a thread for a core, and so overestimates
cheap operators. The CPU time of threads does not. The kernel counts the run delay of a thread: its
waits for a core, including throttling by a quota.

The name of a thread decides to which tasks it is charged (`_KINDS`):

- Threads whose names end with the name of a task's thread are charged to that task: they flush its
  output, fire its timers, fetch and run its source, or belong to its program. So are native threads
  that it has started, such as RocksDB's, which have its name.
- Threads of Kafka's producers are charged to the sink's subtask whose number is in their name, or
  to all sinks of the TaskManager; threads of Kafka's other clients, and rate limiters, to all its
  sources; in proportion to their records.
- Garbage collection is charged to all tasks, in proportion to their CPU: garbage comes from tuples.
- Java's and Flink's own threads work at any rate, and so do other threads, up to `MAX_UNNAMED`:
  they are a constant load of the TaskManager. The rest of other threads is charged to all tasks.

`measure.streams` has the network threads. Compilers are counted nowhere, because they have little
to do once a job has run for a while.

`cpu.threads` and reporters sample the CPU of threads; thread dumps do not show it. From dumps, a
thread gets a part of the CPU of the process (`estimated_loads`), by the number h of dumps that show
it on a core. h is small, so the busy time b of subtasks helps: most subtasks have nearly the same
CPU u per busy second, within a third; others wait while they are busy, or their busy time is wrong.
With n dumps, and the probability w of the former,

    h ~ Poisson(Γ(mean u·b, shape α = 8)) with the prior 0.9,  else uniform from 0 to n
    part = w · (h + α) · u·b / (u·b + α) + (1 - w) · (h + 1/2)

for the most likely u.

Without dumps, the CPU is divided in proportion to busy time. Threads of Java itself are on a core
during every dump, so their CPU is assumed.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple, TypeVar

import numpy as np

from streamplace.flink.measure.cost_fit import Prior
from streamplace.flink.pin.hook import WRITER
from streamplace.flink.program.operator_names import FUSED

TASKS, NETWORK, GARBAGE, COMPILERS = "tasks", "network", "garbage collection", "compilers"
HELPERS, SOURCES, SINKS = "helpers of tasks", "helpers of sources", "helpers of sinks"
JAVA = "Java itself"
NATIVE = "native threads"
OTHERS = "other threads"
OBSERVATION = "observation"
THREADLESS = (JAVA, OBSERVATION, COMPILERS, NATIVE)
"""Kinds that are the name of a load without known threads."""
MAX_UNNAMED = 0.05
"""Maximum constant load of other threads of a TaskManager, in cores.

Without tuples they use 0.01 to 0.03 cores. Additional load depends on the rate, such as that of
clients of other systems and of state backends.
"""
JAVA_AT_REST, COMPILERS_AT_REST, DUMP_SECONDS = 0.02, 0.01, 0.01
"""Cores of Java itself and of compilers in a TaskManager of a steady job, and CPU of a dump of 65
threads; assumed because dumps do not show them (measured: benchmarks/cpu_sources.py)."""
SHAPE, REGULAR_SHARE = 8.0, 0.9
"""Shape α of the distribution of CPU per busy second, and share of subtasks with it; judgement."""
PER_BUSY = Prior(0.5, 0.6)
"""CPU per busy second of these subtasks."""
_OF_TASK = re.compile(
    r"(?:[\w. ]*?(?:OutputFlusher|Trigger|Fetcher) for |Legacy Source Thread - )?"
    r"(.+ \(\d+/\d+\)#\d+)",
    re.DOTALL,
)
_KINDS = tuple(
    (re.compile(pattern), kind)
    for pattern, kind in (
        (r"Flink Netty ", NETWORK),
        (r"C[12] CompilerThre|Sweeper thread", COMPILERS),
        (r"Attach Listener", OBSERVATION),
        (r"VM Thread$|GC Thread|G1 |ParGC|ZWorker|ZDriver|Concurrent Mark|Shenandoah ", GARBAGE),
        (r"flink-rate-limiter|kafka-(?:admin-client|coordinator-heartbeat)-", SOURCES),
        (r"blc-|binlog-reader-|snapshot-reader-|debezium-", SOURCES),  # of Flink CDC
        (r"kafka-producer-network-", SINKS),
        (r"flink-|Flink Metric|FlinkComplet", JAVA),
        (r"VM Periodic|Common-Cleane|Reference Han|Finalizer|Signal Disp", JAVA),
        (r"Service Thread|Monitor Defl|Notification T", JAVA),
    )
)
"""Beginnings of names of threads that name no task, and their kinds; the first match counts."""
_TRANSACTIONAL = re.compile(r"kafka-producer-network-thread \| .*-(\d+)-\d+")
"""Thread of a producer of a Kafka sink; transactions are called PREFIX-SUBTASK-NUMBER."""


def kind_of(thread: str) -> str:
    """Kind of work that a thread of a TaskManager does.

    >>> kind_of("Map (1/2)#0"), kind_of("OutputFlusher for Map (1/2)#0"), kind_of("VM Thread")
    ('tasks', 'helpers of tasks', 'garbage collection')
    >>> kind_of("kafka-producer-network-thread | 1"), kind_of("blc-mysql:3306")
    ('helpers of sinks', 'helpers of sources')
    """
    if match := _OF_TASK.fullmatch(thread):
        return TASKS if match[1] == thread else HELPERS
    if thread in THREADLESS:
        return thread
    return next((kind for pattern, kind in _KINDS if pattern.match(thread)), OTHERS)


def task_of(thread: str, tasks: Collection[str]) -> str | None:
    """Thread of the task that a thread helps; None if it names none of these tasks.

    A chain whose name ends with the name of another task does not help that task.

    >>> tasks = ["Look for it (1/2)#0", "it (1/2)#0"]
    >>> task_of("OutputFlusher for it (1/2)#0", tasks), task_of("a -> it (1/2)#0", tasks)
    ('it (1/2)#0', None)
    """
    named = [t for t in tasks if thread.endswith(f" {t}") and not thread.endswith(FUSED + t)]
    return max(named, key=len, default=None)


MEASURED = ""
SHARED = (
    "from the CPU of threads with the same name, divided in proportion to busy time; give "
    "operators different names"
)
SAMPLED = "from the CPU of whole TaskManagers, divided by thread dumps"
OF_PROCESS = "from the CPU of whole TaskManagers, divided in proportion to busy time"
BUSY_SHARE = "from busy time, which includes waiting for a core and can be many times too high"
UNKNOWN = "unknown and counted as 0, because Flink does not report its busy time"
SOURCES_OF_CPU = (MEASURED, SHARED, SAMPLED, OF_PROCESS, BUSY_SHARE, UNKNOWN)
"""Sources of the CPU of a subtask, the most accurate first."""
COUNTERS = {
    "busy": "accumulated-busy-time",
    "read": "read-records",
    "wrote": "write-records",
    "idle": "accumulated-idle-time",
    "blocked": "accumulated-backpressured-time",
}
"""Counters of a subtask → their names in Flink's answer."""
Key = tuple[str, str, int]
"""Job, vertex and index of a subtask."""
T = TypeVar("T")


class JavaThread(NamedTuple):
    """Sample of a thread of a Java process."""

    native: int  # id in the kernel, in the container of its process
    name: str
    cpu: float  # seconds of CPU time
    moment: float  # time of the sample
    delay: float = math.nan  # seconds of run delay; NaN if unknown
    wakes: float = math.nan  # number of sleeps; NaN if unknown


class DumpCounts(NamedTuple):
    """Thread dumps of a TaskManager so far."""

    number: int
    # Name and id of a thread → number of dumps in which it was on a core.
    hits: Mapping[tuple[str, int], int]
    seconds: float  # time over which they were taken

    def since(self, earlier: "DumpCounts | None") -> "DumpCounts":
        """Return the dumps since an earlier time."""
        if earlier is None:
            return self
        hits = {key: count - earlier.hits.get(key, 0) for key, count in self.hits.items()}
        return DumpCounts(self.number - earlier.number, hits, self.seconds - earlier.seconds)


NO_DUMPS = DumpCounts(0, {}, 0.0)
MIN_DUMPS = 5
"""Minimum number of dumps that divide CPU better than busy time alone; judgement."""


class ThreadLoad(NamedTuple):
    """Core seconds per second of a thread between two samples."""

    name: str
    cores: float
    delay: float = math.nan  # run delay in seconds per second; NaN if unknown
    wakes: float = math.nan  # per second; NaN if unknown


class RunningSubtask(NamedTuple):
    """A subtask and its device."""

    job: str
    vertex: str
    number: int
    device: str
    thread: str  # name of its thread
    # Counters, which are NaN if Flink does not report them.
    busy: float  # milliseconds
    read: float = math.nan  # tuples
    wrote: float = math.nan  # tuples
    idle: float = math.nan  # milliseconds without input
    blocked: float = math.nan  # milliseconds of back-pressure
    has_ended: bool = False  # whether it has read all of its input
    has_metrics: bool = True  # whether Flink has fetched its metrics

    @property
    def key(self) -> Key:
        """Job, vertex and index."""
        return self.job, self.vertex, self.number

    def since(self, earlier: "RunningSubtask") -> "RunningSubtask":
        """Return the same subtask with the increase of its counters; NaN stays NaN."""
        grown = {n: max(getattr(self, n) - getattr(earlier, n), 0.0) for n in COUNTERS}
        return self._replace(**grown)


class TaskCpu(NamedTuple):
    """CPU of a subtask or a task."""

    cores: float
    source: str = MEASURED
    thread: ThreadLoad | None = None  # load of a subtask's thread without helpers; None if unknown
    wakes: float = math.nan  # wake-ups per second of its threads; NaN if unknown
    busiest: float = math.nan  # sum of the cores of each subtask's busiest thread; NaN if unknown


def thread_loads(first: Iterable[JavaThread], second: Iterable[JavaThread]) -> list[ThreadLoad]:
    """CPU and run delay of the threads of a process between two samples."""
    earlier = {(thread.native, thread.name): thread for thread in first}
    loads = []
    for thread in second:
        old = earlier.get((thread.native, thread.name))
        if old is not None and thread.moment > old.moment:
            seconds = thread.moment - old.moment
            cores = max(0.0, (thread.cpu - old.cpu) / seconds)
            delay, wakes = thread.delay - old.delay, thread.wakes - old.wakes
            loads.append(ThreadLoad(thread.name, cores, delay / seconds, wakes / seconds))
    return loads


def cores_by_kind(loads: Iterable[ThreadLoad]) -> dict[str, float]:
    """Kind of work → cores that the threads of a TaskManager used for it."""
    cores: dict[str, float] = defaultdict(float)
    for load in loads:
        cores[kind_of(load.name)] += load.cores
    return dict(cores)


def java_itself(kinds: Iterable[Mapping[str, float]]) -> float:
    """Constant cores of Java itself in a TaskManager: the mean of TaskManagers with subtasks.

    At most `MAX_UNNAMED` cores of other threads count. Garbage collection does not count: it grows
    with the rate.

    ``kinds``: cores of the threads of each TaskManager, by kind of work.
    """
    constant = [
        cores.get(JAVA, 0.0) + min(MAX_UNNAMED, cores.get(OTHERS, 0.0))
        for cores in kinds
        if TASKS in cores
    ]
    return sum(constant) / len(constant) if constant else 0.0


def charged(
    loads: Sequence[ThreadLoad], subtasks: Iterable[RunningSubtask], sources: Container[str]
) -> dict[Key, TaskCpu]:
    """CPU of the subtasks of a TaskManager, including the threads that serve them.

    Several subtasks may have threads of one name, such as subtasks of equal jobs. Subtasks without
    a thread are left out.

    ``loads``: all threads of the TaskManager.
    ``sources``: vertices without input from others.
    """
    by_thread: dict[str, list[RunningSubtask]] = defaultdict(list)
    for subtask in subtasks:
        if not subtask.has_ended:
            by_thread[subtask.thread].append(subtask)
    threads: dict[str, list[ThreadLoad]] = defaultdict(list)
    for load in loads:
        if load.name in by_thread:
            threads[load.name].append(load)
    others = [load for load in loads if load.name not in threads]
    owner = {load.name: task_of(load.name, threads) for load in others}
    serving = {
        name: [*rows, *(load for load in others if owner[load.name] == name)]
        for name, rows in threads.items()
    }
    cores = {name: sum(load.cores for load in rows) for name, rows in serving.items()}
    wakes = {name: sum(load.wakes for load in rows) for name, rows in serving.items()}
    busiest = {name: max(load.cores for load in rows) for name, rows in serving.items()}
    tasks, by_name = [by_thread[name][-1] for name in threads], dict(cores)
    for load in (load for load in others if kind_of(load.name) in (SOURCES, SINKS)):
        for name, share in _shares(_served(load.name, tasks, sources) or by_name).items():
            cores[name] += load.cores * share
            wakes[name] += load.wakes * share
    kinds = cores_by_kind(loads)
    common = kinds.get(GARBAGE, 0.0) + kinds.get(NATIVE, 0.0)
    common += max(0.0, kinds.get(OTHERS, 0.0) - MAX_UNNAMED)
    cores = {name: cores[name] + common * share for name, share in _shares(cores).items()}
    cpu: dict[Key, TaskCpu] = {}
    for name, rows in threads.items():
        namesakes = by_thread[name]
        if len(namesakes) == 1:
            thread = max(rows, key=lambda load: load.cores)
            key = namesakes[0].key
            cpu[key] = TaskCpu(cores[name], MEASURED, thread, wakes[name], busiest[name])
        elif len(rows) >= len(namesakes):
            shares = _shares({subtask.key: subtask.busy for subtask in namesakes})
            cpu |= {key: TaskCpu(cores[name] * share, SHARED) for key, share in shares.items()}
    return cpu


def estimated_loads(
    counts: DumpCounts, subtasks: Iterable[RunningSubtask], cores: float | None
) -> list[ThreadLoad]:
    """CPU of the threads of a TaskManager by dumps, and by the busy time of its subtasks.

    If the process used more CPU than the threads of the dumps, `NATIVE` threads used the rest. If
    it used less, threads waited for a core: the difference is their run delay.

    ``cores``: cores of the process; None if unknown.
    """
    running = [subtask for subtask in subtasks if not subtask.has_ended]
    busy = {subtask.thread: subtask.busy for subtask in running if subtask.busy > 0}  # not NaN
    hits = {key: n for key, n in counts.hits.items() if kind_of(key[0]) not in (JAVA, OBSERVATION)}
    hits |= {(name, 0): 0 for name in busy.keys() - {name for name, _ in hits}}
    names = Counter(name for name, _ in hits)
    known = {key: busy[key[0]] for key in hits if names[key[0]] == 1 and key[0] in busy}
    expected = {key: float(n) for key, n in hits.items()} | _expected_hits(hits, known, counts)
    parts = {key: n / max(1, counts.number) for key, n in expected.items()}
    total, used = sum(parts.values()), cores
    rest = dict.fromkeys(THREADLESS, 0.0)
    if counts.number and cores is not None:
        dumps = DUMP_SECONDS * counts.number / counts.seconds
        assumed = {JAVA: JAVA_AT_REST, OBSERVATION: dumps, COMPILERS: COMPILERS_AT_REST}
        rest |= {
            kind: part * min(1.0, cores / sum(assumed.values())) for kind, part in assumed.items()
        }
        used = max(0.0, cores - sum(rest.values()))
    used = total if used is None else used
    scale = used / total if total else 0.0
    if counts.number:
        scale, rest[NATIVE] = min(1.0, scale), max(0.0, used - total)
    loads = [
        ThreadLoad(name, part * scale, part * (1 - scale) if counts.number else math.nan)
        for (name, _), part in parts.items()
    ]
    return [*loads, *(ThreadLoad(kind, part, 0.0) for kind, part in rest.items())]


def _expected_hits(
    hits: Mapping[T, int], busy: Mapping[T, float], counts: DumpCounts
) -> dict[T, float]:
    """Expected number of dumps with subtasks on a core: see the top of this module.

    ``busy``: their busy time in ms, positive.
    """
    if not counts.number:
        return _shares(busy)
    observed = np.array([hits[key] for key in busy], np.float64)
    times = np.array([*busy.values()], np.float64) * 1e-3 * counts.number / counts.seconds
    scales = PER_BUSY.median * np.exp(np.linspace(-4, 4, 81) * PER_BUSY.spread)
    expected = np.outer(scales, times)
    constant = [math.lgamma(h + SHAPE) - math.lgamma(SHAPE) - math.lgamma(h + 1) for h in observed]
    sums = expected + SHAPE
    log_density = constant + SHAPE * np.log(SHAPE / sums) + observed * np.log(expected / sums)
    regular, other = REGULAR_SHARE * np.exp(log_density), (1 - REGULAR_SHARE) / (counts.number + 1)
    score = np.log(regular + other).sum(axis=1)
    best = int(np.argmax(score - [PER_BUSY.penalty(math.log(scale)) / 2 for scale in scales]))
    w = regular[best] / (regular[best] + other)
    means = w * (observed + SHAPE) * expected[best] / sums[best] + (1 - w) * (observed + 0.5)
    return dict(zip(busy, means.tolist(), strict=True))


def _served(
    thread: str, tasks: Iterable[RunningSubtask], sources: Container[str]
) -> dict[str, float]:
    """Thread of each task that a thread of sources or sinks serves → its records."""
    if kind_of(thread) == SOURCES:
        return {task.thread: task.wrote for task in tasks if task.vertex in sources}
    written = {
        task.thread: task.read if task.read > 0 else task.wrote
        for task in tasks
        if WRITER in task.thread
    }
    match = _TRANSACTIONAL.fullmatch(thread)
    subtask = f"({int(match[1]) + 1}/" if match else "("
    return {name: records for name, records in written.items() if subtask in name} or written


def _shares(weights: Mapping[T, float]) -> dict[T, float]:
    """Shares in proportion to weights; equal shares if a weight is unknown, or all are 0."""
    total = sum(weights.values())
    if math.isnan(total) or total <= 0:
        return {key: 1 / len(weights) for key in weights}
    return {key: weight / total for key, weight in weights.items()}


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    """Subtasks of a cluster, and threads of its TaskManagers as far as they can be read."""

    subtasks: Sequence[RunningSubtask]
    threads: Mapping[str, list[JavaThread]]
    # TaskManager without readable threads → its thread dumps so far.
    dumps: Mapping[str, DumpCounts] = field(default_factory=dict)


class ManagerLoads(NamedTuple):
    """CPU of the threads of a TaskManager."""

    threads: list[ThreadLoad]
    source: str = MEASURED
    dumps: int = 0  # number of thread dumps from which it was estimated


@dataclass(frozen=True)
class ClusterInterval:
    """Changes between two snapshots."""

    subtasks: Sequence[RunningSubtask]  # of all jobs, with the increase of their counters
    loads: Mapping[str, ManagerLoads]  # TaskManager → CPU of its threads, sampled or estimated
    sources: Container[str] = ()  # vertices without input from others

    @classmethod
    def between(
        cls,
        first: ClusterSnapshot,
        second: ClusterSnapshot,
        sources: Container[str],
        processes: Mapping[str, float] = MappingProxyType({}),
    ) -> "ClusterInterval":
        """Changes of the subtasks and threads that are in both snapshots.

        ``processes``: TaskManager → cores of its process, at least if its threads cannot be read.
        """
        before = {subtask.key: subtask for subtask in first.subtasks}
        loads = {
            device: ManagerLoads(thread_loads(first.threads[device], threads))
            for device, threads in second.threads.items()
            if threads and first.threads.get(device)
        }
        grown = [row.since(before[row.key]) for row in second.subtasks if row.key in before]
        for device in {*processes, *second.dumps} - loads.keys():
            subtasks = [subtask for subtask in grown if subtask.device == device]
            counts = second.dumps.get(device, NO_DUMPS).since(first.dumps.get(device))
            counts = counts if counts.number >= MIN_DUMPS else NO_DUMPS
            if counts.number or device in processes:
                threads = estimated_loads(counts, subtasks, processes.get(device))
                source = SAMPLED if counts.number else OF_PROCESS
                loads[device] = ManagerLoads(threads, source, counts.number)
        return cls(grown, loads, sources)

    @property
    def sampled(self) -> list[str]:
        """TaskManagers whose threads were read."""
        return [device for device, loads in self.loads.items() if loads.source == MEASURED]

    @cached_property
    def kinds(self) -> dict[str, dict[str, float]]:
        """TaskManager → kind of work → cores."""
        return {
            device: cores_by_kind(loads.threads)
            for device, loads in self.loads.items()
            if loads.source != OF_PROCESS
        }

    @cached_property
    def cpu(self) -> dict[Key, TaskCpu]:
        """CPU of the subtasks whose threads were sampled, or estimated."""
        cpu: dict[Key, TaskCpu] = {}
        for device, (threads, source, _) in self.loads.items():
            subtasks = [subtask for subtask in self.subtasks if subtask.device == device]
            for key, row in charged(threads, subtasks, self.sources).items():
                cpu[key] = row._replace(source=max(row.source, source, key=SOURCES_OF_CPU.index))
        return cpu

    def cores_beside(self, job: str) -> dict[str, float]:
        """TaskManager → cores of the subtasks of other jobs."""
        cores: dict[str, float] = defaultdict(float)
        for subtask in self.subtasks:
            if subtask.job != job and subtask.key in self.cpu:
                cores[subtask.device] += self.cpu[subtask.key].cores
        return dict(cores)


def cpu_by_subtask(
    job: str, interval: ClusterInterval, busy: Mapping[str, float | None]
) -> dict[str, list[tuple[RunningSubtask, TaskCpu]]]:
    """Task of a job → its subtasks, in order, with the CPU of each from the most accurate source.

    ``busy``: task of the job → busy seconds per second of its threads; None if unknown.
    """
    ordered = sorted(subtask for subtask in interval.subtasks if subtask.job == job)
    rows: dict[str, list[tuple[RunningSubtask, TaskCpu]]] = defaultdict(list)
    for vertex, seconds in busy.items():
        subtasks = [subtask for subtask in ordered if subtask.vertex == vertex]
        shares = _shares({subtask.key: subtask.busy for subtask in subtasks})
        for subtask in subtasks:
            key = subtask.key
            if subtask.has_ended and not subtask.busy > 0:  # it ended before; also if NaN
                cpu = TaskCpu(0.0, thread=ThreadLoad(subtask.thread, 0.0, 0.0), busiest=0.0)
            elif key in interval.cpu:
                cpu = interval.cpu[key]
            elif seconds is None:
                cpu = TaskCpu(0.0, UNKNOWN)
            else:
                cpu = TaskCpu(seconds * shares[key], BUSY_SHARE)
            rows[vertex].append((subtask, cpu))
    return rows

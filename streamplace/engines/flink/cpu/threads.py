"""CPU of the subtasks of jobs: threads of TaskManagers on this machine, and what they work for.

Flink's busy time is wall-clock time: it includes the time in which a thread waits for a core, and
so overestimates cheap operators. The CPU time of the threads does not. The kernel counts how long a
thread that could run waits for a core, its run delay, and that includes throttling by a quota.

Threads that are not those of tasks are charged to tasks, or to Java, by their names (`_KINDS`):

- Threads whose names end with that of a task's thread are the task's: they flush its output, fire
  its timers, fetch and run its source, or are threads of its program.
- Threads of Kafka's producers are charged to the sink's subtask whose number is in their name, else
  to all sinks of the TaskManager; those of its other clients, and limiters of rates, to all its
  sources; in proportion to their records.
- Garbage collection is charged to all tasks, in proportion to their CPU: garbage comes from tuples.
- Java's and Flink's own threads work at any rate, and so do others, up to `MOST_UNNAMED`: they are
  a constant load of the TaskManager. What others use beyond that is charged to all tasks.

Threads that send and receive are in `measure.streams`; compilers are counted nowhere, because they
have little to do once a job has run for a while.

Where the threads of a subtask cannot be read, its CPU is estimated (`cpu_by_subtask`), and a graph
says so.
"""

import math
import os
import re
import shutil
import socket
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from streamplace.engines.flink.local.dist import LOOPBACK, TASK_MANAGER
from streamplace.engines.flink.pin.hook import WRITER
from streamplace.engines.flink.program.chains import FUSED
from streamplace.engines.flink.rest.client import FINISHED, FlinkError, NoAnswer, Rest, job_path

_THREAD = re.compile(r'^"(?P<name>[^\n]+)" [^"\n]*?\bnid=(?P<native>0x[0-9a-f]+|\d+)', re.MULTILINE)
JCMD_SECONDS = 60.0
"""Timeout for the JDK's tool that lists threads."""
REPORT_SECONDS, PAUSE_SECONDS = 5.0, 0.25
"""Longest wait until Flink reports where subtasks run, and pause between two questions."""
_LISTENS = "0A"
_PYTHON = "pyflink.fn_execution"
_LOCAL = re.compile(r"(\d+\.\d+\.\d+\.\d+)\n\s+/32 host LOCAL")


class JavaThread(NamedTuple):
    """A thread of a Java process."""

    native: int  # its id in the kernel, in the container of its process
    name: str
    cpu: float  # seconds of CPU time
    moment: float  # time at which it was read
    delay: float = math.nan  # seconds in which it could run and waited for a core; NaN if unknown
    wakes: float = math.nan  # number of times that it went to sleep; NaN if unknown


class ThreadLoad(NamedTuple):
    """Core seconds per second of a thread between two measurements."""

    name: str
    cores: float
    delay: float = math.nan  # run delay in seconds per second; NaN if unknown
    wakes: float = math.nan  # per second; NaN if unknown


def local_task_managers() -> list[int]:
    """Process ids of the TaskManagers on this machine."""
    return [pid for pid, words in _processes() if TASK_MANAGER in words]


def processes_of(rest: Rest) -> dict[str, int]:
    """TaskManager → process, for the cluster's TaskManagers on this machine.

    A process belongs to the cluster if it listens on the address that REST reports. TaskManagers
    on other machines, or in containers, may all listen on the same port. If a host is not known
    here, its port decides. A process that fits several TaskManagers is none of them.
    """
    ports = {pid: listening_ports(pid) for pid in local_task_managers()}
    processes: dict[str, int] = {}
    for manager in rest.task_managers() if ports else ():
        host, port = address_of(manager)
        here = [pid for pid in ports if port in ports[pid]]
        if here and (ip := _ip(host)) is not None:
            here = [pid for pid in here if ip in _local_ips(pid)]
        if len(here) == 1:
            processes[str(manager["id"])] = here[0]
    counts = Counter(processes.values())
    return {device: pid for device, pid in processes.items() if counts[pid] == 1}


def address_of(manager: Mapping[str, Any]) -> tuple[str, int | None]:
    """Host and port of a TaskManager, of a path such as ``pekko.tcp://flink@host:6122/user/rpc``.

    Where the path is none, it stands for the host.
    """
    path = str(manager["path"])
    try:
        address = urlsplit(path)
        return address.hostname or "", address.port
    except ValueError:
        return path, None


def _ip(host: str) -> str | None:
    """IP address of a host; None if it is not known here."""
    with suppress(OSError, UnicodeError):
        ip = socket.gethostbyname(host)
        return LOOPBACK if ip.startswith("127.") else ip  # as 127.0.1.1, by which some go
    return None


def _local_ips(process: int) -> set[str]:
    """IP addresses of the network of a process."""
    with suppress(OSError):  # the process has ended, or belongs to another user
        return set(_LOCAL.findall(Path(f"/proc/{process}/net/fib_trie").read_text()))
    return set()


def listening_ports(process: int) -> set[int]:
    """Ports that a process listens on, in its own network; empty if they cannot be read."""
    folder = Path(f"/proc/{process}")
    with suppress(OSError):  # the process has ended, or belongs to another user
        sockets = set(_links(folder / "fd"))
        rows = [
            line.split()
            for table in ("tcp", "tcp6")
            for line in (folder / "net" / table).read_text().splitlines()[1:]
        ]
        return {
            int(row[1].rpartition(":")[2], 16)
            for row in rows
            if row[3] == _LISTENS and f"socket:[{row[9]}]" in sockets
        }
    return set()


def _links(folder: Path) -> Iterator[str]:
    """Targets of the links in a folder."""
    for link in folder.iterdir():
        with suppress(OSError):  # the file was closed
            yield str(link.readlink())


def runs_python() -> bool:
    """Whether processes of this machine run operators in Python for Flink."""
    return any(word.startswith(_PYTHON) for _, words in _processes() for word in words)


def _processes() -> Iterator[tuple[int, list[str]]]:
    """Id and command line of every process."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # the process has ended, or belongs to another user
            line = (folder / "cmdline").read_bytes().decode(errors="replace")
            yield int(folder.name), line.split("\0")


def threads_again(process: int, names: Mapping[int, str]) -> list[JavaThread]:
    """Threads of a Java process with these names; empty if they cannot be read.

    Their CPU time and run delay are read from the kernel, which is immediate. Java itself needs
    seconds for an answer if a quota throttles it, and uses CPU for that. Threads without a name
    here have that of the kernel, of at most 15 letters.
    """
    threads = []
    with suppress(OSError, ValueError, IndexError):  # it ended, belongs to others, or has no file
        for folder in Path(f"/proc/{process}/task").iterdir() if names else ():
            with suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended
                status = (folder / "status").read_text()
                native = int(status.partition("\nNSpid:")[2].partition("\n")[0].split()[-1])
                cpu, delay, *_ = (folder / "schedstat").read_text().split()
                name = names.get(native) or status.partition("\n")[0].partition("\t")[2]
                wakes = int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])
                spent = int(cpu) * 1e-9, time.monotonic(), int(delay) * 1e-9, wakes
                threads.append(JavaThread(native, name, *spent))
        return sorted(threads)
    return []


def java_threads(process: int) -> list[JavaThread]:
    """Threads of a Java process of this machine; empty if they cannot be read."""
    jcmd = shutil.which("jcmd")
    if jcmd is None:
        return []
    try:
        dump = subprocess.run(
            [jcmd, str(process), "Thread.print"],
            env={**os.environ, "LC_ALL": "C.UTF-8"},  # else it prints other letters as "?"
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=JCMD_SECONDS,
        ).stdout
    except subprocess.TimeoutExpired:  # it is stopped, or hangs
        return []
    return threads_again(process, thread_names(dump.decode(errors="replace")))


def thread_names(dump: str) -> dict[int, str]:
    """Id of a thread in the kernel → its name, of a Java thread dump.

    >>> thread_names('"a (1/2)#0" #9 prio=5 os_prio=0 cpu=12.50ms elapsed=9.10s tid=1 nid=0x1f')
    {31: 'a (1/2)#0'}
    """
    return {int(match["native"], 0): match["name"] for match in _THREAD.finditer(dump)}


def spent_between(first: Iterable[JavaThread], second: Iterable[JavaThread]) -> list[ThreadLoad]:
    """CPU and run delay of the threads of a process between two measurements, each at its times."""
    before = {(one.native, one.name): one for one in first}
    loads = []
    for thread in second:
        old = before.get((thread.native, thread.name))
        if old is not None and thread.moment > old.moment:
            seconds = thread.moment - old.moment
            cores = max(0.0, (thread.cpu - old.cpu) / seconds)
            delay, wakes = thread.delay - old.delay, thread.wakes - old.wakes
            loads.append(ThreadLoad(thread.name, cores, delay / seconds, wakes / seconds))
    return loads


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
"""Beginnings of the names of threads that name no task, and what they do; the first one counts."""
_TRANSACTIONAL = re.compile(r"kafka-producer-network-thread \| .*-(\d+)-\d+")
"""Thread of a client of a Kafka sink, whose transactions are called PREFIX-SUBTASK-NUMBER."""


def kind_of(thread: str) -> str:
    """Kind of work that a thread of a TaskManager does.

    >>> kind_of("Map (1/2)#0"), kind_of("OutputFlusher for Map (1/2)#0"), kind_of("VM Thread")
    ('tasks', 'helpers of tasks', 'garbage collection')
    >>> kind_of("kafka-producer-network-thread | 1"), kind_of("blc-mysql:3306")
    ('helpers of sinks', 'helpers of sources')
    """
    if match := _OF_TASK.fullmatch(thread):
        return TASKS if match[1] == thread else HELPERS
    return next((kind for pattern, kind in _KINDS if pattern.match(thread)), OTHERS)


def task_of(thread: str, tasks: Collection[str]) -> str | None:
    """Thread of the task that another thread helps; None if it names none of these tasks.

    A chain whose name ends with that of another task is none of its helpers.

    >>> tasks = ["Look for it (1/2)#0", "it (1/2)#0"]
    >>> task_of("OutputFlusher for it (1/2)#0", tasks), task_of("a -> it (1/2)#0", tasks)
    ('it (1/2)#0', None)
    """
    named = [task for task in tasks if thread.endswith(f" {task}")]
    return max((one for one in named if not thread.endswith(FUSED + one)), key=len, default=None)


def cores_by_kind(loads: Iterable[ThreadLoad]) -> dict[str, float]:
    """Kind of work → cores that the threads of a TaskManager used for it."""
    cores: dict[str, float] = defaultdict(float)
    for load in loads:
        cores[kind_of(load.name)] += load.cores
    return dict(cores)


def java_itself(kinds: Iterable[Mapping[str, float]]) -> float:
    """Cores that Java itself uses in each TaskManager at any rate: the mean of those with subtasks.

    Of threads of no known purpose, at most `MOST_UNNAMED` counts, and of garbage collection
    nothing: it grows with the rate.

    ``kinds``: cores of the threads of each TaskManager, by kind of work.
    """
    serving = [one for one in kinds if TASKS in one]
    own = [one.get(JAVA, 0.0) + min(MOST_UNNAMED, one.get(OTHERS, 0.0)) for one in serving]
    return sum(own) / len(own) if own else 0.0


def charged_to_tasks(
    loads: Sequence[ThreadLoad],
    own: Mapping[str, float],
    sources: Mapping[str, float],
    sinks: Mapping[str, float],
) -> dict[str, float]:
    """Thread of a task → cores of other threads of its TaskManager that are charged to it.

    ``loads``: all threads of the TaskManager.
    ``own``: thread of a task → its cores, including threads of the same name.
    ``sources``, ``sinks``: thread of a task that is, or contains, one → records per second.
    """
    more = dict.fromkeys(own, 0.0)
    kinds = cores_by_kind(loads)
    writers = {thread: sinks[thread] for thread in own if thread in sinks}
    readers = {thread: sources[thread] for thread in own if thread in sources}
    for load in loads:
        if load.name not in own and (task := task_of(load.name, own)) is not None:
            more[task] += load.cores
        elif kind_of(load.name) == SINKS:
            found = _TRANSACTIONAL.fullmatch(load.name)
            subtask = f"({int(found[1]) + 1}/" if found else "("
            named = {thread: count for thread, count in writers.items() if subtask in thread}
            _deal_out(load.cores, named or writers or own, more)
    _deal_out(kinds.get(SOURCES, 0.0), readers or own, more)
    whole = {thread: own[thread] + more[thread] for thread in own}
    unnamed = max(0.0, kinds.get(OTHERS, 0.0) - MOST_UNNAMED)
    _deal_out(kinds.get(GARBAGE, 0.0) + unnamed, whole, more)
    return more


def _deal_out(cores: float, weights: Mapping[str, float], more: dict[str, float]) -> None:
    """Add cores to some tasks, in proportion to their weights; evenly if these are unknown."""
    known = {thread: weight if weight > 0 else 0.0 for thread, weight in weights.items()}
    total = sum(known.values())
    for thread, weight in known.items():
        more[thread] += cores * (weight / total if total else 1 / len(known))


PROCESS_CPU = "Status.JVM.CPU.Time"
"""Metric of a TaskManager: nanoseconds of CPU of all its threads."""
MEASURED = ""
SHARED = (
    "from the CPU of threads with the same name, divided in proportion to busy time; give "
    "operators different names"
)
OF_PROCESS = (
    "from the CPU of whole TaskManagers, whose threads cannot be read here, divided in proportion "
    "to busy time"
)
BUSY = "from busy time, which includes waiting for a core and can be many times too high"
UNKNOWN = "unknown and counted as 0, because Flink does not report its busy time"
SOURCES_OF_CPU = (MEASURED, SHARED, OF_PROCESS, BUSY, UNKNOWN)
"""What the CPU of a subtask is known from, the best first."""
_COUNTED = {
    "busy": "accumulated-busy-time",
    "read": "read-records",
    "wrote": "write-records",
    "idle": "accumulated-idle-time",
    "blocked": "accumulated-backpressured-time",
}
"""Fields of a subtask that grow → their names in Flink's answer."""
_TOLD = "read-records-complete"
Key = tuple[str, str, int]
"""Job, vertex and index of a subtask."""


class RunningSubtask(NamedTuple):
    """A subtask and its device."""

    job: str
    vertex: str
    number: int
    device: str
    thread: str  # name of its thread
    busy: float  # its busy time in milliseconds; NaN if Flink does not report it
    # Numbers of tuples that it has read and sent; NaN if Flink does not report them.
    read: float = math.nan
    wrote: float = math.nan
    # Milliseconds in which it had no input, and was back-pressured; NaN if not reported.
    idle: float = math.nan
    blocked: float = math.nan
    has_ended: bool = False  # whether it has read all of its input
    is_told: bool = True  # whether Flink has fetched its metrics

    @property
    def key(self) -> Key:
        """Job, vertex and index."""
        return self.job, self.vertex, self.number


class TaskCpu(NamedTuple):
    """Core seconds per second of a subtask or a task, and their source if not its threads."""

    cores: float
    source: str = MEASURED
    # Load of the thread of a subtask alone, without helpers; None if it is not known which it is.
    thread: ThreadLoad | None = None
    wakes: float = math.nan  # wake-ups per second of its threads; NaN if they are not known
    # Cores of the busiest thread of each subtask, together; NaN if they are not known.
    busiest: float = math.nan


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    """State of the cluster's subtasks, and of the threads of its processes on this machine."""

    subtasks: Sequence[RunningSubtask]
    threads: Mapping[str, list[JavaThread]]


@dataclass(frozen=True)
class ClusterInterval:
    """Changes between two snapshots."""

    # Subtasks of all jobs; times and numbers of tuples are the increase of these.
    subtasks: Sequence[RunningSubtask]
    # TaskManager on this machine → CPU of its threads; without those whose threads cannot be read.
    loads: Mapping[str, list[ThreadLoad]]
    # Threads of tasks without input from others, and of those that write to a sink, with the number
    # of their records.
    sources: Mapping[str, float] = field(default_factory=dict)
    sinks: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def by_thread(self) -> dict[Key, TaskCpu]:
        """CPU of the subtasks with measured threads, including what is charged to them.

        Subtasks of one TaskManager may have threads of the same name, as those of equal jobs.
        """
        owners: dict[tuple[str, str], list[RunningSubtask]] = defaultdict(list)
        for subtask in self.subtasks:
            if not subtask.has_ended:
                owners[subtask.device, subtask.thread].append(subtask)
        cpu: dict[Key, TaskCpu] = {}
        for device, loads in self.loads.items():
            threads: dict[str, list[ThreadLoad]] = defaultdict(list)
            for load in loads:
                if (device, load.name) in owners:
                    threads[load.name].append(load)
            own = {name: sum(load.cores for load in same) for name, same in threads.items()}
            more = charged_to_tasks(loads, own, self.sources, self.sinks)
            wakes = _wakes(loads, threads, self)
            busiest = _busiest(loads, threads)
            for name, same in threads.items():
                subtasks = owners[device, name]
                if len(same) != len(subtasks):
                    continue
                for subtask, part in zip(subtasks, _parts(subtasks), strict=True):
                    cores = (own[name] + more[name]) * part
                    measured = TaskCpu(cores, MEASURED, same[0], wakes[name], busiest[name])
                    is_alone = len(same) == 1
                    cpu[subtask.key] = measured if is_alone else TaskCpu(cores, SHARED)
        return cpu


def snapshot(
    rest: Rest,
    job: str,
    processes: Mapping[str, int],
    before: ClusterSnapshot | None = None,
) -> ClusterSnapshot:
    """Take a snapshot of a cluster, once Flink reports the devices of the job's subtasks.

    The first one also waits for their metrics: what a subtask has counted since its start would
    else seem to be new in the next one. Another job that has just ended is left out.

    ``before``: an earlier snapshot of the same processes.
    """

    def is_known(one: RunningSubtask) -> bool:
        return bool(one.device) and (one.is_told or before is not None)

    deadline = time.monotonic() + REPORT_SECONDS
    while not all(map(is_known, _subtasks(rest, job))) and time.monotonic() < deadline:
        time.sleep(PAUSE_SECONDS)
    subtasks: list[RunningSubtask] = []
    for other in rest.live_jobs():
        try:
            subtasks += _subtasks(rest, other)
        except FlinkError as error:
            if other == job or isinstance(error, NoAnswer):
                raise
    earlier = {} if before is None else before.threads

    def threads(device: str) -> list[JavaThread]:
        pid, names = processes[device], {one.native: one.name for one in earlier.get(device, ())}
        return threads_again(pid, names) or java_threads(pid)

    with ThreadPoolExecutor(max(1, len(processes))) as pool:  # Java may take seconds to answer
        found = pool.map(threads, processes)
        return ClusterSnapshot(subtasks, dict(zip(processes, found, strict=True)))


def between(
    first: ClusterSnapshot, second: ClusterSnapshot, sources: Container[str]
) -> ClusterInterval:
    """Changes between two snapshots, of everything that is in both.

    ``sources``: vertices without input from others.
    """
    before = {one.key: one for one in first.subtasks}
    subtasks = [
        one._replace(  # NaN stays NaN
            **{
                name: max(getattr(one, name) - getattr(before[one.key], name), 0.0)
                for name in _COUNTED
            }
        )
        for one in second.subtasks
        if one.key in before
    ]
    loads = {
        device: spent_between(before_it, threads)
        for device, threads in second.threads.items()
        if threads and (before_it := first.threads.get(device))
    }
    readers = {one.thread: one.wrote for one in subtasks if one.vertex in sources}
    writers = [one for one in subtasks if WRITER in one.thread]
    written = {one.thread: one.read if one.read > 0 else one.wrote for one in writers}
    return ClusterInterval(subtasks, loads, readers, written)


def _subtasks(rest: Rest, job: str) -> list[RunningSubtask]:
    subtasks = []
    for vertex in rest.job(job)["vertices"]:
        answer = rest.get(job_path(job, "vertices", vertex["id"]))
        for i, row in enumerate(answer["subtasks"]):
            index = row.get("subtask", i)
            number = f"({index + 1}/{vertex['parallelism']})#{row.get('attempt', 0)}"
            device = str(row.get("taskmanager-id") or "")
            metrics = row.get("metrics", {})
            thread = f"{vertex['name']} {number}"
            counts = {name: as_number(metrics.get(key)) for name, key in _COUNTED.items()}
            ended, told = row.get("status") == FINISHED, metrics.get(_TOLD) is not False
            if not told:
                counts |= {"read": math.nan, "wrote": math.nan}
            one = RunningSubtask(
                job, vertex["id"], index, device, thread, has_ended=ended, is_told=told, **counts
            )
            subtasks.append(one)
    return subtasks


def as_number(value: float | str | None) -> float:
    """Value of a metric; NaN if it is none."""
    try:
        return float(math.nan if value is None else value)
    except ValueError:
        return math.nan


def cpu_by_subtask(
    job: str,
    interval: ClusterInterval,
    busy: Mapping[str, float | None],
    processes: Mapping[str, float],
) -> dict[str, list[tuple[RunningSubtask, TaskCpu]]]:
    """Task of a job → its subtasks, in order, with the CPU of each from the best source.

    ``busy``: task of the job → busy seconds per second of its threads; None if unknown.
    ``processes``: TaskManager → cores of its process, at least where its threads cannot be read.
    """
    threads, wholes = interval.by_thread, _by_process(interval.subtasks, processes)
    ordered = sorted(one for one in interval.subtasks if one.job == job)
    answer: dict[str, list[tuple[RunningSubtask, TaskCpu]]] = defaultdict(list)
    for vertex, seconds in busy.items():
        own = [one for one in ordered if one.vertex == vertex]
        for one, part in zip(own, _parts(own), strict=True):
            if one.has_ended and not one.busy > 0:  # it ended before; busy time may be NaN
                cpu = TaskCpu(0.0, thread=ThreadLoad(one.thread, 0.0, 0.0), busiest=0.0)
            elif one.key in threads:
                cpu = threads[one.key]
            elif seconds is None:
                cpu = TaskCpu(0.0, UNKNOWN)
            elif one.key in wholes:
                cpu = TaskCpu(min(seconds * part, wholes[one.key]), OF_PROCESS)
            else:
                cpu = TaskCpu(seconds * part, BUSY)
            answer[vertex].append((one, cpu))
    return answer


def cores_beside(job: str, interval: ClusterInterval) -> dict[str, float]:
    """TaskManager on this machine → core seconds per second of the subtasks of other jobs."""
    cores: dict[str, float] = defaultdict(float)
    for subtask in interval.subtasks:
        if subtask.job != job and subtask.key in interval.by_thread:
            cores[subtask.device] += interval.by_thread[subtask.key].cores
    return dict(cores)


def _busiest(
    loads: Iterable[ThreadLoad], threads: Mapping[str, Sequence[ThreadLoad]]
) -> dict[str, float]:
    """Cores of the busiest thread of each task: its own, or one that helps it."""
    busiest = {name: max(load.cores for load in same) for name, same in threads.items()}
    for load in loads:
        if load.name not in threads and (task := task_of(load.name, threads)) is not None:
            busiest[task] = max(busiest[task], load.cores)
    return busiest


def _wakes(
    loads: Iterable[ThreadLoad],
    threads: Mapping[str, Sequence[ThreadLoad]],
    interval: ClusterInterval,
) -> dict[str, float]:
    """Wake-ups per second of the threads of tasks and those that serve them, charged alike."""
    serving = (TASKS, HELPERS, SOURCES, SINKS)
    counted = [ThreadLoad(one.name, one.wakes) for one in loads if kind_of(one.name) in serving]
    own = {name: sum(one.wakes for one in same) for name, same in threads.items()}
    more = charged_to_tasks(counted, own, interval.sources, interval.sinks)
    return {name: own[name] + more[name] for name in own}


def _parts(subtasks: Sequence[RunningSubtask]) -> list[float]:
    """Share of each subtask in their total busy time; equal shares if that is unknown."""
    total = sum(one.busy for one in subtasks)
    if math.isnan(total) or total <= 0:
        return [1 / len(subtasks) for _ in subtasks]
    return [one.busy / total for one in subtasks]


def _by_process(
    subtasks: Iterable[RunningSubtask], processes: Mapping[str, float]
) -> dict[Key, float]:
    """CPU of TaskManager processes, divided among their subtasks."""
    there: dict[str, list[RunningSubtask]] = defaultdict(list)
    for one in subtasks:
        if one.device in processes and not math.isnan(one.busy):
            there[one.device].append(one)
    return {
        one.key: processes[device] * share
        for device, own in there.items()
        for one, share in zip(own, _parts(own), strict=True)
    }

"""Threads of TaskManagers on this machine: CPU time, run delay, wake-ups, and what they work for.

Flink's busy time is wall-clock time: it includes the time in which a thread waits for a core, and
so overestimates cheap operators. The CPU time of the threads does not. The kernel counts how long a
thread that could run waits for a core, its run delay, and that includes throttling by a quota.

Threads that are not those of tasks are charged to tasks, or to Java:

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
import math
import re
import shutil
import socket
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from streamplace.engines.flink.pin.names import FUSED
from streamplace.engines.flink.rest.client import Rest

_THREAD = re.compile(
    r'^"(?P<name>[^\n]+)" (?:#(?P<number>\d+) )?(?:[^"\n]*? )?cpu=(?P<cpu>[\d.]+)ms '
    r"elapsed=(?P<elapsed>[\d.]+)s(?: tid=\w+ nid=(?P<native>\w+))?",
    re.MULTILINE,
)
PATIENCE_SECONDS = 60.0
"""Timeout for each of the JDK's tools."""
_LISTENS = "0A"
_PYTHON = "pyflink.fn_execution"
_MAIN = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
_LOOPBACK = "127.0.0.1"
"""Address of this machine; the others of its network, such as 127.0.1.1, are equal to it."""
_LOCAL = re.compile(r"(\d+\.\d+\.\d+\.\d+)\n\s+/32 host LOCAL")


class JavaThread(NamedTuple):
    """A thread of a Java process."""

    number: int  # increases with the time of creation; 0 for threads of the virtual machine itself
    name: str
    cpu: float  # seconds of CPU time
    # Seconds since its start, or since another moment that is the same in all measurements.
    elapsed: float
    native: int = 0  # its id in the kernel, in the container of its process; 0 if unknown
    delay: float = math.nan  # seconds in which it could run and waited for a core; NaN if unknown
    wakes: float = math.nan  # times that it has waited for something and went on; NaN if unknown


class ThreadLoad(NamedTuple):
    """Core seconds per second of a thread between two measurements."""

    number: int
    name: str
    cores: float
    delay: float = math.nan  # run delay in seconds per second; NaN if unknown
    wakes: float = math.nan  # wake-ups per second; NaN if unknown


def local_task_managers() -> list[int]:
    """Process ids of the TaskManagers on this machine."""
    return [pid for pid, words in _processes() if _MAIN in words]


def processes_of(rest: Rest) -> dict[str, int]:
    """TaskManager → process, for the cluster's TaskManagers on this machine.

    A process belongs to the cluster if it listens on the address that REST reports. TaskManagers
    on other machines, or in containers, may all listen on the same port. If a host is not known
    here, its port decides. A process that fits several TaskManagers is none of them.
    """
    ports = {pid: listening_ports(pid) for pid in local_task_managers()}
    processes: dict[str, int] = {}
    if not ports:
        return processes
    for manager in rest.task_managers():
        address = _address(str(manager["path"]))
        port = _port(address)
        here = [pid for pid in ports if port in ports[pid]]
        if here and (ip := _ip(address.hostname or "")) is not None:
            here = [pid for pid in here if ip in _local_ips(pid)]
        if len(here) == 1:
            processes[str(manager["id"])] = here[0]
    counts = Counter(processes.values())
    return {device: pid for device, pid in processes.items() if counts[pid] == 1}


def _address(path: str) -> SplitResult:
    """Parts of an address such as ``pekko.tcp://flink@host:6122/user/rpc``."""
    try:
        return urlsplit(path)
    except ValueError:
        return urlsplit("")


def _port(address: SplitResult) -> int | None:
    try:
        return address.port
    except ValueError:
        return None


def _ip(host: str) -> str | None:
    """IP address of a host; None if it is not known here."""
    with suppress(OSError, UnicodeError):
        ip = socket.gethostbyname(host)
        return _LOOPBACK if ip.startswith("127.") else ip
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


def python_workers(managers: Iterable[int]) -> int:
    """Number of processes that run operators in Python for some TaskManagers of this machine."""
    above = set(managers)
    return sum(
        any(word.startswith(_PYTHON) for word in words) and not above.isdisjoint(_ancestors(pid))
        for pid, words in _processes()
    )


def _ancestors(process: int) -> Iterator[int]:
    """Parent of a process, its parent, and so on."""
    with suppress(OSError):  # one of them has ended
        while process > 1:
            stat = Path(f"/proc/{process}/stat").read_text()
            process = int(stat.rpartition(")")[2].split()[1])
            yield process


def _processes() -> Iterator[tuple[int, list[str]]]:
    """Id and command line of every process."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # the process has ended, or belongs to another user
            line = (folder / "cmdline").read_bytes().decode(errors="replace")
            yield int(folder.name), line.split("\0")


def threads_again(process: int, before: Sequence[JavaThread]) -> list[JavaThread]:
    """Threads of a Java process that was measured before; empty if they cannot be read.

    Their CPU time and run delay are read from the kernel, which is immediate. Java itself needs
    seconds for an answer if a quota throttles it, and uses CPU for that. New threads have their
    names in the kernel, of at most 15 letters.
    """
    by_native = {one.native: one for one in before if one.native}
    if not by_native:
        return []
    threads = []
    with suppress(OSError, ValueError, IndexError):  # it ended, belongs to others, or has no file
        for folder in Path(f"/proc/{process}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended
                status = (folder / "status").read_text()
                native = int(status.partition("\nNSpid:")[2].partition("\n")[0].split()[-1])
                cpu, delay, *_ = (folder / "schedstat").read_text().split()
                name = status.partition("\n")[0].partition("\t")[2]
                waits = status.partition("\nvoluntary_ctxt_switches:")[2].partition("\n")[0]
                one = by_native.get(native, JavaThread(0, name, 0.0, 0.0, native))
                threads.append(
                    one._replace(
                        cpu=int(cpu) * 1e-9,
                        elapsed=time.monotonic(),
                        delay=int(delay) * 1e-9,
                        wakes=float(waits or "nan"),
                    )
                )
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
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE_SECONDS,
        ).stdout
    except subprocess.TimeoutExpired:  # it is stopped, or hangs
        return []
    threads = read_threads(dump.decode(errors="replace"))
    return threads_again(process, threads) or threads


def read_threads(dump: str) -> list[JavaThread]:
    """Threads in a Java thread dump, the oldest first.

    >>> read_threads('"a (1/2)#0" #9 prio=5 os_prio=0 cpu=12.50ms elapsed=9.10s tid=1 nid=0x1f')
    [JavaThread(number=9, name='a (1/2)#0', cpu=0.0125, elapsed=9.1, native=31, ...)]
    """
    return sorted(
        JavaThread(
            int(match["number"] or 0),
            match["name"],
            float(match["cpu"]) / 1000,
            float(match["elapsed"]),
            int(match["native"] or "0", 0),
        )
        for match in _THREAD.finditer(dump)
    )


def spent_between(first: Iterable[JavaThread], second: Iterable[JavaThread]) -> list[ThreadLoad]:
    """CPU, run delay and wake-ups of the threads of a process between two measurements.

    Every thread is measured by its own clock, because a thread dump of a busy process can take
    seconds.
    """
    before: Mapping[tuple[int, str, int], JavaThread] = {_identity(t): t for t in first}
    loads = []
    for thread in second:
        old = before.get(_identity(thread))
        if old is not None and thread.elapsed > old.elapsed:
            seconds = thread.elapsed - old.elapsed
            cores = max(0.0, (thread.cpu - old.cpu) / seconds)
            delay = (thread.delay - old.delay) / seconds
            wakes = (thread.wakes - old.wakes) / seconds
            loads.append(ThreadLoad(thread.number, thread.name, cores, delay, wakes))
    return loads


def _identity(thread: JavaThread) -> tuple[int, str, int]:
    return thread.number, thread.name, thread.native


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

"""Threads of TaskManagers that run on this machine: CPU time, run delay and wake-ups.

Flink's busy time is wall-clock time: it includes the time in which a thread waits for a core, and
so overestimates cheap operators. The CPU time of the threads does not. The kernel counts how long a
thread that could run waits for a core, its run delay, and that includes throttling by a quota.
"""

import math
import re
import shutil
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

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

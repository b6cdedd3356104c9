"""CPU time of a job's threads, where its TaskManagers run on this machine.

Flink's busy time is a wall-clock time: it counts what a thread waits for a core, and overestimates
cheap operators. The threads' own CPU time does not. Every thread bears its task's name.
"""

import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_THREAD = re.compile(
    r'^"(.+?) \((\d+)/\d+\)#\d+" .*?\bcpu=([\d.]+)ms elapsed=([\d.]+)s', re.MULTILINE
)
_ANY = re.compile(r'^"([^"\n]+)" .*?\bcpu=([\d.]+)ms elapsed=([\d.]+)s', re.MULTILINE)
_TASK_NAME = re.compile(r".+ \(\d+/\d+\)#\d+", re.DOTALL)
_NETWORK = "Flink Netty "
_COMPILERS = ("C1 CompilerThread", "C2 CompilerThread")
_LISTENS = "0A"
_PYTHON = "pyflink.fn_execution"
_MAIN = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"


class ThreadTime(NamedTuple):
    """Seconds of CPU that threads of one name have had together, and that the oldest has lived."""

    cpu: float
    elapsed: float
    threads: int = 1


class Cores(NamedTuple):
    """Core seconds per second of all threads that bear a task's name."""

    cores: float = 0.0
    threads: int = 0


class BackgroundTimes(NamedTuple):
    """Seconds of CPU that a process's threads have had besides its tasks, and how long it lives."""

    java: float
    network: float
    elapsed: float


def local_task_managers() -> list[int]:
    """Process ids of the TaskManagers on this machine."""
    return [pid for pid, words in _processes() if _MAIN in words]


def listening_ports(process: int) -> set[int]:
    """Ports that a process listens on, in its own network; none where that cannot be seen."""
    folder = Path(f"/proc/{process}")
    with suppress(OSError):  # it ended meanwhile, or belongs to somebody else
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
    """What the links in a folder lead to."""
    for link in folder.iterdir():
        with suppress(OSError):  # it was closed meanwhile
            yield str(link.readlink())


def runs_python() -> bool:
    """Whether a process on this machine runs operators in Python for a TaskManager."""
    return any(word.startswith(_PYTHON) for _, words in _processes() for word in words)


def _processes() -> Iterator[tuple[int, list[str]]]:
    """Id and command line of every process."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile, or belongs to somebody else
            line = (folder / "cmdline").read_bytes().decode(errors="replace")
            yield int(folder.name), line.split("\0")


def thread_times() -> dict[tuple[int, str, str], ThreadTime]:
    """Times so far of every task's thread, by (process, task, subtask)."""
    return {
        (pid, *key): times
        for pid, dump in _dumps(local_task_managers())
        for key, times in read_threads(dump).items()
    }


def background_times(processes: Iterable[int]) -> dict[int, BackgroundTimes]:
    """Times so far of all that is no task, by process."""
    dumps = _dumps(processes)
    return {pid: found for pid, dump in dumps if (found := read_background(dump)) is not None}


def _dumps(processes: Iterable[int]) -> Iterator[tuple[int, str]]:
    """Process id and thread dump of Java processes."""
    jcmd = shutil.which("jcmd")
    for pid in processes if jcmd else ():
        command = [str(jcmd), str(pid), "Thread.print"]
        yield pid, subprocess.run(command, capture_output=True, text=True, check=False).stdout


def read_threads(dump: str) -> dict[tuple[str, str], ThreadTime]:
    """Times of the tasks' threads in a Java thread dump, by (task, subtask).

    >>> read_threads('"Source: a (1/2)#0" #9 prio=5 os_prio=0 cpu=12.50ms elapsed=9.10s tid=1')
    {('Source: a', '1'): ThreadTime(cpu=0.0125, elapsed=9.1, threads=1)}
    """
    found: dict[tuple[str, str], ThreadTime] = {}
    for task, subtask, cpu, elapsed in _THREAD.findall(dump):
        namesake = found.get((task, subtask), ThreadTime(0.0, 0.0, 0))
        found[task, subtask] = ThreadTime(
            namesake.cpu + float(cpu) / 1000,
            max(namesake.elapsed, float(elapsed)),
            namesake.threads + 1,
        )
    return found


def read_background(dump: str) -> BackgroundTimes | None:
    """Times in a Java thread dump of what is no task; None where it tells none.

    >>> read_background('''"VM Thread" os_prio=0 cpu=20.00ms elapsed=9.00s tid=1
    ... "Flink Netty Client (0) Thread 0" #9 cpu=5.00ms elapsed=8.00s tid=2
    ... "C2 CompilerThread0" #5 cpu=900.00ms elapsed=9.00s tid=3
    ... "a (1/2)#0" #11 cpu=70.00ms elapsed=2.00s tid=4''')
    BackgroundTimes(java=0.02, network=0.005, elapsed=9.0)
    """
    java = network = longest = 0.0
    for name, cpu, elapsed in _ANY.findall(dump):
        longest = max(longest, float(elapsed))
        if name.startswith(_NETWORK):
            network += float(cpu) / 1000
        elif not name.startswith(_COMPILERS) and not _TASK_NAME.fullmatch(name):
            java += float(cpu) / 1000
    return BackgroundTimes(java, network, longest) if longest else None


def cores_by_task(
    first: Mapping[tuple[int, str, str], ThreadTime],
    second: Mapping[tuple[int, str, str], ThreadTime],
) -> dict[str, Cores]:
    """Cores that each task took between two looks.

    Every thread is measured against its own clock, as looking at a busy process can take seconds.
    Threads seen only once are left out.
    """
    spent: dict[str, Cores] = {}
    for key in first.keys() & second.keys():
        span = second[key].elapsed - first[key].elapsed
        cpu = second[key].cpu - first[key].cpu
        before = spent.get(key[1], Cores())
        spent[key[1]] = Cores(
            before.cores + (cpu / span if span > 0 else 0.0),
            before.threads + second[key].threads,
        )
    return spent

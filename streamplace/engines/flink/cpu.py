"""CPU time of a job's threads, where its TaskManagers run on this machine.

Flink's busy time is a wall-clock time: it counts what a thread waits for a core, and overestimates
cheap operators. The threads' own CPU time does not. Every thread bears its task's name.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_THREAD = re.compile(
    r'^"(.+?) \((\d+)/\d+\)#\d+" .*?\bcpu=([\d.]+)ms elapsed=([\d.]+)s', re.MULTILINE
)
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


def local_task_managers() -> list[int]:
    """Process ids of the TaskManagers on this machine."""
    return [pid for pid, words in _processes() if _MAIN in words]


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
    jcmd = shutil.which("jcmd")
    found: dict[tuple[int, str, str], ThreadTime] = {}
    for pid in local_task_managers() if jcmd else ():
        command = [str(jcmd), str(pid), "Thread.print"]
        dump = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        found.update({(pid, *key): times for key, times in read_threads(dump).items()})
    return found


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

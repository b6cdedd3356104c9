"""CPU time of a job's threads, where its TaskManagers run on this machine.

Flink's busy time is a wall-clock time: it counts what a thread waits for a core, and overestimates
cheap operators. The threads' own CPU time does not. Every thread bears its task's name.
"""

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

_THREAD = re.compile(r'^"(.+?) \((\d+)/\d+\)#\d+" .*?\bcpu=([\d.]+)ms', re.MULTILINE)
_MAIN = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"


def local_task_managers() -> list[int]:
    """Process ids of the TaskManagers on this machine."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:  # it ended meanwhile, or belongs to somebody else
            continue
        if _MAIN.encode() in words:
            found.append(int(folder.name))
    return found


def thread_seconds() -> dict[tuple[int, str, str], float]:
    """CPU seconds so far of every task's thread: (process, task, subtask) → seconds."""
    jcmd = shutil.which("jcmd")
    found: dict[tuple[int, str, str], float] = {}
    for pid in local_task_managers() if jcmd else ():
        command = [str(jcmd), str(pid), "Thread.print"]
        dump = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        found.update({(pid, *key): seconds for key, seconds in read_threads(dump).items()})
    return found


def read_threads(dump: str) -> dict[tuple[str, str], float]:
    """CPU seconds of the tasks' threads in a Java thread dump.

    >>> read_threads('"Source: a (1/2)#0" #9 prio=5 os_prio=0 cpu=12.50ms elapsed=9.1s tid=1')
    {('Source: a', '1'): 0.0125}
    """
    found: dict[tuple[str, str], float] = {}
    for task, subtask, milliseconds in _THREAD.findall(dump):
        key = (task, subtask)
        found[key] = found.get(key, 0.0) + float(milliseconds) / 1000
    return found


def seconds_by_task(
    first: Mapping[tuple[int, str, str], float], second: Mapping[tuple[int, str, str], float]
) -> dict[str, float]:
    """CPU seconds that each task spent between two looks; threads seen only once are left out."""
    spent: dict[str, float] = {}
    for key in first.keys() & second.keys():
        spent[key[1]] = spent.get(key[1], 0.0) + second[key] - first[key]
    return spent

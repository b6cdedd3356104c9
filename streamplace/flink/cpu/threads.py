"""Samples of the threads of TaskManagers on this machine, and of the subtasks of all jobs.

`cpu.charging` charges the threads to the subtasks.
"""

import math
import os
import re
import shutil
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from streamplace.flink.cpu.charging import (
    COUNTERS,
    ClusterSnapshot,
    JavaThread,
    RunningSubtask,
)
from streamplace.flink.local.session import LOOPBACK, TASK_MANAGER
from streamplace.flink.rest.client import FINISHED, FlinkError, NoAnswer, Rest, job_path

_THREAD = re.compile(r'^"(?P<name>[^\n]+)" [^"\n]*?\bnid=(?P<native>0x[0-9a-f]+|\d+)', re.MULTILINE)
JCMD_SECONDS = 60.0
"""Timeout for the JDK's tool that lists threads."""
REPORT_SECONDS, PAUSE_SECONDS = 5.0, 0.25
"""Maximum wait until Flink reports the TaskManagers of subtasks, and pause between requests."""
_LISTENING = "0A"
"""State of a listening socket in /proc/PID/net/tcp."""
_PYTHON = "pyflink.fn_execution"
_LOCAL_IP = re.compile(r"(\d+\.\d+\.\d+\.\d+)\n\s+/32 host LOCAL")
"""Address of a machine itself in /proc/PID/net/fib_trie."""
_FETCHED = "read-records-complete"
"""Field of a subtask that is false until Flink has fetched its metrics."""


def local_task_managers() -> list[int]:
    """Process ids of the TaskManagers on this machine."""
    return [pid for pid, words in _processes() if TASK_MANAGER in words]


def processes_of(rest: Rest) -> dict[str, int]:
    """TaskManager → process, for the cluster's TaskManagers on this machine.

    A process belongs to the cluster if it listens on the address that REST reports: TaskManagers
    on other machines, or in containers, may listen on the same port. If the host has no address
    here, the port decides. A process that fits several TaskManagers is left out.
    """
    ports = {pid: listening_ports(pid) for pid in local_task_managers()}
    processes: dict[str, int] = {}
    for manager in rest.task_managers() if ports else ():
        host, port = address_of(manager)
        matching = [pid for pid in ports if port in ports[pid]]
        if matching and (ip := _ip(host)) is not None:
            matching = [pid for pid in matching if ip in _local_ips(pid)]
        if len(matching) == 1:
            processes[str(manager["id"])] = matching[0]
    counts = Counter(processes.values())
    return {device: pid for device, pid in processes.items() if counts[pid] == 1}


def address_of(manager: Mapping[str, Any]) -> tuple[str, int | None]:
    """Host and port of a TaskManager, from a path such as ``pekko.tcp://flink@host:6122/user/rpc``.

    A malformed path is returned as the host.
    """
    path = str(manager["path"])
    try:
        address = urlsplit(path)
        return address.hostname or "", address.port
    except ValueError:
        return path, None


def _ip(host: str) -> str | None:
    """IP address of a host; None if it has none here."""
    with suppress(OSError, UnicodeError):
        ip = socket.gethostbyname(host)
        return LOOPBACK if ip.startswith("127.") else ip  # such as 127.0.1.1 on Debian
    return None


def _local_ips(process: int) -> set[str]:
    """IP addresses of the network of a process."""
    with suppress(OSError):  # the process has ended, or belongs to another user
        return set(_LOCAL_IP.findall(Path(f"/proc/{process}/net/fib_trie").read_text()))
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
            if row[3] == _LISTENING and f"socket:[{row[9]}]" in sockets
        }
    return set()


def _links(folder: Path) -> Iterator[str]:
    """Targets of the links in a folder."""
    for link in folder.iterdir():
        with suppress(OSError):  # the file was closed
            yield str(link.readlink())


def runs_python() -> bool:
    """Whether processes of this machine run Python operators of Flink."""
    return any(word.startswith(_PYTHON) for _, words in _processes() for word in words)


def _processes() -> Iterator[tuple[int, list[str]]]:
    """Id and command line of every process."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # the process has ended, or belongs to another user
            line = (folder / "cmdline").read_bytes().decode(errors="replace")
            yield int(folder.name), line.split("\0")


def named_threads(process: int, names: Mapping[int, str]) -> list[JavaThread]:
    """Threads of a Java process with these names; empty if they cannot be read.

    Their CPU time and run delay are read from the kernel, at once. Java would use CPU for an
    answer, and take seconds under a quota. Threads without a name in ``names`` have the name of the
    kernel, of at most 15 characters.
    """
    threads = []
    with suppress(OSError, ValueError, IndexError):  # it has ended, or cannot be read
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
            env={
                **os.environ,
                "LC_ALL": "C.UTF-8",
            },  # otherwise it prints "?" for non-ASCII letters
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=JCMD_SECONDS,
        ).stdout
    except subprocess.TimeoutExpired:  # it is stopped, or hangs
        return []
    return named_threads(process, thread_names(dump.decode(errors="replace")))


def thread_names(dump: str) -> dict[int, str]:
    """Id of a thread in the kernel → its name, from a Java thread dump.

    >>> thread_names('"a (1/2)#0" #9 prio=5 os_prio=0 cpu=12.50ms elapsed=9.10s tid=1 nid=0x1f')
    {31: 'a (1/2)#0'}
    """
    return {int(match["native"], 0): match["name"] for match in _THREAD.finditer(dump)}


def snapshot(
    rest: Rest, job: str, processes: Mapping[str, int], before: ClusterSnapshot | None = None
) -> ClusterSnapshot:
    """Take a snapshot of a cluster, once Flink reports the devices of the job's subtasks.

    The first snapshot also waits for their metrics: otherwise, all counts since the start of a
    subtask would seem to be new in the next one. Another job that has just ended is left out.

    ``before``: an earlier snapshot of the same processes.
    """

    def is_reported(subtask: RunningSubtask) -> bool:
        return bool(subtask.device) and (subtask.has_metrics or before is not None)

    deadline = time.monotonic() + REPORT_SECONDS
    while not all(map(is_reported, _subtasks(rest, job))) and time.monotonic() < deadline:
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
        names = {thread.native: thread.name for thread in earlier.get(device, ())}
        return named_threads(processes[device], names) or java_threads(processes[device])

    with ThreadPoolExecutor(max(1, len(processes))) as pool:  # Java may take seconds to answer
        rows = pool.map(threads, processes)
        return ClusterSnapshot(subtasks, dict(zip(processes, rows, strict=True)))


def _subtasks(rest: Rest, job: str) -> list[RunningSubtask]:
    subtasks = []
    for vertex in rest.job(job)["vertices"]:
        answer = rest.get(job_path(job, "vertices", vertex["id"]))
        for i, row in enumerate(answer["subtasks"]):
            index, metrics = row.get("subtask", i), row.get("metrics", {})
            counts = {name: as_number(metrics.get(key)) for name, key in COUNTERS.items()}
            has_metrics = metrics.get(_FETCHED) is not False
            if not has_metrics:
                counts |= {"read": math.nan, "wrote": math.nan}
            number = f"({index + 1}/{vertex['parallelism']})#{row.get('attempt', 0)}"
            subtasks.append(
                RunningSubtask(
                    job,
                    vertex["id"],
                    index,
                    str(row.get("taskmanager-id") or ""),
                    f"{vertex['name']} {number}",
                    **counts,
                    has_ended=row.get("status") == FINISHED,
                    has_metrics=has_metrics,
                )
            )
    return subtasks


def as_number(value: float | str | None) -> float:
    """Value of a metric; NaN if it is missing or not a number."""
    try:
        return float(math.nan if value is None else value)
    except ValueError:
        return math.nan

"""Run a command within limits, and end it with all processes that it started; for Linux.

    python supervisor.py REPORT SECONDS ELAPSED MEMORY CORE COMMAND...

It runs in a separate process, so that it can adopt orphans of the command. SECONDS limits the
processor time of all processes together, ELAPSED the elapsed time, MEMORY the bytes of all
processes together; CORE is the only core that they may use. REPORT is the number of an open file
descriptor to which one JSON object is written at the end. SIGTERM ends the command, and so does
the end of the process that started this one.
"""

import ctypes
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path
from types import FrameType

SUBREAPER, DEATH_SIGNAL = 36, 1
"""Options of prctl: adopt orphans; send a signal when the parent ends."""
LOOK = 0.02
"""Seconds between checks of the command's usage."""
LARGEST_FILE = 2**30
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
PROC = Path("/proc")


def descendants(pid: int) -> list[int]:
    """Descendants of a process."""
    processes = []
    for task in _inside(PROC / str(pid) / "task"):
        for child in _text(task / "children").split():
            processes += [int(child), *descendants(int(child))]
    return processes


def _inside(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:  # the process has ended
        return []


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def processor_seconds(pid: int) -> float:
    """Processor time of a process and of its ended children."""
    fields = _text(PROC / str(pid) / "stat").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / TICKS if fields else 0.0


def resident(pid: int) -> int:
    """Resident memory of a process in bytes, with all of its shared memory."""
    fields = _text(PROC / str(pid) / "statm").split()
    return int(fields[1]) * PAGE if fields else 0


def proportional(pid: int) -> int:
    """Memory of a process in bytes, with its proportion of shared memory."""
    for line in _text(PROC / str(pid) / "smaps_rollup").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


class Supervisor:
    """Watches a command; `reason` names why it was ended, and is empty if it ended itself."""

    def __init__(self, seconds: float, elapsed: float, memory: int) -> None:
        self.seconds, self.elapsed, self.memory = seconds, elapsed, memory
        self.reason, self.peak, self.parent = "", 0, os.getppid()
        self.start = time.monotonic()
        self.stopped = False

    def stop(self, number: int, frame: FrameType | None) -> None:
        """Handle SIGTERM."""
        self.stopped = True

    def exceeded(self, processes: list[int]) -> str:
        """Name of the exceeded limit; empty if there is none."""
        used = sum(map(resident, processes))
        if used > self.memory:  # count shared memory once
            used = sum(map(proportional, processes))
        self.peak = max(self.peak, used)
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        processor = ended.ru_utime + ended.ru_stime + sum(map(processor_seconds, processes))
        over = {
            "stopped": self.stopped or os.getppid() != self.parent,
            "memory": used > self.memory,
            "time": processor > self.seconds or time.monotonic() - self.start > self.elapsed,
        }
        return next((name for name, is_over in over.items() if is_over), "")

    def watch(self, child: int) -> int:
        """Wait for the child; return its status, negative if a signal ended it."""
        status = None
        while status is None:
            self.reason = self.reason or self.exceeded(descendants(os.getpid()))
            if self.reason:
                end_all()
            status = reap(child)
            if status is None and not self.reason:
                time.sleep(LOOK)
        end_all()
        while descendants(os.getpid()):
            end_all()
            reap(child)
        return status


def end_all() -> None:
    """Kill all descendants of this process."""
    for pid in descendants(os.getpid()):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def reap(child: int) -> int | None:
    """Collect ended processes; return the status of the child if it is among them."""
    status = None
    try:
        while True:
            pid, code = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return status
            if pid == child:
                status = os.waitstatus_to_exitcode(code)
    except ChildProcessError:
        return status


def begin(command: list[str], memory: int, core: int, report: int) -> int:
    """Start the command in a separate process group; return its process id."""
    child = os.fork()
    if child:
        return child
    try:
        ctypes.CDLL(None).prctl(DEATH_SIGNAL, signal.SIGKILL)
        os.setpgid(0, 0)
        os.close(report)
        os.sched_setaffinity(0, {core})
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        limits = {
            resource.RLIMIT_AS: memory,
            resource.RLIMIT_FSIZE: LARGEST_FILE,
            resource.RLIMIT_CORE: 0,
        }
        for limit, size in limits.items():
            hard = resource.getrlimit(limit)[1]
            least = size if hard == resource.RLIM_INFINITY else min(size, hard)
            resource.setrlimit(limit, (least, least))
        os.execvp(command[0], command)
    except (OSError, ValueError) as error:
        os.write(2, f"{command[0]}: {getattr(error, 'strerror', error)}\n".encode())
    os._exit(127)


def main(words: list[str]) -> None:
    """Run the command and write the report."""
    report, memory, core = int(words[0]), int(words[3]), int(words[4])
    supervisor = Supervisor(float(words[1]), float(words[2]), memory)
    signal.signal(signal.SIGTERM, supervisor.stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(SUBREAPER, 1)
    status = supervisor.watch(begin(words[5:], memory, core, report))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    document = {
        "status": status,
        "reason": supervisor.reason,
        "seconds": used.ru_utime + used.ru_stime,
        "elapsed": time.monotonic() - supervisor.start,
        "memory": max(supervisor.peak, used.ru_maxrss * 1024),
    }
    os.write(report, json.dumps(document).encode())


if __name__ == "__main__":
    main(sys.argv[1:])

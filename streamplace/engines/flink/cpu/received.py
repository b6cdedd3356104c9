"""Find the task of each thread of a TaskManager if several threads have the same name.

A TaskManager creates the thread of a task right after it has logged that it received the task, one
task after the other. So threads of one name, in order of creation, belong to the running tasks of
that name, in the order of the log. The log contains the id of every task's vertex.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

MOST_BYTES = 256 * 2**20
"""Maximum number of bytes that are read from the end of a log."""
_ID = "[0-9a-f]{32}"
_LOG_FILE = b"-Dlog.file="
_STANDARD_OUTPUT = "1"
_LINE = re.compile(
    rf"Receive slot request (?P<slot>{_ID}) for job (?P<job>{_ID})"
    rf"|Received task (?P<thread>.+) \((?P<new>{_ID}_(?P<vertex>{_ID})_\d+_\d+)\), deploy into "
    rf"slot with allocation id (?P<into>{_ID})"
    rf"|\((?P<old>{_ID}_{_ID}_\d+_\d+)\) switched from [A-Z]+ to (?:FINISHED|CANCELED|FAILED)"
)


class ReceivedTask(NamedTuple):
    """A task that a TaskManager has received."""

    thread: str  # name of its thread
    vertex: str
    job: str = ""  # id of its job; empty if it is not in the log


def read_received(lines: Iterable[str]) -> list[ReceivedTask]:
    """Tasks in the log of a TaskManager that have not ended, in the order of their threads.

    >>> vertex, run, slot, job = (32 * letter for letter in "abcd")
    >>> [one.thread for one in read_received([
    ...     f"INFO Receive slot request {slot} for job {job} from resource manager",
    ...     f"INFO Received task Map (1/2)#0 ({run}_{vertex}_0_0), deploy into slot with "
    ...     f"allocation id {slot}.",
    ...     f"INFO Received task Map (2/2)#0 ({run}_{vertex}_1_0), deploy into slot with "
    ...     f"allocation id {slot}.",
    ...     f"INFO Map (1/2)#0 ({run}_{vertex}_0_0) switched from RUNNING to FINISHED.",
    ... ])]
    ['Map (2/2)#0']
    """
    jobs: dict[str, str] = {}
    live: dict[str, ReceivedTask] = {}
    for line in lines:
        match = _LINE.search(line)
        if match is None:
            continue
        if match["slot"]:
            jobs[match["slot"]] = match["job"]
        elif match["new"]:
            job = jobs.get(match["into"], "")
            live[match["new"]] = ReceivedTask(match["thread"], match["vertex"], job)
        else:
            live.pop(match["old"], None)
    return list(live.values())


def received_tasks(process: int) -> list[ReceivedTask]:
    """Tasks that a TaskManager of this machine runs, according to its log."""
    with suppress(OSError):  # it ended, logs elsewhere, or belongs to others
        for path in filter(Path.is_file, _logs(Path(f"/proc/{process}"))):
            with path.open("rb") as file:
                file.seek(max(0, path.stat().st_size - MOST_BYTES))
                return read_received(line.decode(errors="replace") for line in file)
    return []


def _logs(folder: Path) -> Iterator[Path]:
    """Possible logs of a process: the file on its command line, and its standard output.

    The former is not written if its logging is configured for the console alone.
    """
    for word in (folder / "cmdline").read_bytes().split(b"\0"):
        if word.startswith(_LOG_FILE):
            named = Path(word.removeprefix(_LOG_FILE).decode(errors="replace"))
            start = folder / "cwd" if not named.is_absolute() else folder / "root"
            yield start / named.relative_to(named.anchor)
    yield folder / "fd" / _STANDARD_OUTPUT


def owners(
    numbers: Mapping[str, list[int]], received: Iterable[ReceivedTask]
) -> dict[int, ReceivedTask]:
    """Thread → its task, for names with as many threads as running tasks.

    ``numbers``: name → numbers of the threads with that name, in order of creation.
    """
    by_name: dict[str, list[ReceivedTask]] = {}
    for one in received:
        by_name.setdefault(one.thread, []).append(one)
    return {
        number: one
        for name, threads in numbers.items()
        if len(by_name.get(name, ())) == len(threads)
        for number, one in zip(threads, by_name[name], strict=True)
    }

"""Thread dumps of TaskManagers without the reporter, as a sampling profiler.

A RUNNABLE thread is on a core, or waits for one, unless its top frame is a native method that
waits: Java counts such threads as runnable. A thread's share of dumps on a core is its share of the
time; `cpu.charging` divides the CPU of the process by these shares. A dump stops the whole JVM,
while Flink searches its heap for locks: half a second for a gigabyte of small objects. So the
answers to dumps take at most `MAX_DUMP_SHARE` of the time, and no further dump is taken of
TaskManagers that answer slowly.
"""

import re
import time
from collections.abc import Iterable, Mapping
from urllib.parse import quote

from streamplace.flink.cpu.charging import NO_DUMPS, DumpCounts
from streamplace.flink.rest.client import FlinkError, NoAnswer, Rest
from streamplace.model.message_text import shown

MAX_DUMP_SHARE = 0.1
"""Maximum share of the time that requests for dumps take; judgement: they take longer than the JVM
stands still."""
MAX_ANSWER_SECONDS = 1.0
"""Maximum duration of a dump before another one; judgement: the job stands still meanwhile."""
MAX_FAILURES = 3
"""Number of unanswered requests in a row after which no more dumps are taken of a TaskManager."""
_HEAD = re.compile(r" Id=(\d+) ([A-Z_]+)[^\n]*")
_NATIVE = re.compile(r"\n\s*at (?:[^\s(]+[./])?(\w+)\(Native Method\)")
_WAITS = re.compile(
    r"(?:epollWait|poll|wait|accept|sleep|socket(?:Read|Accept|Connect)|lookup|park|connect|dumpThr)"
    r"\w*|flush"
)
"""Native methods that wait for other threads, the network or a disk, and the dump itself."""
_BLOCKING = "NioSocketImpl.tryRead"
"""Method that waits for data of a socket, from Java 13 on."""


def is_on_core(dumped: str, name: str) -> bool:
    r"""Whether a thread is on a core, or waits for one, by its text in a dump.

    >>> is_on_core('"a" Id=9 RUNNABLE\n\tat A.work(A.java:1)\n', "a")
    True
    >>> is_on_core('"a" Id=9 RUNNABLE (in native)\n\tat ch.EPoll.wait(Native Method)\n', "a")
    False
    """
    head = _HEAD.match(dumped, len(name) + 2)
    if head is None or head[2] != "RUNNABLE" or not dumped[head.end() :].strip():
        return False  # a thread without frames waits for signals
    native = _NATIVE.match(dumped, head.end())
    if native is None:
        return True
    return not _WAITS.fullmatch(native[1]) and not (native[1] == "read0" and _BLOCKING in dumped)


class ThreadDumps:
    """Dumps of some TaskManagers, counted by thread."""

    def __init__(self, rest: Rest, devices: Iterable[str]) -> None:
        self._rest = rest.patient(0.0, lambda _: None)
        self._due = dict.fromkeys(devices, 0.0)
        self._failures = dict.fromkeys(self._due, 0)
        self._counts = dict.fromkeys(self._due, NO_DUMPS)
        self._began = time.monotonic()
        self.doubts: dict[str, str] = {}
        """TaskManager of which no more dumps are taken → sentence on that."""

    def take(self) -> None:
        """Take the dumps that are due."""
        for device in self._due.keys() - self.doubts.keys():
            began = time.monotonic()
            if began < self._due[device]:
                continue
            try:
                answer = self._rest.get(f"/taskmanagers/{quote(device, safe='')}/thread-dump")
            except FlinkError as error:  # such as of a gateway that forbids or truncates dumps
                self._failures[device] += 1
                if self._failures[device] >= MAX_FAILURES or not isinstance(error, NoAnswer):
                    self._give_up(device, str(error))
                continue
            self._failures[device] = 0
            now = time.monotonic()
            self._due[device] = began + (now - began) / MAX_DUMP_SHARE
            if now - began > MAX_ANSWER_SECONDS:
                self._give_up(device, f"one takes {now - began:.1f} s, for which it stands still")
            self._count(device, answer["threadInfos"], now)

    def _count(self, device: str, rows: Iterable[Mapping[str, str]], now: float) -> None:
        number, before, _ = self._counts[device]
        hits = dict(before)
        for row in rows:
            name, dumped = row["threadName"], row["stringifiedThreadInfo"]
            head = _HEAD.match(dumped, len(name) + 2)
            key = name, 0 if head is None else int(head[1])
            hits[key] = hits.get(key, 0) + is_on_core(dumped, name)
        self._counts[device] = DumpCounts(number + 1, hits, now - self._began)

    def counts(self) -> dict[str, DumpCounts]:
        """TaskManager → its dumps so far, counted by thread."""
        return dict(self._counts)

    def _give_up(self, device: str, why: str) -> None:
        self.doubts[device] = (
            f"thread dumps of {shown(device)} cannot be taken ({why}), so its CPU is divided by "
            "busy time"
        )

"""CPU of the threads of TaskManagers by streamplace's metric reporter (`java/CpuReporter.java`).

The reporter adds gauges to each TaskManager, which Flink's REST interface shows like its own
metrics. They are texts with the same rows as `cpu.threads` reads on this machine, and with the
limits of the process. Times are by the TaskManager's own clock; only differences are used.
"""

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import NamedTuple
from urllib.parse import quote

from streamplace.flink.cpu.charging import JavaThread
from streamplace.flink.cpu.limits import CpuPool
from streamplace.flink.cpu.threads import PAUSE_SECONDS
from streamplace.flink.rest.client import FlinkError, Rest
from streamplace.model.message_text import shown

JAR = "streamplace-reporter.jar"
VERSION = 1
"""Version of the table that the reporter writes."""
UPDATE_SECONDS = 15.0
"""Longest wait for a newer report: Flink fetches metrics every 10 s (default), when it is asked."""
NONE = "it is no table of threads"
_GAUGE = re.compile(r"(.*\.)?streamplace\d{1,2}")
_HEAD = re.compile(r"streamplace (\d+) (\d+) (\d+) (\d+)\n")
_ESCAPED = re.compile(r"\\(.)")


class CpuReport(NamedTuple):
    """Report of a reporter on its TaskManager."""

    threads: list[JavaThread]
    cpu: float  # seconds of CPU of the process
    moment: float  # on a clock of its own
    pool: CpuPool
    throttled: float = 0.0  # seconds for which its quota has stopped it


def jar_path() -> str:
    """Path of the jar with the reporter."""
    return str(files(__package__).joinpath(JAR))


def parse_report(texts: Iterable[str]) -> CpuReport:
    """CpuReport from the texts of all gauges, in any order.

    A malformed report raises a ValueError with the reason.
    """
    chunks: dict[int, str] = {}
    total, numbers = 0, set()
    for text in texts:
        head = _HEAD.match(text)
        if head is None:
            raise ValueError(NONE)
        version, number, chunk, total = map(int, head.groups())
        if version != VERSION:
            raise ValueError(
                f"the reporter has version {version} and not {VERSION}; replace its jar by the "
                f"{JAR} of this streamplace"
            )
        if chunk < total:
            numbers.add(number)
            chunks[chunk] = text[head.end() :]
    if len(numbers) != 1 or len(chunks) != total:
        raise ValueError(f"{len(chunks)} of {total} parts of its report fit together")
    first, *rows = "".join(chunks[i] for i in range(total)).splitlines()
    if first.startswith("fault "):
        raise ValueError(f"it cannot be read there: {shown(first, 200)}")
    try:
        _, cpu, moment, boot, cores, pinned, quota, stopped, group = first.split(" ")
        now = int(moment) * 1e-9
        pools = [CpuPool("", float(cores), boot), CpuPool(f"cores {pinned}", _count(pinned), boot)]
        if float(quota) > 0:
            pools.append(CpuPool(group, float(quota), boot))
        threads = [_thread(row, now) for row in rows]
        pool, throttled = min(pools, key=lambda pool: pool.cores), max(0, int(stopped)) * 1e-9
        return CpuReport(threads, int(cpu) * 1e-9, now, pool, throttled)
    except ValueError:
        raise ValueError(NONE) from None


def _thread(row: str, now: float) -> JavaThread:
    native, cpu, delay, wakes, name = row.split(" ", 4)
    name = _ESCAPED.sub(lambda found: "\n" if found[1] == "n" else found[1], name)
    return JavaThread(int(native), name, int(cpu) * 1e-9, now, int(delay) * 1e-9, int(wakes))


def _count(pinned: str) -> float:
    """Number of cores in a list of the kernel.

    >>> _count("0-3,8"), _count("-")
    (5.0, inf)
    """
    ends = [part.partition("-") for part in pinned.split(",") if part[:1].isdigit()]
    return float(sum(int(end or low) - int(low) + 1 for low, _, end in ends)) or float("inf")


@dataclass(slots=True)
class Reporters:
    """Reporters of a cluster, if there are any."""

    rest: Rest
    faults: dict[str, str] = field(default_factory=dict)  # TaskManager → why its report is not used
    _gauges: dict[str, list[str]] = field(default_factory=dict, init=False)

    def read(
        self, devices: Iterable[str], before: Mapping[str, CpuReport] | None = None
    ) -> dict[str, CpuReport]:
        """CpuReport of each of some TaskManagers that has a reporter.

        ``before``: earlier reports; newer ones are awaited, and used once they are there.
        """
        reports = {}
        deadline = time.monotonic() + UPDATE_SECONDS
        for device in devices:
            if device in self.faults or not self._found(device):
                continue
            found = self._read(device)
            known = found if before is None else before.get(device)
            while found and known and found.moment == known.moment and time.monotonic() < deadline:
                time.sleep(PAUSE_SECONDS)
                found = self._read(device)
            if found is not None:
                reports[device] = found
        return reports

    def pools(self, devices: Iterable[str]) -> dict[str, CpuPool]:
        """CPU that limits each of some TaskManagers that has a reporter."""
        found = {device: self._read(device) for device in devices if self._found(device)}
        return {device: report.pool for device, report in found.items() if report is not None}

    def _found(self, device: str) -> bool:
        if device not in self._gauges:
            if (rows := self._rows(device, "")) is None:
                return False
            self._gauges[device] = [row["id"] for row in rows if _GAUGE.fullmatch(row["id"])]
        return bool(self._gauges[device])

    def _read(self, device: str) -> CpuReport | None:
        names = ",".join(quote(name, safe="") for name in self._gauges[device])
        fault = ""
        for _ in range(3):  # it may be written while it is fetched
            rows = self._rows(device, f"?get={names}") or []
            try:
                return parse_report(row.get("value", "") for row in rows)
            except ValueError as error:
                fault = str(error)
            time.sleep(PAUSE_SECONDS)
        self.faults[device] = fault
        return None

    def _rows(self, device: str, query: str) -> list[dict[str, str]] | None:
        """Metrics of a TaskManager; None without an answer, as if it is gone."""
        try:
            path = f"/taskmanagers/{quote(device, safe='')}/metrics{query}"
            rows: list[dict[str, str]] = self.rest.get(path)
        except FlinkError:
            return None
        return rows

    @property
    def doubts(self) -> list[str]:
        """Sentences on reports that are not used."""
        return [
            f"the report of {shown(device)} is not used: {why}"
            for device, why in self.faults.items()
        ]

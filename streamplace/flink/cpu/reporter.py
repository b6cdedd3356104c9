"""CPU of the threads of TaskManagers on other machines, by the metric reporter of streamplace.

The reporter (`java/CpuReporter.java`) adds gauges to each TaskManager, which Flink's REST interface
shows like its own metrics. Their texts have the rows that `cpu.threads` reads on this machine, and
the limits of the process. Times are by the TaskManager's own clock; only differences are used.
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
"""Maximum wait for a newer report: Flink fetches metrics on request, every 10 s by default."""
MALFORMED = "it is not a table of threads"
_GAUGE = re.compile(r"(.*\.)?streamplace\d{1,2}")
_PART = re.compile(r"streamplace (\d+) (\d+) (\d+) (\d+)\n")
_ESCAPED = re.compile(r"\\(.)")


class CpuReport(NamedTuple):
    """Report of a reporter on its TaskManager."""

    threads: list[JavaThread]
    cpu: float  # seconds of CPU of the process
    moment: float  # on the clock of the TaskManager
    pool: CpuPool
    throttled: float = 0.0  # seconds for which its quota has stopped it


def jar_path() -> str:
    """Path of the jar with the reporter."""
    return str(files(__package__).joinpath(JAR))


def parse_report(texts: Iterable[str]) -> CpuReport:
    """Parse the texts of all gauges of a reporter, in any order.

    A malformed report raises a ValueError with the reason.
    """
    chunks: dict[int, str] = {}
    total, numbers = 0, set()
    for text in texts:
        head = _PART.match(text)
        if head is None:
            raise ValueError(MALFORMED)
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
        raise ValueError(f"the reporter cannot read the threads: {shown(first, 200)}")
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
        raise ValueError(MALFORMED) from None


def _thread(row: str, now: float) -> JavaThread:
    native, cpu, delay, wakes, name = row.split(" ", 4)
    name = _ESCAPED.sub(lambda escape: "\n" if escape[1] == "n" else escape[1], name)
    return JavaThread(int(native), name, int(cpu) * 1e-9, now, int(delay) * 1e-9, int(wakes))


def _count(pinned: str) -> float:
    """Number of cores in a list of the kernel; infinite if it names none.

    >>> _count("0-3,8"), _count("-")
    (5.0, inf)
    """
    ends = [part.partition("-") for part in pinned.split(",") if part[:1].isdigit()]
    return float(sum(int(end or low) - int(low) + 1 for low, _, end in ends)) or float("inf")


@dataclass(slots=True)
class Reporters:
    """Reporters of a cluster, if there are any."""

    rest: Rest
    # TaskManager whose report is not used → sentence on that.
    doubts: dict[str, str] = field(default_factory=dict, init=False)
    _gauges: dict[str, list[str]] = field(default_factory=dict, init=False)

    def read(
        self, devices: Iterable[str], before: Mapping[str, CpuReport] | None = None
    ) -> dict[str, CpuReport]:
        """Reports on the TaskManagers that have a reporter.

        ``before``: earlier reports, for which newer ones are awaited; None to await the next update
        of each report.
        """
        reports = {}
        deadline = time.monotonic() + UPDATE_SECONDS
        for device in devices:
            if device in self.doubts or not self._has_reporter(device):
                continue
            report = self._read(device)
            old = report if before is None else before.get(device)
            while report and old and report.moment == old.moment and time.monotonic() < deadline:
                time.sleep(PAUSE_SECONDS)
                report = self._read(device)
            if report is not None:
                reports[device] = report
        return reports

    def pools(self, devices: Iterable[str]) -> dict[str, CpuPool]:
        """CPU pools of the TaskManagers that have a reporter."""
        reports = {device: self._read(device) for device in devices if self._has_reporter(device)}
        return {device: report.pool for device, report in reports.items() if report is not None}

    def _has_reporter(self, device: str) -> bool:
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
        self.doubts[device] = f"the report of {shown(device)} is not used: {fault}"
        return None

    def _rows(self, device: str, query: str) -> list[dict[str, str]] | None:
        """Metrics of a TaskManager; None without an answer, as when it is gone."""
        try:
            path = f"/taskmanagers/{quote(device, safe='')}/metrics{query}"
            rows: list[dict[str, str]] = self.rest.get(path)
        except FlinkError:
            return None
        return rows

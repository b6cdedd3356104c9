"""CPU limits of TaskManagers on this machine, by quotas of their cgroups and by their cores."""

import math
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

FULL = 0.95
"""A TaskManager that uses this part of its CPU has no CPU left."""
_ROOT = Path("/sys/fs/cgroup")


class Throttling(NamedTuple):
    """Counts of the quota of a process, since its start.

    Attributes
    ----------
    periods, throttled
        Number of periods in which the process ran, and of those in which it was throttled.
    """

    periods: int = 0
    throttled: int = 0

    def share_until(self, later: "Throttling") -> float:
        """Part of the periods since then in which the process was throttled."""
        return (later.throttled - self.throttled) / max(1, later.periods - self.periods)


class CpuTime(NamedTuple):
    """CPU time of a process in seconds, at a time of the clock ``time.monotonic``."""

    moment: float
    seconds: float

    @classmethod
    def of(cls, process: int) -> "CpuTime":
        """Read the CPU time of a process of this machine; 0 for one that has ended."""
        with suppress(OSError, ValueError):
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            ticks = int(fields[11]) + int(fields[12])
            return cls(time.monotonic(), ticks / os.sysconf("SC_CLK_TCK"))
        return cls(time.monotonic(), 0.0)

    def cores_until(self, later: "CpuTime") -> float:
        """Cores that the process has used since then."""
        return max(0.0, later.seconds - self.seconds) / max(later.moment - self.moment, 1e-9)


def cpu_limit(process: int) -> float | None:
    """Maximum number of cores of a process of this machine; None if there is no limit."""
    quotas = [quota for folder in _groups(process) if (quota := _quota(folder)) is not None]
    with suppress(OSError, AttributeError):  # it has ended; not every system pins processes
        pinned = len(os.sched_getaffinity(process))
        if pinned < (os.cpu_count() or pinned):
            quotas.append(float(pinned))
    return min(quotas, default=None)


def throttling(process: int) -> Throttling:
    """Counts of the innermost cgroup that limits a process; zeros if there is none."""
    for folder in _groups(process):
        if _quota(folder) is not None:
            with suppress(OSError, ValueError):
                rows = dict(map(str.split, (folder / "cpu.stat").read_text().splitlines()))
                return Throttling(int(rows["nr_periods"]), int(rows["nr_throttled"]))
    return Throttling()


def _groups(process: int) -> Iterator[Path]:
    """Folders of the cgroups of a process, of either version, the innermost first."""
    with suppress(OSError):  # the process has ended
        for line in Path(f"/proc/{process}/cgroup").read_text().splitlines():
            _, kinds, path = line.split(":", 2)
            if "cpu" in kinds.split(","):
                mounts = [_ROOT / "cpu", _ROOT / kinds]
            elif not kinds:
                mounts = [_ROOT, _ROOT / "unified"]
            else:
                continue
            inner = Path(path.lstrip("/"))
            yield from (m / one for m in mounts if m.is_dir() for one in (inner, *inner.parents))


def _quota(folder: Path) -> float | None:
    """Quota of a cgroup itself, in cores; None if it has none."""
    with suppress(OSError, ValueError):
        if (folder / "cpu.max").exists():
            most, period = (folder / "cpu.max").read_text().split()
        else:
            most, period = ((folder / f"cpu.cfs_{k}_us").read_text() for k in ("quota", "period"))
        if most != "max" and int(most) > 0:
            return int(most) / int(period)
    return None


def whole_cores(limit: float) -> tuple[int, float]:
    """Number of cores that represent a limit, and the part of a core's speed that each has.

    >>> whole_cores(0.25), whole_cores(2.0), whole_cores(1.5)
    ((1, 0.25), (2, 1.0), (2, 0.75))
    """
    cores = max(1, math.ceil(limit - 1e-9))
    return cores, limit / cores

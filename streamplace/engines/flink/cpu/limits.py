"""CPU limits of TaskManagers on this machine, by quotas of their cgroups and by their cores.

A TaskManager takes its CPU from a pool: the cgroup with the smallest quota, the cores that it is
pinned to, or all cores of the machine. Several TaskManagers may share a pool.
"""

import math
import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping
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


class CpuPool(NamedTuple):
    """CPU that one or several processes of this machine share.

    Attributes
    ----------
    name
        Cgroup, or cores, that limit it; empty for all cores of the machine.
    cores
        Maximum number of cores that they use together.
    """

    name: str
    cores: float


class CpuShare(NamedTuple):
    """Part of a TaskManager in its pool.

    Attributes
    ----------
    limit
        Cores that it counts with.
    pool
        The CPU that it shares with other TaskManagers; None if it has a pool for itself.
    is_limited
        Whether a cgroup or pinning limits it, and not only the machine.
    """

    limit: float
    pool: CpuPool | None = None
    is_limited: bool = True

    @property
    def whole_cores(self) -> tuple[int, float]:
        """Number of cores that represent it, and the part of a core's speed that each has."""
        return whole_cores(self.limit)


def cpu_limit(process: int) -> float | None:
    """Maximum number of cores of a process of this machine; None if there is no limit."""
    return min((pool.cores for pool in _limits(process)), default=None)


def cpu_pool(process: int) -> CpuPool:
    """Pool that limits a process of this machine most; the outermost of equal ones."""
    pools = [*_limits(process), CpuPool("", float(os.cpu_count() or 1))]
    return min(reversed(pools), key=lambda pool: pool.cores)


def cpu_shares(processes: Mapping[str, int]) -> dict[str, CpuShare]:
    """Part of every TaskManager of this machine in the CPU that it shares with others.

    A TaskManager with a pool for itself has all of it. Others have equal parts of theirs, in whole
    cores, and at least one if there is one. Those with pools of their own have a part of the
    machine, too.
    """
    pools = {device: cpu_pool(process) for device, process in processes.items()}
    number = Counter(pools.values())
    shares = {}
    for device, pool in pools.items():
        members = number[pool] if pool.name else len(pools)
        if members == 1:
            shares[device] = CpuShare(pool.cores, None, bool(pool.name))
        else:
            shares[device] = CpuShare(_even(pool.cores, members), pool, bool(pool.name))
    return shares


def _even(cores: float, members: int) -> float:
    """Cores of each member of a pool."""
    return min(cores, max(1.0, cores // members))


def _limits(process: int) -> list[CpuPool]:
    """Everything that limits a process to a part of the machine, the innermost first."""
    pools = [
        CpuPool(str(folder), quota)
        for folder in _groups(process)
        if (quota := _quota(folder)) is not None
    ]
    with suppress(OSError, AttributeError):  # it has ended; not every system pins processes
        pinned = os.sched_getaffinity(process)
        if len(pinned) < (os.cpu_count() or len(pinned)):
            pools.append(CpuPool(f"cores {sorted(pinned)}", float(len(pinned))))
    return pools


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

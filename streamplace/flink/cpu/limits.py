"""CPU limits of TaskManagers on this machine, by quotas of their cgroups and by their cores.

A TaskManager takes its CPU from a pool: the cgroup with the smallest quota, the cores that it is
pinned to, or all cores of the machine. Several TaskManagers may share a pool and use its idle CPU.
Devices of the model share nothing, so each has a part of the pool:

- an equal part, in whole cores if that is one or more;
- if it uses more now, the used cores rounded up. If these do not fit into the pool, or the pool is
  full, it has exactly the used cores, and the others have at most equal parts of the rest.

So no measured placement uses more than the model allows, and the parts of a full pool have no more
CPU together than the pool. None of its TaskManagers is full before the pool is.
"""

import math
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from streamplace.flink.constants import MIN_CAUSE

FULL = 0.95
"""A TaskManager that uses this part of its CPU has no CPU left."""
TINY = 1e-9
"""Difference that rounding may make of cores, and relative one of rates and factors of costs."""
MIN_CORES = 0.01
"""Least part of a TaskManager in the model, however full its machine is."""
MAX_RESERVED = 0.9
"""Maximum share of a device's CPU that is reserved; without any CPU, nothing could be predicted."""
_ROOT = Path("/sys/fs/cgroup")


class CpuPool(NamedTuple):
    """CPU that one or several processes of this machine share."""

    name: str  # cgroup, or cores, that limit it; empty for all cores of the machine
    cores: float  # maximum number of cores that they use together
    host: str = ""  # boot id of another machine; empty for this one


class CpuShare(NamedTuple):
    """Part of a TaskManager in its pool."""

    limit: float  # cores that the model assigns to it
    # The CPU that it shares with other TaskManagers; None if it has a pool for itself.
    pool: CpuPool | None = None
    used: float = 0.0  # cores that it uses, including subtasks that share them

    @property
    def whole_cores(self) -> tuple[int, float]:
        """Number of cores that represent it, and the part of a core's speed that each has.

        A shared pool limits no single thread, so a limit of a core or more is rounded down to whole
        cores there, which are at least as fast as a core.

        >>> [CpuShare(limit).whole_cores for limit in (0.25, 2.0, 1.5)]
        [(1, 0.25), (2, 1.0), (2, 0.75)]
        """
        whole = math.ceil(self.limit - TINY) if self.pool is None else math.floor(self.limit + TINY)
        cores = max(1, whole)
        return cores, self.limit / cores

    @property
    def shows_full_threads(self) -> bool:
        """Whether it is full if one of its threads runs all the time.

        >>> CpuShare(0.25).shows_full_threads, CpuShare(2.0).shows_full_threads
        (True, False)
        """
        return self._cores <= 1

    @property
    def _cores(self) -> float:
        return self.limit if self.pool is None else self.pool.cores

    @property
    def is_full(self) -> bool:
        """Whether it has no CPU left."""
        return self.used >= FULL * self._cores


def is_starved(throttled: float, *, is_full: bool) -> bool:
    """Whether a TaskManager has no CPU left, or its quota stops it for a part of the time."""
    return is_full or throttled >= MIN_CAUSE


def reserved_cores(used: float, limit: float) -> float:
    """Cores of a device that other processes take from a job."""
    return min(used, MAX_RESERVED * limit)


def cpu_seconds(process: int) -> float:
    """CPU time of a process of this machine; 0 for one that has ended."""
    with suppress(OSError, ValueError):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def cpu_pool(process: int) -> CpuPool:
    """Pool that limits a process of this machine most; the outermost of equal ones."""
    pools = [CpuPool("", float(os.cpu_count() or 1))]
    with suppress(OSError, AttributeError):  # it has ended; not every system pins processes
        pinned = os.sched_getaffinity(process)
        pools.append(CpuPool(f"cores {sorted(pinned)}", float(len(pinned))))
    for folder in reversed([*_groups(process)]):
        if (quota := _quota(folder)) is not None:
            pools.append(CpuPool(str(folder), quota))
    return min(pools, key=lambda pool: pool.cores)


def throttled_seconds(process: int) -> float:
    """Seconds for which its quota has stopped a process; 0 without a quota."""
    with suppress(OSError, ValueError, KeyError):
        rows = (Path(cpu_pool(process).name) / "cpu.stat").read_text().splitlines()
        stat = dict(row.split() for row in rows)
        if "throttled_usec" in stat:
            return int(stat["throttled_usec"]) * 1e-6
        return int(stat["throttled_time"]) * 1e-9
    return 0.0


def cpu_shares(
    processes: Mapping[str, int],
    used: Mapping[str, float] | None,
    reported: Mapping[str, CpuPool] = MappingProxyType({}),
) -> dict[str, CpuShare]:
    """Share of every TaskManager in its CPU pool.

    TaskManagers with pools of their own also have parts of the machine, which nobody else gets.

    ``processes``: TaskManager → its process on this machine.
    ``used``: TaskManager → cores that it uses now; None if that is not measured.
    ``reported``: pools of TaskManagers on other machines.
    """
    pools = {device: cpu_pool(process) for device, process in processes.items()} | {**reported}
    cores = {device: (used or {}).get(device, 0.0) for device in pools}
    shares: dict[str, CpuShare] = {}
    for pool in set(pools.values()):
        own = {device for device in pools if pools[device] == pool}
        beside = {d for d in pools if not pool.name and pools[d].host == pool.host}
        members = {device: cores[device] for device in pools if device in own | beside}
        parts = _parts(members, pool.cores)
        shared, spent = pool if len(members) > 1 else None, math.fsum(members.values())
        shares |= {device: CpuShare(parts[device], shared, spent) for device in own}
    return {device: shares[device] for device in pools}


def _parts(used: Mapping[str, float], cores: float) -> dict[str, float]:
    """Cores of the members of a pool, by what they use: see the top of this module.

    >>> _parts({"a": 1.6, "b": 0.1, "c": 0.1}, 4.0), _parts({"a": 1.25, "b": 0.5}, 2.0)
    ({'a': 2.0, 'b': 1.0, 'c': 1.0}, {'a': 1.25, 'b': 0.75})
    >>> _parts({"a": 0.5, "b": 0.0}, 4.0), _parts({"a": 0.5, "b": 0, "c": 0, "d": 0}, 2.0)
    ({'a': 2.0, 'b': 2.0}, {'a': 0.5, 'b': 0.5, 'c': 0.5, 'd': 0.5})
    """
    if len(used) == 1:
        return dict.fromkeys(used, cores)
    left, even = cores, cores // len(used) or cores / len(used)
    parts = {d: max(even, float(math.ceil(own))) if own > even else even for d, own in used.items()}
    if math.fsum(parts.values()) <= left + TINY:
        return parts
    ranked = sorted(used, key=used.__getitem__, reverse=True)
    for members, device in zip(range(len(used), 0, -1), ranked, strict=True):
        parts[device] = max(used[device], min(even, left / members), MIN_CORES)
        left -= parts[device]
    return parts


def _groups(process: int) -> Iterator[Path]:
    """Folders of the cgroups of a process, of either version, the innermost first."""
    with suppress(OSError):  # the process has ended
        for line in Path(f"/proc/{process}/cgroup").read_text().splitlines():
            _, kinds, folder = line.split(":", 2)
            if "cpu" in kinds.split(","):
                mounts = [_ROOT / "cpu", _ROOT / kinds]
            elif not kinds:
                mounts = [_ROOT, _ROOT / "unified"]
            else:
                continue
            inner = Path(folder.lstrip("/"))
            yield from (m / path for m in mounts if m.is_dir() for path in (inner, *inner.parents))


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

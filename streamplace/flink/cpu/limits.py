"""CPU limits of TaskManagers on this machine, by quotas of their cgroups and by their cores.

A TaskManager takes its CPU from a pool: the cgroup with the smallest quota, the cores that it is
pinned to, or all cores of the machine. Several TaskManagers may share a pool and use its idle CPU.
Devices of the model share nothing, so each gets a part of the pool:

- an equal part, in whole cores if that is one or more;
- or its used cores, rounded up, if they are more. If these do not fit into the pool, it gets
  exactly its used cores, and the others get at most equal parts of the rest.

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
"""Used share of the CPU of a TaskManager from which on it is full."""
TINY = 1e-9
"""Rounding error of cores, and relative rounding error of rates and factors of costs."""
MIN_CORES = 0.01
"""Minimum cores of a TaskManager in the model, however full its machine is."""
MAX_RESERVED = 0.9
"""Maximum reserved share of a device's CPU; without any CPU, nothing could be predicted."""
_ROOT = Path("/sys/fs/cgroup")


class CpuPool(NamedTuple):
    """CPU that one or several processes of a machine share."""

    name: str  # cgroup, or pinned cores; empty for all cores of the machine
    cores: float  # maximum number of cores that they use together
    host: str = ""  # boot id of another machine; empty for this one


class CpuShare(NamedTuple):
    """Part of a TaskManager in its pool."""

    limit: float  # cores that the model assigns to it
    pool: CpuPool | None = None  # pool that it shares with other TaskManagers; None if with none
    used: float = 0.0  # cores that all TaskManagers of its pool use

    @property
    def whole_cores(self) -> tuple[int, float]:
        """Number of cores that represent it, and their speed relative to a core of the machine.

        A shared pool limits no single thread. So its limits of a core or more are rounded down to
        whole cores, which are at least as fast as a core.

        >>> [CpuShare(limit).whole_cores for limit in (0.25, 2.0, 1.5)]
        [(1, 0.25), (2, 1.0), (2, 0.75)]
        """
        whole = math.ceil(self.limit - TINY) if self.pool is None else math.floor(self.limit + TINY)
        cores = max(1, whole)
        return cores, self.limit / cores

    @property
    def shows_full_threads(self) -> bool:
        """Whether one thread that runs all the time makes it full.

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
    """Whether a TaskManager has no CPU left, or its quota stops it for too long."""
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
    """Smallest pool of a process of this machine; the outermost of equal pools."""
    pools = [CpuPool("", float(os.cpu_count() or 1))]
    with suppress(OSError, AttributeError):  # it has ended, or the system pins no processes
        pinned = os.sched_getaffinity(process)
        pools.append(CpuPool(f"cores {sorted(pinned)}", float(len(pinned))))
    for folder in reversed([*_groups(process)]):
        if (quota := _quota(folder)) is not None:
            pools.append(CpuPool(str(folder), quota))
    return min(pools, key=lambda pool: pool.cores)


def throttled_seconds(process: int) -> float:
    """Seconds for which a quota has stopped a process; 0 without a quota."""
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

    The pool of a whole machine also has the members of its smaller pools: nobody else gets their
    parts.

    ``processes``: TaskManager → its process on this machine.
    ``used``: TaskManager → cores that it uses now; None if not measured.
    ``reported``: pools of TaskManagers on other machines.
    """
    pools = {device: cpu_pool(process) for device, process in processes.items()} | {**reported}
    cores = {device: (used or {}).get(device, 0.0) for device in pools}
    shares: dict[str, CpuShare] = {}
    for pool in set(pools.values()):
        members = {
            device: cores[device]
            for device, other in pools.items()
            if other == pool or (not pool.name and other.host == pool.host)
        }
        parts = _parts(members, pool.cores)
        shared, total = pool if len(members) > 1 else None, math.fsum(members.values())
        shares |= {d: CpuShare(parts[d], shared, total) for d in members if pools[d] == pool}
    return {device: shares[device] for device in pools}


def _parts(used: Mapping[str, float], cores: float) -> dict[str, float]:
    """Cores of the members of a pool by their used cores: see the top of this module.

    >>> _parts({"a": 1.6, "b": 0.1, "c": 0.1}, 4.0), _parts({"a": 1.25, "b": 0.5}, 2.0)
    ({'a': 2.0, 'b': 1.0, 'c': 1.0}, {'a': 1.25, 'b': 0.75})
    >>> _parts({"a": 0.5, "b": 0.0}, 4.0), _parts({"a": 0.5, "b": 0, "c": 0, "d": 0}, 2.0)
    ({'a': 2.0, 'b': 2.0}, {'a': 0.5, 'b': 0.5, 'c': 0.5, 'd': 0.5})
    """
    if len(used) == 1:
        return dict.fromkeys(used, cores)
    even = cores // len(used) or cores / len(used)
    parts = {d: max(even, float(math.ceil(n))) if n > even else even for d, n in used.items()}
    if math.fsum(parts.values()) <= cores + TINY:
        return parts
    rest = cores
    ranked = sorted(used, key=used.__getitem__, reverse=True)
    for members, device in zip(range(len(used), 0, -1), ranked, strict=True):
        parts[device] = max(used[device], min(even, rest / members), MIN_CORES)
        rest -= parts[device]
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
    """Quota of a cgroup without its parents, in cores; None if it has none."""
    with suppress(OSError, ValueError):
        if (folder / "cpu.max").exists():
            quota, period = (folder / "cpu.max").read_text().split()
        else:
            quota, period = ((folder / f"cpu.cfs_{k}_us").read_text() for k in ("quota", "period"))
        if quota != "max" and int(quota) > 0:
            return int(quota) / int(period)
    return None

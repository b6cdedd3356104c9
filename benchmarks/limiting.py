"""Devices whose CPU is limited only while they are measured: TaskManagers in cgroups of version 1.

A job warms up without limits, so that Java compiles it within seconds; what compiles is never
limited. All that is no device has a cgroup of its own, with less weight than the devices.
"""

import os
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import click
from limited import cgroups, limited_cluster

from streamplace.flink.local.session import Flink, LocalCluster

PERIOD_US = 20_000
"""Short, so that a slow device is slow and not fast by turns: queues would run empty meanwhile."""
FREE, FIRST, OTHERS = 9_000, 200_000, 100_000
"""Weights of a device's CPU while it warms up and is measured, and of all else that runs here."""
SETTINGS: dict[str, str | int | float] = {
    "taskmanager.numberOfTaskSlots": 4,
    "taskmanager.memory.framework.off-heap.size": "128m",  # Flink's default; Netty's for every job
    "taskmanager.memory.network.min": "128m",
    "taskmanager.memory.network.max": "128m",
    "taskmanager.memory.segment-size": "8kb",  # queues that fill within seconds
    "pipeline.operator-chaining.enabled": False,
    "metrics.fetcher.update-interval": 1000,
}
COMPILERS = ("C1 Comp", "C2 Comp")
KINDS = (
    *((name, "compilers") for name in COMPILERS),
    ("Flink Netty", "network"),
    ("flink-rate", "tasks"),
    *((name, "Java") for name in ("GC ", "G1 ", "VM ", "Service", "Sweeper", "Signal", "JFR")),
    *((name, "Flink") for name in ("flink-", "Flink-", "pekko", "taskmanager", "OutputFlusher")),
)
"""Beginnings of threads' names, and what these threads do; all others run tasks."""
LOOKS, MOST_WARM_UP, COMPILED = 10, 300, 0.1
"""Seconds over which compilers of all TaskManagers take so few cores at the end of a warm-up."""


@contextmanager
def measured_devices(
    flink: Flink,
    devices: Sequence[str],
    *,
    cores: float,
    bandwidth_bps: float,
    settings: Mapping[str, str | int | float] = SETTINGS,
) -> Iterator[LocalCluster]:
    """Run a cluster of limited devices, and all else in a cgroup of less weight."""
    os.nice(-10)
    others = _group("x", 0)
    try:
        with limited_cluster(
            flink, devices, cores=cores, bandwidth_bps=bandwidth_bps, settings=settings
        ) as cluster:
            others.mkdir()
            (others / "cpu.shares").write_text(str(OTHERS))
            for process in (os.getpid(), cluster.processes["jobmanager"].pid):
                (others / "cgroup.procs").write_text(str(process))
            yield cluster
    finally:
        if others.exists():
            for process in (others / "cgroup.procs").read_text().split():
                (others.parent / "cgroup.procs").write_text(process)
            others.rmdir()


def threads(cluster: LocalCluster, device: str) -> Iterator[Path]:
    """Folders of a device's threads."""
    yield from Path(f"/proc/{cluster.processes[device].pid}/task").iterdir()


def compiling(cluster: LocalCluster) -> float:
    """CPU seconds of all threads that compile so far."""
    seconds = 0.0
    for device in cluster.devices:
        for thread in threads(cluster, device):
            with suppress(OSError):  # it ended meanwhile
                if _compiles(thread):
                    seconds += int((thread / "schedstat").read_text().split()[0]) * 1e-9
    return seconds


class CpuWatch:
    """Cores that each device uses from now on, by what its threads do."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.cluster = cluster
        self.begun, self.first = time.monotonic(), self._seconds()

    def cores(self) -> dict[str, dict[str, float]]:
        """Device → kind → cores, until now."""
        passed = time.monotonic() - self.begun
        return {
            device: {
                kind: round((now[kind] - self.first[device][kind]) / passed, 4) for kind in now
            }
            for device, now in self._seconds().items()
        }

    def _seconds(self) -> dict[str, Counter[str]]:
        found = {}
        for device in self.cluster.devices:
            found[device] = seconds = Counter[str]()
            for thread in threads(self.cluster, device):
                with suppress(OSError):  # it ended meanwhile
                    name = (thread / "comm").read_text()
                    kind = next((kind for start, kind in KINDS if name.startswith(start)), "tasks")
                    seconds[kind] += int((thread / "schedstat").read_text().split()[0]) * 1e-9
        return found


def wait_compiled(cluster: LocalCluster) -> None:
    """Wait until Java compiles little.

    Methods are compiled after some thousand calls, so those of slow sources are much later.
    """
    seconds = deque([compiling(cluster)], LOOKS + 1)
    for _ in range(MOST_WARM_UP):
        time.sleep(1.0)
        seconds.append(compiling(cluster))
        if len(seconds) > LOOKS and seconds[-1] - seconds[0] < LOOKS * COMPILED:
            return
    click.echo(f"note: Java still compiles after {MOST_WARM_UP} s", err=True)


def release(cluster: LocalCluster) -> None:
    """Let devices warm up without a limit; what compiles is never limited.

    A job that has run for an hour compiles nothing. Here that is had within seconds.
    """
    for i, device in enumerate(cluster.devices):
        (_group("c", i) / "cpu.shares").write_text(str(FREE))
        (_group("c", i) / "cpu.cfs_quota_us").write_text("-1")
        _free_compilers(cluster, device)


def limit(cluster: LocalCluster, cores: Mapping[str, float]) -> None:
    """Hold devices down to so many cores, each on one core of this machine."""
    for i, device in enumerate(cluster.devices):
        _free_compilers(cluster, device)
        for thread in threads(cluster, device):
            with suppress(OSError):  # it ended meanwhile
                if not _compiles(thread):
                    os.sched_setaffinity(int(thread.name), {core_of(i)})
        (_group("c", i) / "cpu.shares").write_text(str(FIRST))
        (_group("c", i) / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        grant(i, cores[device])


def core_of(i: int) -> int:
    """Core of this machine on which device i runs."""
    return i % (os.cpu_count() or 1)


def grant(i: int, cores: float) -> None:
    """Let device i use so many cores."""
    (_group("c", i) / "cpu.cfs_quota_us").write_text(str(round(cores * PERIOD_US)))


def _free_compilers(cluster: LocalCluster, device: str) -> None:
    for thread in threads(cluster, device):
        with suppress(OSError):  # it ended meanwhile
            if _compiles(thread):
                (_group("x", 0) / "tasks").write_text(thread.name)


def _compiles(thread: Path) -> bool:
    return (thread / "comm").read_text().startswith(COMPILERS)


def _group(kind: str, i: int) -> Path:
    """Cgroup of this process: ``c`` of device i, ``x`` of all that is no device."""
    folder = cgroups()
    assert folder is not None
    return folder / f"sp{os.getpid()}{kind}{i}"

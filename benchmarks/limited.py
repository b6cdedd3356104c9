"""Limited devices: a local Flink whose TaskManagers each have a slow core and a slow network.

Every TaskManager runs in a network namespace of its own, which a bridge connects to the others, and
a cgroup limits its CPU. So one machine shows the effect of placements on several.

Devices that are measured (`measured_devices`, cgroups of version 1) have no limit while a job warms
up, so that Java compiles it within seconds; what compiles is never limited. Everything else on this
machine has a cgroup of its own, with less weight than the devices.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import click

from streamplace.errors import SettingError
from streamplace.flink.local.session import Flink, Host, LocalCluster, local_cluster
from streamplace.flink.pin.pinning import Settings

TOOLS = ("ip", "tc", "nsenter")
PERIOD_US = 100_000
MOST_DEVICES = 250
NO_CGROUP = "there is no cgroup, v1 or v2, that could limit the CPU of devices"
_NETWORK = "198.18"  # RFC 2544: reserved for benchmarks, so no real network uses it
_SHAPING = ("burst", "256kb", "latency", "200ms")
_OURS = re.compile(r"sp(\d+)[a-z]\d+")


def why_unlimited() -> str | None:
    """Why devices cannot be limited on this machine; None if they can be."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "only root on Linux can limit CPU and network of devices"
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        return f"there is no {' and no '.join(missing)} to limit the network of devices"
    if cgroups() is None:
        return NO_CGROUP
    return None


@contextmanager
def limited_cluster(
    flink: Flink,
    devices: Sequence[str],
    *,
    cores: float,
    bandwidth_bps: float,
    settings: Settings | None = None,
) -> Iterator[LocalCluster]:
    """Run a session cluster of limited devices while the block runs, and remove it afterwards.

    ``cores``: share of a core that a TaskManager gets once the cluster is up; a restarted
    TaskManager is not limited.
    ``bandwidth_bps``: maximum rate at which a device sends, and at which it receives.

    An error says why if devices cannot be limited.
    """
    if reason := why_unlimited():
        raise SettingError(reason)
    if len(devices) > MOST_DEVICES:
        raise SettingError(
            f"{len(devices)} limited devices are too many; one machine supports at most "
            f"{MOST_DEVICES}"
        )
    _sweep()
    with ExitStack() as undo:
        gateway, hosts = _network(devices, bandwidth_bps, undo)
        own = {"jobmanager.rpc.address": gateway, "jobmanager.bind-host": gateway}
        shared = {**(settings or {}), **own}
        with local_cluster(flink, devices, settings=shared, hosts=hosts) as cluster:
            for i, device in enumerate(devices):
                _limit_cpu(cluster.processes[device].pid, _group("c", i), cores, undo)
            yield cluster


def cgroups() -> Path | None:
    """Folder in which CPU cgroups can be created: of the v1 controller, else of v2."""
    first = Path("/sys/fs/cgroup/cpu")
    if os.access(first / "cpu.cfs_quota_us", os.W_OK):
        return first
    for mount in Path("/proc/self/mounts").read_text().splitlines():
        _, folder, kind, *_ = mount.split()
        if kind == "cgroup2":
            with suppress(OSError):  # it has no CPU controller, or not for this user
                (Path(folder) / "cgroup.subtree_control").write_text("+cpu")
                return Path(folder)
    return None


def _group(kind: str, i: int) -> Path:
    """Cgroup of this process: ``c`` of device i, ``x`` of all that is no device."""
    if (folder := cgroups()) is None:
        raise SettingError(NO_CGROUP)
    return folder / _name(kind, i)


def _sweep() -> None:
    """Remove the devices of earlier processes that were killed."""
    left = [*Path("/sys/class/net").glob("sp*"), *Path("/run/netns").glob("sp*")]
    left += _group("c", 0).parent.glob("sp*")
    for path in left:
        owner = _OURS.fullmatch(path.name)
        if owner is None or Path("/proc", owner[1]).exists():
            continue
        if path.parent.name == "net":
            _try(f"ip link del {path.name}")
        elif path.parent.name == "netns":
            _try(f"ip netns del {path.name}")
        else:
            _remove_group(path)


def _name(kind: str, i: int) -> str:
    """Name of an object of this process; names of interfaces have at most 15 letters."""
    return f"sp{os.getpid()}{kind}{i}"


def _network(
    devices: Sequence[str], bandwidth_bps: float, undo: ExitStack
) -> tuple[str, dict[str, Host]]:
    """Address of this machine on a new bridge, and a host for every device behind it."""
    bridge, subnet = _name("b", 0), f"{_NETWORK}.{os.getpid() % 256}"
    undo.callback(_try, f"ip link del {bridge}")
    _do(f"ip link add {bridge} type bridge")
    _do(f"ip address add {subnet}.1/24 dev {bridge}")
    _do(f"ip link set {bridge} up")
    hosts = {}
    for i, device in enumerate(devices):
        address = f"{subnet}.{i + 2}"
        _join(bridge, i, address, round(bandwidth_bps), undo)
        hosts[device] = Host(address, ("nsenter", f"--net=/run/netns/{_name('n', i)}"))
    return f"{subnet}.1", hosts


def _join(bridge: str, i: int, address: str, bandwidth_bps: int, undo: ExitStack) -> None:
    """Create a namespace with one interface on the bridge; both ends are shaped."""
    space, plug = _name("n", i), _name("v", i)
    undo.callback(_try, f"ip netns del {space}")
    _do(f"ip netns add {space}")
    undo.callback(_try, f"ip link del {plug}")  # before its namespace, which would live on with it
    _do(f"ip link add {plug} type veth peer name eth0 netns {space}")
    _do(f"ip link set {plug} master {bridge} up")
    _do(f"ip -n {space} address add {address}/24 dev eth0")
    for interface in ("lo", "eth0"):
        _do(f"ip -n {space} link set {interface} up")
    shaping = f"root tbf rate {bandwidth_bps}bit {' '.join(_SHAPING)}"
    _do(f"tc -n {space} qdisc add dev eth0 {shaping}")
    _do(f"tc qdisc add dev {plug} {shaping}")


def _limit_cpu(process: int, group: Path, cores: float, undo: ExitStack) -> None:
    quota = round(cores * PERIOD_US)
    undo.callback(_remove_group, group)
    group.mkdir()
    if (group / "cpu.max").exists():
        (group / "cpu.max").write_text(f"{quota} {PERIOD_US}")
    else:
        (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (group / "cpu.cfs_quota_us").write_text(str(quota))
    (group / "cgroup.procs").write_text(str(process))


def _remove_group(group: Path) -> None:
    """Remove a cgroup; the kernel may need some time after the end of its last process."""
    for _ in range(50):
        try:
            group.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.1)


def _do(command: str) -> None:
    done = subprocess.run(command.split(), capture_output=True, text=True)
    if done.returncode:
        raise SettingError(f"cannot limit devices: {command}: {done.stderr.strip()}")


def _try(command: str) -> None:
    subprocess.run(command.split(), capture_output=True, check=False)


MEASURED_PERIOD_US = 20_000
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


def threads(cluster: LocalCluster, device: str) -> Iterator[tuple[Path, str, float]]:
    """Folder, name and CPU seconds of each of a device's threads."""
    for folder in Path(f"/proc/{cluster.processes[device].pid}/task").iterdir():
        with suppress(OSError):  # it ended meanwhile
            name = (folder / "comm").read_text()
            yield folder, name, int((folder / "schedstat").read_text().split()[0]) * 1e-9


def compiling(cluster: LocalCluster) -> float:
    """CPU seconds of all threads that compile so far."""
    own = (thread for device in cluster.devices for thread in threads(cluster, device))
    return sum(seconds for _, name, seconds in own if name.startswith(COMPILERS))


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
            for _, name, used in threads(self.cluster, device):
                kind = next((kind for start, kind in KINDS if name.startswith(start)), "tasks")
                seconds[kind] += used
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
        for folder, name, _ in threads(cluster, device):
            if not name.startswith(COMPILERS):
                with suppress(OSError):  # it ended meanwhile
                    os.sched_setaffinity(int(folder.name), {core_of(i)})
        (_group("c", i) / "cpu.shares").write_text(str(FIRST))
        (_group("c", i) / "cpu.cfs_period_us").write_text(str(MEASURED_PERIOD_US))
        grant(i, cores[device])


def core_of(i: int) -> int:
    """Core of this machine on which device i runs."""
    return i % (os.cpu_count() or 1)


def grant(i: int, cores: float) -> None:
    """Let device i use so many cores."""
    (_group("c", i) / "cpu.cfs_quota_us").write_text(str(round(cores * MEASURED_PERIOD_US)))


def _free_compilers(cluster: LocalCluster, device: str) -> None:
    for folder, name, _ in threads(cluster, device):
        if name.startswith(COMPILERS):
            with suppress(OSError):  # it ended meanwhile
                (_group("x", 0) / "tasks").write_text(folder.name)

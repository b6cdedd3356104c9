"""Limited devices: a local Flink whose TaskManagers each have a slow core and a slow network.

Every TaskManager runs in a network namespace of its own, which a bridge connects to the others, and
a cgroup limits its CPU. So one machine shows the effect of placements on several.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

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
        shared = {**(settings or {}), **_job_manager(gateway)}
        with local_cluster(flink, devices, settings=shared, hosts=hosts) as cluster:
            for i, device in enumerate(devices):
                _limit_cpu(cluster.processes[device].pid, _name("c", i), cores, undo)
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


def _groups() -> Path:
    if (folder := cgroups()) is None:
        raise SettingError(NO_CGROUP)
    return folder


def _sweep() -> None:
    """Remove the devices of earlier processes that were killed."""
    left = [*Path("/sys/class/net").glob("sp*"), *Path("/run/netns").glob("sp*")]
    left += _groups().glob("sp*")
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


def _job_manager(address: str) -> Settings:
    return {"jobmanager.rpc.address": address, "jobmanager.bind-host": address}


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


def _limit_cpu(process: int, name: str, cores: float, undo: ExitStack) -> None:
    group, quota = _groups() / name, round(cores * PERIOD_US)
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

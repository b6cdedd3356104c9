import os
import subprocess
from contextlib import contextmanager
from types import SimpleNamespace

import limited
import pytest

from streamplace.flink.cpu.limits import cpu_pool

DEVICES = ("dev-0", "dev-1")
MARK = f"sp{os.getpid()}"


def told(command):
    """What a command prints."""
    return subprocess.run(command.split(), capture_output=True, text=True, check=True).stdout


def left():
    """What this process has made, of interfaces, namespaces and cgroups."""
    network = told("ip -brief link") + told("ip netns")
    words = [word for word in network.split() if word.startswith(MARK)]
    return words + [path.name for path in groups().glob(f"{MARK}*")]


def groups():
    """Folder of the cgroups that limit the CPU."""
    return limited.cgroups()


def quota(group):
    """Cores that a cgroup may take, by either version's files."""
    if (group / "cpu.max").exists():
        most, period = (group / "cpu.max").read_text().split()
    else:
        most, period = ((group / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
    return int(most) / int(period)


@contextmanager
def sleepers(flink, devices, *, settings, hosts):
    """A cluster of processes that do nothing."""
    made = {d: subprocess.Popen([*hosts[d].entry, "sleep", "60"]) for d in devices}
    try:
        yield SimpleNamespace(processes=made, hosts=hosts)
    finally:
        for process in made.values():
            process.kill()
            process.wait()


@pytest.fixture
def no_flink(monkeypatch):
    """Limited devices on which nothing runs."""
    if reason := limited.why_unlimited():
        pytest.skip(reason)
    monkeypatch.setattr(limited, "local_cluster", sleepers)


@pytest.mark.usefixtures("no_flink")
def test_devices_are_limited_and_nothing_is_left_of_them():
    """CPU and both directions of the network; Ctrl-C ends it like anything else."""

    def interrupted():
        with limited.limited_cluster(None, DEVICES, cores=0.25, bandwidth_bps=4e7) as cluster:
            process, host = cluster.processes["dev-1"], cluster.hosts["dev-1"]
            inside = f"nsenter {host.entry[1]}"
            assert host.address in told(f"{inside} ip -brief address show eth0")
            assert "rate 40Mbit" in told(f"{inside} tc qdisc show dev eth0")
            assert "rate 40Mbit" in told(f"tc qdisc show dev {MARK}v1")
            group = groups() / f"{MARK}c1"
            assert group.joinpath("cgroup.procs").read_text().split() == [str(process.pid)]
            assert quota(group) == 0.25
            assert cpu_pool(process.pid).cores == 0.25
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert left() == []

"""What TaskManagers take besides their tasks, and how it reaches the cluster file."""

import os
import socket
from types import SimpleNamespace
from typing import Any

import pytest

from streamplace.engines.flink import background, cluster, cpu
from streamplace.engines.flink.background import background_between
from streamplace.engines.flink.cluster import measured_cluster
from streamplace.engines.flink.cpu import JavaThread, listening_ports
from streamplace.io.clusters import parse_cluster

MANAGER = {
    "id": "a",
    "path": "pekko.tcp://flink@127.0.0.1:6122/user/rpc",
    "hardware": {"cpuCores": 1},
    "memoryConfiguration": {},
    "totalResource": {},
}


def flink(*managers: dict[str, Any]) -> Any:
    """REST of a cluster on which no job runs."""
    return SimpleNamespace(
        url="http://x", task_managers=lambda: list(managers), live_jobs=lambda: []
    )


def test_the_background_is_the_least_of_the_task_managers_seen_twice() -> None:
    """Each against its own clock; one that was started meanwhile does not count."""

    def threads(java: float, network: float, elapsed: float) -> list[JavaThread]:
        spent = {"pekko": java, "Flink Netty Client (0) Thread 0": network, "a (1/2)#0": 9 * java}
        spent |= {"C2 CompilerThread0": 5 * java, "Attach Listener": java}
        return [JavaThread(1, name, cpu, elapsed) for name, cpu in spent.items()]

    first = {"a": threads(1.0, 0.5, 10.0), "b": threads(0.0, 0.0, 10.0)}
    second = {
        "a": threads(1.4, 1.0, 20.0),
        "b": threads(0.4, 0.5, 15.0),
        "c": threads(9.0, 9.0, 1.0),
    }
    found = background_between(first, second)
    assert found.java == pytest.approx(0.04)
    assert found.network == pytest.approx(0.05 + 0.1)
    assert found.managers == 2


def test_ports_of_a_process_are_those_it_listens_on() -> None:
    """By them a TaskManager is known; a port that is only connected to is none."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as caller:
            found = listening_ports(os.getpid())
            assert port in found
            assert caller.getsockname()[1] not in found
    assert port not in listening_ports(os.getpid())


def test_task_managers_elsewhere_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor waited for, nor taken for those of another cluster on this machine."""
    monkeypatch.setattr(cpu, "local_task_managers", lambda: [os.getpid()])
    monkeypatch.setattr(background, "time", None)
    found, overhead = background.background(flink(MANAGER), None, 60.0)
    assert (found.managers, overhead) == (0, None)


def test_what_java_takes_is_reserved_in_the_cluster_file() -> None:
    """In MIPS, beside the headers, the headroom and the cost of a remote tuple."""
    measured = measured_cluster(flink(MANAGER), "1000 MIPS", "106 Mbps", java=0.03, overhead=5e-6)
    text = measured.as_toml()
    assert "reserved = 30 " in text
    parsed = parse_cluster(text.encode(), "c")
    assert parsed.devices.mips.tolist() == pytest.approx([0.95 * 970])
    assert parsed.overhead_s == 5e-6
    assert measured.cluster() == parsed


def test_limits_of_task_managers_are_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of a core is a core of a quarter of the speed; what no quota holds has all."""
    two = {**MANAGER, "id": "b", "hardware": {"cpuCores": 4}}
    monkeypatch.setattr(cluster, "processes_of", lambda rest: {"a": 1, "b": 2})
    monkeypatch.setattr(cluster, "cpu_limit", {1: 0.25, 2: None}.get)
    devices = measured_cluster(flink(MANAGER, two), "1000 MIPS", "1 Gbps").cluster().devices
    assert devices.mips.tolist() == pytest.approx([0.95 * 250, 0.95 * 1000])
    assert devices.cores.tolist() == [1, 2]

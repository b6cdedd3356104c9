"""What TaskManagers take besides their tasks, and how it reaches the cluster file."""

import os
import socket
from typing import Any

import pytest
from fake_flink import FakeFlink
from flink_documents import TASK_MANAGER, jobs

from streamplace.engines.flink.cpu import background
from streamplace.engines.flink.cpu import threads as cpu
from streamplace.engines.flink.cpu.background import background_between, remote_flows
from streamplace.engines.flink.cpu.threads import JavaThread, listening_ports
from streamplace.engines.flink.measure import cluster
from streamplace.engines.flink.measure.cluster import HEADROOM, measured_cluster
from streamplace.engines.flink.measure.sampling import Activity
from streamplace.engines.flink.measure.sending_cost import RemoteFlow, SendingCost, sending_cost
from streamplace.engines.flink.rest.client import Rest
from streamplace.engines.flink.rest.plan import Edge
from streamplace.io.clusters import parse_cluster

MANAGER = TASK_MANAGER | {"id": "a", "hardware": {"cpuCores": 1}, "memoryConfiguration": {}}


def flink(*managers: dict[str, Any]) -> Rest:
    """REST of a cluster on which no job runs."""
    answers = {"GET /taskmanagers": {"taskmanagers": managers}, "GET /jobs": jobs({})}
    return FakeFlink(answers).rest


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
    assert found.network == pytest.approx({"a": 0.05, "b": 0.1})


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
    found, sending = background.background(flink(MANAGER), None, 60.0)
    assert (found.network, sending) == ({}, None)


def test_what_java_takes_is_reserved_in_the_cluster_file() -> None:
    """In MIPS, beside the headers, the headroom and the cost of a remote tuple."""
    sending = SendingCost(5e-6, 2e-9)
    measured = measured_cluster(flink(MANAGER), "1000 MIPS", "106 Mbps", java=0.03, sending=sending)
    text = measured.as_toml()
    assert "reserved = 30 " in text
    parsed = parse_cluster(text.encode(), "c")
    assert parsed.devices.mips.tolist() == pytest.approx([(1 - HEADROOM) * 970])
    assert (parsed.overhead_s, parsed.overhead_s_per_byte) == (5e-6, 2e-9)
    assert measured.cluster() == parsed


def test_limits_of_task_managers_are_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of a core is a core of a quarter of the speed; what no quota holds has all."""
    two = {**MANAGER, "id": "b", "hardware": {"cpuCores": 4}}
    monkeypatch.setattr(cluster, "processes_of", lambda rest: {"a": 1, "b": 2})
    monkeypatch.setattr(cluster, "cpu_limit", {1: 0.25, 2: None}.get)
    devices = measured_cluster(flink(MANAGER, two), "1000 MIPS", "1 Gbps").cluster().devices
    assert devices.mips.tolist() == pytest.approx([(1 - HEADROOM) * speed for speed in (250, 1000)])
    assert devices.cores.tolist() == [1, 2]


def test_what_a_task_manager_sends_and_receives_counts_for_it() -> None:
    """Both ends of a stream, in tuples and in bytes; what stays on a TaskManager does not count."""
    seen = {"v": Activity({"numRecordsIn": 100.0, "numBytesIn": 5000.0}, 1.0)}
    devices = {"u": {"a": 1}, "v": {"a": 1, "b": 3}}
    flows = remote_flows([Edge("u", "v", "hash")], seen, devices)
    assert flows == {"a": RemoteFlow(75.0, 3750.0), "b": RemoteFlow(75.0, 3750.0)}


def test_costs_per_tuple_and_per_byte_are_told_apart_by_sizes() -> None:
    """Exactly where sizes differ; neither is ever negative."""
    flows = {"a": RemoteFlow(5e4, 1e6), "b": RemoteFlow(1e3, 8e6), "c": RemoteFlow(2e4, 2e6)}
    network = {device: 1e-6 * flow.tuples + 5e-9 * flow.traffic for device, flow in flows.items()}
    found = sending_cost(network, flows)
    assert found is not None
    assert found[:2] == pytest.approx((1e-6, 5e-9))
    by_bytes = sending_cost({"a": 0.001, "b": 0.04, "c": 0.002}, flows)
    assert by_bytes is not None
    assert min(by_bytes[:2]) == 0


def test_costs_of_tuples_of_one_size_are_split_as_assumed() -> None:
    """Their sum is what was measured."""
    found = sending_cost({"a": 0.2, "b": 0.1}, {d: RemoteFlow(1e4, 1e6) for d in "ab"})
    assert found is not None
    assert not found.is_split
    assert 2 * (1e4 * found.per_tuple + 1e6 * found.per_byte) == pytest.approx(0.3)
    assert sending_cost({"a": 0.2}, {}) is None

"""What TaskManagers take besides their tasks, and how it reaches the cluster file."""

import os
import socket
import tomllib
from pathlib import Path
from typing import Any

import pytest
from fake_flink import TASK_MANAGER, FakeFlink, healthy, jobs
from lazy_flink import Clock, LazyFlink, Vertex, shop_vertices, with_threads

from streamplace.engines.flink.cpu import limits
from streamplace.engines.flink.cpu import threads as cpu
from streamplace.engines.flink.cpu.limits import CpuPool
from streamplace.engines.flink.cpu.threads import JavaThread, listening_ports, processes_of
from streamplace.engines.flink.engine import FlinkEngine
from streamplace.engines.flink.measure import cluster, sampling
from streamplace.engines.flink.measure.cluster import HEADROOM, measured_cluster
from streamplace.engines.flink.measure.graph import measured_graph
from streamplace.engines.flink.measure.profile import profile
from streamplace.engines.flink.measure.sampling import Activity
from streamplace.engines.flink.measure.streams import (
    ASSUMED,
    RemoteFlow,
    SendingCost,
    remote_flows,
)
from streamplace.engines.flink.rest.client import FlinkError, Rest
from streamplace.engines.flink.rest.plan import read_plan

MANAGER = TASK_MANAGER | {"id": "a", "hardware": {"cpuCores": 1}, "memoryConfiguration": {}}


def flink(*managers: dict[str, Any]) -> Rest:
    """REST of a cluster on which no job runs."""
    answers = {"GET /taskmanagers": {"taskmanagers": managers}, "GET /jobs": jobs({})}
    return FakeFlink(answers).rest


def test_ports_of_a_process_are_those_it_listens_on() -> None:
    """By them a TaskManager is known; a port that is only connected to is none."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as caller:
            found = listening_ports(os.getpid())
            assert port in found
            assert caller.getsockname()[1] not in found
    assert port not in listening_ports(os.getpid())


@pytest.mark.parametrize(
    ("hosts", "found"),
    [
        (["10.0.0.1", "10.0.0.2"], {}),
        (["10.0.0.1", "127.0.0.1"], {"tm-1": 7}),
        (["127.0.1.1"], {"tm-0": 7}),
        (["tm.invalid"], {"tm-0": 7}),  # a name that only its cluster knows
        (["tm.invalid", "other.invalid"], {}),
    ],
)
def test_a_port_alone_does_not_make_a_task_manager_local(
    monkeypatch: pytest.MonkeyPatch, hosts: list[str], found: dict[str, int]
) -> None:
    """On all machines of a cluster it may be the same."""

    def ip(host: str) -> str:
        if host.endswith(".invalid"):
            raise socket.gaierror
        return host

    monkeypatch.setattr(cpu, "local_task_managers", lambda: [7])
    monkeypatch.setattr(cpu, "listening_ports", lambda process: {6122})
    monkeypatch.setattr(cpu, "_local_ips", lambda process: {"127.0.0.1", "10.0.0.9"})
    monkeypatch.setattr(cpu.socket, "gethostbyname", ip)
    managers = [
        MANAGER | {"id": f"tm-{i}", "path": f"pekko.tcp://flink@{host}:6122/user/rpc"}
        for i, host in enumerate(hosts)
    ]
    assert processes_of(flink(*managers)) == found


def test_task_managers_whose_threads_cannot_be_read_are_measured_as_wholes(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is no jcmd; neither Java nor remote tuples are said to cost nothing."""
    flink = LazyFlink(clock, shop_vertices(), devices=("dev-0", "dev-1"))
    flink.process_cpu = dict.fromkeys(flink.devices, 0.13)
    for module in (cluster, sampling):
        monkeypatch.setattr(module, "processes_of", lambda _: {"dev-0": os.getpid(), "dev-1": 0})
    monkeypatch.setattr(cpu.shutil, "which", lambda tool: None)
    measured = FlinkEngine(flink.rest).cluster("job", 10.0)
    assert measured.java is None
    assert measured.sending == ASSUMED.rounded()
    assert "measured" not in measured.as_toml()
    seen = profile(flink.rest, "job", 10.0)
    assert sum(one.cores for one in seen.cpu.values()) == pytest.approx(0.26)
    assert all("whole TaskManagers" in one.source for one in seen.cpu.values())
    assert (seen.java, seen.sending) == (None, None)
    checked = str(measured_graph(seen, 1000.0).attributes["consistency"])
    assert checked.startswith("unchecked, for the threads")


def test_a_process_that_does_not_answer_has_no_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A TaskManager that was stopped, for example."""
    jcmd = tmp_path / "jcmd"
    jcmd.write_text("#!/bin/sh\nexec sleep 60\n")
    jcmd.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(cpu, "JCMD_SECONDS", 0.2)
    assert cpu.java_threads(os.getpid()) == []


@pytest.fixture
def busy(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> LazyFlink:
    """The shop on two TaskManagers of two cores, whose network threads take 0.1 cores each."""

    def threads(_: int) -> list[JavaThread]:
        cores = {"Flink Netty Server (0) Thread 0": 0.1, "split (1/2)#0": 0.5, "pekko": 0.01}
        return [JavaThread(1, name, own * clock.now, clock.now) for name, own in cores.items()]

    flink = LazyFlink(clock, shop_vertices(), devices=("dev-0", "dev-1"))
    processes = {"dev-0": 0, "dev-1": 1}
    with_threads(monkeypatch, threads, processes)
    monkeypatch.setattr(limits, "cpu_pool", lambda process: CpuPool(f"box {process}", 2.0))
    return flink


@pytest.mark.parametrize("job", ["job", None])
def test_a_job_that_is_named_or_runs_shows_what_java_and_crossing_cost(
    busy: LazyFlink, job: str | None
) -> None:
    measured = FlinkEngine(busy.rest).cluster(job, 10.0)
    assert not measured.sending.is_assumed
    assert measured.sending.fixed == pytest.approx(0.1, rel=0.1)
    assert measured.java == pytest.approx(0.01)


def test_a_job_that_does_not_run_is_no_reason_not_to_measure_the_cluster(busy: LazyFlink) -> None:
    """Unless it is named: then what it shows is wanted."""
    busy.states, busy.answers["GET /jobs"] = ["RESTARTING"], jobs({"job": "RESTARTING"})
    measured = FlinkEngine(busy.rest).cluster(None, 10.0)
    assert (measured.java, measured.sending.is_assumed) == (None, True)
    with pytest.raises(FlinkError, match="is RESTARTING"):
        FlinkEngine(busy.rest).cluster("job", 10.0)


def test_what_java_takes_is_reserved_in_the_cluster_file() -> None:
    """In MIPS, beside the headers, the headroom and the cost of a remote tuple."""
    sending = SendingCost(5e-6, 2e-9, fixed=0.01)
    measured = measured_cluster(flink(MANAGER), "1000 MIPS", "106 Mbps", java=0.02, sending=sending)
    assert "reserved = 30 " in measured.as_toml()
    parsed = measured.cluster()
    free = 1 - HEADROOM
    assert parsed.devices.speed.tolist() == pytest.approx([free * 970])
    costs = parsed.overhead_s, parsed.overhead_s_per_byte
    assert costs == pytest.approx((5e-6 / free, 2e-9 / free))


QUARTERS = RemoteFlow(75.0, 3750.0)
HALF = RemoteFlow(5e4, 2.5e6)


@pytest.mark.parametrize(
    ("kind", "tuples", "senders", "receivers", "flow"),
    [
        ("hash", 100.0, "a", "abbb", QUARTERS),
        ("forward", 1e5, "abab", "abba", HALF),
        ("rescale", 1e5, "aabb", "ab", None),
        ("rescale", 1e5, "ab", "aabb", None),
        ("rescale", 1e5, "ab", "abab", HALF),
    ],
)
def test_tuples_cross_between_subtasks_that_are_joined_and_apart(
    kind: str, tuples: float, senders: str, receivers: str, flow: RemoteFlow | None
) -> None:
    """They count at both ends, in tuples and in bytes.

    Subtask i sends to subtask i alone if it forwards; if it rescales, each subtask of the smaller
    number is joined to a group of the others.
    """
    vertices = {
        "u": Vertex("u", {}, [], len(senders)),
        "v": Vertex("v", {}, [("u", kind.upper())], len(receivers)),
    }
    _, tasks, edges = read_plan(LazyFlink(Clock(), vertices).rest, "job")
    seen = {
        "u": Activity({"numRecordsOut": tuples, "numBytesOut": 50 * tuples}, 1.0),
        "v": Activity({"numRecordsIn": tuples, "numBytesIn": 50 * tuples}, 1.0),
    }
    flows = remote_flows(tasks, edges, seen, {"u": [*senders], "v": [*receivers]})
    assert flows == ({} if flow is None else {"a": flow, "b": flow})


def test_what_jobs_take_that_stay_is_reserved() -> None:
    """Beside what Java takes, where that is measured."""
    rest = FakeFlink(healthy("dev-0", "dev-1")).rest
    texts = [
        measured_cluster(rest, "2000", "1 Gbps", java, beside={"dev-1": 0.5}).as_toml()
        for java in (None, 0.1)
    ]
    reserved = [[row["reserved"] for row in tomllib.loads(text)["devices"]] for text in texts]
    assert reserved == [[0, 1000], [200, 1200]]

"""Cluster files: what TaskManagers take besides tasks, their network cards, and what is assumed."""

import os
import socket
import tomllib
from typing import Any

import pytest
from command_lines import settings_file
from fake_flink import (
    ANSWERS,
    TASK_MANAGER,
    Clock,
    FakeFlink,
    LazyFlink,
    Vertex,
    config,
    healthy,
    jobs,
    rates,
    read_threads,
    shop_vertices,
)

from streamplace.errors import StreamplaceError
from streamplace.flink.cpu import threads as cpu
from streamplace.flink.cpu.charging import (
    RunningSubtask,
    ThreadLoad,
    charged,
    cores_by_kind,
    java_itself,
)
from streamplace.flink.cpu.limits import CpuPool
from streamplace.flink.cpu.threads import listening_ports, processes_of
from streamplace.flink.engine import FlinkEngine
from streamplace.flink.measure import cluster, windows
from streamplace.flink.measure.cluster import ASSUMED_CPU, measured_cluster, parse_cards
from streamplace.flink.measure.measured_graph import measured_graph
from streamplace.flink.measure.profile import profile
from streamplace.flink.measure.sampling import Activity
from streamplace.flink.measure.streams import ASSUMED, RemoteFlow, SendingCost, remote_flows
from streamplace.flink.rest.client import FlinkError
from streamplace.flink.rest.plan import read_plan
from streamplace.model.defaults import FLINK_HEADROOM
from streamplace.model.units import bandwidth_bps
from streamplace.model.units import mips as parsed_mips

MANAGER = TASK_MANAGER | {"id": "a", "hardware": {"cpuCores": 1}, "memoryConfiguration": {}}


def flink(*managers):
    """REST of a cluster on which no job runs."""
    answers = {"GET /taskmanagers": {"taskmanagers": managers}, "GET /jobs": jobs({})}
    return FakeFlink(answers).rest


def test_ports_of_a_process_are_those_it_listens_on():
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
def test_a_port_alone_does_not_make_a_task_manager_local(monkeypatch, hosts, found):
    """On all machines of a cluster it may be the same."""

    def ip(host):
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


def test_task_managers_with_unreadable_threads_are_measured_as_wholes(clock, monkeypatch):
    """Where there is no jcmd; neither Java nor remote tuples are said to cost nothing."""
    flink = LazyFlink(clock, shop_vertices(), devices=("dev-0", "dev-1"))
    flink.process_cpu = dict.fromkeys(flink.devices, 0.13)
    for module in (cluster, windows):
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
    assert checked.startswith("unchecked, because threads")


def test_a_process_that_does_not_answer_has_no_threads(tmp_path, monkeypatch):
    """A TaskManager that was stopped, for example."""
    jcmd = tmp_path / "jcmd"
    jcmd.write_text("#!/bin/sh\nexec sleep 60\n")
    jcmd.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(cpu, "JCMD_SECONDS", 0.2)
    assert cpu.java_threads(os.getpid()) == []


@pytest.fixture
def busy(clock, monkeypatch):
    """The shop on two TaskManagers of two cores, whose network threads take 0.1 cores each."""
    cores = {"Flink Netty Server (0) Thread 0": 0.1, "split (1/2)#0": 0.5, "pekko": 0.01}
    flink = LazyFlink(clock, shop_vertices(), devices=("dev-0", "dev-1"))
    read_threads(monkeypatch, flink, lambda _: cores, lambda own: CpuPool(f"box {own}", 2.0))
    return flink


@pytest.mark.parametrize("job", ["job", None])
def test_a_running_job_shows_the_costs_of_java_and_of_remote_tuples(busy, job):
    measured = FlinkEngine(busy.rest).cluster(job, 10.0)
    assert not measured.sending.is_assumed
    assert measured.sending.fixed == pytest.approx(0.1, rel=0.1)
    assert measured.java == pytest.approx(0.01)


def test_the_cluster_is_measured_although_a_job_does_not_run(busy):
    """Unless it is named: then what it shows is wanted."""
    busy.states, busy.answers["GET /jobs"] = ["RESTARTING"], jobs({"job": "RESTARTING"})
    measured = FlinkEngine(busy.rest).cluster(None, 10.0)
    assert (measured.java, measured.sending.is_assumed) == (None, True)
    with pytest.raises(FlinkError, match="is RESTARTING"):
        FlinkEngine(busy.rest).cluster("job", 10.0)


def test_cpu_of_java_and_of_staying_jobs_is_reserved_in_the_cluster_file():
    """In MIPS, beside the headers, the headroom and the cost of a remote tuple."""
    given: dict[str, Any] = {"mips": "1000 MIPS", "bandwidth": "106 Mbps", "beside": {"a": 0.5}}
    assert "reserved = 500 " in measured_cluster(flink(MANAGER), **given).as_toml()
    sending = SendingCost(5e-6, 2e-9, fixed=0.01)
    measured = measured_cluster(flink(MANAGER), **given, java=0.02, sending=sending)
    assert "reserved = 530 " in measured.as_toml()
    parsed = measured.cluster()
    free = 1 - FLINK_HEADROOM
    assert parsed.devices.speed.tolist() == pytest.approx([free * 470])
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
def test_tuples_cross_between_joined_subtasks_on_different_devices(
    kind, tuples, senders, receivers, flow
):
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


SOURCE, MAP = "Source: in (1/1)#0", "Map (1/1)#0"


def subtask(thread, vertex, **counts):
    """The only subtask of a vertex."""
    return RunningSubtask("job", vertex, 0, "a", thread, 0.0, **counts)


def loads(**cores):
    """Threads of a TaskManager and their cores."""
    names = {
        "source": SOURCE,
        "map": MAP,
        "fetcher": f"Source Data Fetcher for {SOURCE}",
        "legacy": f"Legacy Source Thread - {SOURCE}",
        "flusher": f"OutputFlusher for {MAP}",
        "limiter": "flink-rate-limiter-thread-1",
        "cache": f"cache of {MAP}",
        "garbage": "VM Thread",
        "java": "flink-pekko.actor.default-dispatcher-4",
        "pool": "pool-3-thread-1",
        "network": "Flink Netty Client (0) Thread 0",
        "compiler": "C2 CompilerThread0",
    }
    return [ThreadLoad(names[name], taken) for name, taken in cores.items()]


@pytest.mark.parametrize(
    ("cores", "helpers"),
    [
        # a legacy source works in such a thread alone
        ({"source": 0.1, "fetcher": 0.02, "legacy": 0.3, "flusher": 0.01}, (0.32, 0.01)),
        ({"source": 0.1, "limiter": 0.05}, (0.05, 0.0)),  # it does not say whose it is
        # a program can ask for the name of its subtask; connectors do, to name their threads
        ({"source": 0.1, "cache": 0.02}, (0.0, 0.02)),
        # unnamed ones beyond a little; the network and compilers are counted elsewhere
        ({"source": 0.3, "java": 0.04, "pool": 0.09, "network": 9, "compiler": 9}, (0.03, 0.01)),
        # at twice the rate there is twice as much garbage
        ({"source": 0.3, "garbage": 0.04}, (0.03, 0.01)),
    ],
)
def test_threads_are_charged_to_the_task_that_they_work_for(cores, helpers):
    """By their names, else in proportion to the tasks' CPU."""
    threads = loads(map=0.1, **cores)
    subtasks = [subtask(SOURCE, "source", wrote=1.0), subtask(MAP, "map")]
    found = charged(threads, subtasks, {"source"})
    own = {load.name: load.cores for load in threads}
    more = [found[one.key].cores - own.get(one.thread, 0.0) for one in subtasks]
    assert more == pytest.approx(helpers)


PRODUCER = "kafka-producer-network-thread | producer"


@pytest.mark.parametrize(
    ("thread", "cores"),
    [
        (f"{PRODUCER}-orders-0-15", [0.08, 0.0]),  # transactions of the first subtask
        (f"{PRODUCER}-7", [0.02, 0.06]),  # some sink's: by what they write
        ("kafka-admin-client-thread | orders-0", [0.04, 0.04]),  # a source's; there is none
    ],
)
def test_threads_of_kafka_clients_are_charged_to_sinks_and_sources(thread, cores):
    """Of all subtasks of the TaskManager, in proportion to what they write."""
    writers = [f"out: Writer ({i}/2)#0" for i in (1, 2)]
    threads = [ThreadLoad(name, 0.1) for name in writers] + [ThreadLoad(thread, 0.08)]
    sinks = [subtask(name, name, read=n) for name, n in zip(writers, (100.0, 300.0), strict=True)]
    found = charged(threads, sinks, ())
    assert [found[sink.key].cores - 0.1 for sink in sinks] == pytest.approx(cores)


def test_java_itself_is_the_mean_of_task_managers_with_subtasks():
    """Of its own threads and a little of others; where nothing runs, it uses less."""
    few = cores_by_kind(loads(java=0.02, pool=0.01, map=1))
    more = cores_by_kind(loads(java=0.04, pool=0.9, map=1))
    idle = cores_by_kind(loads(java=0.02, garbage=0.1))
    assert java_itself([few, more, idle]) == pytest.approx(0.06)
    assert java_itself([idle, {}]) == 0


@pytest.mark.parametrize(
    ("sending", "cards", "costs"),
    [
        (None, {}, (ASSUMED.per_tuple, ASSUMED.per_byte)),
        # one card by its name, the other by what all have
        (SendingCost(1e-6, 2e-9), {"": "40 Mbps", "d1": "10 Mbps"}, (1e-6, 2e-9)),
    ],
)
def test_unknown_costs_and_cards_are_assumed_and_marked(sending, cards, costs):
    """Where nothing crosses, crossing is not free; nor has a TaskManager a card per neighbour."""
    rest = FakeFlink(healthy("d0", "d1")).rest
    text = measured_cluster(rest, "2000", "1 Gbps", cards, sending=sending).as_toml()
    tables = tomllib.loads(text)
    assert (tables["overhead"], tables["overhead_per_byte"]) == pytest.approx(costs, rel=0.01)
    for end in ("egress", "ingress"):
        assert [row[end] for row in tables["devices"]] == ([*cards.values()] or ["1 Gbps"] * 2)
    lines = [line for line in text.splitlines() if line.startswith(("over", "egress", "ingress"))]
    assert [line.endswith("assumed") for line in lines] == [sending is None] * 6


def containers(settings, *cores):
    """TaskManagers with addresses of their own, whose Java sees so many cores each."""
    answers = healthy(*(f"d{i}" for i in range(len(cores))))
    for row, seen in zip(answers["GET /taskmanagers"]["taskmanagers"], cores, strict=True):
        row["hardware"] = {"cpuCores": seen}
    answers["GET /jobmanager/config"] = config(settings)
    return measured_cluster(FakeFlink(answers).rest, "2000", "1 Gbps")


@pytest.mark.parametrize(
    ("settings", "cores", "mips"),
    [
        ({"kubernetes.taskmanager.cpu": "0.5"}, 1, 1000.0),
        ({"kubernetes.taskmanager.cpu.amount": "1.5"}, 2, 1500.0),
        (
            {
                "kubernetes.taskmanager.cpu.amount": "1.0",
                "kubernetes.taskmanager.cpu.limit-factor": "2.0",
            },
            2,
            2000.0,
        ),
        ({"kubernetes.taskmanager.cpu": "64"}, 8, 2000.0),
    ],
)
def test_task_managers_on_kubernetes_have_the_cpu_of_their_settings(settings, cores, mips):
    """Java rounds it up to whole cores; more than a machine has is not there."""
    found = containers(settings, 8, 8)
    assert [device.cores for device in found.devices] == [cores] * 2
    assert [parsed_mips(device.mips) for device in found.devices] == [mips] * 2
    assert found.notes == ()
    assert "# assumed\n" not in found.as_toml().partition("[[devices]]")[2].partition("egress")[0]


@pytest.mark.parametrize("cpu", ["-1.0", "many"])
def test_an_assumed_cpu_limit_has_a_note(cpu):
    """Containers of one machine have addresses of their own, and each sees all of its cores."""
    found = containers({"kubernetes.taskmanager.cpu": cpu}, 8, 8, 8, 8)
    assert sum(device.cores for device in found.devices) == 32
    assert found.notes == (ASSUMED_CPU,)
    assert found.as_toml().count("cores = 8  # assumed\n") == 4


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (("1 Gbps", "2 Gbps"), "the card of all TaskManagers is given twice"),
        (("a=1 Gbps", "a=1 Gbps"), "the card of 'a' is given twice"),
        (("a=fast",), "fast"),
        (("0 Mbps",), "the speed must be above 0"),
    ],
)
def test_bad_cards_are_refused_in_one_line(texts, message):
    with pytest.raises(StreamplaceError, match=message):
        parse_cards(texts)


def test_cards_alone_limit_pairs_with_an_assumed_bandwidth():
    """An assumed bandwidth of a pair would make fast cards useless; slow ones limit as before."""
    rest = FakeFlink(healthy("d0", "d1")).rest

    def bandwidth(cards):
        return measured_cluster(rest, "2000", None, cards=cards).bandwidth

    assert bandwidth({}) == bandwidth({"": "40 Mbps"}) == "1000 Mbps"
    assert bandwidth({"": "10 Gbps"}) == "10 Gbps"
    assert bandwidth({"d1": "25 Gbps"}) == "25 Gbps"
    given = measured_cluster(rest, "2000", "2 Gbps", cards={"": "10 Gbps"})
    assert 'bandwidth = "2 Gbps"  # between each two, given' in given.as_toml()


@pytest.mark.parametrize(
    ("megabytes", "cards", "speed"),
    [
        (200.0, {}, "1000 Mbps"),
        (400.0, {}, "3464 Mbps"),  # half of it crosses, 1.6 Gbps; twice as much may pass
        (400.0, {"": "1 Gbps"}, "1 Gbps"),
    ],
)
def test_an_assumed_network_carries_the_traffic_of_the_job(shop, megabytes, cards, speed):
    """One that suffices or is given stays; the source sends all to the other TaskManager."""
    flink, passed = shop(devices=("dev-0", "dev-1")), megabytes * 1e6
    read = rates(100, 0, passed, 0, busy=0.5)
    out = {"Source__src.numRecordsOut": 100.0, "numRecordsOut": 100.0, "numBytesOut": passed}
    flink.vertices = {
        "v0": Vertex("Source: src", rates(busy=0.5) | out, parallelism=1),
        "v1": Vertex("sink", read, [("v0", "REBALANCE")], parallelism=2, shares=(0.5, 0.5)),
    }
    found = FlinkEngine(flink.rest, cards=cards).measure("job")
    usable = 0.97 / 1.05 * bandwidth_bps(speed)
    assert found.cluster.bandwidth_bps[0, 1] == pytest.approx(usable)
    assert found.cluster.devices.egress == pytest.approx(usable)
    message = [
        "the job sends more between TaskManagers than the 1000 Mbps that network cards are assumed "
        "to have, so 3464 Mbps are assumed; give their speed (nic in --settings)"
    ]
    notes = [note for note in found.notes if "network cards" in note]
    assert notes == (message if speed == "3464 Mbps" else [])


def test_the_command_prints_its_assumptions(run, tmp_path):
    """And knows no TaskManager that is not there."""
    with FakeFlink(ANSWERS).served() as flink:
        asked = ("flink", "cluster", "--rest", flink.url)
        answer = run(*asked, *settings_file(tmp_path, seconds=2), "-o", "cluster.toml")
        given, unknown = (
            run(*asked, *settings_file(tmp_path, seconds=2, nic=f"{device}=10 Mbps"))
            for device in ("dev-0", "tm")
        )
    assert "note: the network cards of 'dev-0' are assumed to have 1000 Mbps" in answer.err
    assert "note: the cost of tuples between TaskManagers is assumed to be 37.1 ns" in answer.err
    assert 'egress = "10 Mbps"  # network card, given' in given.out
    assert "network cards" not in given.err
    assert unknown.status == 2
    assert "nic names 'tm', but the TaskManagers are 'dev-0'" in unknown.err

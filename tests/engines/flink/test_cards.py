"""Cluster files are complete: network cards and costs of sending, measured, given or assumed."""

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from command_lines import settings_file
from fake_flink import ANSWERS, FakeFlink, config, healthy
from lazy_flink import Shop, Vertex, rates

from streamplace.engines.flink.engine import FlinkEngine
from streamplace.engines.flink.measure import cluster as clusters
from streamplace.engines.flink.measure.cluster import (
    ASSUMED_CPU,
    MeasuredCluster,
    Measurement,
    link_speed,
    measured_cluster,
    parse_cards,
)
from streamplace.engines.flink.measure.streams import ASSUMED, SendingCost
from streamplace.errors import StreamplaceError
from streamplace.model.units import bandwidth_bps
from streamplace.model.units import mips as parsed_mips


def written(sending: SendingCost | None = None, **cards: str) -> str:
    """File of a cluster of two TaskManagers."""
    given = {"" if name == "all" else name: speed for name, speed in cards.items()}
    rest = FakeFlink(healthy("d0", "d1")).rest
    measured = measured_cluster(rest, "2000", "1 Gbps", None, sending, cards=given)
    return measured.as_toml()


def test_what_is_not_measured_is_assumed_and_said() -> None:
    """Where nothing crosses, crossing is not free; nor has a TaskManager a card per neighbour."""
    text = written()
    tables = tomllib.loads(text)
    costs = [tables["overhead"], tables["overhead_per_byte"]]
    assert costs == pytest.approx([ASSUMED.per_tuple, ASSUMED.per_byte], rel=0.01)
    assert [row["egress"] for row in tables["devices"]] == ["1 Gbps", "1 Gbps"]
    assert [row["ingress"] for row in tables["devices"]] == ["1 Gbps", "1 Gbps"]
    lines = [line for line in text.splitlines() if line.startswith(("over", "egress", "ingress"))]
    assert len(lines) == 6
    assert all(line.endswith("assumed") for line in lines)


def test_what_is_measured_or_given_is_not_called_assumed() -> None:
    """One card by its name, the other by what all have."""
    text = written(SendingCost(1e-6, 2e-9), all="40 Mbps", d1="10 Mbps")
    tables = tomllib.loads(text)
    assert (tables["overhead"], tables["overhead_per_byte"]) == (1e-6, 2e-9)
    assert [row["egress"] for row in tables["devices"]] == ["40 Mbps", "10 Mbps"]
    lines = [line for line in text.splitlines() if line.startswith(("over", "egress", "ingress"))]
    assert not any("assumed" in line for line in lines)


def containers(settings: dict[str, str], *cores: int) -> MeasuredCluster:
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
def test_task_managers_on_kubernetes_have_the_cpu_of_their_settings(
    settings: dict[str, str], cores: int, mips: float
) -> None:
    """Java rounds it up to whole cores; more than a machine has is not there."""
    found = containers(settings, 8, 8)
    assert [device.cores for device in found.devices] == [cores] * 2
    assert [parsed_mips(device.mips) for device in found.devices] == [mips] * 2
    assert found.notes == ()
    assert "# assumed\n" not in found.as_toml().partition("[[devices]]")[2].partition("egress")[0]


@pytest.mark.parametrize("cpu", ["-1.0", "many", "inf"])
def test_an_assumed_cpu_limit_is_told(cpu: str) -> None:
    """Containers of one machine have addresses of their own, and each sees all of its cores."""
    found = containers({"kubernetes.taskmanager.cpu": cpu}, 8, 8, 8, 8)
    assert sum(device.cores for device in found.devices) == 32
    assert found.notes == (ASSUMED_CPU,)
    assert found.as_toml().count("cores = 8  # assumed\n") == 4


def test_the_link_speed_of_this_machine_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the TaskManagers that run here."""
    monkeypatch.setattr(clusters, "processes_of", lambda rest: {"d1": 7})
    monkeypatch.setattr(clusters, "link_speed", lambda process: 10_000)
    text = written()
    assert text.count('egress = "1 Gbps"  # network card, assumed') == 1
    assert text.count('egress = "10000 Mbps"  # network card, link speed') == 1


@pytest.mark.parametrize(
    ("network", "facts", "speed"),
    [
        (1, {"device": "", "speed": "25000"}, 25_000),
        (1, {"speed": "10000"}, None),  # a virtual interface says so whatever is behind it
        (1, {"device": "", "speed": "-1"}, None),  # without a cable
        (2, {"device": "", "speed": "1000"}, None),  # it sees the machine's cards in a shared /sys
    ],
)
def test_the_card_of_the_default_route_in_the_same_network_counts(
    tmp_path: Path, network: int, facts: dict[str, str], speed: int | None
) -> None:
    for process, own in (("self", 1), ("7", network)):
        _process(tmp_path / "proc" / process, own)
    card = tmp_path / "sys" / "class" / "net" / "eth1"
    card.mkdir(parents=True)
    for name, text in facts.items():
        (card / name).write_text(text)
    assert link_speed(7, tmp_path) == speed


def _process(folder: Path, network: int) -> None:
    """A process that reaches other machines through eth1."""
    (folder / "ns").mkdir(parents=True)
    (folder / "net").mkdir()
    (folder / "ns" / "net").symlink_to(f"net:[{network}]")
    head = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\n"
    rows = "eth0\t0000000A\t00000000\t1\t0\t0\t0\tFFFFFF00\n"
    rows += "eth1\t00000000\t0100000A\t3\t0\t0\t0\t00000000\n"
    (folder / "net" / "route").write_text(head + rows)


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (("1 Gbps", "2 Gbps"), "the card of all TaskManagers is given twice"),
        (("a=1 Gbps", "a=1 Gbps"), "the card of 'a' is given twice"),
        (("a=fast",), "fast"),
        (("0 Mbps",), "the speed must be above 0"),
    ],
)
def test_bad_cards_are_one_clear_line(texts: tuple[str, ...], told: str) -> None:
    with pytest.raises(StreamplaceError, match=told):
        parse_cards(texts)


def test_cards_alone_limit_pairs_whose_bandwidth_is_assumed() -> None:
    """An assumed bandwidth of a pair would make fast cards useless; slow ones limit as before."""
    rest = FakeFlink(healthy("d0", "d1")).rest

    def bandwidth(**given: str) -> str:
        cards = {"" if name == "all" else name: speed for name, speed in given.items()}
        return measured_cluster(rest, "2000", None, cards=cards).as_toml().splitlines()[1]

    assert bandwidth() == 'bandwidth = "1000 Mbps"  # between each two, assumed'
    assert bandwidth(all="10 Gbps").startswith('bandwidth = "10 Gbps"  # between')
    assert bandwidth(d1="25 Gbps").startswith('bandwidth = "25 Gbps"  # between')
    assert bandwidth(all="40 Mbps").startswith('bandwidth = "1000 Mbps"  # between')
    given = measured_cluster(rest, "2000", "2 Gbps", cards={"": "10 Gbps"})
    assert 'bandwidth = "2 Gbps"  # between each two, given' in given.as_toml()


def measured_job(shop: Shop, megabytes: float, nic: str = "") -> Measurement:
    """A source with so much output, all of which goes to the other TaskManager."""
    flink, passed = shop(devices=("dev-0", "dev-1")), megabytes * 1e6
    read = rates(100, 0, passed, 0, busy=0.5)
    out = {"Source__src.numRecordsOut": 100.0, "numRecordsOut": 100.0, "numBytesOut": passed}
    flink.vertices = {
        "v0": Vertex("Source: src", rates(busy=0.5) | out, parallelism=1),
        "v1": Vertex("sink", read, [("v0", "REBALANCE")], parallelism=2, shares=(0.5, 0.5)),
    }
    return FlinkEngine(flink.rest, cards={"": nic} if nic else {}).measure("job")


@pytest.mark.parametrize(
    ("megabytes", "given", "speed"),
    [
        (200.0, "", "1000 Mbps"),
        (400.0, "", "3464 Mbps"),  # half of it crosses, 1.6 Gbps; twice as much may pass
        (400.0, "10 Gbps", "10 Gbps"),
        (400.0, "1 Gbps", "1 Gbps"),
    ],
)
def test_an_assumed_network_carries_what_the_job_sends(
    shop: Shop, megabytes: float, given: str, speed: str
) -> None:
    """One that suffices or is given stays."""
    found = measured_job(shop, megabytes, given)
    usable = 0.97 / 1.05 * bandwidth_bps(speed)
    assert found.cluster.bandwidth_bps[0, 1] == pytest.approx(usable)
    assert found.cluster.devices.egress == pytest.approx(usable)
    told = [
        "the job sends more between TaskManagers than the 1000 Mbps that network cards are assumed "
        "to have, so 3464 Mbps are assumed; give their speed (nic in --settings)"
    ]
    notes = [note for note in found.notes if "network cards" in note]
    assert notes == (told if speed == "3464 Mbps" else [])


def test_the_command_tells_what_it_assumes(run: Callable, tmp_path: Path) -> None:
    """And knows no TaskManager that is not there."""
    with FakeFlink(ANSWERS).served() as flink:
        asked = ("flink", "cluster", "--rest", flink.url)
        answer = run(*asked, *settings_file(tmp_path, seconds=2), "-o", "cluster.toml")
        given, unknown = (
            run(*asked, *settings_file(tmp_path, seconds=2, nic=f"{device}=10 Mbps"))
            for device in ("dev-0", "tm")
        )
    assert "note: the network cards of 'dev-0' are assumed to have 1000 Mbps" in answer.err
    assert "note: what a tuple between TaskManagers costs is assumed to be 37.1 ns" in answer.err
    assert 'egress = "10 Mbps"  # network card, given' in given.out
    assert "network cards" not in given.err
    assert unknown.status == 2
    assert "nic names 'tm', but the TaskManagers are 'dev-0'" in unknown.err

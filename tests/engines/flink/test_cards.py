"""Cluster files are complete: network cards and costs of sending, measured, given or assumed."""

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_flink import FakeFlink
from flink_documents import ANSWERS, healthy

from streamplace.engines.flink.measure import cluster as clusters
from streamplace.engines.flink.measure.cards import link_speed, parse_cards
from streamplace.engines.flink.measure.cluster import measured_cluster
from streamplace.engines.flink.measure.sending_cost import ASSUMED, SendingCost
from streamplace.errors import StreamplaceError
from streamplace.io.clusters import parse_cluster


def written(sending: SendingCost | None = None, **cards: str) -> str:
    """File of a cluster of two TaskManagers."""
    given = {"" if name == "all" else name: speed for name, speed in cards.items()}
    rest = FakeFlink(healthy("d0", "d1")).rest
    measured = measured_cluster(rest, "2000", "1 Gbps", None, sending, cards=given)
    assert parse_cluster(measured.as_toml().encode(), "c") == measured.cluster()
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


def test_the_link_speed_of_this_machine_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the TaskManagers that run here."""
    monkeypatch.setattr(clusters, "processes_of", lambda rest: {"d1": 7})
    monkeypatch.setattr(
        "streamplace.engines.flink.measure.cards.link_speed", lambda process: 10_000
    )
    text = written()
    assert [row["egress"] for row in tomllib.loads(text)["devices"]] == ["1 Gbps", "10000 Mbps"]
    assert 'egress = "10000 Mbps"  # network card, link speed' in text


@pytest.mark.parametrize(
    ("facts", "speed"),
    [
        ({"device": "", "speed": "25000"}, 25_000),
        ({"bonding": "", "speed": "20000"}, 20_000),
        ({"speed": "10000"}, None),  # a virtual interface
        ({"device": "", "speed": "-1"}, None),  # without a cable
        ({"device": ""}, None),
    ],
)
def test_the_card_of_the_default_route_counts(
    tmp_path: Path, facts: dict[str, str], speed: int | None
) -> None:
    """Virtual interfaces say 10000 whatever is behind them."""
    _process(tmp_path, "self", "net:[1]", "mnt:[1]")
    _process(tmp_path, "7", "net:[1]", "mnt:[1]")
    card = tmp_path / "7" / "root" / "sys" / "class" / "net" / "eth1"
    card.mkdir(parents=True)
    for name, text in facts.items():
        (card / name).write_text(text)
    assert link_speed(7, tmp_path) == speed


def test_cards_of_another_network_are_not_those_of_this_one(tmp_path: Path) -> None:
    """A process in a network of its own that shares /sys sees the machine's cards there."""
    _process(tmp_path, "self", "net:[1]", "mnt:[1]")
    _process(tmp_path, "7", "net:[2]", "mnt:[1]")
    card = tmp_path / "7" / "root" / "sys" / "class" / "net" / "eth1"
    card.mkdir(parents=True)
    (card / "device").touch()
    (card / "speed").write_text("1000")
    assert link_speed(7, tmp_path) is None


def _process(folder: Path, name: str, network: str, mounts: str) -> None:
    """A process that reaches other machines through eth1."""
    (folder / name / "ns").mkdir(parents=True)
    (folder / name / "net").mkdir()
    (folder / name / "ns" / "net").symlink_to(network)
    (folder / name / "ns" / "mnt").symlink_to(mounts)
    head = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\n"
    rows = "eth0\t0000000A\t00000000\t1\t0\t0\t0\tFFFFFF00\n"
    rows += "eth1\t00000000\t0100000A\t3\t0\t0\t0\t00000000\n"
    (folder / name / "net" / "route").write_text(head + rows)


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (("1 Gbps", "2 Gbps"), "--nic gives the card of all TaskManagers twice"),
        (("a=1 Gbps", "a=1 Gbps"), "--nic gives the card of 'a' twice"),
        (("a=fast",), "fast"),
        (("0 Mbps",), "the speed must be above 0"),
    ],
)
def test_bad_cards_are_one_clear_line(texts: tuple[str, ...], told: str) -> None:
    with pytest.raises(StreamplaceError, match=told):
        parse_cards(texts)


def test_the_command_tells_what_it_assumes(run: Callable) -> None:
    """And knows no TaskManager that is not there."""
    with FakeFlink(ANSWERS).served() as flink:
        asked = ("flink", "cluster", "--rest", flink.url, "--seconds", "2")
        answer = run(*asked, "-o", "cluster.toml")
        given = run(*asked, "--nic", "dev-0=10 Mbps")
        unknown = run(*asked, "--nic", "tm=10 Mbps")
    assert "note: the network cards of 'dev-0' are assumed to have 1000 Mbps" in answer.err
    assert "note: what a tuple between TaskManagers costs is assumed to be 37.1 ns" in answer.err
    assert 'egress = "10 Mbps"  # network card, given' in given.out
    assert "network cards" not in given.err
    assert unknown.status == 2
    assert "--nic names 'tm', but the TaskManagers are 'dev-0'" in unknown.err

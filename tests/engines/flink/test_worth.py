"""What a move gains against what it costs."""

import pytest

from streamplace import Cluster, Operator, Stream, StreamGraph
from streamplace.engines.flink.rest import FlinkError
from streamplace.engines.flink.worth import Worth, capacity

CHAINED = StreamGraph.of(
    "chained",
    [Operator("src -> parse", ipt=1e5, rate=1e4), Operator("join", ipt=5e5, parallelism=2)],
    [Stream("src -> parse", "join")],
)
TWO = Cluster.uniform(2)


def test_a_job_that_keeps_up_gains_nothing() -> None:
    """However much more its new placement could carry."""
    worth = Worth(100.0, 120.0, 900.0, is_limited=False, outage=1.0)
    assert (worth.gain, worth.pays) == (0.0, False)
    assert "keeps up with its sources" in str(worth)


@pytest.mark.parametrize(("carriable", "pays"), [(95.0, False), (101.0, False), (150.0, True)])
def test_a_job_that_is_held_back_gains_what_its_new_placement_carries_more(
    carriable: float, pays: bool
) -> None:
    worth = Worth(100.0, 100.0, carriable, is_limited=True, outage=1.0)
    assert worth.gain == pytest.approx(max(0.0, carriable - 100.0))
    assert worth.pays is pays


def test_the_price_is_told_beside_the_gain() -> None:
    """The tuples of a second without output are made up for by half as many more in two seconds."""
    text = str(Worth(100.0, 100.0, 150.0, is_limited=True, outage=1.0))
    assert text == (
        "moving it should gain 50 tuples/s (50%) and stops it for about 1 s, which is made up for "
        "in 2 s"
    )


def test_what_a_placement_of_subtasks_carries_is_the_inverse_of_its_largest_load() -> None:
    """One device of 2500 MIPS has 6e9 instructions/s to do: 2.4 times what it can."""
    together = {"src": ["d0"], "parse": ["d0"], "join": ["d0", "d0"]}
    apart = {"src": ["d0"], "parse": ["d0"], "join": ["d1", "d1"]}
    assert capacity(CHAINED, TWO, together) == pytest.approx(1 / 2.4)
    assert capacity(CHAINED, TWO, apart) == pytest.approx(1 / 2.0)


@pytest.mark.parametrize("join", [["d0"], ["d0", "elsewhere"], []])
def test_devices_that_are_not_the_clusters_are_told(join: list[str]) -> None:
    devices = {"src": ["d0"], "parse": ["d0"]} | ({"join": join} if join else {})
    with pytest.raises(
        FlinkError, match="the devices that 'join' runs on are not those of the cluster"
    ):
        capacity(CHAINED, TWO, devices)

"""How much of its sources' rates a layout of a job carries."""

import pytest

from streamplace import Cluster, Operator, Stream, StreamGraph
from streamplace.engines.flink.measure.placed_subtasks import capacity
from streamplace.engines.flink.rest.client import FlinkError

CHAINED = StreamGraph.of(
    "chained",
    [Operator("src -> parse", ipt=1e5, rate=1e4), Operator("join", ipt=5e5, parallelism=2)],
    [Stream("src -> parse", "join")],
)
TWO = Cluster.uniform(2)


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

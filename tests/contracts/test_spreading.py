"""Every placer uses the devices that there are; a placer that knows one column only is found."""

import pytest
from placer_cases import question

from streamplace.model import Cluster, Device, Operator, Problem, Stream, StreamGraph
from streamplace.placers.registry import PLACERS, Budget

TOGETHER = {"single", "enumerative"}
"""Placers that begin with everything on one device by design."""
SPREADING = [
    name
    for name in PLACERS
    if name not in TOGETHER and "weights" not in PLACERS[name].defaults()  # weights decide
]
CLUSTERS = {
    "equal": Cluster.uniform(4),
    "of two types": Cluster.of([Device(f"d{i}", mips=2500 + 500 * (i % 2)) for i in range(4)]),
}


def side_by_side(cluster: Cluster) -> Problem:
    """Eight tasks that fill four devices together, between two that take and send nothing."""
    work = [f"w{i}" for i in range(8)]
    operators = [Operator("in"), *(Operator(name, ipt=1.2e9) for name in work), Operator("out")]
    streams = [Stream(*ends) for name in work for ends in (("in", name), (name, "out"))]
    return Problem(StreamGraph.of("side by side", operators, streams, fires="all"), cluster)


@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize("placer", SPREADING)
def test_a_placer_uses_several_devices_where_one_is_too_little(placer: str, cluster: str) -> None:
    """Whether the devices are equal, so that they are of one type, or not."""
    problem = side_by_side(CLUSTERS[cluster])
    budget = Budget(seconds=None, evaluations=300)
    result = PLACERS[placer].place(problem, question(placer), seed=1, budget=budget)
    assert len(set(result.placement.index.tolist())) > 1


def test_loads_are_shares_of_single_devices() -> None:
    """Operators × devices: unlike speeds, cores and constant loads included."""
    devices = [Device("slow", mips=1000), Device("fast", mips=2000, cores=2), Device("slower", 500)]
    rows = [Operator("a", ipt=1e5, rate=1e4), Operator("b", rate=1, constant=500)]
    problem = Problem(StreamGraph.of("two", rows), Cluster.of(devices))
    assert problem.load.tolist() == [[1, 0.25, 2], [0.5, 0.125, 1]]

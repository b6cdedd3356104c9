"""What is said of one pass."""

import pytest

from streamplace.api import place, simulate
from streamplace.model import (
    Cluster,
    Constraints,
    Device,
    Operator,
    Placement,
    Problem,
    Stream,
    StreamGraph,
)
from streamplace.objectives.registry import OBJECTIVES

TASKS = StreamGraph.of(
    "tasks",
    [
        Operator("load", ipt=1e9, payload=4e6),
        Operator("left", ipt=6e9, payload=1e6),
        Operator("right", ipt=4e9, payload=1e6),
        Operator("add", ipt=1e9),
    ],
    [
        Stream("load", "left"),
        Stream("load", "right"),
        Stream("left", "add"),
        Stream("right", "add"),
    ],
    fires="all",
)
CLUSTER = Cluster.uniform(3, mips=1000, bandwidth=8e6)  # 1 s per 10⁹ instructions, 1 MB/s
PROBLEM = Problem(TASKS, CLUSTER)
SPREAD = PROBLEM.placement([0, 1, 2, 0])


def test_the_parts_of_the_critical_chain_add_up_to_the_makespan() -> None:
    """1 s load, 4 s to the left, 6 s left, 1 s back, 1 s add."""
    told = simulate(PROBLEM, SPREAD)
    assert told.value == pytest.approx(13)
    assert sum(told.parts.values()) == pytest.approx(told.makespan, rel=1e-15)
    assert [link.what for link in told.chain] == [
        "running", "sending", "running", "sending", "running",
    ]  # fmt: skip
    assert [link.end for link in told.chain[:-1]] == [link.begin for link in told.chain[1:]]


def test_the_advice_reaches_what_it_promises() -> None:
    told = simulate(PROBLEM, SPREAD)
    assert told.move is not None
    moved = dict(SPREAD)
    moved.update(dict.fromkeys(told.move.operators, told.move.device))
    assert simulate(PROBLEM, moved).value == pytest.approx(told.move.makespan)
    assert told.move.makespan < told.makespan


def test_the_length_ratio_counts_the_devices_that_an_operator_may_use() -> None:
    """On the only device allowed, nothing is faster, whatever other devices there are."""
    devices = [Device("slow", mips=1), Device("fast", mips=10)]
    graph = StreamGraph.of("g", [Operator("a", ipt=10e6)], fires="all")
    pinned = Problem(graph, Cluster.of(devices), Constraints(pin={"a": "slow"}))
    free = Problem(graph, Cluster.of(devices))
    ratios = [OBJECTIVES["makespan"].measures(p, 10.0)["slr"] for p in (pinned, free)]
    assert ratios == pytest.approx([1.0, 10.0])


def test_a_priority_decides_who_goes_first_and_travels_with_the_placement() -> None:
    """On one device the order of left and right changes nothing but who waits."""
    first = {"right": 2.0, "left": 1.0}
    together = dict.fromkeys(TASKS.operators.name, "d0")
    ordered = Placement.of(TASKS.operators.name, CLUSTER.devices.name, together, first)
    told = simulate(PROBLEM, ordered)
    assert told.schedule["right"].start < told.schedule["left"].start
    assert OBJECTIVES["makespan"].value(PROBLEM, ordered) == pytest.approx(12)


def test_the_document_has_the_schedule_and_the_sentence() -> None:
    document = simulate(PROBLEM, SPREAD).document()
    assert document["schedule"]["left"] == {"device": "d1", "start": 5.0, "finish": 11.0}
    assert document["verdict"].startswith("of 13 s: 8 s running, 5 s sending; running left on d1")


def test_where_no_operator_takes_time_there_is_no_length_ratio() -> None:
    """A second of sending is no multiple of nothing."""
    operators = [Operator("a", payload=1e6), Operator("b")]
    graph = StreamGraph.of("sent", operators, [Stream("a", "b")], fires="all")
    problem = Problem(graph, CLUSTER)
    told = simulate(problem, problem.placement([0, 1]))
    assert (told.makespan, told.slr) == (pytest.approx(1), None)
    assert "ratio" not in str(told.report())
    assert OBJECTIVES["makespan"].measures(problem, told.makespan) == {}


@pytest.mark.parametrize("placer", ["auto", "heft"])
def test_a_pass_that_takes_no_time_is_told(placer: str) -> None:
    """Nothing is on its critical chain, so nothing can be moved."""
    graph = StreamGraph.of("zero", [Operator("a")], [], fires="all")
    found = place(graph, placer=placer)
    told = simulate(graph, found.placement)
    assert (told.value, told.chain) == (0, ())

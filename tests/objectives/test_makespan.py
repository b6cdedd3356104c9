"""What is said of one pass, by the usual rules and by others."""

import pytest
from problems import four_tasks

from streamplace.api import place, simulate
from streamplace.errors import SettingError
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
from streamplace.objectives.registry import OBJECTIVES, named_objective

TASKS = four_tasks()
CLUSTER = Cluster.uniform(3, mips=1000, bandwidth=8e6)  # 1 s per 10⁹ instructions, 1 MB/s
PROBLEM = Problem(TASKS, CLUSTER)
SPREAD = PROBLEM.placement([0, 1, 2, 0])


def test_the_parts_of_the_critical_chain_add_up_to_the_makespan():
    """1 s load, 4 s to the left, 6 s left, 1 s back, 1 s add."""
    result = simulate(PROBLEM, SPREAD)
    schedule = result.document()["schedule"]
    assert schedule["left"] == {"device": "d1", "start": 5.0, "finish": 11.0}
    assert result.value == pytest.approx(13)
    assert sum(result.parts.values()) == pytest.approx(result.makespan, rel=1e-15)
    assert [link.what for link in result.chain] == [
        "running", "sending", "running", "sending", "running",
    ]  # fmt: skip
    assert [link.end for link in result.chain[:-1]] == [link.begin for link in result.chain[1:]]


def test_the_advice_reaches_what_it_promises():
    result = simulate(PROBLEM, SPREAD)
    moved = dict(SPREAD)
    moved.update(dict.fromkeys(result.move.operators, result.move.device))
    assert simulate(PROBLEM, moved).value == pytest.approx(result.move.value)
    assert result.move.value < result.makespan


def test_the_advice_moves_together_what_must_stay_together():
    pair = [Operator("a", ipt=1e9), Operator("b", ipt=1e9)]
    graph = StreamGraph.of("pair", pair, [Stream("a", "b")], fires="all")
    cluster = Cluster.of([Device("slow", mips=100), Device("fast", mips=1000)])
    problem = Problem(graph, cluster, Constraints(colocate=[{"a", "b"}]))
    move = simulate(problem, {"a": "slow", "b": "slow"}).move
    assert (move.operators, move.device) == (("a", "b"), "fast")
    assert move.value == pytest.approx(2)


def test_the_length_ratio_counts_the_devices_that_an_operator_may_use():
    """On the only device allowed, nothing is faster, whatever other devices there are."""
    devices = [Device("slow", mips=1), Device("fast", mips=10)]
    graph = StreamGraph.of("g", [Operator("a", ipt=10e6)], fires="all")
    pinned = Problem(graph, Cluster.of(devices), Constraints(pin={"a": "slow"}))
    free = Problem(graph, Cluster.of(devices))
    ratios = [OBJECTIVES["makespan"].measures(p, 10.0)["slr"] for p in (pinned, free)]
    assert ratios == pytest.approx([1.0, 10.0])


def test_a_priority_decides_who_goes_first_and_travels_with_the_placement():
    """On one device the order of left and right changes nothing but who waits."""
    first = {"right": 2.0, "left": 1.0}
    together = dict.fromkeys(TASKS.operators.name, "d0")
    ordered = Placement.of(TASKS.operators.name, CLUSTER.devices.name, together, first)
    result = simulate(PROBLEM, ordered)
    assert result.schedule["right"].start < result.schedule["left"].start
    assert OBJECTIVES["makespan"].value(PROBLEM, ordered) == pytest.approx(12)


def test_where_no_operator_takes_time_there_is_no_length_ratio():
    operators = [Operator("a", payload=1e6), Operator("b")]
    graph = StreamGraph.of("sent", operators, [Stream("a", "b")], fires="all")
    problem = Problem(graph, CLUSTER)
    result = simulate(problem, problem.placement([0, 1]))
    assert (result.makespan, result.slr) == (pytest.approx(1), None)
    assert "ratio" not in str(result.report())
    assert OBJECTIVES["makespan"].measures(problem, result.makespan) == {}


@pytest.mark.parametrize("placer", ["auto", "heft"])
def test_a_pass_that_takes_no_time_is_told(placer):
    """Nothing is on its critical chain, so nothing can be moved."""
    graph = StreamGraph.of("zero", [Operator("a")], [], fires="all")
    found = place(graph, placer=placer)
    result = simulate(graph, found.placement)
    assert (result.value, result.chain) == (0, ())


FAN = StreamGraph.of(
    "fan",
    [Operator("src", ipt=1e9, payload=1e6), *(Operator(f"t{i}", ipt=1e9) for i in range(3))],
    [Stream("src", f"t{i}", payload=1e6) for i in range(3)],
    fires="all",
)
FOUR = Cluster.uniform(4, mips=1000, bandwidth=8e6)  # 1 s per operator, 1 s per stream
APART = {"src": "d0", "t0": "d1", "t1": "d2", "t2": "d3"}


@pytest.mark.parametrize(
    ("options", "seconds"),
    [("", 3), (":network=link", 3), (":network=sender", 5), (":network=port", 5)],
)
def test_the_network_is_an_option(options, seconds):
    """Free: all three streams at once; sender: one after the other."""
    problem = Problem(FAN, FOUR)
    result = simulate(problem, APART, objective=f"makespan{options}")
    assert result.value == pytest.approx(seconds)
    placement = problem.placement([0, 1, 2, 3])
    assert named_objective(f"makespan{options}").value(problem, placement) == result.value


def test_streams_of_differing_selectivity_are_messages_of_their_own():
    """One output goes to left and right, half of it to the third: two transfers, not three."""
    operators = [Operator("src", ipt=1e9, payload=1e6, rate=1.0)]
    operators += [Operator(name, ipt=1e9) for name in ("left", "right", "half")]
    streams = [Stream("src", "left"), Stream("src", "right"), Stream("src", "half", 0.5)]
    graph = StreamGraph.of("split", operators, streams)
    problem = Problem(graph, Cluster.uniform(2, mips=1000, bandwidth=8e6))
    judge = named_objective("makespan:network=sender")
    there = problem.placement([0, 1, 1, 1])
    result = judge.explained(problem, there).document()
    sent = sorted(transfer["arrival"] for transfer in result["transfers"])
    assert sent == pytest.approx([2, 2, 2.5])


def test_a_preset_has_an_order_of_its_own():
    """Priorities of a placement do not count there, as they do not in the papers' simulators."""
    problem = Problem(FAN, Cluster.uniform(1, mips=1000))
    first = problem.placement([0, 0, 0, 0], [0, 0, 0, 9])
    usual, preset = named_objective("makespan"), named_objective("makespan:preset=giph")
    starts = [
        judge.explained(problem, first).document()["schedule"]["t2"]["start"]
        for judge in (usual, preset)
    ]
    assert starts == [1, 3]
    assert (usual.ordered, preset.ordered) == (True, False)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("makespan:preset=heft", "'heft'"),
        ("makespan:speed=1", "'speed'"),
        ("makespan:queue=lifo", "queue is 'lifo'"),
        ("makespan:queue", "'queue' of objective makespan"),
        ("makespan:queue=fifo:queue=rows", "queue"),
        ("energy:preset=giph", "energy"),
        ("mkspan:preset=giph", "'makespan'"),
    ],
)
def test_what_is_wrong_with_a_name_is_told(name, complaint):
    with pytest.raises(SettingError, match=complaint):
        named_objective(name)

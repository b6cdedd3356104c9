"""Keys that are more frequent than others: what subtasks read, and what that does to layouts."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lazy_flink import MIPS, START, Clock, LazyFlink, Shop, Vertex, rates

from streamplace import Cluster, Device, Operator, Stream, StreamGraph
from streamplace.engines.flink.cpu import threads as cpu
from streamplace.engines.flink.cpu.limits import CpuShare
from streamplace.engines.flink.cpu.threads import RunningSubtask
from streamplace.engines.flink.decide.candidates import (
    BY_SPEED,
    EVEN,
    FOUND,
    Candidate,
    Question,
    candidates,
)
from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.measure.cluster import (
    VARIANTS,
    Measurement,
    possible_orders,
)
from streamplace.engines.flink.measure.graph import agreement, measured_graph
from streamplace.engines.flink.measure.profile import Present, Usage, key_shares, profile
from streamplace.engines.flink.rest.plan import Edge, FlinkTask
from streamplace.errors import GraphError
from streamplace.model.expansion import expand
from streamplace.placers.registry import Budget

SRC = FlinkTask("v0", "src", "src", 1, ("src",))
SUM = FlinkTask("v1", "sum", "sum", 2, ("sum",))
HASH = Edge("v0", "v1", "hash", 1)
SKEWED = (0.8, 0.2)


def counted(*read: float) -> list[RunningSubtask]:
    """Subtasks of the sum that read these numbers of tuples."""
    return [RunningSubtask("job", "v1", i, "d0", "sum", 0.0, n) for i, n in enumerate(read)]


TURN = Edge("v0", "v1", "rebalance", 1)
CHOSEN = replace(TURN, is_uneven=True)  # by a partitioner of the program


@pytest.mark.parametrize(
    ("read", "edges", "groups", "found"),
    [
        ((8000.0, 2000.0), [HASH], 0, (0.8, 0.2)),
        ((5100.0, 4900.0), [HASH], 0, None),  # four standard deviations may be chance
        ((500.0, 200.0), [HASH], 0, None),
        ((math.nan, 5000.0), [HASH], 0, None),
        ((9000.0,), [HASH], 0, None),
        # what is sent around in turn is even whatever was counted
        ((8000.0, 2000.0), [TURN], 0, None),
        ((8000.0, 2000.0), [HASH, TURN], 0, None),
        # the first subtask may get everything, whatever the key groups
        ((9000.0, 0.0), [CHOSEN], 0, (1.0, 0.0)),
        ((5100.0, 4900.0), [CHOSEN], 0, None),
        ((8000.0, 2000.0), [CHOSEN, HASH], 0, (0.8, 0.2)),
        ((6700.0, 3300.0), [CHOSEN], 3, (0.67, 0.33)),
        # three groups on two subtasks: one has two of them
        ((6700.0, 3300.0), [HASH], 3, None),
        ((5000.0, 5000.0), [HASH], 3, (0.5, 0.5)),
    ],
)
def test_shares_are_the_parts_of_the_tuples_that_were_read_unless_even_or_unknown(
    read: tuple[float, ...],
    edges: Sequence[Edge],
    groups: int,
    found: tuple[float, ...] | None,
) -> None:
    task = replace(SUM, max_parallelism=groups or SUM.max_parallelism)
    shares = key_shares([SRC, task], edges, {"v1": counted(*read)})
    assert shares == ({} if found is None else {"sum": pytest.approx(found)})


def sent(*subtasks: tuple[float, float, float], read: float = 0.0) -> dict[str, tuple[float, ...]]:
    """Shares of a source whose subtasks sent tuples, waited, and were back-pressured, in ms."""
    source = replace(SRC, parallelism=len(subtasks), max_parallelism=3)
    rows = [
        RunningSubtask("job", "v0", i, "d0", "src", 500.0, read, wrote, waited, blocked)
        for i, (wrote, waited, blocked) in enumerate(subtasks)
    ]
    return key_shares([source], [], {"v0": rows})


@pytest.mark.parametrize("read", [0.0, math.nan])
def test_a_source_with_more_partitions_than_subtasks_is_uneven(read: float) -> None:
    """Some versions of Flink count what sources read; key groups do not matter."""
    few = (2000.0, 500.0, 0.0)
    assert sent((4000.0, 0.0, 0.0), few, few, few, read=read) == {"src": (0.4, 0.2, 0.2, 0.2)}
    assert sent(few, few, read=read) == {}


def test_a_source_that_is_held_back_tells_nothing_of_its_shares() -> None:
    """A subtask on a slow device, or a blocked one, emits less than it would be offered."""
    busy, blocked = (2000.0, 0.0, 0.0), (2000.0, 100.0, 900.0)
    assert sent((4000.0, 0.0, 0.0), busy) == {}
    assert sent((4000.0, 500.0, 0.0), blocked) == {}
    assert sent((4000.0, 0.0, 0.0), (2000.0, math.nan, 0.0)) == {}


def test_subtasks_of_a_source_that_have_ended_emit_no_more() -> None:
    """Whatever arrives for the others."""
    source, few = replace(SRC, parallelism=3), (0.0, 2000.0, 500.0, 0.0)
    rows = [RunningSubtask("job", "v0", i, "d0", "src", 500.0, *few) for i in range(2)]
    last = RunningSubtask("job", "v0", 2, "d0", "src", 0.0, 0.0, 0.0, 0.0, 0.0, True)
    assert key_shares([source], [], {"v0": [*rows, last]}) == {"src": (0.5, 0.5, 0.0)}
    rows.append(last._replace(has_ended=False))
    assert key_shares([source], [], {"v0": rows}) == {}


def summing(clock: Clock, shares: Sequence[float]) -> LazyFlink:
    """A source, and a sum whose subtasks read these shares of its tuples."""
    source = rates(0, 1000, 0, 40_000, busy=0.1) | {"src.numRecordsOut": 1000}
    read = rates(1000, 0, 40_000, busy=0.5)
    vertices = {
        "v0": Vertex("src", source, parallelism=1),
        "v1": Vertex("sum", read, [("v0", "HASH")], len(shares), "", shares),
    }
    return LazyFlink(clock, vertices)


@pytest.mark.parametrize("late", [START + 1, math.inf])
def test_subtasks_whose_metrics_flink_fetches_late_or_never_are_not_skewed(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, late: float
) -> None:
    """Until then Flink says that they have read nothing; then, all since their start."""
    flink = summing(clock, (0.5, 0.5))
    untold = {"metrics": {"read-records": 0.0, "read-records-complete": False}}
    flink.otherwise_of = lambda vertex, i: untold if i and clock.now < late else {}
    monkeypatch.setattr(cpu, "time", clock)
    assert profile(flink.rest, "job", 10).shares == {}
    assert clock.now < START + 46  # it takes 40 s of this clock without waiting for metrics


@pytest.mark.parametrize(("waits", "expected"), [(0.5, (0.6, 0.2, 0.2)), (0.0, None)])
def test_a_profile_counts_what_subtasks_of_sources_and_of_partitioners_take_in(
    clock: Clock, waits: float, expected: tuple[float, ...] | None
) -> None:
    """Sources only while they wait for input."""
    parts = (0.6, 0.2, 0.2)
    source = rates(0, 1000, 0, 40_000, busy=0.9) | {"src.numRecordsOut": 1000}
    out = rates(1000, 0, 40_000, busy=0.5)
    vertices = {
        "v0": Vertex("src", source, (), 3, "", parts, waits),
        "v1": Vertex("out", out, [("v0", "CUSTOM")], 3, "", parts),
    }
    seen = profile(LazyFlink(clock, vertices).rest, "job", 10)
    assert {name: tuple(own) for name, own in seen.shares.items()} == {
        "out": pytest.approx(parts),
        **({"src": pytest.approx(expected)} if expected else {}),
    }
    subtasks = expand(measured_graph(seen, MIPS), seen.shares).graph.input_rate.tolist()
    assert subtasks[3:] == pytest.approx([600, 200, 200], rel=0.01)
    assert subtasks[0] == pytest.approx(600 if expected else 1000 / 3, rel=0.01)


def test_an_even_source_has_equal_parts_whatever_its_maximum_parallelism(
    shop: Shop,
) -> None:
    """By 128 key groups, some of 85 subtasks would have two of them, and others one."""
    flink = shop()
    flink.vertices["v0"].parallelism = 85
    flink.vertices["v0"].shares = (1 / 85,) * 85
    seen = profile(flink.rest, "job", 10)
    graph = measured_graph(seen, MIPS)
    assert seen.shares == {}
    assert expand(graph).graph.operators.rate[:85] == pytest.approx(graph.source_rate / 85)
    assert 85 <= graph.operators["src"].max_parallelism <= 128
    assert graph.operators["split"].max_parallelism == 128


def pipe(parallelism: int = 2, rate: float = 100.0) -> StreamGraph:
    """Each tuple costs a cheap source little, and the sum ten million instructions."""
    operators = [
        Operator("src", ipt=1e3, payload=1, rate=rate),
        Operator("sum", ipt=1e7, parallelism=parallelism),
        Operator("out", ipt=1e3, parallelism=parallelism),
    ]
    streams = [
        Stream("src", "sum", partitioning="hash"),
        Stream("sum", "out", partitioning="forward"),
    ]
    return StreamGraph.of("pipe", operators, streams)


@given(st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3).filter(lambda own: sum(own) > 0.01))
def test_subtasks_get_their_shares_and_hand_them_on(own: list[float]) -> None:
    """A forward stream joins subtask i to subtask i."""
    parts = [one / sum(own) for one in own]
    found = expand(pipe(3), {"sum": parts}).graph.input_rate.tolist()
    wanted = [100.0 * part for part in parts]
    assert found == pytest.approx([100.0, *wanted, *wanted], abs=1e-5)


@pytest.mark.parametrize("wrong", [[0.5], [0.5, 0.6], [1.5, -0.5], [math.nan, 1.0]])
def test_shares_that_are_none_are_refused(wrong: list[float]) -> None:
    with pytest.raises(GraphError, match="shares of operator 'sum': give one for each of its 2"):
        expand(pipe(), {"sum": wrong})


def asked(cluster: Cluster, present: dict[str, list[str]], **more: Any) -> Question:
    """As much as possible of a job whose keys are skewed."""
    measured = Measurement(pipe(), cluster, is_limited=True, shares={"sum": SKEWED})
    return Question(measured, Layout(present), {}, True, None, modes=(), **more)


def found_for(question: Question) -> dict[str, Candidate]:
    """Name → candidate."""
    return {one.name: one for one in candidates(question, Budget(evaluations=2000))}


UNEQUAL = Cluster.of([Device("fast", mips=2000), Device("slow", mips=500)])
LUCKY = {"src": ["fast"], "sum": ["fast", "slow"], "out": ["fast", "slow"]}
"""The subtask with the popular keys is on the fast device."""


def test_a_layout_is_worth_what_flink_makes_of_its_pins() -> None:
    """They do not say which subtask goes where, and four fifths of the tuples may be on slow."""
    question = asked(UNEQUAL, LUCKY)
    now = question.rates.of(Layout(LUCKY))
    even = question.rates.if_pinned(found_for(question)[EVEN].layout)
    assert even < 0.5 * now
    assert question.rates.if_pinned(Layout(LUCKY)) == pytest.approx(even)
    unlucky = {**LUCKY, "sum": ["slow", "fast"], "out": ["slow", "fast"]}
    best = max(found_for(asked(UNEQUAL, unlucky)).values(), key=lambda one: one.predicted.low)
    assert best.name in (FOUND, BY_SPEED)
    assert set(best.layout["sum"]) == {"fast"}


def test_orders_keep_the_numbers_on_devices_and_the_pairs_of_subtasks() -> None:
    layout = Layout({"sum": ["a", "b", "b"], "out": ["a", "b", "b"], "log": ["b", "b"]})
    orders = possible_orders(layout, {"sum": (0.8, 0.1, 0.1)})
    assert layout in orders
    assert {tuple(one["sum"]) for one in orders} == {
        ("a", "b", "b"),
        ("b", "a", "b"),
        ("b", "b", "a"),
    }
    assert all(one["sum"] == one["out"] for one in orders)
    assert len(orders) <= VARIANTS + 1
    assert possible_orders(layout, {}) == [layout]
    assert possible_orders(layout, {"log": (0.9, 0.1)}) == [layout]


def test_the_present_placement_is_checked_with_the_shares_that_were_counted() -> None:
    """Without them, the model believes that twice as much were carried."""
    graph = replace(pipe(), attributes={"mips": 1000.0})
    limit = {f"d{i}": Usage(CpuShare(1.0, used=0.99), {"tasks": 0.99}) for i in range(3)}
    layout = {"src": ["d2"], "sum": ["d0", "d1"], "out": ["d2", "d2"]}
    present = Present(layout, limit, 0.0)
    even = agreement(graph, present, None, is_limited=True)
    skewed = agreement(graph, present, None, is_limited=True, shares={"sum": SKEWED})
    assert even is not None
    assert skewed is not None
    assert skewed.predicted == pytest.approx(even.predicted * 0.5 / 0.8, rel=0.01)

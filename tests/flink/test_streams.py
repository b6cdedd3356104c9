"""What sources, streams and subtasks carry: lag, counts at both ends, keys, and messages."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from fake_flink import MIPS, START, LazyFlink, Vertex, rates, source
from hypothesis import given
from hypothesis import strategies as st
from problems import parse_graph

from streamplace import Cluster, Device, Operator, Stream, StreamGraph
from streamplace.errors import GraphError
from streamplace.flink.constants import VARIANTS
from streamplace.flink.cpu import threads as cpu
from streamplace.flink.cpu.charging import RunningSubtask
from streamplace.flink.cpu.limits import CpuShare
from streamplace.flink.decide.candidates import BY_SEARCH, BY_SPEED, Question, candidates
from streamplace.flink.layout import Layout
from streamplace.flink.measure.cluster import Measurement, possible_orders
from streamplace.flink.measure.key_shares import key_shares
from streamplace.flink.measure.measured_graph import agreement, measured_graph
from streamplace.flink.measure.profile import Present, Usage, profile
from streamplace.flink.measure.source_lag import SourceFlow, SubtaskFlow, source_flow
from streamplace.flink.measure.streams import shares, with_message_cost
from streamplace.flink.rest.plan import Edge, FlinkTask
from streamplace.io.graphs import graph_line
from streamplace.model.expansion import expand
from streamplace.model.subtasks import with_parallelism
from streamplace.placers.registry import Budget


@given(st.data())
def test_sums_at_both_ends_give_every_stream_of_a_tree(data):
    """Whatever hangs on what, as long as nothing goes round; rests are as good as their sums."""
    n = data.draw(st.integers(1, 8))
    streams = [(f"u{i}", f"v{data.draw(st.integers(0, i))}") for i in range(n)]
    streams += [(f"u{data.draw(st.integers(0, i - 1))}", f"v{i}") for i in range(1, n)]
    streams = list(dict.fromkeys(streams))
    if len(streams) >= len({end for stream in streams for end in stream}):
        return  # something goes round
    amounts = [data.draw(st.integers(1, 1000)) for _ in streams]
    sums: list[dict[str, float]] = [{}, {}]
    for stream, amount in zip(streams, amounts, strict=True):
        for end, name in enumerate(stream):
            sums[end][name] = sums[end].get(name, 0) + amount
    found = shares(streams, sums[1], sums[0], {})
    assert found[0] == pytest.approx(dict(enumerate(amounts)))
    assert found[1] == set()


SQUARE = [(u, v) for u in "ab" for v in "cd"]
ALL = {0, 1, 2, 3}
READ = {"c": 30.0, "d": 60.0}


@pytest.mark.parametrize(
    ("streams", "received", "sent", "weights", "amounts", "mixed"),
    [
        # what is received counts more than what is sent, whose bytes Flink counts by whole buffers
        ([("a", "b")], {"b": 5.0}, {"a": 6.0}, {}, [5], set()),
        ([("a", "b")], {}, {}, {}, [0], {0}),
        ([("a", "c"), ("b", "c")], {"c": 101.0}, {"a": 100.0}, {}, [100, 1], set()),
        # two senders with two receivers each, whose outputs are guessed, or not known at all
        (SQUARE, READ, {}, {0: 1.0, 1: 1.0, 2: 2.0, 3: 2.0}, [10, 20, 20, 40], ALL),
        (SQUARE, READ, {}, {}, [15, 30, 15, 30], ALL),
    ],
)
def test_streams_share_the_sums_at_their_ends(streams, received, sent, weights, amounts, mixed):
    """And it is told which are guessed."""
    found = shares(streams, received, sent, weights)
    assert found[0] == pytest.approx(dict(enumerate(amounts)))
    assert found[1] == mixed


RATE, COMMITTER = 3400.0, 0.41
"""Tuples/s that the writer counts, and cores of the committer, which reads a message per second."""


def taxi(clock, messages=1.0):
    """A source, a writer that is chained to what comes before, and its committer."""
    vertices = {
        "v0": source("trips", RATE, 90, busy=0.2, blocked=1.0),
        "v1": Vertex(
            "trips.parquet: Writer",
            rates(RATE, RATE, RATE * 90, messages * 300, busy=0.3),
            [("v0", "REBALANCE")],
        ),
        "v2": Vertex(
            "trips.parquet: Committer",
            rates(messages, 0, messages * 300, 0, busy=COMMITTER),
            [("v1", "FORWARD")],
        ),
    }
    return LazyFlink(clock, vertices)


def watched(clock, messages=1.0):
    """A profile of the job on one TaskManager with one core, all of which it took."""
    measured = profile(taxi(clock, messages).rest, "job", 10)
    devices = {task.name: ["dev-0"] * task.parallelism for task in measured.tasks}
    used = 0.2 + 0.3 + COMMITTER
    usage = {"dev-0": Usage(CpuShare(1.0, used=used), {"tasks": used})}
    object.__setattr__(measured, "present", Present(devices, usage, 0.05))
    return measured


def test_a_stream_carries_the_input_of_its_receiver(clock):
    """The committer reads one message per second, whatever the writer counts."""
    graph = measured_graph(watched(clock), MIPS)
    assert graph.streams.selectivity.tolist() == pytest.approx([1, 1 / RATE])
    assert graph.input_rate.tolist() == pytest.approx([RATE, RATE, 1])
    assert graph.operators.payload.tolist() == pytest.approx([90, 300, 0])


@pytest.mark.parametrize("messages", [1.0, 0.0])
def test_a_committer_is_not_charged_to_every_tuple(clock, messages):
    """Else the model says that a placement carries a fraction of what it was measured to carry."""
    measured = watched(clock, messages)
    graph = measured_graph(measured, MIPS)
    assert measured.constant == pytest.approx({"v0": 0, "v1": 0, "v2": COMMITTER})
    assert graph.charged_ipt[2] == 0
    error = re.search(r"\(([+-]\d+)%\)", str(graph.attributes["consistency"]))
    assert -10 <= int(error[1]) <= 100


def test_a_global_committer_is_known_by_its_name(clock):
    """Where it follows a chain of a writer and its committer, which counts what is written."""
    flink = taxi(clock)
    flink.vertices["v1"].name = "trips.parquet: Writer -> trips.parquet: Committer"
    flink.vertices["v2"].name = "trips.parquet: Global Committer"
    measured = profile(flink.rest, "job", 10)
    assert measured.constant == pytest.approx({"v0": 0, "v1": 0, "v2": COMMITTER})


def test_output_of_several_senders_only_divides_the_input(clock):
    """One committer of two writers: both count records, and together they send a message each."""
    flink = taxi(clock, 4.0)
    flink.vertices["w"] = Vertex(
        "late.parquet: Writer", rates(RATE, RATE, RATE * 90, 300), [("v0", "REBALANCE")]
    )
    flink.vertices["v2"].inputs = [("v1", "REBALANCE"), ("w", "REBALANCE")]
    measured = profile(flink.rest, "job", 10)
    assert measured_graph(measured, MIPS).input_rate.tolist()[2] == pytest.approx(4)


def test_output_of_a_chained_sink_is_not_sent_to_a_join(clock):
    """The task counts it with what it sends; the other sender tells how much that is."""
    rate = 1000.0
    vertices = {
        "v0": source("trips", rate, 90),
        "v1": Vertex(
            "map -> archive: Writer",
            rates(rate, 2 * rate, rate * 90, rate * 90),
            [("v0", "REBALANCE")],
        ),
        "v2": source("rides", rate, 90),
        "v3": Vertex("join", rates(2 * rate, 0, 2 * rate * 90), [("v1", "HASH"), ("v2", "HASH")]),
    }
    measured = profile(LazyFlink(clock, vertices).rest, "job", 10)
    graph = measured_graph(measured, MIPS)
    assert graph.input_rate[graph.operators.index("join")] == pytest.approx(2 * rate)
    assert graph.streams.selectivity.tolist() == pytest.approx([1, 1, 1])
    vertices["v2"].name = "Source: rides -> copy: Writer"
    measured = profile(LazyFlink(clock, vertices).rest, "job", 10)
    assert measured_graph(measured, MIPS).input_rate[-1] == pytest.approx(2 * rate)
    assert any("several inputs mix" in doubt for doubt in measured.doubts)


OFFSET = "{}.Source__src.KafkaSourceReader.topic.orders.partition.{}.currentOffset"
"""Metric of a subtask and a partition."""


def lag(now, growth=0.0):
    """What waits for a subtask."""
    return lambda moment: now + growth * (moment - START)


def kafka(clock, growth=0.0, pending=0.0, parts=(), lags=(), offsets=()):
    """A source of 1000 tuples/s that is back-pressured, and reports its lag.

    Parts of the tuples, and lags, are of its subtasks, and offsets by subtask and partition.
    """
    vertex = source("src", 1000, 400, growth, busy=0.2, blocked=1.5)
    vertex.shares, vertex.lags = parts, lags
    vertex.offsets = {OFFSET.format(*place): offset for place, offset in dict(offsets).items()}
    flink = LazyFlink(clock, {"v0": vertex})
    flink.counted["v0"] = {"Source__src.pendingRecords": pending - growth * START}
    return flink


@pytest.mark.parametrize(
    ("growth", "pending", "why"),
    [
        (0.0, 0.0, None),
        (-100.0, 30_000.0, None),  # gone in five minutes, half a minute's worth of tuples
        (200.0, 0.0, "its backlog grows"),
        (-100.0, 9e6, "8996000 tuples wait for it"),
    ],
)
def test_a_source_whose_lag_does_not_grow_keeps_up(clock, growth, pending, why):
    """Unless what waits is so much that another layout would be done with it much earlier."""
    measured = profile(kafka(clock, growth, pending).rest, "job", 10).flow
    assert measured.sources["src"].why == why
    assert measured.offered == pytest.approx(1000 + growth, rel=0.02)
    flow = source_flow(kafka(clock, growth, pending).rest, "job")
    assert (flow.is_limited, flow.keeps_up) == (why is not None, why is None)


@pytest.mark.parametrize("tuples", [0.25, 4.0])
def test_pending_records_count_as_their_tuples(clock, tuples):
    """Rates are of tuples, and lag is of records: a record may hold many, or none that counts."""
    flink = kafka(clock, 50.0, 1_000.0, (0.75, 0.25), (lag(0.0), lag(1_000.0, 50.0)))
    vertex = flink.vertices["v0"]
    vertex.rates = {**vertex.rates, "Source__src.numRecordsIn": 1000 / tuples}
    measured = profile(flink.rest, "job", 10).flow
    assert measured.offered == pytest.approx(1000 + 50 * tuples, rel=0.02)
    _, second = measured.sources["src"].subtasks
    assert second.growth == pytest.approx(50 * tuples, rel=0.02)
    flow = source_flow(flink.rest, "job")
    assert flow.growth == pytest.approx(50 * tuples, rel=0.02)


def test_a_drained_backlog_shows_the_sustained_rate(clock):
    """The second subtask reads 250 of 1000 tuples/s, and half of the input is for it."""
    flink = kafka(clock, parts=(0.75, 0.25), lags=(lag(0.0), lag(50_000.0, 250.0)))
    windows = profile(flink.rest, "job", 10)
    first, second = windows.flow.sources["src"].subtasks
    assert (first.is_draining, second.is_draining) == (False, True)
    assert second.rate == pytest.approx(250, rel=0.02)
    half = 0.25 * 1000 * clock.now + second.pending[1]
    share = half / (half + 0.75 * 1000 * clock.now)
    assert windows.flow.sustained == pytest.approx(250 / share, rel=0.02)


@pytest.mark.parametrize("later", [550_000, -1])
def test_after_a_restart_offsets_give_the_shares_of_partitions(clock, later):
    """Most of what has arrived since waits for the slow one; -1 is before its first tuple."""
    read = {(0, 0): 4e5, (0, 2): 2e5, (1, 1): later}
    flink = kafka(clock, 0.0, 0.0, (0.75, 0.25), (lag(0.0), lag(50_000.0)), read)
    source = profile(flink.rest, "job", 10).flow.sources["src"]
    assert source.partitions == 3
    first, second = (one.arrived for one in source.subtasks)
    assert source.sustained == pytest.approx(250 * (first + second) / second, rel=0.02)
    assert (first == second) is (later > 0)


def test_a_subtask_that_waits_for_input_may_not_read_more():
    """The other one could read its fifth of 1,500 tuples/s; 1,100 were read."""
    subtasks = SubtaskFlow(800.0, 8e5, (0.0, 0.0)), SubtaskFlow(300.0, 2e5, (9e4, 8e4))
    assert SourceFlow(1100.0, subtasks=subtasks).sustained == 1100.0
    assert SourceFlow(1100.0, subtasks=subtasks[1:]).sustained == 300.0


def test_without_a_backlog_the_sustained_rate_is_unknown(clock):
    """Subtasks that wait for input show no limit; nor do those that report no lag."""
    assert profile(kafka(clock).rest, "job", 10).flow.sustained is None
    assert not SubtaskFlow(1000.0, 1e6, (0.0, 9e9)).is_draining


def test_the_lag_names_the_subtask_that_falls_behind(clock):
    """One that never read a record reports none, as Kafka's does without a partition."""
    flink = kafka(clock, 100.0, 5_000.0, (1.0, 0.0), (lag(5_000.0, 100.0),))
    words = profile(flink.rest, "job", 10).flow.sources["src"].lag
    assert re.fullmatch(
        r"\d+ tuples wait, 100 more per second; src#0 falls behind by 1[\d.]+ tuples/s", words
    )


@pytest.mark.parametrize(("partitions", "most"), [(6, 6), (1, 2), (0, 0)])
def test_a_source_has_work_for_as_many_subtasks_as_partitions(clock, partitions, most):
    """It has two subtasks; without metrics of partitions any number may have work."""
    offsets = {(i % 2, i): 9e6 for i in range(partitions)}
    flink = kafka(clock, 0.0, 0.0, (0.5, 0.5), (lag(0.0), lag(0.0)), offsets)
    graph = measured_graph(profile(flink.rest, "job", 10), MIPS)
    assert graph.operators.max_parallelism.tolist() == [most]


SRC = FlinkTask("v0", "src", "src", 1, ("src",))
SUM = FlinkTask("v1", "sum", "sum", 2, ("sum",))
HASH = Edge("v0", "v1", "hash", 1)
SKEWED = (0.8, 0.2)


def counted(*read):
    """Subtasks of the sum that read these numbers of tuples."""
    return [RunningSubtask("job", "v1", i, "d0", "sum", 0.0, n) for i, n in enumerate(read)]


TURN = Edge("v0", "v1", "rebalance", 1)
CHOSEN = replace(TURN, is_uneven=True)  # by a partitioner of the program
COPIED = replace(TURN, is_broadcast=True)


@pytest.mark.parametrize(
    ("read", "edges", "groups", "found"),
    [
        ((8000.0, 2000.0), [HASH], 0, (0.8, 0.2)),
        ((5100.0, 4900.0), [HASH], 0, None),  # four standard deviations may be chance
        ((500.0, 200.0), [HASH], 0, None),
        ((math.nan, 5000.0), [HASH], 0, None),
        # what is sent around in turn is even whatever was counted
        ((8000.0, 2000.0), [HASH, TURN], 0, None),
        # of what every subtask gets, none has more than the others
        ((8000.0, 2000.0), [HASH, COPIED], 0, (0.8, 0.2)),
        # the first subtask may get everything, whatever the key groups
        ((9000.0, 0.0), [CHOSEN], 0, (1.0, 0.0)),
        ((8000.0, 2000.0), [CHOSEN, HASH], 0, (0.8, 0.2)),
        ((6700.0, 3300.0), [CHOSEN], 3, (0.67, 0.33)),
        # three groups on two subtasks: one has two of them
        ((6700.0, 3300.0), [HASH], 3, None),
        ((5000.0, 5000.0), [HASH], 3, (0.5, 0.5)),
    ],
)
def test_shares_are_those_of_read_tuples_unless_even_or_unknown(read, edges, groups, found):
    task = replace(SUM, max_parallelism=groups or SUM.max_parallelism)
    shares = key_shares([SRC, task], edges, {"v1": counted(*read)})
    assert shares == ({} if found is None else {"sum": pytest.approx(found)})


def sent(*subtasks, read=0.0):
    """Shares of a source whose subtasks sent tuples, waited, and were back-pressured, in ms."""
    source = replace(SRC, parallelism=len(subtasks), max_parallelism=3)
    rows = [
        RunningSubtask("job", "v0", i, "d0", "src", 500.0, read, wrote, waited, blocked)
        for i, (wrote, waited, blocked) in enumerate(subtasks)
    ]
    return key_shares([source], [], {"v0": rows})


@pytest.mark.parametrize("read", [0.0, math.nan])
def test_a_source_with_more_partitions_than_subtasks_is_uneven(read):
    """Some versions of Flink count what sources read; key groups do not matter."""
    few = (2000.0, 500.0, 0.0)
    assert sent((4000.0, 0.0, 0.0), few, few, few, read=read) == {"src": (0.4, 0.2, 0.2, 0.2)}
    assert sent(few, few, read=read) == {}


def test_a_held_back_source_has_unknown_shares():
    """A subtask on a slow device, or a blocked one, emits less than it would be offered."""
    busy, blocked = (2000.0, 0.0, 0.0), (2000.0, 100.0, 900.0)
    assert sent((4000.0, 0.0, 0.0), busy) == {}
    assert sent((4000.0, 500.0, 0.0), blocked) == {}
    assert sent((4000.0, 0.0, 0.0), (2000.0, math.nan, 0.0)) == {}


def test_ended_subtasks_of_a_source_emit_no_more():
    """Whatever arrives for the others."""
    source, few = replace(SRC, parallelism=3), (0.0, 2000.0, 500.0, 0.0)
    rows = [RunningSubtask("job", "v0", i, "d0", "src", 500.0, *few) for i in range(2)]
    last = RunningSubtask("job", "v0", 2, "d0", "src", 0.0, 0.0, 0.0, 0.0, 0.0, True)
    assert key_shares([source], [], {"v0": [*rows, last]}) == {"src": (0.5, 0.5, 0.0)}
    rows.append(last._replace(has_ended=False))
    assert key_shares([source], [], {"v0": rows}) == {}


def summing(clock, shares):
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
    clock, monkeypatch, late
):
    """Until then Flink says that they have read nothing; then, all since their start."""
    flink = summing(clock, (0.5, 0.5))
    untold = {"metrics": {"read-records": 0.0, "read-records-complete": False}}
    flink.otherwise_of = lambda vertex, i: untold if i and clock.now < late else {}
    monkeypatch.setattr(cpu, "time", clock)
    assert profile(flink.rest, "job", 10).shares == {}
    assert clock.now < START + 46  # it takes 40 s of this clock without waiting for metrics


@pytest.mark.parametrize(("waits", "expected"), [(0.5, (0.6, 0.2, 0.2)), (0.0, None)])
def test_a_profile_has_the_shares_of_sources_and_of_partitioners(clock, waits, expected):
    """Sources only while they wait for input."""
    parts = (0.6, 0.2, 0.2)
    source = rates(0, 1000, 0, 40_000, busy=0.9) | {"src.numRecordsOut": 1000}
    out = rates(1000, 0, 40_000, busy=0.5)
    vertices = {
        "v0": Vertex("src", source, (), 3, "", parts, waits),
        "v1": Vertex("out", out, [("v0", "CUSTOM")], 3, "", parts),
    }
    measured = profile(LazyFlink(clock, vertices).rest, "job", 10)
    assert {name: tuple(own) for name, own in measured.shares.items()} == {
        "out": pytest.approx(parts),
        **({"src": pytest.approx(expected)} if expected else {}),
    }
    subtasks = expand(measured_graph(measured, MIPS), measured.shares).graph.input_rate.tolist()
    assert subtasks[3:] == pytest.approx([600, 200, 200], rel=0.01)
    assert subtasks[0] == pytest.approx(600 if expected else 1000 / 3, rel=0.01)


def test_an_even_source_has_equal_parts_whatever_its_maximum_parallelism(shop):
    """By 128 key groups, some of 85 subtasks would have two of them, and others one."""
    flink = shop()
    flink.vertices["v0"].parallelism = 85
    flink.vertices["v0"].shares = (1 / 85,) * 85
    measured = profile(flink.rest, "job", 10)
    graph = measured_graph(measured, MIPS)
    assert measured.shares == {}
    assert expand(graph).graph.operators.rate[:85] == pytest.approx(graph.source_rate / 85)
    assert 85 <= graph.operators["src"].max_parallelism <= 128
    assert graph.operators["split"].max_parallelism == 128


def pipe(parallelism=2, rate=100.0):
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
def test_subtasks_get_their_shares_and_hand_them_on(own):
    """A forward stream joins subtask i to subtask i."""
    parts = [one / sum(own) for one in own]
    found = expand(pipe(3), {"sum": parts}).graph.input_rate.tolist()
    wanted = [100.0 * part for part in parts]
    assert found == pytest.approx([100.0, *wanted, *wanted], abs=1e-5)


@pytest.mark.parametrize("wrong", [[0.5], [0.5, 0.6], [1.5, -0.5], [math.nan, 1.0]])
def test_invalid_shares_are_refused(wrong):
    with pytest.raises(GraphError, match="'sum'"):
        expand(pipe(), {"sum": wrong})


def asked(cluster, present, **more):
    """As much as possible of a job whose keys are skewed."""
    measured = Measurement(pipe(), cluster, SourceFlow(0.0), shares={"sum": SKEWED})
    return Question(measured, Layout(present), {}, True, None, modes=(), **more)


UNEQUAL = Cluster.of([Device("fast", mips=2000), Device("slow", mips=500)])
LUCKY = {"src": ["fast"], "sum": ["fast", "slow"], "out": ["fast", "slow"]}
"""The subtask with the popular keys is on the fast device."""


def test_a_layout_has_the_rate_of_its_worst_order_of_pins():
    """They do not say which subtask goes where, and four fifths of the tuples may be on slow."""
    question = asked(UNEQUAL, LUCKY)
    now = question.rates.of(Layout(LUCKY))
    assert question.rates.if_pinned(Layout(LUCKY)) < 0.5 * now
    unlucky = {**LUCKY, "sum": ["slow", "fast"], "out": ["slow", "fast"]}
    found = candidates(asked(UNEQUAL, unlucky), Budget(evaluations=2000))
    best = max(found, key=lambda one: one.predicted.low)
    assert best.name in (BY_SEARCH, BY_SPEED)
    assert set(best.layout["sum"]) == {"fast"}


def test_orders_keep_the_numbers_on_devices_and_the_pairs_of_subtasks():
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


def test_the_present_placement_is_checked_with_the_counted_shares():
    """Without them, the model believes that twice as much were carried."""
    graph = replace(pipe(), attributes={"mips": 1000.0})
    limit = {f"d{i}": Usage(CpuShare(1.0, used=0.99), {"tasks": 0.99}) for i in range(3)}
    layout = {"src": ["d2"], "sum": ["d0", "d1"], "out": ["d2", "d2"]}
    present = Present(layout, limit, 0.0)
    even = agreement(graph, present, None, is_limited=True)
    skewed = agreement(graph, present, None, is_limited=True, shares={"sum": SKEWED})
    assert skewed.predicted == pytest.approx(even.predicted * 0.5 / 0.8, rel=0.01)


def test_a_profile_contains_the_messages_at_its_parallelism_and_rate():
    measured = with_message_cost(pair(), 1000.0)
    assert parse_graph(graph_line(measured), "line") == measured
    cost = 0.5 * float(measured.attributes["message ipt"]) / 1e6
    sent = 320 / 3

    def more(rate, p):
        graph = with_parallelism(measured.at_rate(rate), np.array([p, p], np.int32))
        return (graph.charged_constant / cost).tolist()

    assert more(320.0, 4) == [0.0, 0.0]
    assert more(320.0, 2) == [0.0, 0.0]
    assert more(320.0, 8) == pytest.approx([320 / 1.5 - sent] * 2, rel=1e-9)
    assert more(32.0, 4) == pytest.approx([32 / 1.2 - sent / 10] * 2, rel=1e-9)
    assert more(3200.0, 4) == [0.0, 0.0]


def pair():
    """Two operators of four subtasks each: 20 tuples/s flow through each of 16 channels."""
    ends = [
        Operator("a", ipt=1e6, rate=320.0, parallelism=4),
        Operator("b", ipt=1e6, parallelism=4),
    ]
    return StreamGraph.of("pair", ends, [Stream("a", "b", partitioning="rebalance")])


def test_operators_with_a_constant_load_contain_messages_as_others_do():
    ends = [Operator("a", ipt=1e6, rate=320.0), Operator("b", ipt=1e6, constant=1.0)]
    graph = StreamGraph.of("pair", ends, [Stream("a", "b", partitioning="rebalance")])
    attributes = with_message_cost(graph, 1000.0).attributes
    assert {"messages per tuple of a", "messages per tuple of b"} <= attributes.keys()

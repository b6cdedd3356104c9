"""What streams carry, from what tasks count at their ends, also of two-phase sinks.

The writer of such a sink counts what it does not send to its committer.
"""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lazy_flink import MIPS, Clock, LazyFlink, Vertex, rates

from streamplace.engines.flink.cpu.limits import CpuShare
from streamplace.engines.flink.measure.graph import measured_graph
from streamplace.engines.flink.measure.profile import JobProfile, Present, Usage, profile
from streamplace.engines.flink.measure.sampling import Activity
from streamplace.engines.flink.measure.streams import carried_by_streams, shares
from streamplace.engines.flink.rest.plan import Edge, FlinkTask


@given(st.data())
def test_sums_at_both_ends_tell_every_stream_of_a_tree(data: st.DataObject) -> None:
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
def test_streams_share_what_is_counted_at_their_ends(
    streams: list[tuple[str, str]],
    received: dict[str, float],
    sent: dict[str, float],
    weights: dict[int, float],
    amounts: list[float],
    mixed: set[int],
) -> None:
    """And it is told which are guessed."""
    found = shares(streams, received, sent, weights)
    assert found[0] == pytest.approx(dict(enumerate(amounts)))
    assert found[1] == mixed


def test_what_a_broadcast_sends_to_each_subtask_counts_where_inputs_mix() -> None:
    """Ten tuples/s to four subtasks are as many as forty that are dealt out."""
    tasks = [FlinkTask(name, name, name, 4, (name,)) for name in "abcd"]
    edges = [
        Edge("a", "c", "rebalance", 4, is_broadcast=True),
        Edge("b", "c", "hash"),
        Edge("a", "d", "hash"),
        Edge("b", "d", "hash"),
    ]
    sent = {
        "a": Activity({"numRecordsOut": 10.0}, 1.0),
        "b": Activity({"numRecordsOut": 40.0}, 1.0),
    }
    read = {
        name: Activity({"numRecordsIn": rate}, 1.0) for name, rate in (("c", 80.0), ("d", 50.0))
    }
    found = carried_by_streams(tasks, edges, sent | read)
    assert found.tuples == pytest.approx({0: 40, 1: 40, 2: 10, 3: 40})
    assert "selectivity of a→c: guessed, several inputs mix" in found.doubts


RATE, COMMITTER = 3400.0, 0.41
"""Tuples/s that the writer counts, and cores of the committer, which reads a message per second."""


def taxi(clock: Clock, messages: float = 1.0) -> LazyFlink:
    """A source, a writer that is chained to what comes before, and its committer."""
    enters = {"Source__trips.numRecordsOut": RATE}
    vertices = {
        "v0": Vertex("Source: trips", rates(0, RATE, 0, RATE * 90, busy=0.2, blocked=1.0) | enters),
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


def watched(clock: Clock, messages: float = 1.0) -> JobProfile:
    """A profile of the job on one TaskManager with one core, all of which it took."""
    seen = profile(taxi(clock, messages).rest, "job", 10)
    devices = {task.name: ["dev-0"] * task.parallelism for task in seen.tasks}
    used = 0.2 + 0.3 + COMMITTER
    usage = {"dev-0": Usage(CpuShare(1.0, used=used), {"tasks": used})}
    object.__setattr__(seen, "present", Present(devices, usage, 0.05))
    return seen


def test_a_stream_carries_what_its_receiver_reads(clock: Clock) -> None:
    """The committer reads one message per second, whatever the writer counts."""
    graph = measured_graph(watched(clock), MIPS)
    assert graph.streams.selectivity.tolist() == pytest.approx([1, 1 / RATE])
    assert graph.input_rate.tolist() == pytest.approx([RATE, RATE, 1])
    assert graph.operators.payload.tolist() == pytest.approx([90, 300, 0])


@pytest.mark.parametrize("messages", [1.0, 0.0])
def test_a_committer_is_not_charged_to_every_tuple(clock: Clock, messages: float) -> None:
    """Else the model says that a placement carries a fraction of what it was measured to carry."""
    seen = watched(clock, messages)
    graph = measured_graph(seen, MIPS)
    assert seen.constant == pytest.approx({"v0": 0, "v1": 0, "v2": COMMITTER})
    assert graph.charged_ipt[2] == 0
    error = re.search(r"\(([+-]\d+)%\)", str(graph.attributes["consistency"]))
    assert error is not None
    assert -10 <= int(error[1]) <= 100


def test_a_global_committer_is_known_by_its_name(clock: Clock) -> None:
    """Where it follows a chain of a writer and its committer, which counts what is written."""
    flink = taxi(clock)
    flink.vertices["v1"].name = "trips.parquet: Writer -> trips.parquet: Committer"
    flink.vertices["v2"].name = "trips.parquet: Global Committer"
    seen = profile(flink.rest, "job", 10)
    assert seen.constant == pytest.approx({"v0": 0, "v1": 0, "v2": COMMITTER})


def test_what_several_senders_count_only_divides_what_is_read(clock: Clock) -> None:
    """One committer of two writers: both count records, and together they send a message each."""
    flink = taxi(clock, 4.0)
    flink.vertices["w"] = Vertex(
        "late.parquet: Writer", rates(RATE, RATE, RATE * 90, 300), [("v0", "REBALANCE")]
    )
    flink.vertices["v2"].inputs = [("v1", "REBALANCE"), ("w", "REBALANCE")]
    seen = profile(flink.rest, "job", 10)
    assert measured_graph(seen, MIPS).input_rate.tolist()[2] == pytest.approx(4)


def test_what_a_chained_sink_writes_is_not_sent_to_a_join(clock: Clock) -> None:
    """The task counts it with what it sends; the other sender tells how much that is."""
    rate = 1000.0
    vertices = {
        "v0": Vertex(
            "Source: trips", rates(0, rate, 0, rate * 90) | {"Source__trips.numRecordsOut": rate}
        ),
        "v1": Vertex(
            "map -> archive: Writer",
            rates(rate, 2 * rate, rate * 90, rate * 90),
            [("v0", "REBALANCE")],
        ),
        "v2": Vertex(
            "Source: rides", rates(0, rate, 0, rate * 90) | {"Source__rides.numRecordsOut": rate}
        ),
        "v3": Vertex("join", rates(2 * rate, 0, 2 * rate * 90), [("v1", "HASH"), ("v2", "HASH")]),
    }
    seen = profile(LazyFlink(clock, vertices).rest, "job", 10)
    graph = measured_graph(seen, MIPS)
    assert graph.input_rate[graph.operators.index("join")] == pytest.approx(2 * rate)
    assert graph.streams.selectivity.tolist() == pytest.approx([1, 1, 1])
    vertices["v2"].name = "Source: rides -> copy: Writer"
    seen = profile(LazyFlink(clock, vertices).rest, "job", 10)
    assert measured_graph(seen, MIPS).input_rate[-1] == pytest.approx(2 * rate)
    assert any("several inputs mix" in doubt for doubt in seen.doubts)

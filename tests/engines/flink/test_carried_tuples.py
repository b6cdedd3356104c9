"""Amounts that streams carry, from what tasks count at their ends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

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

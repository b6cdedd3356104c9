"""Amounts that streams carry, from what tasks count at their ends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamplace.engines.flink.measure.sampling import Activity
from streamplace.engines.flink.measure.streams import carried_by_streams, shares
from streamplace.engines.flink.rest.plan import Edge, FlinkTask

RATES = st.floats(0.1, 1e4)
DIAMOND = [("src", "a"), ("src", "b"), ("a", "sink"), ("b", "sink")]


@given(st.lists(RATES, min_size=4, max_size=4))
def test_what_can_be_told_is_told_exactly(amounts: list[float]) -> None:
    """A diamond whose branches differ: every stream has one known end."""
    received = {"a": amounts[0], "b": amounts[1], "sink": amounts[2] + amounts[3]}
    found = shares(DIAMOND, received, {"a": amounts[2], "b": amounts[3]}, {})
    assert found.amounts == pytest.approx(dict(enumerate(amounts)))
    assert not found.mixed | found.small


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
    assert found.amounts == pytest.approx(dict(enumerate(amounts)))
    assert found.mixed == set()


def test_what_is_received_counts_more_than_what_is_sent() -> None:
    """Flink counts sent bytes by whole buffers."""
    found = shares([("a", "b")], {"b": 5.0}, {"a": 6.0}, {})
    assert found.amounts == {0: 5.0}
    assert found.from_sent == set()


def test_streams_that_mix_at_both_ends_are_guessed_and_told() -> None:
    """Two senders with two receivers each, whose outputs are not known."""
    streams = [(u, v) for u in "ab" for v in "cd"]
    found = shares(streams, {"c": 30.0, "d": 60.0}, {}, {0: 10.0, 1: 10.0, 2: 20.0, 3: 20.0})
    assert found.amounts == pytest.approx({0: 10, 1: 20, 2: 20, 3: 40})
    assert found.mixed == {0, 1, 2, 3}


def test_a_small_rest_of_a_large_sum_is_told() -> None:
    """One percent of what was counted is as likely an error."""
    found = shares([("a", "c"), ("b", "c")], {"c": 101.0}, {"a": 100.0}, {})
    assert found.amounts == {0: 100.0, 1: 1.0}
    assert found.small == {1}


def test_nothing_flowing_is_nothing() -> None:
    """No division by zero."""
    assert shares([("a", "b")], {}, {}, {}).amounts == {0: 0.0}


def test_what_is_not_told_of_any_sender_is_divided_evenly() -> None:
    """Flink reports what the receivers read; it must not be lost."""
    streams = [(u, v) for u in "ab" for v in "cd"]
    found = shares(streams, {"c": 30.0, "d": 60.0}, {}, {})
    assert found.amounts == pytest.approx({0: 15, 1: 30, 2: 15, 3: 30})
    assert found.mixed == {0, 1, 2, 3}


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

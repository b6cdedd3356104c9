import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamplace.engines.flink.flows import flows, payloads

RATES = st.floats(0.1, 1e4)


@given(st.lists(RATES, min_size=4, max_size=4), st.lists(st.floats(1, 1e5), min_size=3, max_size=3))
def test_what_can_be_told_is_told_exactly(rates: list[float], sizes: list[float]) -> None:
    """A diamond whose branches differ: every stream has one known end."""
    streams = [("src", "a"), ("src", "b"), ("a", "sink"), ("b", "sink")]
    size = dict(zip(("src", "a", "b"), sizes, strict=True))
    read = {"a": rates[0], "b": rates[1], "sink": rates[2] + rates[3]}
    carried, guessed = flows(streams, read, {"a": rates[2], "b": rates[3]})
    assert carried == pytest.approx(dict(enumerate(rates)))
    assert guessed == set()
    received = {
        t: sum(rates[e] * size[s] for e, (s, v) in enumerate(streams) if v == t)
        for t in ("a", "b", "sink")
    }
    found, mixed = payloads(streams, carried, received)
    assert (found[0], found[1]) == pytest.approx((size["src"], size["src"]))
    assert mixed == {2, 3}  # both branches go into the sink alone: only their mean is known
    mean = received["sink"] / read["sink"]
    assert (found[2], found[3]) == pytest.approx((mean, mean))


def test_streams_that_mix_at_both_ends_are_guessed_and_told() -> None:
    """Two senders with two receivers each."""
    streams = [(u, v) for u in "ab" for v in "cd"]
    carried, guessed = flows(streams, {"c": 30.0, "d": 60.0}, {"a": 10.0, "b": 20.0})
    assert carried == pytest.approx({0: 10, 1: 20, 2: 20, 3: 40})
    assert guessed == {0, 1, 2, 3}


def test_nothing_flowing_is_nothing() -> None:
    """No division by zero."""
    assert flows([("a", "b")], {}, {}) == ({0: 0.0}, set())
    assert payloads([("a", "b")], {0: 0.0}, {}) == ({0: 0.0}, set())

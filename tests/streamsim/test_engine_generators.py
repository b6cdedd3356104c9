"""Generators and their backlog."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from engine_cases import chain
from hypothesis import given
from hypothesis import strategies as st
from streamsim.engine import Burst, Constant, Ramp, Replay, Settings, simulate, trace

GENERATORS = st.one_of(
    st.just(Constant()),
    st.builds(Ramp, st.floats(0.05, 5), st.floats(0, 2)),
    st.builds(Burst, st.floats(0.05, 5), st.floats(0, 5), st.floats(0, 3), st.floats(0, 1)),
    st.builds(Replay, st.lists(st.floats(0, 300), min_size=1).map(tuple), st.floats(0.05, 3)),
)


@given(GENERATORS, st.integers(1, 4))
def test_finer_slices_generate_the_same_tuples(generator: Any, cut: Any) -> None:
    coarse = generator.tuples(100.0, 0.1, 60)
    fine = generator.tuples(100.0, 0.1 / cut, 60 * cut).reshape(60, cut).sum(axis=1)
    assert (coarse >= 0).all()
    assert fine == pytest.approx(coarse, abs=1e-6)


def test_a_ramp_is_the_integral_of_its_rate() -> None:
    """From 0 to 100 tuples/s in 2 s: 100 tuples, then 100 per second."""
    generated = Ramp(2.0).tuples(100, 0.5, 8)
    assert generated == pytest.approx([6.25, 18.75, 31.25, 43.75, 50, 50, 50, 50])
    assert (generated[4:] == generated[-1]).all()


def test_what_a_source_cannot_take_in_waits_and_nothing_is_lost() -> None:
    """A burst of 300 tuples drains at 125 per second."""
    how = Settings(duration=4, warm_up=0, generators={0: Burst(on=1, off=9, high=3)})
    run = trace(chain(8e-3, 0), [0, 0], how)
    assert run.backlog[9] == pytest.approx(175)
    assert run.backlog[-1] == pytest.approx(0, abs=1e-9)
    assert (run.throughput * 0.1).sum() == pytest.approx(300)


def test_relative_throughput_is_relative_to_what_was_generated() -> None:
    """A source that is off four fifths of the time, and keeps up."""
    how = Settings(duration=20, warm_up=0, generators={0: Burst(on=1, off=4)})
    runs = simulate(chain(1e-3, 0), [[0, 0]], how)
    assert runs.relative == pytest.approx([1])
    assert runs.throughput == pytest.approx([20])


def test_seconds_without_tuples_count_as_zero() -> None:
    """A trace that ends after one of three measured seconds."""
    how = Settings(duration=3, warm_up=0, generators={0: Replay((100.0,), step=1.0)})
    assert simulate(chain(0, 0), [[0, 0]], how).throughput == pytest.approx([100 / 3])


def test_several_sources_have_their_own_generators() -> None:
    instance = chain(0, 0)._replace(rate=np.array([100.0, 50.0]))
    how = Settings(generators={1: Replay((0.0,), step=1.0)})
    assert simulate(instance, [[0, 0]], how).admitted == pytest.approx([100])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Ramp(0), "seconds of a ramp is 0"),
        (lambda: Burst(on=-1, off=1), "on time of a burst is -1"),
        (lambda: Replay((), 1), "number of rates"),
        (lambda: Replay((-1.0,), 1), "lowest rate of a replay is -1"),
        (lambda: Ramp(float("inf")), "seconds of a ramp is inf"),
    ],
)
def test_impossible_generators_are_refused(make: Callable[..., Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_generator_for_an_operator_without_a_rate_is_refused() -> None:
    """Its nominal rate is the yardstick."""
    with pytest.raises(ValueError, match="operator 1 has a generator but no rate"):
        simulate(chain(0, 0), [[0, 0]], Settings(generators={1: Constant()}))

"""Several sources and sinks, operators that join, and generators with their backlog."""

import numpy as np
import pytest
from engine_cases import chain
from hypothesis import given
from hypothesis import strategies as st
from streamsim import build_instance, throughput
from streamsim.engine import Burst, Constant, Ramp, Replay, Settings, observe, simulate, trace
from streamsim.engine.runs import source_equivalents

JOINING = Settings(duration=60, dt=0.02, warm_up=30, capacity=40)


def two_lines(costs):
    """Two sources of 100 tuples/s, each with a sink of its own."""
    return build_instance(
        rate=[100, 100, 0, 0],
        seconds=np.reshape(costs, (4, 1)),
        source=[0, 1],
        target=[2, 3],
        device_type=[0] * 4,
        seconds_per_byte=np.zeros((4, 4)),
    )


def on_one_device(rate, ends, seconds=None, **more):
    """Operators on one device, which cost nothing unless something else is said."""
    free = np.zeros((len(rate), 1))
    return build_instance(
        rate=rate,
        seconds=free if seconds is None else seconds,
        source=ends[0],
        target=ends[1],
        device_type=[0],
        seconds_per_byte=[[0]],
        **more,
    )


def test_equal_sources_share_a_device_equally():
    """Two lines of 10 ms per tuple on one device reach half of their rates each."""
    runs = simulate(two_lines([0, 0, 1e-2, 1e-2]), [[0, 1, 2, 2]], Settings(capacity=50))
    assert runs.relative == pytest.approx([0.5], abs=1e-3)


def test_source_equivalents_of_all_sinks_add_up_to_the_sources():
    """Σ over sinks of λ · equivalents = Σ R, with joins, splits and selectivities."""
    ends = [0, 1, 2, 2, 2, 3], [2, 2, 3, 4, 5, 4]
    instance = on_one_device([100, 60, 0, 0, 0, 0], ends, selectivity=[1, 2, 0.5, 0.1, 3, 1])
    per_tuple = source_equivalents(instance)
    assert (per_tuple * instance.input_rate).sum() == pytest.approx(160)
    assert np.flatnonzero(per_tuple).tolist() == [4, 5]


def test_an_operator_that_filters_everything_ends_the_graph():
    """What it takes in counts, and streams of selectivity 0 never block."""
    costs = [[0], [0], [1.0]]
    instance = on_one_device([100, 0, 0], ([0, 1], [1, 2]), costs, selectivity=[1, 0])
    assert simulate(instance, [[0, 0, 0]], Settings(capacity=10)).relative == pytest.approx([1])


def diamond(left=1e-3, **more):
    """Source → left and right → join, which fires all; 100 tuples/s on three devices."""
    arguments: dict[str, object] = {
        "rate": [100, 0, 0, 0],
        "seconds": [[1e-3], [left], [1e-3], [1e-3]],
        "source": [0, 0, 1, 2],
        "target": [1, 2, 3, 3],
        "joins": [False, False, False, True],
        "payload": [1000, 1000, 1000, 1000],
        "device_type": [0, 0, 0],
        "seconds_per_byte": np.full((3, 3), 1e-6),
    }
    return build_instance(**(arguments | more))  # type: ignore[arg-type]


TWO_SOURCES = {
    "rate": [100, 0, 100, 0],
    "source": [0, 1, 2],
    "target": [1, 3, 3],
    "payload": [1000] * 3,
}
"""The right side is a source of its own; the join holds both back together."""


def test_a_join_takes_as_much_from_every_input():
    run = trace(diamond(left=2e-2), [0, 1, 2, 0], JOINING)
    at_join = run.queued[:, 2:]
    assert at_join[-1, 1] > 10 > at_join[-1, 0]  # the fast side waits for the slow one
    assert run.throughput[-1] == pytest.approx(50, rel=0.02)


@pytest.mark.parametrize(
    ("costs", "error"),
    [
        ({"left": 1e-3}, 0.01),
        ({"left": 2e-2}, 0.01),
        ({"left": 5e-2}, 0.01),
        ({"overhead": 2e-3}, 0.02),
        ({"gap": 8e-3}, 0.02),
        ({"latency": np.full((3, 3), 0.03)}, 0.02),
        ({"left": 2e-2} | TWO_SOURCES, 0.01),
    ],
    ids=str,
)
def test_joins_end_where_the_steady_state_says(costs, error):
    instance = diamond(**costs)
    places = [[0, 0, 0, 0], [0, 1, 2, 0], [0, 1, 0, 2], [2, 1, 2, 1], [0, 1, 1, 2], [2, 1, 0, 1]]
    reached = simulate(instance, places, JOINING).relative
    np.testing.assert_allclose(reached, throughput(instance, places), atol=error)


def test_inputs_that_several_streams_share_are_merged():
    """Two sources of 50 and 30 tuples/s are one input, a third of 80 is the other."""
    ends, joins = ([0, 1, 2], [3, 3, 3]), [False, False, False, True]
    costs = np.full((4, 1), 1e-4)
    instance = on_one_device([50, 30, 80, 0], ends, costs, joins=joins, inputs=[0, 0, 1])
    run = trace(instance, [0, 0, 0, 0], JOINING)
    assert run.throughput[-1] == pytest.approx(160)
    assert run.queued[-1].max() < 1


def test_a_join_with_a_rate_is_refused():
    """Its own tuples would be missing in all inputs but one."""
    both = on_one_device([100, 50], ([0, 0], [1, 1]), joins=[False, True])
    with pytest.raises(ValueError, match="operator 1"):
        simulate(both, [[0, 0]])


def test_a_set_is_as_old_as_its_oldest_tuple():
    """One side takes 0.5 s over its link, the other none: joined tuples are 0.5 s old."""
    latency = np.zeros((3, 3))
    latency[0, 1] = 0.5
    instance = diamond(latency=latency, seconds_per_byte=np.zeros((3, 3)))
    roomy = Settings(duration=60, dt=0.02, warm_up=30, capacity=400)
    seen = observe(instance, np.array([[0, 1, 0, 1]]), roomy)
    assert seen.latency[0] == pytest.approx(0.5, abs=0.06)


GENERATORS = st.one_of(
    st.just(Constant()),
    st.builds(Ramp, st.floats(0.05, 5), st.floats(0, 2)),
    st.builds(Burst, st.floats(0.05, 5), st.floats(0, 5), st.floats(0, 3), st.floats(0, 1)),
    st.builds(Replay, st.lists(st.floats(0, 300), min_size=1).map(tuple), st.floats(0.05, 3)),
)


@given(GENERATORS, st.integers(1, 4))
def test_finer_slices_generate_the_same_tuples(generator, cut):
    coarse = generator.tuples(100.0, 0.1, 60)
    fine = generator.tuples(100.0, 0.1 / cut, 60 * cut).reshape(60, cut).sum(axis=1)
    assert (coarse >= 0).all()
    assert fine == pytest.approx(coarse, abs=1e-6)


def test_what_a_source_cannot_take_in_waits_and_nothing_is_lost():
    """A burst of 300 tuples drains at 125 per second."""
    how = Settings(duration=4, warm_up=0, generators={0: Burst(on=1, off=9, high=3)})
    run = trace(chain(8e-3, 0), [0, 0], how)
    assert run.backlog[9] == pytest.approx(175)
    assert run.backlog[-1] == pytest.approx(0, abs=1e-9)
    assert (run.throughput * 0.1).sum() == pytest.approx(300)


def test_relative_throughput_is_relative_to_what_was_generated():
    """A source that is off four fifths of the time, and keeps up."""
    how = Settings(duration=20, warm_up=0, generators={0: Burst(on=1, off=4)})
    runs = simulate(chain(1e-3, 0), [[0, 0]], how)
    assert runs.relative == pytest.approx([1])
    assert runs.throughput == pytest.approx([20])


def test_seconds_without_tuples_count_as_zero():
    """A trace that ends after one of three measured seconds."""
    how = Settings(duration=3, warm_up=0, generators={0: Replay((100.0,), step=1.0)})
    assert simulate(chain(0, 0), [[0, 0]], how).throughput == pytest.approx([100 / 3])


def test_several_sources_have_their_own_generators():
    instance = chain(0, 0)._replace(rate=np.array([100.0, 50.0]))
    how = Settings(generators={1: Replay((0.0,), step=1.0)})
    assert simulate(instance, [[0, 0]], how).admitted == pytest.approx([100])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Ramp(0), "ramp is 0"),
        (lambda: Burst(on=-1, off=1), "burst is -1"),
        (lambda: Replay((-1.0,), 1), "replay is -1"),
        (
            lambda: simulate(chain(0, 0), [[0, 0]], Settings(generators={1: Constant()})),
            "operator 1",
        ),
    ],
)
def test_impossible_generators_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()

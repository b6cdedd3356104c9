import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamsim import bottleneck, build_instance, resource_loads, throughput
from streamsim.incremental import Incremental
from streamsim_strategies import placed, placed_joins

TOLERANCE = 1e-9


def fresh_loads(problem, state):
    """Loads of the placement from scratch, in the order of those of the state."""
    loads = resource_loads(problem, state.placement)
    devices = loads.devices - loads.constants
    parts = devices, loads.links.ravel(), loads.egress, loads.ingress
    return np.concatenate(parts)[: len(state.loads)]


def ladder(n, n_devices, rng, spread=1.0):
    """Operators that send to one of the operators before the next; loads spread over decades."""
    target = np.arange(1, n)
    source = (rng.random(n - 1) * target).astype(np.int32)
    return build_instance(
        rate=[100.0] + [0.0] * (n - 1),
        seconds=rng.random((n, 1)) * 10 ** rng.uniform(-spread, 0, (n, 1)) * 1e-2,
        source=source,
        target=target,
        payload=100 * 10 ** rng.uniform(-spread, spread, n - 1),
        device_type=np.zeros(n_devices),
        seconds_per_byte=np.full((n_devices, n_devices), 1e-4),
    )


def random_moves(instance, count, rng):
    n, d = instance.n_operators, instance.n_devices
    start = rng.integers(0, d, n).astype(np.int32)
    operators = rng.integers(0, n, count).astype(np.int32)
    return start, operators, rng.integers(0, d, count).astype(np.int32)


@pytest.mark.parametrize(
    "cases",
    [
        placed(max_sources=4) | placed_joins(max_sources=4) | placed(max_sources=4, limits=True),
        placed(constants=True),
    ],
    ids=["tuples alone", "constants"],
)
@given(data=st.data())
def test_after_any_moves_value_and_loads_are_those_of_a_fresh_start(cases, data):
    problem, batch = data.draw(cases)
    instance = problem.instance
    state = Incremental(instance, batch[0])
    moves = st.tuples(
        st.integers(0, problem.n_operators - 1), st.integers(0, problem.n_devices - 1)
    )
    for v, to in data.draw(st.lists(moves, max_size=20)):
        before = state.placement.tolist(), state.throughput
        state.move(v, to)
        expected = throughput(instance, state.placement[None])[0]
        again = Incremental(instance, state.placement)
        assert state.throughput == pytest.approx(expected, rel=TOLERANCE)
        assert state.peak == pytest.approx(again.peak, rel=TOLERANCE, abs=1e-15)
        if len(instance.sources) == 1 or not len(instance.constant):
            worst = bottleneck(resource_loads(instance, state.placement)).load
            assert state.peak == pytest.approx(worst, rel=TOLERANCE, abs=1e-15)
        fresh = fresh_loads(instance, state)
        np.testing.assert_allclose(state.loads, fresh, rtol=TOLERANCE, atol=1e-15)
        state.undo()
        assert (state.placement.tolist(), state.throughput) == before
        state.move(v, to)


@pytest.mark.parametrize("n_devices", [5, 20])
def test_a_hundred_thousand_moves_leave_no_trace(n_devices):
    """Loads that differ by ten decades pass through every resource and are taken away again.

    The peak is still the largest load.
    """
    rng = np.random.default_rng(0)
    instance = ladder(12, n_devices, rng, spread=5.0)
    start, operators, devices = random_moves(instance, 100_000, rng)
    state = Incremental(instance, start)
    for v, visited, to in zip(
        operators.tolist(), devices[::-1].tolist(), devices.tolist(), strict=True
    ):
        state.move(v, visited)
        state.undo()
        state.move(v, to)
    np.testing.assert_allclose(state.loads, fresh_loads(instance, state), rtol=1e-9, atol=1e-18)
    expected = throughput(instance, state.placement[None])[0]
    assert state.throughput == pytest.approx(expected, rel=1e-12)
    assert state.peak == state.loads.max()


def test_moves_of_what_is_not_there_are_refused():
    state = Incremental(ladder(3, 2, np.random.default_rng(0)), [0, 1, 0])
    for operator, device in ((3, 0), (0, 2), (-1, 0), (0, -1)):
        with pytest.raises((ValueError, OverflowError)):
            state.move(operator, device)
    with pytest.raises(ValueError, match="nothing was moved"):
        state.undo()

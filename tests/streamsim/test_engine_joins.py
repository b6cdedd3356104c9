"""Operators that take one tuple from every input at once, with queues."""

import numpy as np
import pytest
from streamsim import build_instance, throughput
from streamsim.engine import Settings, observe, simulate, trace
from streamsim.instance import Instance

SETTINGS = Settings(duration=60, dt=0.02, warm_up=30, capacity=40)


def diamond(left: float = 1e-3, right: float = 1e-3, **more: object) -> Instance:
    """Source → left and right → join, which fires all; 100 tuples/s on three devices."""
    arguments: dict[str, object] = {
        "rate": [100, 0, 0, 0],
        "seconds": [[1e-3], [left], [right], [1e-3]],
        "source": [0, 0, 1, 2],
        "target": [1, 2, 3, 3],
        "joins": [False, False, False, True],
        "payload": [1000, 1000, 1000, 1000],
        "device_type": [0, 0, 0],
        "seconds_per_byte": np.full((3, 3), 1e-6),
    }
    return build_instance(**(arguments | more))  # type: ignore[arg-type]


def test_a_join_takes_as_much_from_every_input() -> None:
    run = trace(diamond(left=2e-2), [0, 1, 2, 0], SETTINGS)
    at_join = run.queued[:, 2:]
    assert at_join[-1, 1] > 10 > at_join[-1, 0]  # the fast side waits for the slow one
    assert run.throughput[-1] == pytest.approx(50, rel=0.02)


@pytest.mark.parametrize("left", [1e-3, 2e-2, 5e-2])
def test_the_engine_ends_where_the_steady_state_says(left: float) -> None:
    instance = diamond(left)
    places = np.array([[0, 0, 0, 0], [0, 1, 2, 0], [0, 1, 0, 2], [2, 1, 2, 1]])
    reached = simulate(instance, places, SETTINGS).relative
    np.testing.assert_allclose(reached, throughput(instance, places), atol=0.01)


@pytest.mark.parametrize(
    "costs", [{"overhead": 2e-3}, {"gap": 8e-3}, {"latency": np.full((3, 3), 0.03)}], ids=str
)
def test_network_costs_bind_as_the_steady_state_says(costs: dict[str, object]) -> None:
    instance = diamond(**costs)
    places = np.array([[0, 1, 2, 0], [0, 1, 1, 2], [2, 1, 0, 1]])
    reached = simulate(instance, places, SETTINGS).relative
    np.testing.assert_allclose(reached, throughput(instance, places), atol=0.02)


def test_inputs_that_several_streams_share_are_merged() -> None:
    """Two sources of 50 and 30 tuples/s are one input, a third of 80 is the other."""
    instance = build_instance(
        rate=[50, 30, 80, 0],
        seconds=np.full((4, 1), 1e-4),
        source=[0, 1, 2],
        target=[3, 3, 3],
        joins=[False, False, False, True],
        inputs=[0, 0, 1],
        device_type=[0],
        seconds_per_byte=[[0]],
    )
    run = trace(instance, [0, 0, 0, 0], SETTINGS)
    assert run.throughput[-1] == pytest.approx(160)
    assert run.queued[-1].max() < 1


def test_two_sources_of_a_join_are_held_back_together() -> None:
    slow = build_instance(
        rate=[100, 100, 0],
        seconds=[[2e-2], [1e-4], [1e-4]],
        source=[0, 1],
        target=[2, 2],
        joins=[False, False, True],
        device_type=[0, 0],
        seconds_per_byte=np.zeros((2, 2)),
    )
    assert throughput(slow, [[0, 1, 1]])[0] == pytest.approx(0.5)
    reached = simulate(slow, np.array([[0, 1, 1]]), SETTINGS)
    assert reached.relative[0] == pytest.approx(0.5, abs=0.01)


def test_a_set_is_as_old_as_its_oldest_tuple() -> None:
    """One side takes 0.5 s over its link, the other none: joined tuples are 0.5 s old."""
    latency = np.zeros((3, 3))
    latency[0, 1] = 0.5
    instance = diamond(latency=latency, seconds_per_byte=np.zeros((3, 3)))
    roomy = Settings(duration=60, dt=0.02, warm_up=30, capacity=400)
    seen = observe(instance, np.array([[0, 1, 0, 1]]), roomy)
    assert seen.latency[0] == pytest.approx(0.5, abs=0.06)

"""Settings, and what the doors refuse."""

from typing import Any

import numpy as np
import pytest
from engine_cases import chain
from streamsim.engine import Settings, capacity_warnings, simulate


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"dt": 0}, "dt is 0"),
        ({"dt": float("nan")}, "dt is nan"),
        ({"duration": -1}, "duration is -1"),
        ({"duration": 30.05}, "no whole number of ticks"),
        ({"iterations": 0}, "iterations is 0"),
        ({"iterations": 1.5}, "iterations is 1.5"),
        ({"capacity": 0}, "capacity is 0"),
        ({"policy": "fair"}, "policy is 'fair'; choose one of dynamic, uniform, weighted"),
        ({"warm_up": 30}, "leave something to measure"),
        ({"warm_up": -1}, "warm_up is -1"),
        ({"weights": (1.0, -1.0)}, "weights are"),
    ],
)
def test_impossible_settings_are_refused(wrong: dict[Any, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Settings(**wrong)


@pytest.mark.parametrize(
    ("placements", "message"),
    [
        ([0, 0], "shape"),
        ([[0]], "shape"),
        ([[0.5, 0.0]], "float64"),
        ([[0, 1]], "names device 1; devices are numbered 0 to 0"),
        ([[-1, 0]], "names device -1"),
    ],
)
def test_impossible_placements_are_refused(placements: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        simulate(chain(0, 0), placements)


def test_graphs_without_sources_and_weights_for_another_number_of_operators_are_refused() -> None:
    with pytest.raises(ValueError, match="no operator has a rate"):
        simulate(chain(0, 0, rate=0.0), [[0, 0]])
    with pytest.raises(ValueError, match="1 weights for 2 operators"):
        simulate(chain(0, 0), [[0, 0]], Settings(weights=(1.0,)))


def test_an_empty_batch_is_an_empty_answer() -> None:
    runs = simulate(chain(0, 0), np.zeros((0, 2), int))
    assert runs.relative.shape == (0,)
    assert runs.device_utilisation.shape == (0, 1)


def test_short_queues_are_warned_about() -> None:
    """Below 2 · rate · dt, or with latency below rate · (2 dt + latency), a hop is throttled."""
    instance = chain(0, 0, devices=2)
    assert capacity_warnings(instance, Settings(capacity=20)) == ()
    (warning,) = simulate(instance, [[0, 1]], Settings(capacity=15)).warnings
    assert "1 of 1 streams: the stream from operator 0 to operator 1 needs 20;" in warning
    far = chain(0, 0, devices=2, latency=np.full((2, 2), 0.5))
    assert capacity_warnings(far, Settings(capacity=69))
    assert not capacity_warnings(far, Settings(capacity=70))


def test_queues_without_a_bound_are_possible() -> None:
    runs = simulate(chain(0, 2e-2), [[0, 0]], Settings(capacity=float("inf")))
    assert runs.admitted == pytest.approx([100])
    assert runs.throughput == pytest.approx([50])

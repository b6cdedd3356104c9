"""Several sources and several sinks."""

from typing import Any

import numpy as np
import pytest
from streamsim import build_instance
from streamsim.engine import Settings, simulate
from streamsim.engine.equivalents import source_equivalents
from streamsim.instance import Instance


def two_lines(
    costs: list[float], rates: tuple[float, float] = (100.0, 100.0), **more: Any
) -> Instance:
    """Two sources, each with a sink of its own."""
    return build_instance(
        rate=[*rates, 0, 0],
        seconds=np.reshape(costs, (4, 1)),
        source=[0, 1],
        target=[2, 3],
        device_type=[0] * 4,
        seconds_per_byte=np.zeros((4, 4)),
        **more,
    )


def test_sources_on_their_own_devices_do_not_wait_for_each_other() -> None:
    """One line passes half, the other all: 0.75 of what is generated."""
    runs = simulate(two_lines([0, 0, 2e-2, 1e-3]), [[0, 1, 2, 3]], Settings(capacity=50))
    assert runs.relative == pytest.approx([0.75])
    assert runs.throughput == pytest.approx([150])


def test_equal_sources_share_a_device_equally() -> None:
    """Two lines of 10 ms per tuple on one device reach half of their rates each."""
    runs = simulate(two_lines([0, 0, 1e-2, 1e-2]), [[0, 1, 2, 2]], Settings(capacity=50))
    assert runs.relative == pytest.approx([0.5], abs=1e-3)


def test_source_equivalents_of_all_sinks_add_up_to_the_sources() -> None:
    """Σ over sinks of λ · equivalents = Σ R, with joins, splits and selectivities."""
    instance = build_instance(
        rate=[100, 60, 0, 0, 0, 0],
        seconds=np.zeros((6, 1)),
        source=[0, 1, 2, 2, 2, 3],
        target=[2, 2, 3, 4, 5, 4],
        selectivity=[1, 2, 0.5, 0.1, 3, 1],
        device_type=[0],
        seconds_per_byte=[[0]],
    )
    per_tuple = source_equivalents(instance)
    assert (per_tuple * instance.input_rate).sum() == pytest.approx(160)
    assert np.flatnonzero(per_tuple).tolist() == [4, 5]


def test_an_operator_that_filters_everything_ends_the_graph() -> None:
    """What it takes in counts, and streams of selectivity 0 never block."""
    instance = build_instance(
        rate=[100, 0, 0],
        seconds=[[0], [0], [1.0]],
        source=[0, 1],
        target=[1, 2],
        selectivity=[1, 0],
        device_type=[0],
        seconds_per_byte=[[0]],
    )
    assert simulate(instance, [[0, 0, 0]], Settings(capacity=10)).relative == pytest.approx([1])


def test_a_source_may_take_in_streams_as_well() -> None:
    """An operator that both generates and receives draws from its backlog and its queue."""
    instance = build_instance(
        rate=[100, 50, 0],
        seconds=[[0], [1e-3], [0]],
        source=[0, 1],
        target=[1, 2],
        device_type=[0],
        seconds_per_byte=[[0]],
    )
    runs = simulate(instance, [[0, 0, 0]])
    assert runs.throughput == pytest.approx([150])
    assert runs.admitted == pytest.approx([150])

"""What each source of an overloaded job gets."""

import numpy as np
import pytest
from hypothesis import given
from streamsim import bottleneck, build_instance, resource_loads, throughput
from streamsim.engine import GivenSettings, fit
from streamsim.overload import overloaded_shares
from streamsim.sources import at_shares
from streamsim_strategies import flowing, placed, placed_joins


def beside(*loads, **more):
    """Sources on one device, which may feed one operator each."""
    n = len(loads)
    arguments = {
        "rate": np.ones(n),
        "seconds": np.reshape(loads, (n, 1)),
        "source": [],
        "target": [],
        "device_type": [0, 0],
        "seconds_per_byte": [[0, 1], [1, 0]],
    }
    return build_instance(**(arguments | more))


def test_a_fair_cpu_gives_the_larger_source_a_smaller_share():
    """Of loads 2 and 1 on a device both can have a third; they get a half of the device each."""
    instance = beside(2.0, 1.0)
    assert throughput(instance, [[0, 0]]) == pytest.approx([1 / 3])
    assert overloaded_shares(instance, [0, 0]) == pytest.approx([0.25, 0.5])


def test_a_small_source_beside_a_large_one_is_carried_whole():
    instance = beside(5.0, 0.01)
    assert overloaded_shares(instance, [0, 0]) == pytest.approx([0.198, 1.0])


def test_inputs_of_a_full_operator_are_accepted_in_proportion_to_their_queues():
    """A third source is behind a link that is fuller."""
    instance = beside(
        0.0,
        0.0,
        0.0,
        0.5,
        rate=[1.0, 1.0, 1.0, 0.0],
        source=[0, 1, 2],
        target=[3, 3, 3],
        payload=[0, 0, 5.0],
    )
    assert overloaded_shares(instance, [0, 0, 1, 0]) == pytest.approx([0.9, 0.9, 0.2], abs=1e-5)


@given(placed(max_sources=5, constants=True, limits=True) | placed_joins(max_sources=5))
def test_shares_are_carried_and_whole_where_everything_is(case):
    problem = flowing(case[0])
    instance, place = problem.instance, case[1][0]
    shares, least = overloaded_shares(instance, place), throughput(instance, place[None])[0]
    assert ((shares >= 0) & (shares <= 1)).all()
    if least == 1 or len(shares) == 1:
        assert (shares == least).all()
    if least > 0:
        assert bottleneck(resource_loads(at_shares(instance, shares), place)).load <= 1 + 1e-9


def test_the_engine_agrees():
    instance = beside(0.9, 0.4, 0.5, 0.2, source=[0, 1], target=[2, 3], rate=[1.0, 1.0, 0.0, 0.0])
    measured = fit(instance, np.array([0, 0, 0, 0], np.int32), GivenSettings()).runs.sources[0]
    assert overloaded_shares(instance, [0, 0, 0, 0]) == pytest.approx(measured, abs=0.02)

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamsim import build_instance, resource_loads, source_rates
from streamsim.filling import flow_shares
from streamsim_strategies import Description, Ints, placed, placed_joins


@given(placed(max_sources=5) | placed(max_sources=5, limits=True))
def test_rates_are_max_min_fair(case: tuple[Description, Ints]) -> None:
    """Nothing is overfull, and none can rise without slowing one that is not faster."""
    problem, batch = case
    rates = source_rates(problem.instance, batch[0])
    assert ((rates >= 0) & (rates <= 1)).all()
    slowed = problem.but(rate=(np.array(problem.rate) * rates).tolist())
    for loads in resource_loads(slowed.instance, batch[0]):
        assert loads.max() <= 1 + 1e-9
    full = _flat(slowed, batch[0]) >= 1 - 1e-9
    uses = {s: _flat(_alone(problem, s), batch[0]) > 0 for s in problem.instance.sources}
    for s in problem.instance.sources:
        if rates[s] < 1 - 1e-9:
            assert any(
                max(rates[u] for u in uses if uses[u][r]) <= rates[s] + 1e-9
                for r in np.flatnonzero(uses[s] & full)
            )


def _alone(problem: Description, source: int) -> Description:
    rate = [rate if v == source else 0.0 for v, rate in enumerate(problem.rate)]
    return problem.but(rate=rate)


def _flat(problem: Description, placement: Ints) -> np.ndarray:
    loads = resource_loads(problem.instance, placement)
    per_core = problem.instance.core_load[
        np.arange(len(placement)), problem.instance.device_type[placement]
    ]
    return np.concatenate([np.ravel(part) for part in loads[:4]] + [per_core])


@given(st.one_of(placed(max_sources=5), placed_joins(max_sources=5)))
def test_shares_of_the_sources_add_up_to_the_flow(case: tuple[Description, Ints]) -> None:
    instance = case[0].instance
    total = flow_shares(instance).sum(0)
    assert total == pytest.approx((instance.input_rate > 0).astype(float), rel=1e-12)


def test_a_stream_that_costs_no_handling_goes_on_beside_a_full_device() -> None:
    """Handling is paid by the byte, and the streams carry none; source 2 fills device 1."""
    instance = build_instance(
        rate=[100, 0, 100, 0],
        seconds=[[1e-3], [0], [2e-2], [0]],
        source=[0, 2],
        target=[1, 3],
        payload=[0, 0],
        device_type=[0, 0],
        seconds_per_byte=[[0, 1e-6], [1e-6, 0]],
        overhead_per_byte=1e-9,
    )
    assert source_rates(instance, [0, 1, 1, 1]).tolist() == pytest.approx([1, 0, 0.5, 0])

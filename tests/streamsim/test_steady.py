from functools import partial

import numpy as np
import pytest
import streamsim_reference as reference
from engine_cases import chain
from hypothesis import given
from hypothesis import strategies as st
from streamsim import (
    WindowedOperator,
    bottleneck,
    build_instance,
    resource_loads,
    throughput,
)
from streamsim.incremental import Incremental
from streamsim.instance import with_constants_as_loads
from streamsim.sources import at_shares, flow_shares
from streamsim_strategies import flowing, placed, placed_joins

TOLERANCE = 1e-9


three = partial(
    chain, *[4e-3] * 3, devices=2, payload=[1e4, 1e4], seconds_per_byte=np.full((2, 2), 0.5e-6)
)
"""Source → operator → sink; 100 tuples/s of 10 kB; each operator loads a device by 0.4."""


def one(instance, *placement):
    return float(throughput(instance, [placement])[0])


def test_a_small_source_counts_as_much_as_one_that_emits_a_million_billion_times_as_much():
    instance = build_instance(
        rate=[1e15, 0.01, 0],
        seconds=[[0.0], [0.0], [200.0]],
        source=[1],
        target=[2],
        device_type=[0, 0],
        seconds_per_byte=np.zeros((2, 2)),
    )
    assert throughput(instance, [[0, 1, 1], [0, 0, 0]]).tolist() == pytest.approx([0.5, 0.5])


def test_a_problem_without_sources_is_never_limited():
    assert one(three(rate=0), 0, 0, 0) == 1.0


def test_the_order_of_an_array_in_memory_does_not_matter():
    instance, batch = three(), np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]], np.int32)
    usual = throughput(instance, batch)
    assert throughput(instance, np.asfortranarray(batch)).tolist() == usual.tolist()


def test_many_devices_and_few_streams():
    instance = three(devices=40, seconds_per_byte=np.full((40, 40), 4e-6))
    assert throughput(instance, [[3, 39, 39], [7, 7, 7]]).tolist() == pytest.approx([0.25, 1 / 1.2])


@pytest.mark.parametrize(
    ("changes", "placement", "expected"),
    [
        ({}, (0, 0, 1), ("device", 0, -1, 0.8)),
        ({"seconds_per_byte": [[0, 4e-6], [1e-6, 0]]}, (0, 1, 1), ("link", 0, 1, 4.0)),
        ({"egress": [0.0, 3e-6]}, (1, 0, 0), ("egress", 1, -1, 3.0)),
        ({"ingress": [0.0, 3e-6]}, (0, 1, 1), ("ingress", 1, -1, 3.0)),
        ({"cores": [4, 4]}, (0, 0, 0), ("core", 0, -1, 0.4)),
        ({"seconds_per_byte": [[0, 0.4e-6], [0, 0]]}, (0, 1, 0), ("device", 0, -1, 0.8)),
    ],
)
def test_the_bottleneck_is_the_fullest_resource(changes, placement, expected):
    found = bottleneck(resource_loads(three(**changes), placement))
    assert (found.kind, found.device, found.peer) == expected[:3]
    assert found.load == pytest.approx(expected[3])


@pytest.mark.parametrize(
    "cases",
    [
        placed(count=3),
        placed(count=3, plain=True),
        placed(count=2, max_sources=6, max_operators=7),
        placed_joins(count=3, max_sources=4, max_operators=7),
        placed(count=3, constants=True) | placed_joins(count=3, constants=True),
        placed(count=2, max_sources=6, max_operators=7, constants=True),
        placed(count=3, limits=True) | placed_joins(count=3, limits=True),
        placed(count=2, max_sources=6, max_operators=7, constants=True, limits=True),
    ],
    ids=[
        "few sources",
        "only devices and links limit",
        "many sources",
        "joins",
        "constants",
        "many sources and constants",
        "limits",
        "many sources, constants and limits",
    ],
)
@given(data=st.data())
def test_rates_agree_with_the_literal_model_in_batches_and_alone(cases, data):
    """With joins: sets instead of tuples."""
    problem, batch = data.draw(cases)
    problem = flowing(problem)
    found = throughput(problem.instance, batch)
    expected = [reference.throughput(problem, row.tolist()) for row in batch]
    assert found == pytest.approx(expected, rel=TOLERANCE)
    assert ((found >= 0) & (found <= 1)).all()
    assert found.tolist() == [float(throughput(problem.instance, row[None])[0]) for row in batch]


@pytest.mark.parametrize("constants", [False, True])
@given(data=st.data())
def test_loads_agree_with_the_literal_model(constants, data):
    problem, batch = data.draw(placed(constants=constants))
    place = batch[0].tolist()
    loads = resource_loads(problem.instance, batch[0])
    flows, taken = reference.loads_by_source(problem, place), reference.constants(problem, place)
    found = {
        "device": loads.devices,
        "link": loads.links,
        "egress": loads.egress,
        "ingress": loads.ingress,
        "constant": loads.constants,
    }
    expected = {kind: np.zeros_like(table) for kind, table in found.items()}
    for kind, a, b in {*flows, *taken}:
        at_any_rate = taken.get((kind, a, b), 0)
        whole = at_any_rate + sum(flows.get((kind, a, b), {}).values())
        if kind != "core":
            expected[kind][(a, b) if kind == "link" else a] = float(whole)
        if kind == "device":
            expected["constant"][a] = float(at_any_rate)
    for kind, table in found.items():
        np.testing.assert_allclose(table, expected[kind], TOLERANCE, 1e-12, err_msg=kind)


@given(placed(max_sources=1, constants=True, limits=True), st.sampled_from([1.0, 1.5, 4.0]))
def test_constants_as_loads_decide_a_rate(case, times):
    """The full rate divided by `times` is carried if and only if no load is above that."""
    problem, batch = flowing(case[0]), case[1]
    instance = problem.instance
    if len(instance.sources) == 1:
        reached = throughput(instance, batch)[0] * times
        peak = Incremental(with_constants_as_loads(instance, times), batch[0]).peak
        if abs(reached - 1) > TOLERANCE and abs(peak - times) > TOLERANCE:
            assert (reached > 1) == (peak < times)


@given(placed(max_sources=1), st.data())
def test_windows_are_as_literal(case, data):
    problem, batch = case
    v = data.draw(st.integers(0, problem.n_operators - 1))
    window = WindowedOperator(v, size=1.0, advance=0.5, base=2.0, factor=0.25, limit=20.0)
    windowed = problem.but(windows=(window,))
    expected = reference.throughput(windowed, batch[0].tolist())
    assert throughput(windowed.instance, batch)[0] == pytest.approx(expected, rel=TOLERANCE)


@given(st.one_of(placed(max_sources=5), placed_joins(max_sources=5)))
def test_shares_of_the_sources_add_up_to_the_flow(case):
    instance = case[0].instance
    total = flow_shares(instance).sum(0)
    assert total == pytest.approx((instance.input_rate > 0).astype(float), rel=1e-12)


@given(st.one_of(placed(max_sources=5), placed_joins(max_sources=5)), st.data())
def test_an_instance_at_shares_has_the_loads_of_slower_sources(case, data):
    """Of joins all at one share, as what their inputs bring must agree."""
    problem, batch = case
    instance = problem.instance
    share = st.sampled_from([0.0, 0.25, 0.5, 1.0])
    size = len(instance.sources)
    alike = [data.draw(share)] * size
    shares = np.array(
        alike if instance.joins.any() else data.draw(st.lists(share, min_size=size, max_size=size))
    )
    rate = instance.rate.copy()
    rate[instance.sources] *= shares
    slower = resource_loads(problem.but(rate=rate.tolist()).instance, batch[0])
    found = resource_loads(at_shares(instance, shares), batch[0])
    for name, loads in slower._asdict().items():
        np.testing.assert_allclose(getattr(found, name), loads, 1e-9, 1e-12, err_msg=name)

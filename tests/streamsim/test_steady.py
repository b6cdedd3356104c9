import dataclasses

import numpy as np
import pytest
import streamsim_reference as reference
from hypothesis import given
from hypothesis import strategies as st
from streamsim import (
    Instance,
    WindowedOperator,
    bottleneck,
    build_instance,
    resource_loads,
    source_rates,
    throughput,
)
from streamsim.steady import is_plain
from streamsim_strategies import Description, Ints, placed, placed_joins

TOLERANCE = 1e-9


def chain(n_devices: int = 2, **changes: object) -> Instance:
    """Source → operator → sink; 100 tuples/s of 10 kB; each operator loads a device by 0.4."""
    arguments: dict[str, object] = {
        "rate": [100, 0, 0],
        "seconds": [[4e-3]] * 3,
        "source": [0, 1],
        "target": [1, 2],
        "payload": [10_000, 10_000],
        "device_type": [0] * n_devices,
        "seconds_per_byte": np.full((n_devices, n_devices), 0.5e-6),
    }
    return build_instance(**(arguments | changes))  # type: ignore[arg-type]


def one(instance: Instance, *placement: int) -> float:
    return float(throughput(instance, [placement])[0])


def test_a_chain_on_one_device_is_limited_by_its_cpu() -> None:
    assert one(chain(), 0, 0, 0) == pytest.approx(1 / 1.2)


def test_an_unsaturated_placement_reaches_the_full_rate() -> None:
    assert one(chain(), 0, 1, 1) == 1.0


def test_a_saturated_link_limits() -> None:
    slow = chain(seconds_per_byte=[[0, 4e-6], [1e-6, 0]])
    assert one(slow, 0, 0, 1) == pytest.approx(1 / 4)
    assert one(slow, 1, 1, 0) == pytest.approx(1.0)


def test_parallel_streams_add_up_on_a_link() -> None:
    doubled = chain(source=[0, 0, 1], target=[1, 1, 2], payload=[10_000] * 3)
    # λ of operators 1 and 2 doubles: loads 0.4 | 0.8 + 0.8; the link carries 2 MB/s
    assert one(doubled, 0, 1, 1) == pytest.approx(1 / 1.6)
    assert resource_loads(doubled, [0, 1, 1]).links[0, 1] == pytest.approx(1.0)


def test_selectivity_zero_stops_the_flow() -> None:
    filtered = chain(selectivity=[0.0, 1.0])
    assert one(filtered, 0, 0, 0) == 1.0
    assert resource_loads(filtered, [0, 1, 1]).devices.tolist() == [0.4, 0.0]


def test_payload_zero_loads_no_link() -> None:
    assert not resource_loads(chain(payload=[0, 0]), [0, 1, 0]).links.any()


@pytest.mark.parametrize("side", ["egress", "ingress"])
def test_a_nic_carries_the_sum_of_its_links(side: str) -> None:
    star = chain(3, source=[0, 0], target=[1, 2], **{side: [2e-6, 2e-6, 0.0]})
    expected = {"egress": 1 / 4, "ingress": 1 / 2}[side]
    assert one(star, 0, 1, 2) == pytest.approx(expected)


def test_overhead_is_paid_at_both_ends_of_a_remote_stream() -> None:
    loads = resource_loads(chain(overhead=1e-3), [0, 0, 1])
    assert loads.devices.tolist() == pytest.approx([0.8 + 0.1, 0.4 + 0.1])


def test_overhead_has_a_part_per_byte() -> None:
    """The stream into the other device carries 100 tuples/s."""
    by_tuple = resource_loads(chain(overhead=1e-3), [0, 0, 1])
    by_byte = resource_loads(chain(overhead_per_byte=1e-7), [0, 0, 1])
    assert by_byte.devices.tolist() == pytest.approx(by_tuple.devices.tolist())


def test_overhead_uses_one_of_several_cores() -> None:
    loads = resource_loads(chain(overhead=1e-3, cores=[4, 4]), [0, 0, 1])
    assert loads.devices.tolist() == pytest.approx([(0.8 + 0.1) / 4, (0.4 + 0.1) / 4])


def test_gap_is_paid_per_tuple_beside_its_bytes() -> None:
    loads = resource_loads(chain(gap=2e-3), [0, 0, 1])
    assert loads.links[0, 1] == pytest.approx(100 * (2e-3 + 10_000 * 0.5e-6))


def test_one_subtask_cannot_use_more_than_one_core() -> None:
    heavy = chain(1, seconds=[[4e-3], [16e-3], [4e-3]], cores=[4])
    assert one(heavy, 0, 0, 0) == pytest.approx(1 / 1.6)
    two = chain(1, seconds=[[4e-3], [16e-3], [4e-3]], cores=[4], parallelism=[1, 2, 1])
    assert one(two, 0, 0, 0) == 1.0


def test_a_window_loads_what_follows_by_what_it_emits() -> None:
    # 200 tuples in 2 s; every 0.5 s min(60, 10 + 0.2 · 200) = 50 come out: 100 tuples/s
    window = WindowedOperator(operator=1, size=2.0, advance=0.5, base=10.0, factor=0.2, limit=60.0)
    assert resource_loads(chain(windows=(window,)), [0, 0, 1]).devices[1] == pytest.approx(0.4)
    tight = window._replace(limit=5.0)
    assert resource_loads(chain(windows=(tight,)), [0, 0, 1]).devices[1] == pytest.approx(0.04)


def pairs(rates: list[float], seconds: list[float]) -> Instance:
    """Sources that are sinks too, each on a device of choice."""
    n = len(rates)
    return build_instance(
        rate=rates,
        seconds=[[cost] for cost in seconds],
        source=[],
        target=[],
        device_type=[0] * n,
        seconds_per_byte=np.zeros((n, n)),
    )


def test_sources_that_share_nothing_do_not_slow_each_other() -> None:
    # loads 2 and 0.5: the first reaches 1/2, the second everything
    assert one(pairs([100, 300], [0.02, 0.5 / 300]), 0, 1) == pytest.approx((50 + 300) / 400)


def test_sources_that_share_the_bottleneck_share_its_relative_rate() -> None:
    # loads 2 and 0.5 on one device: both reach 1 / 2.5
    assert one(pairs([100, 300], [0.02, 0.5 / 300]), 0, 0) == pytest.approx(1 / 2.5)


def test_three_sources_freeze_in_stages() -> None:
    # s0 and s1 on d0: loads 2 + 2 → both stop at 1/4. s1 also sends to d1 with s2's load 1.5:
    # d1 carries 1 · x1 + 1.5 · x2 ≤ 1, so x2 = (1 - 1/4) / 1.5 = 1/2. s3 alone on d2: 0.8 → 1.
    instance = build_instance(
        rate=[100, 100, 100, 100, 0],
        seconds=[[0.02], [0.02], [0.015], [0.008], [0.01]],
        source=[1],
        target=[4],
        device_type=[0, 0, 0],
        seconds_per_byte=np.zeros((3, 3)),
    )
    rates = source_rates(instance, [0, 0, 1, 2, 1])
    assert rates.tolist() == pytest.approx([0.25, 0.25, 0.5, 1.0, 0.0])
    assert one(instance, 0, 0, 1, 2, 1) == pytest.approx(0.5)


def test_a_source_frozen_by_its_core_leaves_the_device_to_others() -> None:
    # d0 has 4 cores: s0 fills one core at 1/2 (0.5 of the device at full rate), s1 reaches all.
    instance = build_instance(
        rate=[100, 100],
        seconds=[[0.02], [0.004]],
        source=[],
        target=[],
        device_type=[0],
        cores=[4],
        seconds_per_byte=[[0]],
    )
    assert source_rates(instance, [0, 0]).tolist() == pytest.approx([0.5, 1.0])


def test_one_source_reaches_the_throughput() -> None:
    assert source_rates(chain(), [0, 0, 0]).tolist() == pytest.approx([1 / 1.2, 0, 0])


def test_a_problem_without_sources_is_never_limited() -> None:
    assert one(chain(rate=[0, 0, 0]), 0, 0, 0) == 1.0


def test_many_devices_and_few_streams() -> None:
    """The links in use are few; only those are looked at."""
    instance = chain(40, seconds_per_byte=np.full((40, 40), 4e-6))
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
def test_the_bottleneck_is_the_fullest_resource(
    changes: dict[str, object], placement: tuple[int, ...], expected: tuple[object, ...]
) -> None:
    found = bottleneck(resource_loads(chain(**changes), placement))
    assert (found.kind, found.device, found.peer) == expected[:3]
    assert found.load == pytest.approx(expected[3])


@given(placed(count=3))
def test_the_kernels_agree_with_the_literal_model(case: tuple[Description, Ints]) -> None:
    problem, batch = case
    expected = [reference.throughput(problem, row.tolist()) for row in batch]
    assert throughput(problem.instance, batch) == pytest.approx(expected, rel=TOLERANCE)


@given(placed(max_sources=6, max_operators=7))
def test_source_rates_agree_with_the_literal_model(case: tuple[Description, Ints]) -> None:
    problem, batch = case
    found = source_rates(problem.instance, batch[0])
    expected = reference.source_rates(problem, batch[0].tolist())
    assert {v: found[v] for v in expected} == pytest.approx(expected, rel=TOLERANCE)


@given(placed())
def test_loads_agree_with_the_literal_model(case: tuple[Description, Ints]) -> None:
    problem, batch = case
    loads = resource_loads(problem.instance, batch[0])
    for (kind, a, b), flows in reference.loads_by_source(problem, batch[0].tolist()).items():
        if kind != "core":
            table = getattr(loads, kind + "s" if kind in ("device", "link") else kind)
            found = table[a, b] if kind == "link" else table[a]
            assert found == pytest.approx(float(sum(flows.values())), rel=TOLERANCE)


@given(placed(max_sources=1), st.data())
def test_with_windows_too(case: tuple[Description, Ints], data: st.DataObject) -> None:
    problem, batch = case
    v = data.draw(st.integers(0, problem.n_operators - 1))
    window = WindowedOperator(v, size=1.0, advance=0.5, base=2.0, factor=0.25, limit=20.0)
    windowed = problem.but(windows=(window,))
    expected = reference.throughput(windowed, batch[0].tolist())
    assert throughput(windowed.instance, batch)[0] == pytest.approx(expected, rel=TOLERANCE)


@given(placed(count=4))
def test_a_batch_is_its_placements_one_by_one(case: tuple[Description, Ints]) -> None:
    instance, batch = case[0].instance, case[1]
    alone = [float(throughput(instance, row[None])[0]) for row in batch]
    assert throughput(instance, batch).tolist() == alone


@given(placed())
def test_one_over_the_bottleneck_is_the_throughput_of_one_source(
    case: tuple[Description, Ints],
) -> None:
    problem, batch = case
    instance = problem.instance
    if len(instance.sources) == 1:
        load = bottleneck(resource_loads(instance, batch[0])).load
        assert throughput(instance, batch)[0] == pytest.approx(1 / max(1, load), rel=TOLERANCE)


@given(placed(alike=True, plain=True), st.data())
def test_relabelling_identical_devices_changes_nothing(
    case: tuple[Description, Ints], data: st.DataObject
) -> None:
    problem, batch = case
    new_name = np.array(data.draw(st.permutations(range(problem.n_devices))), np.int32)
    found = throughput(problem.instance, new_name[batch])
    assert found == pytest.approx(throughput(problem.instance, batch), rel=TOLERANCE)


@given(placed(alike=True), st.data())
def test_merging_two_devices_never_increases_network_load(
    case: tuple[Description, Ints], data: st.DataObject
) -> None:
    problem, batch = case
    a, b = (data.draw(st.integers(0, problem.n_devices - 1)) for _ in range(2))
    merged = np.where(batch[0] == b, a, batch[0])
    before = resource_loads(problem.instance, batch[0]).links.sum()
    assert resource_loads(problem.instance, merged).links.sum() <= before * (1 + TOLERANCE)


@given(placed(), st.data())
def test_moving_an_operator_never_changes_other_links(
    case: tuple[Description, Ints], data: st.DataObject
) -> None:
    problem, batch = case
    v = data.draw(st.integers(0, problem.n_operators - 1))
    to = data.draw(st.integers(0, problem.n_devices - 1))
    moved = batch[0].copy()
    moved[v] = to
    before = resource_loads(problem.instance, batch[0]).links
    after = resource_loads(problem.instance, moved).links
    others = [d for d in range(problem.n_devices) if d not in (batch[0][v], to)]
    assert (after[np.ix_(others, others)] == before[np.ix_(others, others)]).all()


@given(placed(max_sources=4))
def test_throughput_is_a_fraction(case: tuple[Description, Ints]) -> None:
    found = throughput(case[0].instance, case[1])[0]
    assert 0 <= found <= 1


@given(placed(max_sources=1), st.floats(1, 10))
def test_faster_links_and_devices_never_hurt_one_source(
    case: tuple[Description, Ints], factor: float
) -> None:
    problem, batch = case
    slow = throughput(problem.instance, batch)[0]
    wire = (np.array(problem.seconds_per_byte) / factor).tolist()
    seconds = (np.array(problem.seconds) / factor).tolist()
    for faster in (problem.but(seconds_per_byte=wire), problem.but(seconds=seconds)):
        assert throughput(faster.instance, batch)[0] >= slow * (1 - TOLERANCE)


@given(placed(), st.sampled_from([0.125, 0.5, 2.0, 16.0]))
def test_loads_scale_with_the_rates(case: tuple[Description, Ints], factor: float) -> None:
    problem, batch = case
    scaled = problem.but(rate=[factor * rate for rate in problem.rate])
    loads = resource_loads(problem.instance, batch[0])
    for found, load in zip(resource_loads(scaled.instance, batch[0]), loads, strict=True):
        np.testing.assert_allclose(found, factor * load, rtol=TOLERANCE)


@given(placed(plain=True, count=2))
def test_the_short_kernel_agrees_with_the_general_one(case: tuple[Description, Ints]) -> None:
    problem, batch = case
    assert is_plain(problem.instance)
    general = dataclasses.replace(problem, gap=1e-300)
    assert not is_plain(general.instance)
    found = throughput(general.instance, batch)
    assert found == pytest.approx(throughput(problem.instance, batch), rel=TOLERANCE)


@given(placed_joins(count=3, max_sources=4, max_operators=7))
def test_joins_reach_the_value_of_the_exact_fractions(case: tuple[Description, Ints]) -> None:
    """Sets instead of tuples, and sources that meet in a join held back together."""
    problem, batch = case
    expected = [reference.throughput(problem, place) for place in batch]
    np.testing.assert_allclose(throughput(problem.instance, batch), expected, rtol=TOLERANCE)
    rates = source_rates(problem.instance, batch[0])
    for s, x in reference.source_rates(problem, batch[0].tolist()).items():
        assert rates[s] == pytest.approx(float(x), rel=TOLERANCE)


def test_a_join_holds_back_both_of_its_sources() -> None:
    """The first branch fills its device twice over; the second, alone on its own, waits for it."""
    branches = {
        "rate": [100, 100, 0],
        "seconds": [[2e-2], [1e-3], [0]],
        "source": [0, 1],
        "target": [2, 2],
        "device_type": [0, 0],
        "seconds_per_byte": np.zeros((2, 2)),
    }
    merged = build_instance(**branches)  # type: ignore[arg-type]
    joined = build_instance(**branches, joins=[False, False, True])  # type: ignore[arg-type]
    assert source_rates(merged, [0, 1, 1]).tolist() == [0.5, 1.0, 0.0]
    assert source_rates(joined, [0, 1, 1]).tolist() == [0.5, 0.5, 0.0]

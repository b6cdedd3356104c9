"""What holds on every graph, under every placement."""

import numpy as np
import pytest
from engine_cases import random_dag, random_placements
from hypothesis import given, settings
from hypothesis import strategies as st
from streamsim import build_instance
from streamsim.engine import Settings, simulate, trace
from streamsim.engine.runs import source_equivalents

SETTINGS = st.builds(
    Settings,
    duration=st.just(6.0),
    warm_up=st.sampled_from([0.0, 2.0]),
    iterations=st.integers(1, 3),
    capacity=st.floats(1, 200),
    policy=st.sampled_from(["dynamic", "uniform", "weighted"]),
)
CLUSTERS = st.sampled_from(
    [
        {},
        {"latency": np.full((3, 3), 0.25)},
        {"egress": np.array([2e-6, 0, 1e-6]), "ingress": np.array([0, 3e-6, 0])},
        {"overhead": 1e-3, "gap": 1e-3},
        {"cores": np.full(3, 2.0)},
    ]
)
SEEDS = st.integers(0, 10_000)


def case(seed, cluster, runs=1):
    """A random graph on a cluster, and placements of it."""
    rng = np.random.default_rng(seed)
    instance = random_dag(rng, n=7, **cluster)
    return instance, random_placements(rng, instance, runs)


@given(SEEDS, CLUSTERS, SETTINGS)
def test_no_tuple_is_lost_or_made_and_limits_are_kept(seed, cluster, how):
    """Emitted = taken in + queued + in transit, on every stream; generated = admitted + backlog.

    At every tick, 0 ≤ queued + in transit ≤ capacity, and utilisation ≤ 1.
    """
    instance, (placement,) = case(seed, cluster)
    whole = Settings(6.0, 0.1, how.iterations, how.capacity, how.policy, 0.0)
    run = trace(instance, placement, whole)
    admitted = (run.admitted * 0.1).cumsum()
    assert admitted + run.backlog == pytest.approx(100 * run.seconds)
    inside = run.queued + run.transit
    taken = {0: admitted}
    for v in instance.order[1:]:
        into = instance.in_streams[instance.in_start[v] : instance.in_start[v + 1]]
        came = sum(taken[instance.source[e]] * instance.selectivity[e] for e in into)
        taken[v] = came - inside[:, instance.stream_index[into]].sum(axis=1)
    per_tuple = source_equivalents(instance)
    arrived = sum(taken[v] * per_tuple[v] for v in taken)
    assert arrived == pytest.approx((run.throughput * 0.1).cumsum(), abs=1e-6)
    assert min(np.diff(t, prepend=0).min() for t in taken.values()) >= -1e-6
    assert min(run.queued.min(), run.transit.min(), run.backlog.min()) >= 0
    assert inside.max() <= how.capacity * (1 + 1e-9)
    assert max(run.device_utilisation.max(), run.link_utilisation.max()) <= 1 + 1e-9


@settings(max_examples=20, deadline=None)
@given(SEEDS, CLUSTERS, SETTINGS)
def test_a_batch_is_its_runs_one_by_one(seed, cluster, how):
    instance, placements = case(seed, cluster, runs=5)
    batch = simulate(instance, placements, how)
    for b, placement in enumerate(placements):
        alone = simulate(instance, placement[None], how)
        assert all(np.array_equal(a[b], c[0]) for a, c in zip(batch[:6], alone[:6], strict=True))


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.permutations(range(3)), SETTINGS)
def test_names_of_identical_devices_change_nothing(seed, names, how):
    """Devices are served in the order in which the graph first meets them."""
    instance, placements = case(seed, {}, runs=3)
    renamed = np.asarray(names)[placements]
    one, other = simulate(instance, placements, how), simulate(instance, renamed, how)
    assert one.throughput == pytest.approx(other.throughput, rel=1e-9, abs=1e-9)
    assert one.backlog == pytest.approx(other.backlog, rel=1e-9, abs=1e-6)


@given(SEEDS, CLUSTERS, SETTINGS)
def test_a_trace_tells_the_same_as_a_run(seed, cluster, how):
    """The logged variant of the kernel computes what the fast one does."""
    instance, (placement,) = case(seed, cluster)
    run, fast = trace(instance, placement, how), simulate(instance, [placement], how)
    window = slice(how.warm_ticks, None)
    assert run.throughput[window].mean() == pytest.approx(fast.throughput[0], rel=1e-9, abs=1e-9)
    assert run.backlog[-1] == pytest.approx(fast.backlog[0], rel=1e-9, abs=1e-9)
    utilisation = run.link_utilisation[window].mean(axis=0)
    assert utilisation == pytest.approx(fast.link_utilisation[0], rel=1e-9, abs=1e-9)


def test_space_that_is_only_rounding_keeps_nobody_busy():
    """A full stream whose free space is an error of addition ends its round; else none ends."""
    rng = np.random.default_rng(6)
    instance = random_dag(rng, n=7, latency=np.full((3, 3), 0.25))
    placements = random_placements(rng, instance, 5)
    how = Settings(duration=6, capacity=20, warm_up=2)
    assert (simulate(instance, placements, how).relative > 0).all()


@given(SEEDS, CLUSTERS, st.integers(-6, 6))
def test_the_scale_of_rates_does_not_matter(seed, cluster, exponent):
    """A thousand times the tuples at a thousandth of the cost, gap and size is the same run."""
    factor = 2.0 ** (3 * exponent)
    per_tuple = {k: v / factor if k in ("overhead", "gap") else v for k, v in cluster.items()}
    one, (placement,) = case(seed, cluster)
    other = random_dag(np.random.default_rng(seed), n=7, **per_tuple)
    scaled = build_instance(
        rate=other.rate * factor,
        seconds=other.seconds / factor,
        source=other.source,
        target=other.target,
        selectivity=other.selectivity,
        payload=other.payload / factor,
        device_type=other.device_type,
        seconds_per_byte=other.seconds_per_byte,
        **{"cores": other.cores, "latency": other.latency, "egress": other.egress}
        | {"ingress": other.ingress, "overhead": other.overhead, "gap": other.gap},
    )
    how = Settings(duration=6, capacity=64)
    big = Settings(duration=6, capacity=64 * factor)
    assert simulate(scaled, [placement], big).relative == pytest.approx(
        simulate(one, [placement], how).relative, rel=1e-9
    )

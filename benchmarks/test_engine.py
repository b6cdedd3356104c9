"""Speed of the simulation engine on benchmark graphs of 6 to 26 operators."""

import numpy as np
import pytest
from engine_cases import mixed_placements
from streamsim.engine import Settings, observe, simulate, simulate_every_tick
from streamsim.instance import build_instance

RUNS = 100  # placements per graph
SHAPES = [(1, 4), (1, 9), (2, 2), (5, 2), (2, 5), (3, 4), (6, 2), (2, 7), (3, 6), (5, 4)]
SHAPES += [(2, 10), (7, 3), (4, 6), (5, 5), (8, 3), (2, 12)]


def branched(rng, shape, rate):
    """One source, k branches of d stages, one sink; CPU and payloads as in the benchmark."""
    k, d = shape
    n, needed = k * d + 2, 2 + SHAPES.index(shape) // 4
    share = rng.random(d)
    instructions = np.full(n, 1e4)
    stages = np.arange(1, n - 1).reshape(k, d)
    instructions[stages] = share / share.sum() * (needed * 250_000 - 20_000)
    ends = np.full(k, n - 1)
    source = np.concatenate((np.zeros(k, int), stages.ravel()))
    target = np.concatenate((stages[:, 0], np.column_stack((stages[:, 1:], ends)).ravel()))
    payload = rng.random(n) * 62_500
    return build_instance(
        rate=[rate] + [0.0] * (n - 1),
        source=source,
        target=target,
        selectivity=np.where(source == 0, 1 / k, 1.0),
        payload=payload[source],
        seconds=instructions[:, None] / 2500e6,
        device_type=np.zeros(5, int),
        seconds_per_byte=np.full((5, 5), 8e-9),  # 1000 Mbps
    )


@pytest.fixture(scope="module")
def cases():
    """A graph of every shape with random and chain-like placements."""
    rng = np.random.default_rng(0)
    graphs = [branched(rng, shape, 1e4) for shape in SHAPES]
    return [(graph, mixed_placements(rng, graph, RUNS)) for graph in graphs]


def simulate_all(simulator, cases, settings):
    """One call per graph."""
    return [simulator(graph, placements, settings) for graph, placements in cases]


@pytest.mark.parametrize("policy", ["dynamic", "uniform"])
@pytest.mark.parametrize("simulator", [simulate, simulate_every_tick])
def test_runs_of_thirty_seconds(benchmark, cases, simulator, policy):
    """1,600 runs of 300 ticks with network; `simulate` jumps over ticks that repeat."""
    settings = Settings(policy=policy)
    simulate_all(simulator, cases, settings)
    benchmark.extra_info["runs"] = RUNS * len(cases)
    benchmark(simulate_all, simulator, cases, settings)


def test_runs_on_one_device(benchmark, cases):
    """The same graphs without network."""
    local = [(graph, np.zeros_like(placements)) for graph, placements in cases]
    simulate_all(simulate, local, Settings())
    benchmark(simulate_all, simulate, local, Settings())


def test_compiling_placements(benchmark, cases):
    """Runs of one tick: what a run costs before it starts."""
    settings = Settings(duration=0.1, warm_up=0)
    simulate_all(simulate, cases, settings)
    benchmark(simulate_all, simulate, cases, settings)


def test_observed_runs(benchmark, cases):
    """160 runs with time stamps, logs and quantiles."""
    few = [(graph, placements[::10]) for graph, placements in cases]
    simulate_all(observe, few, Settings())
    benchmark(simulate_all, observe, few, Settings())

"""Speed of the simulation engine on benchmark graphs of 6 to 26 operators."""

import numpy as np
import pytest
from engine_cases import SHAPES, branched, mixed_placements
from streamsim.engine import Settings, observe, simulate, simulate_every_tick

RUNS = 100  # placements per graph


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

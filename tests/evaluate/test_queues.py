import numpy as np
import pytest
from problems import chain, fork_join
from streamsim.engine import Settings, trace

from streamplace.evaluate.queues import draw_queues, run_queues, run_queues_traced
from streamplace.model import Cluster, Problem
from streamplace.objectives.throughput.explain import explain


def test_the_run_agrees_with_the_steady_state() -> None:
    """Two hundred seconds with long queues come within a percent."""
    problem = Problem(fork_join(), Cluster.uniform(5))
    placement = problem.placement([0, 0, 0, 1, 1, 2, 2, 3, 3, 4][: problem.n_operators])
    run = run_queues(problem, placement, Settings(duration=200))
    steady = explain(problem, placement).relative_throughput
    assert run.relative_throughput == pytest.approx(steady, abs=0.01)


def test_latency_counts_the_hops_and_the_backlog_of_an_overload() -> None:
    """On one device tuples pass at once; behind a full link they wait at the source."""
    problem = Problem(chain(2), Cluster.uniform(2))
    near, far = (run_queues(problem, problem.placement(p)) for p in ([0, 0], [0, 1]))
    assert near.latency.mean == pytest.approx(0, abs=1e-9)
    assert far.backlog > 1000
    assert far.latency.mean is not None
    assert far.latency_without_backlog.mean is not None
    assert far.latency.mean > far.latency_without_backlog.mean > 0.1


def test_queues_too_short_for_the_tick_are_warned_of() -> None:
    """A hop cannot carry more than capacity / dt."""
    problem = Problem(chain(2, payload=1), Cluster.uniform(2))
    run = run_queues(problem, problem.placement([0, 1]), Settings(capacity=500))
    assert "capacity 500 is too small" in run.warnings[0]


def test_a_run_is_drawn_over_time() -> None:
    """Throughput, queues and latency, a panel each, from the run that gives the numbers."""
    problem, settings = Problem(chain(3), Cluster.uniform(3)), Settings(duration=3)
    placement = problem.placement([0, 1, 2])
    run, ticks = run_queues_traced(problem, placement, settings)
    assert run == run_queues(problem, placement, settings)
    assert np.array_equal(ticks.throughput, trace(problem.instance, [0, 1, 2], settings).throughput)
    figure = draw_queues(problem, ticks, settings)
    assert [axis.get_xlabel() for axis in figure.axes] == ["time (s)"] * 3

import re
from dataclasses import replace

import numpy as np
import pytest
from planning_cases import chain as in_a_row
from problems import chain
from streamsim.engine import GivenSettings, trace
from streamsim.latency import latencies

from streamplace.errors import SettingError
from streamplace.evaluate.queues import draw_queues, run_queues, run_queues_traced
from streamplace.model import Cluster, Operator, Problem, StreamGraph
from streamplace.model.operators import Window
from streamplace.objectives.registry import OBJECTIVES


def test_latency_counts_the_hops_and_the_backlog_of_an_overload():
    """On one device they take their times of service; behind a full link, tuples wait as well."""
    problem = Problem(chain(2), Cluster.uniform(2))
    near, far = (
        run_queues(problem, problem.placement(p), GivenSettings(30, 0.1, 2048))
        for p in ([0, 0], [0, 1])
    )
    alone = latencies(problem.instance, [[0, 0]])[0]
    assert [near.latency.mean, near.latency.p99] == pytest.approx([alone, alone])
    assert far.backlog > 1000
    assert far.latency.mean > far.latency_without_backlog.mean > 0.1 + alone


def test_latency_is_that_of_single_tuples_and_says_which_arrivals():
    """Half a second of service at a load of 80 %: M/D/1, and what the objective says if empty."""
    stages = Operator("source", rate=1.6), Operator("slow", ipt=1.25e9), Operator("sink")
    problem = Problem(in_a_row(*stages), Cluster.uniform(3))
    placement = problem.placement([0, 1, 2])
    (alone,) = OBJECTIVES["latency"].evaluate(problem, placement.index[None])
    empty, waiting = (
        run_queues(problem, placement, GivenSettings(random=word)) for word in ("nothing", "all")
    )
    assert empty.latency.mean == pytest.approx(alone)
    assert waiting.latency.mean == pytest.approx(alone + 0.5 * 0.8 / 0.2, rel=0.05)
    assert "latency (even arrivals): mean 500 ms" in str(empty)
    assert "latency (random arrivals and times of service): mean" in str(waiting)


def fast(rate):
    """A job in which parse carries 62,500 tuples/s on a device of its own."""
    stages = Operator("source", rate=rate), Operator("parse", ipt=4e4), Operator("sink")
    return Problem(in_a_row(*stages), Cluster.uniform(3))


@pytest.mark.parametrize("rate", [10, 50_000, 64_000, 1e6])
def test_a_job_of_any_rate_carries_what_the_steady_state_says(rate):
    problem = fast(rate)
    run = run_queues(problem, problem.placement([0, 1, 2]))
    assert run.valid
    assert run.relative_throughput == pytest.approx(min(1, 62_500 / rate), abs=0.01)


@pytest.mark.parametrize(
    ("arguments", "setting"),
    [
        (GivenSettings(dt=0.1, capacity=500), "capacity"),
        pytest.param(GivenSettings(capacity=1e9), "capacity", marks=pytest.mark.slow),
        (GivenSettings(duration=0.5, dt=0.1), "duration"),
    ],
)
def test_a_run_decided_by_its_settings_says_so(arguments, setting):
    """It names the stream, and a value with which the run is valid."""
    problem = fast(64_000)
    placement = problem.placement([0, 1, 2])
    run = run_queues(problem, placement, arguments)
    assert not run.valid
    assert run.relative_throughput is run.throughput is run.latency.mean is None
    (warning,) = run.warnings
    assert "source→parse" in warning or "parse→sink" in warning
    answer = " ".join(str(run).split())
    assert warning in answer
    assert "%" not in answer
    works = re.search(rf"give a {setting} of ([\d.]+)( s\.|, or leave it out\.)$", warning)
    again = run_queues(problem, placement, replace(arguments, **{setting: float(works[1])}))
    assert again.valid
    assert again.relative_throughput == pytest.approx(62_500 / 64_000, abs=0.01)


def test_an_operator_alone_has_no_queues():
    problem = Problem(StreamGraph.of("one", [Operator("v", ipt=1, rate=10)]), Cluster.uniform(1))
    run = run_queues(problem, problem.placement([0]))
    assert run.queues == {}
    assert "longest queues" not in str(run)


def test_windows_fire_several_times_before_anything_is_measured():
    window = Window(size=60, advance=20, factor=0.1)
    stages = Operator("source", rate=10), Operator("count", window=window), Operator("sink")
    problem = Problem(in_a_row(*stages), Cluster.uniform(2))
    run = run_queues(problem, problem.placement([0, 0, 1]))
    assert run.valid
    assert run.duration >= 60 + 4 * 20
    assert run.relative_throughput == pytest.approx(1, abs=0.01)
    with pytest.raises(SettingError, match=r"dt is 50 s.*count"):
        run_queues(problem, problem.placement([0, 0, 1]), GivenSettings(dt=50))


def test_a_run_is_drawn_over_time():
    """Throughput, queues and latency, a panel each, from the run that gives the numbers."""
    problem, arguments = Problem(chain(3), Cluster.uniform(3)), GivenSettings(duration=3, dt=0.1)
    placement = problem.placement([0, 1, 2])
    run, ticks, settings = run_queues_traced(problem, placement, arguments)
    assert run == run_queues(problem, placement, arguments)
    assert np.array_equal(ticks.throughput, trace(problem.instance, [0, 1, 2], settings).throughput)
    figure = draw_queues(problem, ticks, settings)
    assert [axis.get_xlabel() for axis in figure.axes] == ["time (s)"] * 3

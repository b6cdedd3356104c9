"""Speed of GiPH's and Placeto's steps, on 30 tasks and 20 devices that may run any of them.

A step simulates the placement, measures all 600 nodes of the gpNet, scores them and moves a task.
Of GiPH's Table 7: 340 ms a step of its own code, and 162 ms of its Placeto; on other machines, with
fewer devices for each task.
"""

import time

import numpy as np
import pytest
from large_passes import layered_problem
from pytest_benchmark.fixture import BenchmarkFixture

from streamplace.learn.loading import shipped
from streamplace.learn.registry import MODELS
from streamplace.model.problem import random_placements

pytestmark = pytest.mark.benchmark(timer=time.process_time)

TASKS, DEVICES = 30, 20
PUBLISHED_S = {"giph": 0.340, "placeto": 0.162}


@pytest.mark.parametrize("name", PUBLISHED_S)
def test_steps_of_a_walk(benchmark: BenchmarkFixture, name: str) -> None:
    """Layers of five tasks, each fed by two of the layer before."""
    problem = layered_problem(TASKS, 5, DEVICES)
    improver = MODELS[name].improver
    assert improver is not None
    walker = improver(shipped(name)).on(problem)
    rng = np.random.default_rng(1)
    place, uniform = random_placements(problem, 1, rng)[0], rng.random(walker.length)

    def walk() -> None:
        walker.begin(place)
        walker.go(uniform)

    benchmark(walk)
    step = benchmark.stats.stats.median / walker.length
    print(f"\n{name}: {1e3 * step:.3f} ms a step, {PUBLISHED_S[name] / step:,.0f} × as published")

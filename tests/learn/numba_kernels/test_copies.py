"""Copies of kernels answer what the simulator and the schedulers do, to the last bit."""

import numpy as np
import pytest
from problems import PROBLEMS, random_tasks
from streamsim.instance import Instance
from streamsim.passes import GIPH, schedule

from streamplace.learn.numba_kernels.arrays import group_by
from streamplace.learn.numba_kernels.jit import kernel
from streamplace.learn.numba_kernels.passes import new_state, pass_times, run
from streamplace.learn.numba_kernels.tasks import TaskColumns, tasks_of
from streamplace.model import Cluster, Problem
from streamplace.model.problem import random_placements
from streamplace.scheduling import tasks as scheduling

CASES = {
    **PROBLEMS,
    "random tasks": Problem(random_tasks(60, 3, payload=1.0), Cluster.uniform(4, cores=2)),
}


@kernel
def _first_load(instance: Instance) -> float:
    return instance.load[0, 0] + instance.gap


def test_a_kernel_takes_an_instance_that_holds_the_copy_of_the_core():
    instance = PROBLEMS["diamond"].instance
    assert instance.core is instance.core
    assert _first_load(instance) == instance.load[0, 0] + instance.gap


def test_positions_are_grouped_by_key():
    start, positions = group_by(np.array([2, 0, 2, 1], np.int32), 4)
    assert start.tolist() == [0, 1, 2, 4, 4]
    assert positions.tolist() == [1, 3, 0, 2]


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_tasks_have_the_columns_of_the_schedulers(problem):
    tasks, theirs = tasks_of(problem), scheduling.tasks_of(problem)
    for name in TaskColumns._fields:
        assert np.array_equal(getattr(tasks, name), getattr(theirs, name)), name


@pytest.mark.slow
@pytest.mark.parametrize("problem", CASES.values(), ids=CASES)
def test_a_pass_is_that_of_the_simulator(problem):
    """Buffers serve one pass after the other."""
    tasks, times = tasks_of(problem), pass_times(problem)
    state = new_state(tasks)
    for place in random_placements(problem, 30, np.random.default_rng(0)):
        makespan, theirs = run(tasks, times, place, state), schedule(problem.one_pass, place, GIPH)
        assert makespan == theirs.makespan
        for name in ("ready", "start", "finish"):
            assert np.array_equal(state.operators[name], getattr(theirs, name)), name
        assert state.operators["producer"].tolist() == [*last_producers(problem, theirs)]


def last_producers(problem, timing):
    """Producer of the last input of every operator, of equal ones the one of the highest index."""
    instance = problem.instance
    arrival = timing.arrival[instance.stream_index]
    for v in range(problem.n_operators):
        inputs = np.flatnonzero(instance.target == v)
        last = inputs[arrival[inputs] == timing.ready[v]]
        yield int(instance.source[last].max(initial=-1))

"""Copies of kernels answer what the schedulers do, to the last bit."""

import numpy as np
import pytest
from problems import PROBLEMS
from streamsim.instance import Instance

from streamplace.learn.numba_kernels.arrays import group_by
from streamplace.learn.numba_kernels.jit import kernel
from streamplace.learn.numba_kernels.tasks import TaskColumns, tasks_of
from streamplace.scheduling import tasks as scheduling


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

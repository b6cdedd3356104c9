"""The clock of budgets."""

import time

import numpy as np
from streamsim.jit import compiling_seconds, kernel

from streamplace.placers.stopwatch import now, start_up_seconds, starting_up


def test_it_stands_still_while_a_kernel_is_compiled() -> None:
    """Only at the first call; the clock on the wall goes on."""
    salt = float(time.time_ns())  # nobody has compiled this one before

    @kernel
    def doubled(x: np.ndarray) -> np.ndarray:
        return x + x + salt

    wall, began, before = time.perf_counter(), now(), compiling_seconds()
    doubled(np.ones(3))
    compiled = compiling_seconds() - before
    assert compiled > 0
    assert now() - began <= time.perf_counter() - wall - compiled
    doubled(np.ones(3))
    assert compiling_seconds() == before + compiled


def test_it_stands_still_while_libraries_are_loaded() -> None:
    """And the time is told apart."""
    wall, began, before = time.perf_counter(), now(), start_up_seconds()
    with starting_up():
        time.sleep(0.02)
    loading = start_up_seconds() - before
    assert loading >= 0.02
    assert now() - began <= time.perf_counter() - wall - loading

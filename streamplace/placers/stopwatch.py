"""The clock of budgets, which stands still while libraries, weights and kernels are made ready.

Kernels of learned placers are compiled on their first call on a machine; they are loaded, and
libraries such as torch imported, by every process. All take seconds; a budget of one second would
be over before anything was tried. Each thread has a clock of its own, as one may load what another
does not wait for.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

clock: Callable[[], float] = time.perf_counter
"""Seconds since some moment; measurements on a busy machine replace it by ``time.process_time``."""
KERNELS = "streamplace.learn.numba_kernels.jit"


def now() -> float:
    """Seconds since some moment, less the time for getting libraries and kernels ready."""
    return _clock() - _ready.seconds


@contextmanager
def starting_up() -> Iterator[None]:
    """Keep the clock from running in this block, which loads libraries or weights."""
    start = _clock()
    try:
        yield
    finally:
        _ready.seconds += _clock() - start


def start_up_seconds() -> float:
    """Seconds that this thread has spent on loading libraries and weights for placers."""
    return _ready.seconds


class _Ready(threading.local):
    seconds = 0.0


_ready = _Ready()


def _clock() -> float:
    """Seconds since some moment, less the time for getting kernels ready."""
    spent: Callable[[], float] = getattr(sys.modules.get(KERNELS), "kernel_seconds", float)
    return clock() - spent()  # none where nothing is compiled

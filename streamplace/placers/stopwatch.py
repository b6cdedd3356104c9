"""The clock of budgets, which stands still while libraries and weights are loaded.

Importing a library such as torch takes seconds; a budget of one second would be over before
anything was tried. Each thread has its own clock: loading in one does not delay the others.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

clock: Callable[[], float] = time.perf_counter
"""Seconds since some moment; measurements on a busy machine replace it by ``time.process_time``."""


def now() -> float:
    """Seconds since some moment, less the time for loading libraries and weights."""
    return clock() - _ready.seconds


@contextmanager
def starting_up() -> Iterator[None]:
    """Keep the clock from running in this block, which loads libraries or weights."""
    start = clock()
    try:
        yield
    finally:
        _ready.seconds += clock() - start


def start_up_seconds() -> float:
    """Seconds that this thread has spent on loading libraries and weights for placers."""
    return _ready.seconds


class _Ready(threading.local):
    seconds = 0.0


_ready = _Ready()

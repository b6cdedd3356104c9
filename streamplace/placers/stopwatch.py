"""The clock of budgets, which stops while kernels are compiled or run in Python instead.

Kernels are compiled on their first call on a machine, which takes seconds; a budget of one second
would be over before anything was tried.
"""

import time
from collections.abc import Callable

clock: Callable[[], float] = time.perf_counter
"""Seconds since some moment; measurements on a busy machine replace it by ``time.process_time``."""


def now() -> float:
    """Seconds since some moment, less the time for getting kernels ready."""
    from streamsim.jit import warming_seconds

    return clock() - warming_seconds()

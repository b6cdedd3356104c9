"""The clock of budgets: it stands still while kernels are compiled, or Python stands in for them.

Kernels are compiled when they are first called on a machine, which takes seconds; a budget of one
second would then be over before anything was tried.
"""

import time
from collections.abc import Callable

clock: Callable[[], float] = time.perf_counter
"""Seconds since some moment. Measurements on a busy machine put ``time.process_time`` here."""


def now() -> float:
    """Seconds since some moment, less those that kernels took to be there."""
    from streamsim.jit import warming_seconds

    return clock() - warming_seconds()

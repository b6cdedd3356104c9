"""The clock of budgets: it stands still while kernels are compiled.

Kernels are compiled when they are first called on a machine, which takes seconds; a budget of one
second would then be over before anything was tried.
"""

import time


def now() -> float:
    """Seconds since some moment, less those that went into compiling."""
    from streamsim.jit import compiling_seconds

    return time.perf_counter() - compiling_seconds()

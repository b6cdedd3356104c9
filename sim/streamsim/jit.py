"""How kernels are compiled: cached on disk, without the GIL, dividing as IEEE does.

A kernel that takes NamedTuples of arrays pays twice, and at nanoseconds per call both are felt:
the arrays are reference-counted on every access, and a call that is not inlined copies them all
to the stack. Kernels in the inner loop of a search are therefore *borrowing*: they allocate
nothing, so that nothing needs counting; the short ones are always *inlined*. The search loop that
calls them should be borrowing itself and be handed its buffers.
"""

from collections.abc import Callable
from typing import Any, Final, ParamSpec, TypeVar, cast

from numba import njit
from numba.core import event

P = ParamSpec("P")
R = TypeVar("R")

COMMON: Final[dict[str, Any]] = {"cache": True, "error_model": "numpy", "nogil": True}

_compiling = event.TimingListener()  # type: ignore[no-untyped-call]
event.register("numba:compile", _compiling)  # type: ignore[no-untyped-call]


def compiling_seconds() -> float:
    """Time that this process has spent compiling kernels; those found in the cache cost none."""
    return _compiling.duration if _compiling.done else 0.0


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function for use from Python and from other kernels."""
    return cast(Callable[P, R], njit(**COMMON)(function))


def borrowing_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that allocates nothing, without reference counting."""
    options = {**COMMON, "_nrt": False}
    return cast(Callable[P, R], njit(**options)(function))


def inlined_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a short function that allocates nothing into every caller.

    Arithmetic on it may assume that nothing is NaN, so that maxima are taken with vector
    instructions; sums are never reordered.
    """
    options = {**COMMON, "_nrt": False, "forceinline": True, "fastmath": {"nnan", "nsz"}}
    return cast(Callable[P, R], njit(**options)(function))

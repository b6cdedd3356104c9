"""How kernels are compiled: once per installation, without the GIL, dividing as IEEE does.

A kernel that takes NamedTuples of arrays pays twice, and at nanoseconds per call both are felt:
the arrays are reference-counted on every access, and a call that is not inlined copies them all
to the stack. Kernels in the inner loop of a search are therefore *borrowing*: they allocate
nothing, so that nothing needs counting; the short ones are always *inlined*. The search loop that
calls them should be borrowing itself and be handed its buffers.

They are paid for once more where they are compiled: to take a NamedTuple of arrays apart that comes
from Python is more code than most kernels have of their own. A kernel therefore has two forms, and
what other kernels call can be called by kernels alone.

To compile one takes a second, and whoever places one small graph on a new installation would wait
for dozens. What prepares a graph is therefore *patient*: Python runs it, to the same bits, until
that has cost as much, or something large comes, or another process has compiled it.
"""

import logging
import threading
import time
from collections.abc import Callable
from functools import cached_property
from multiprocessing import current_process
from typing import Any, Final, ParamSpec, TypeVar, cast

import numpy as np
from numba import config, types
from numba.core import event
from numba.core.registry import CPUDispatcher

from streamsim.kernel_cache import KernelCache, is_kept

P = ParamSpec("P")
R = TypeVar("R")
LOG = logging.getLogger(__name__)

COMMON: Final[dict[str, Any]] = {
    "nopython": True,
    "error_model": "numpy",
    "nogil": True,
    "no_cfunc_wrapper": True,
}
NOTICEABLE: Final = 0.5
"""Seconds of compiling after which people are told what they wait for."""
PATIENCE: Final = 0.3
"""Seconds that Python may spend on a patient kernel before that is compiled."""
SMALL: Final = 5000
"""Numbers that a patient kernel is handed at most, for Python to be quick enough."""
TELLING: Final = ("MainProcess", "SpawnProcess-1")
"""Who tells: of workers, which all compile at the same time, the first."""


class Kernel(CPUDispatcher):
    """A compiled function; kernels that call it get a form of it that Python cannot call.

    Attributes
    ----------
    patience
        Seconds that Python may still spend on calls for something small, before it is compiled.
    """

    patience = 0.0
    _cache: KernelCache

    def __init__(self, py_func: Callable[..., Any], *rest: Any, **options: Any) -> None:
        super().__init__(py_func, *rest, **options)
        _kept(self)

    @cached_property
    def _within(self) -> Any:
        """The form that kernels call, made where one is compiled that does."""
        within = {**self.targetoptions, "no_cpython_wrapper": True}
        return _kept(CPUDispatcher(self.py_func, targetoptions=within))

    def _compile_for_args(self, *args: Any, **kws: Any) -> Any:
        """Return what answers a call of a kind that nothing is compiled for yet."""
        if _python.runs:
            return self.py_func
        if self.patience > 0 and sum(map(_size, args)) <= SMALL and not self._is_kept(args):
            return self._by_python
        return super()._compile_for_args(*args, **kws)  # type: ignore[misc]

    def _is_kept(self, args: tuple[Any, ...]) -> bool:
        kinds = tuple(self.typeof_pyval(arg) for arg in args)
        return self._cache.has(kinds, self.targetctx)

    def _by_python(self, *args: Any, **kws: Any) -> Any:
        _python.runs, since = True, time.perf_counter()
        try:
            with np.errstate(all="ignore"):
                return self.py_func(*args, **kws)
        finally:
            _python.runs = False
            spent = time.perf_counter() - since
            self.patience -= spent
            _compiling.instead += spent

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Compile what a kernel calls, once for whole numbers of all kinds and constants."""
        return self._within.get_call_template(tuple(_widened(arg) for arg in args), kws)

    def get_overload(self, sig: Any) -> Any:
        """Return what a kernel calls."""
        return self._within.get_overload(sig)


class _Python(threading.local):
    """Whether this thread runs a kernel by Python, and so all kernels that it calls."""

    runs = False


_python = _Python()


def _size(argument: Any) -> int:
    if isinstance(argument, tuple):
        return sum(map(_size, argument))
    return argument.size if isinstance(argument, np.ndarray) else 1


def _kept(dispatcher: Any) -> Any:
    dispatcher._cache = KernelCache(dispatcher.py_func, dispatcher.targetoptions)
    return dispatcher


def _widened(argument: Any) -> Any:
    plain: Any = types.unliteral(argument)  # type: ignore[no-untyped-call]
    return types.int64 if plain in types.signed_domain else plain


class _Compiling(event.Listener):
    """Adds up the time that goes into compiling, and tells once where it is felt.

    Attributes
    ----------
    seconds
        Of compiling.
    instead
        Seconds that Python spent on kernels that were not compiled.
    """

    def __init__(self) -> None:
        self.seconds, self.instead = 0.0, 0.0
        self._depth, self._since, self._told = 0, 0.0, False

    def on_start(self, event: event.Event) -> None:
        """Begin to count, unless it is a part of what is counted already."""
        if self._depth == 0:
            self._since = time.perf_counter()
        self._depth += 1
        so_far = self.seconds + time.perf_counter() - self._since
        if so_far > NOTICEABLE and not self._told:
            self._told = True
            if current_process().name in TELLING:
                LOG.warning(_notice())

    def on_end(self, event: event.Event) -> None:
        """Add what was counted."""
        self._depth -= 1
        if self._depth == 0:
            self.seconds += time.perf_counter() - self._since


_compiling = _Compiling()
event.register("numba:compile", _compiling)  # type: ignore[no-untyped-call]


def _notice() -> str:
    if is_kept():
        return "compiling kernels (once per installation) …"
    return (
        "compiling kernels, again at every start, since no folder to keep them in can be written; "
        "NUMBA_CACHE_DIR may name one …"
    )


def compiling_seconds() -> float:
    """Time that this process has spent compiling kernels; those found in the cache cost none."""
    return _compiling.seconds


def warming_seconds() -> float:
    """Time that went into compiling kernels, or into what Python did instead."""
    return _compiling.seconds + _compiling.instead


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function for use from Python and from other kernels."""
    return _compiled(function, COMMON)


def patient(function: Callable[P, R]) -> Callable[P, R]:
    """Let Python answer the first calls of a kernel that prepares a graph.

    It must come to the same bits: nothing in the kernel may overflow.
    """
    if isinstance(function, Kernel):
        function.patience = PATIENCE
    return function


def borrowing_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that allocates nothing, without reference counting."""
    return _compiled(function, {**COMMON, "_nrt": False})


def inlined_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a short function that allocates nothing into every caller.

    Arithmetic on it may assume that nothing is NaN, so that maxima are taken with vector
    instructions; sums are never reordered.
    """
    fast = {"_nrt": False, "forceinline": True, "fastmath": {"nnan", "nsz"}}
    return _compiled(function, {**COMMON, **fast})


def _compiled(function: Callable[P, R], options: dict[str, Any]) -> Callable[P, R]:
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return function
    return cast(Callable[P, R], Kernel(function, targetoptions=options))

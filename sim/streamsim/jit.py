"""Compilation of kernels: once per installation, without the GIL, with IEEE division.

NamedTuples of arrays as arguments have two costs at run time, which matter at nanoseconds per call:
the arrays are reference-counted on every access, and a call that is not inlined copies them all to
the stack. Kernels in the inner loop of a search are therefore *borrowing*: they allocate nothing,
so that no counting is needed; short ones are always *inlined*. The search loop that calls them
should be borrowing, too, and receive its buffers as arguments.

They also cost compile time: unpacking a NamedTuple of arrays from Python is more code than most
kernels contain. A kernel therefore has two forms; the form that other kernels call cannot be called
from Python.

Compiling a kernel takes about a second, and placing one small graph on a new installation would
need dozens of kernels. Kernels that prepare a graph are therefore *patient*: Python runs them, with
bit-identical results, until that has taken about as long as compiling, or an argument is large, or
another process has compiled them.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from multiprocessing import current_process
from typing import Any, Final, ParamSpec, TypeVar, cast

import numpy as np
from numba import config, types
from numba.core import event
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher

from streamsim import first_use
from streamsim.kernel_cache import KernelCache, had_kernels, is_kept

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
"""Seconds of compiling after which a warning explains the wait."""
PATIENCE: Final = 0.3
"""Seconds that Python may spend on a patient kernel before it is compiled."""
SMALL: Final = 5000
"""Most numbers in the arguments of a patient kernel for which Python is quick enough."""
BEGAN: Final = time.time()
"""Moment at which this process began, to tell its own kernels from earlier ones."""
TELLING: Final = ("MainProcess", "SpawnProcess-1")
"""Processes that warn: of workers, which all compile at the same time, only the first."""


class _Form(CPUDispatcher):
    """A form of a kernel, which one process compiles for all."""

    _cache: KernelCache

    def __init__(self, py_func: Callable[..., Any], *rest: Any, **options: Any) -> None:
        super().__init__(py_func, *rest, **options)
        self._cache = KernelCache(self.py_func, self.targetoptions)

    def compile(self, sig: Any) -> Any:
        """Return the code for a signature: loaded, or compiled in turn with other processes."""
        if sig in self.overloads or self._cache.has(sig, self.targetctx):
            return super().compile(sig)
        # Whoever waits for another process holds numba's lock already: none waits for it in turn.
        with global_compiler_lock, ExitStack() as stack:
            with _compiling.paused():
                first_use.prepare()
                stack.enter_context(self._cache.turn(sig, self.targetctx))
            return super().compile(sig)


class Kernel(_Form):
    """A compiled function; kernels that call it use a form that Python cannot call."""

    patience = 0.0
    """Seconds that Python may still spend on calls with small arguments before compilation."""
    impatient = False
    """Whether no kernel of this process has patience."""

    @cached_property
    def _within(self) -> Any:
        """The form that other kernels call, created when such a kernel is compiled."""
        within = {**self.targetoptions, "no_cpython_wrapper": True}
        return _Form(self.py_func, targetoptions=within)

    def _compile_for_args(self, *args: Any, **kws: Any) -> Any:
        """Return a function for argument types without compiled code, compiling if necessary."""
        if _python.runs:
            return self.py_func
        patient = self.patience > 0 and not Kernel.impatient
        if patient and sum(map(_size, args)) <= SMALL and not self._is_kept(args):
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
        """Compile the form for a calling kernel, once for all kinds of integers and constants."""
        return self._within.get_call_template(tuple(_widened(arg) for arg in args), kws)

    def get_overload(self, sig: Any) -> Any:
        """Return the compiled form for a calling kernel."""
        return self._within.get_overload(sig)


class _Python(threading.local):
    """Whether this thread runs a kernel in Python, and therefore all kernels that it calls."""

    runs = False


_python = _Python()


def _size(argument: Any) -> int:
    if isinstance(argument, tuple):
        return sum(map(_size, argument))
    return argument.size if isinstance(argument, np.ndarray) else 1


def _widened(argument: Any) -> Any:
    plain: Any = types.unliteral(argument)  # type: ignore[no-untyped-call]
    return types.int64 if plain in types.signed_domain else plain


class _Compiling(event.Listener):
    """Add up the time spent on compiling, and warn once if it is noticeable."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.instead = 0.0  # that Python spent on kernels that were not compiled
        self._depth, self._since, self._told = 0, 0.0, False

    def on_start(self, event: event.Event) -> None:
        """Start timing, unless this compilation is nested in another one."""
        if self._depth == 0:
            self._since = time.perf_counter()
        self._depth += 1
        so_far = self.seconds + time.perf_counter() - self._since
        if so_far > NOTICEABLE and not self._told:
            self._told = True
            if current_process().name in TELLING:
                LOG.warning(_notice())

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Count the time of this block, in which another process compiles, as compilation."""
        since = time.perf_counter()
        try:
            yield
        finally:
            if self._depth == 0:
                self.seconds += time.perf_counter() - since

    def on_end(self, event: event.Event) -> None:
        """Add the time of the outermost compilation."""
        self._depth -= 1
        if self._depth == 0:
            self.seconds += time.perf_counter() - self._since


_compiling = _Compiling()
event.register("numba:compile", _compiling)  # type: ignore[no-untyped-call]


def _notice() -> str:
    if is_kept() and (first_use.is_prepared() or had_kernels(BEGAN)):
        return "compiling kernels that no command has needed before …"
    if is_kept():
        return "compiling kernels (once per installation) …"
    return (
        "compiling kernels, again at every start, since no folder to keep them in can be written; "
        "NUMBA_CACHE_DIR may name one …"
    )


def compiling_seconds() -> float:
    """Seconds that this process has spent compiling kernels; cached ones cost none."""
    return _compiling.seconds


def warming_seconds() -> float:
    """Seconds spent on compiling kernels, or on running them in Python instead."""
    return _compiling.seconds + _compiling.instead


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function for use from Python and from other kernels."""
    return _compiled(function, COMMON)


def patient(function: Callable[P, R]) -> Callable[P, R]:
    """Let Python run the first calls of a kernel that prepares a graph.

    Results must be bit-identical, so nothing in the kernel may overflow.
    """
    if isinstance(function, Kernel):
        function.patience = PATIENCE
    return function


def compile_at_once() -> None:
    """Let Python run no kernel, so that all that are called are compiled and kept."""
    Kernel.impatient = True


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

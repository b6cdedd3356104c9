"""Compilation of kernels: once per installation, without the GIL, with IEEE division.

NamedTuples of arrays as arguments have two costs at run time, which matter at nanoseconds per call:
the arrays are reference-counted on every access, and a call that is not inlined copies them all to
the stack. Kernels in the inner loop of a search are therefore *borrowing*: they allocate nothing,
so that no counting is needed; short ones are always *inlined*. The search loop that calls them
should be borrowing, too, and receive its buffers as arguments.

Numba's cache alone would make a first use take two fifths longer. What prevents that is here
and in `kernel_cache`:

- *Within* other kernels, a kernel has a form that Python cannot call, as unpacking a NamedTuple of
  arrays from Python is more code than most kernels contain, and one form for all whole numbers and
  constants, of which numba would compile one each.
- Processes take turns: what one compiles, the others load.
"""

import gc
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property, update_wrapper
from multiprocessing import current_process
from pickle import UnpicklingError
from types import FunctionType
from typing import Any, Final, ParamSpec, TypeVar, cast

import numba
from numba import config, types
from numba.core import event
from numba.extending import models, register_model, typeof_impl

from streamplace.learn.numba_kernels.kernel_cache import LOCATORS, empty, folder_of, turn

P = ParamSpec("P")
R = TypeVar("R")
LOG = logging.getLogger(__name__)

COMMON: Final[dict[str, Any]] = {"error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True}
NOTICEABLE: Final = 0.5
"""Seconds of compiling after which a warning explains the wait."""
TELLING: Final = ("MainProcess", "SpawnProcess-1")
"""Processes that warn: of workers, which all compile at the same time, only the first."""
DAMAGED: Final = (EOFError, UnpicklingError, AttributeError, ImportError)
"""Errors of files that are incomplete, or that refer to a class which does not exist."""


class Kernel:
    """A compiled function; kernels that call it use a form that Python cannot call."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        assert isinstance(function, FunctionType)
        self.py_func, self._options = function, options
        self._call: Callable[..., Any] = self._first
        update_wrapper(self, function)

    def __call__(self, *args: Any) -> Any:
        """Call the compiled function."""
        try:
            return self._call(*args)
        except OSError:  # as above, for other types of arguments
            return self._call(*args)
        except DAMAGED:
            empty(self.py_func.__module__)
            return self._call(*args)

    def __reduce__(self) -> str:
        """Pickle the name, as of any function."""
        return self.py_func.__qualname__

    def _first(self, *args: Any) -> Any:
        """Compile or load the function for these types of arguments."""
        compiled = _jitted(self.py_func, self._options)
        with (
            _making_ready.timing(), turn(self.py_func), _seldom_collected(),
            suppress(OSError),  # compiled, even if it cannot be kept
        ):  # fmt: skip
            compiled.compile(tuple(map(numba.typeof, args)))
        self._call = compiled
        return compiled(*args)

    @cached_property
    def within(self) -> "Within":
        """The form that other kernels call, under another name in the cache."""
        f = self.py_func
        inner = FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, f.__closure__)
        inner.__module__, inner.__qualname__ = f.__module__, f"{f.__qualname__}.within"
        self._inner = _jitted(inner, {**self._options, "no_cpython_wrapper": True})
        return Within(self._inner)


class Within(types.Dispatcher):
    """The type of a kernel in another one: compiled once for all whole numbers and constants."""

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        """Compile the kernel for a call, or load it, and return the types of the call."""
        function = cast(Any, self.dispatcher).py_func
        args, kws = tuple(map(_widened, args)), {key: _widened(kws[key]) for key in kws}
        with turn(function):
            try:
                return super().get_call_type(context, args, kws)
            except OSError:
                return super().get_call_type(context, args, kws)
            except DAMAGED:
                empty(function.__module__)
                return super().get_call_type(context, args, kws)


register_model(Within)(models.OpaqueModel)


@typeof_impl.register(Kernel)
def _typeof(kernel: Kernel, context: Any) -> Within:
    return kernel.within


def _widened(argument: Any) -> Any:
    plain: Any = types.unliteral(argument)  # type: ignore[no-untyped-call]
    return types.int64 if plain in types.signed_domain else plain


def _jitted(function: FunctionType, options: dict[str, Any]) -> Any:
    """Return numba's form of a function, kept in our folder if there is one."""
    if folder_of(function.__module__) is None:
        return numba.njit(function, **options)
    with _locating:
        before = config.CACHE_LOCATOR_CLASSES  # type: ignore[attr-defined]
        config.CACHE_LOCATOR_CLASSES = LOCATORS  # type: ignore[attr-defined]
        try:
            return numba.njit(function, cache=True, **options)
        finally:
            config.CACHE_LOCATOR_CLASSES = before  # type: ignore[attr-defined]


_locating = threading.Lock()


@contextmanager
def _seldom_collected() -> Iterator[None]:
    """Look for cycles seldom: numba makes millions of objects, and few become garbage.

    As often as Python does by itself takes a seventh of the time of compiling.
    """
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], 100_000) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


class _Timer(threading.local):
    """Seconds of the blocks of each thread, of which nested ones are counted once."""

    def __init__(self) -> None:
        self._seconds, self._since, self._depth = 0.0, 0.0, 0

    def begin(self) -> None:
        """Begin a block."""
        if self._depth == 0:
            self._since = time.perf_counter()
        self._depth += 1

    def end(self) -> None:
        """End a block."""
        self._depth -= 1
        if self._depth == 0:
            self._seconds += time.perf_counter() - self._since

    @contextmanager
    def timing(self) -> Iterator[None]:
        """Time a block."""
        self.begin()
        try:
            yield
        finally:
            self.end()

    @property
    def seconds(self) -> float:
        """Seconds of all blocks so far."""
        now = time.perf_counter() - self._since if self._depth else 0.0
        return self._seconds + now


class _Compiling(event.Listener):
    """Warns once if compiling takes noticeably long."""

    def __init__(self) -> None:
        self._timer, self._told = _Timer(), False

    def on_start(self, event: event.Event) -> None:
        """Time a compilation."""
        self._timer.begin()
        if self._timer.seconds > NOTICEABLE and not self._told:
            self._told = True
            if current_process().name in TELLING:
                kept = folder_of(event.data["dispatcher"].py_func.__module__) is not None
                LOG.warning(ONCE if kept else ALWAYS)

    def on_end(self, event: event.Event) -> None:
        """End timing it."""
        self._timer.end()


ONCE: Final = "compiling kernels that were not needed before (kept for the next time) …"
ALWAYS: Final = (
    "compiling kernels, again at every start, since no folder to keep them in can be written; "
    "NUMBA_CACHE_DIR may name one …"
)
_compiling = _Compiling()
event.register("numba:compile", _compiling)  # type: ignore[no-untyped-call]
_making_ready = _Timer()


def kernel_seconds() -> float:
    """Seconds that this thread has spent on compiling and loading kernels, and on waiting."""
    return _making_ready.seconds


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function for use from Python and from other kernels."""
    return _compiled(function, COMMON)


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


def relaxed_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that allocates nothing, whose sums vector instructions may reorder.

    Like those of a BLAS, its results are the same on one kind of processor only.
    """
    fast = {"_nrt": False, "fastmath": {"nnan", "nsz", "reassoc", "contract"}}
    return _compiled(function, {**COMMON, **fast})


def _compiled(function: Callable[P, R], options: dict[str, Any]) -> Callable[P, R]:
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return function
    return cast(Callable[P, R], Kernel(function, options))

"""Processes that compute for this one: in order, a little ahead, and never longer than it lives."""

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any, TypeVar

from streamplace.errors import SettingError

T = TypeVar("T")
R = TypeVar("R")

FEW = 16
"""Fewer items than this are not worth starting processes for."""
LARGEST_CHUNK = 16
AHEAD = 3
"""Chunks under way for every process."""
_BROKEN = (
    "a worker process was killed, perhaps for want of memory; run it again with fewer --jobs "
    "(results that were kept are not computed again)"
)


def available_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def mapped(function: Callable[[T], R], items: Iterable[T], jobs: int) -> Iterator[R]:
    """Results of a function for every item, in the order of the items.

    Items are read as they are needed, so neither they nor the results pile up. The processes end
    with this one, even if it is killed, and when the iterator is closed.

    Parameters
    ----------
    function
        What can be pickled; every process gets a copy once.
    """
    coming = iter(items)
    first = list(islice(coming, FEW))
    if jobs == 1 or len(first) < FEW:
        return map(function, chain(first, coming))
    return _spread(function, chain(first, coming), jobs)


def _spread(function: Callable[[T], R], items: Iterator[T], jobs: int) -> Iterator[R]:
    context = multiprocessing.get_context("spawn")
    held, leash = context.Pipe(duplex=False)
    under_way: deque[Future[list[R]]] = deque()
    with (
        held,
        leash,
        ProcessPoolExecutor(jobs, context, initializer=_begin, initargs=(held, function)) as pool,
    ):
        try:
            for chunk in chunks(items, jobs):
                under_way.append(pool.submit(_work, chunk))
                if len(under_way) == AHEAD * jobs:
                    yield from under_way.popleft().result()
            while under_way:
                yield from under_way.popleft().result()
        except BaseException as error:
            leash.close()
            if isinstance(error, BrokenProcessPool):
                raise SettingError(_BROKEN) from None
            raise


def chunks(items: Iterator[T], jobs: int) -> Iterator[list[T]]:
    """Items in lists that grow, so that few items are shared out evenly too."""
    sent = 0
    while chunk := list(islice(items, min(LARGEST_CHUNK, 1 + sent // (4 * jobs)))):
        sent += len(chunk)
        yield chunk


_function: Callable[[Any], Any]


def _begin(held: Connection, function: Callable[[Any], Any]) -> None:
    """Set up a worker process; Ctrl-C is the parent's business."""
    global _function
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _function = function
    Thread(target=_end_with_parent, args=(held,), daemon=True).start()


def _end_with_parent(held: Connection) -> None:
    """Wait until the other end of the leash is let go, which a killed parent does as well."""
    try:
        held.recv_bytes()
    except (EOFError, OSError):
        os._exit(1)


def _work(chunk: list[Any]) -> list[Any]:
    return [_function(item) for item in chunk]

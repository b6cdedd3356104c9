"""One function for many items, here or on Ray: in order, a little ahead, whoever dies.

What a worker logs is logged here. An item whose worker dies with it, again when it is alone, is
lost; the others go on.
"""

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, nullcontext
from itertools import chain, islice
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any, TypeVar

from streamplace.errors import SettingError
from streamplace.evaluate.chores import Chore, Done, log_level, relogged

T = TypeVar("T")
R = TypeVar("R")
Lost = Callable[[T, str], R]
"""Makes a result of an item that is lost, and of why."""

FEW = 15
"""So many items are not worth starting processes for."""
LARGEST_CHUNK = 16
AHEAD = 3
"""Chunks under way for every process."""
KILLED = "its worker process was killed, perhaps for want of memory"


def available_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def mapped(
    function: Callable[[T], R],
    items: Iterable[T],
    jobs: int | None = None,
    on: str | None = None,
    *,
    lost: Lost[T, R] | None = None,
    few: int = FEW,
) -> Iterator[R]:
    """Results of a function for every item, in the order of the items.

    Items are read as they are needed, so neither they nor the results pile up. Processes end with
    this one, even if it is killed, and when the iterator is closed.

    Parameters
    ----------
    function
        What can be pickled; every process gets a copy once.
    jobs
        Processes of this machine; by default one for every core.
    on
        Compute on Ray instead: ``ray`` for one on this machine, ``auto`` or an address for a
        cluster that runs.
    lost
        Result of an item that kills its worker; without it, such an item is an error.
    few
        So many items are not worth starting processes for.
    """
    if on is not None:
        if jobs is not None:
            raise SettingError(
                "jobs are processes of this machine; leave them out where Ray computes"
            )
        from streamplace.evaluate.on_ray import mapped_on_ray

        return mapped_on_ray(function, items, on, lost=lost)
    coming = iter(items)
    first = list(islice(coming, few + 1))
    if jobs == 1 or len(first) <= few:
        return map(function, chain(first, coming))
    return _spread(function, chain(first, coming), jobs or available_cores(), lost or _refused)


def reached(on: str | None) -> AbstractContextManager[Any]:
    """Stay connected to Ray within the block, where all that is mapped on it finds it."""
    if on is None:
        return nullcontext()
    from streamplace.evaluate.on_ray import connected

    return connected(on)


def _spread(
    function: Callable[[T], R], items: Iterator[T], jobs: int, lost: Lost[T, R]
) -> Iterator[R]:
    """Results; after the death of a process, of one item at a time until it is known whose."""
    coming = chunks(items, jobs)
    while left := (yield from _pooled(function, coming, jobs)):
        suspects = iter([[item] for chunk in left for item in chunk])
        while left := (yield from _pooled(function, suspects, 1)):
            (culprit,), *others = left
            yield lost(culprit, KILLED)
            suspects = chain(others, suspects)


def _pooled(
    function: Callable[[T], R], coming: Iterator[list[T]], jobs: int
) -> Generator[R, None, list[list[T]]]:
    """Results of chunks by a pool of processes; returns what is left when one of them dies."""
    context = multiprocessing.get_context("spawn")
    held, leash = context.Pipe(duplex=False)
    chore = Chore(function, log_level())
    under_way: deque[tuple[list[T], Future[Done[R]]]] = deque()
    with (
        held,
        leash,
        ProcessPoolExecutor(jobs, context, initializer=_begin, initargs=(held, chore)) as pool,
    ):
        try:
            for chunk in coming:
                try:
                    under_way.append((chunk, pool.submit(_work, chunk)))
                except BrokenProcessPool:
                    return [*(one for one, _ in under_way), chunk]
                if len(under_way) == AHEAD * jobs:
                    yield from relogged(under_way[0][1].result())
                    under_way.popleft()
            while under_way:
                yield from relogged(under_way[0][1].result())
                under_way.popleft()
        except BrokenProcessPool:
            return [chunk for chunk, _ in under_way]
        except BaseException:
            leash.close()
            raise
    return []


def _refused(item: Any, why: str) -> Any:
    raise SettingError(
        "a worker process was killed, perhaps for want of memory; run it again with fewer --jobs "
        "(results that were kept are not computed again)"
    )


def chunks(items: Iterator[T], jobs: int) -> Iterator[list[T]]:
    """Items in lists that grow, so that few items are shared out evenly too."""
    sent = 0
    while chunk := list(islice(items, min(LARGEST_CHUNK, 1 + sent // (4 * jobs)))):
        sent += len(chunk)
        yield chunk


_chore: Chore[Any, Any]


def _begin(held: Connection, chore: Chore[Any, Any]) -> None:
    """Set up a worker process; Ctrl-C is the parent's business."""
    global _chore
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _chore = chore
    Thread(target=_end_with_parent, args=(held,), daemon=True).start()


def _end_with_parent(held: Connection) -> None:
    """Wait until the other end of the leash is let go, which a killed parent does as well."""
    try:
        held.recv_bytes()
    except (EOFError, OSError):
        os._exit(1)


def _work(chunk: list[Any]) -> Done[Any]:
    return _chore(chunk)

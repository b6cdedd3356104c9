"""Parallel map over items, on the cores of this machine or on Ray, in order.

Workers get chunks of items. Ray repeats the tasks of lost nodes. It gets a few items per core at a
time, so that neither items nor results accumulate in its object store.
"""

import linecache
import logging
import multiprocessing
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import chain, islice
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any, TypeVar

from streamplace.cores import available_cores
from streamplace.errors import SettingError
from streamplace.evaluate.on_ray import MAX_TRIES, connected, deaths, result
from streamplace.model.message_text import printable

T = TypeVar("T")
R = TypeVar("R")
Lost = Callable[[T, str], R]
"""Function from an item that killed its worker, and the reason, to the result of the item."""

LOG = logging.getLogger("streamplace")
MAX_SERIAL_ITEMS = 15
"""Items that this process computes by itself, as starting others takes longer."""
MAX_CHUNK_ITEMS = 16
CHUNKS_AHEAD = 3
"""Submitted chunks per worker."""
KILLED = "its worker process was killed, perhaps because memory ran out"


def parallel_map(
    function: Callable[[T], R],
    items: Iterable[T],
    jobs: int | None = None,
    on: str | None = None,
    *,
    lost: Lost[T, R] | None = None,
    max_serial: int = MAX_SERIAL_ITEMS,
) -> Iterator[R]:
    """Results of a function for every item, in the order of the items.

    Items are read when they are needed, so neither items nor results accumulate. Processes end with
    this one, even if it is killed, and when the iterator is closed. They log to stderr, at the
    level of this one. An item is lost if it kills a worker that has done nothing else; the others
    continue. Its result is that of ``lost``, or an error without that function.

    The function is pickled once for each process; by default there is one per core. This process
    works alone if there are at most ``max_serial`` items. With ``on``, Ray computes instead:
    ``ray`` starts one on this machine, ``auto`` or an address names a running cluster. Every
    machine of the cluster gets the function once, and needs this version of streamplace.
    """
    if on is not None:
        if jobs is not None:
            raise SettingError("jobs are processes on this machine; drop them to compute on Ray")
        return _map_on_ray(function, items, on, lost or _refuse)
    if jobs is not None and jobs < 1:
        raise SettingError(f"jobs is {jobs}; it must be at least 1, or None for one per core")
    coming = iter(items)
    first = list(islice(coming, max_serial + 1))
    coming = chain(first, coming)
    if jobs == 1 or len(first) <= max_serial:
        return map(function, coming)
    return _map_on_processes(function, coming, jobs or available_cores(), lost or _refuse)


def _refuse(item: Any, why: str) -> Any:
    raise SettingError(
        "a worker process was killed, perhaps because memory ran out; give workers more memory, or "
        "run the command with fewer --jobs (saved results are not computed again)"
    )


def _chunks(items: Iterator[T], jobs: int) -> Iterator[list[T]]:
    """Cut items into chunks of growing sizes, so that even few items are distributed evenly."""
    sent = 0
    while chunk := list(islice(items, min(MAX_CHUNK_ITEMS, 1 + sent // (4 * jobs)))):
        sent += len(chunk)
        yield chunk


def _map_on_processes(
    function: Callable[[T], R], items: Iterator[T], jobs: int, lost: Lost[T, R]
) -> Iterator[R]:
    """Results in the order of the items.

    When a process dies, the items in progress are repeated one at a time. An item is lost if it
    kills a new process that has done nothing else.
    """
    _check_script()
    coming = _chunks(items, jobs)
    while unfinished := (yield from _pooled(function, coming, jobs)):
        suspects = [[item] for chunk in unfinished for item in chunk]
        while suspects:
            others = iter(suspects)
            unfinished = [*(yield from _pooled(function, others, 1)), *others]
            if len(unfinished) == len(suspects):
                yield lost(unfinished.pop(0)[0], KILLED)
            suspects = unfinished


def _check_script() -> None:
    """Raise SettingError for a script that every process would run, because it is imported."""
    main = sys.modules["__main__"]
    source = "".join(linecache.getlines(getattr(main, "__file__", None) or ""))
    if main.__spec__ is None and source and "__name__" not in source:
        raise SettingError(
            "every process would run the script from its beginning; put its calls below "
            "if __name__ == '__main__':, or give jobs=1"
        )


def _pooled(
    function: Callable[[T], R], coming: Iterator[list[T]], jobs: int
) -> Generator[R, None, list[list[T]]]:
    """Yield results of chunks from a pool; return the unfinished chunks if a process dies."""
    # Read before the processes start: none starts if there is nothing to do.
    first = next(coming, None)
    if first is None:
        return []
    context = multiprocessing.get_context("spawn")
    child_end, parent_end = context.Pipe(duplex=False)
    under_way: deque[tuple[list[T], Future[list[R]]]] = deque()
    unsent: list[list[T]] = []
    pool = ProcessPoolExecutor(
        jobs, context, initializer=_begin, initargs=(child_end, function, LOG.getEffectiveLevel())
    )
    with child_end, parent_end:
        try:
            for chunk in chain([first], coming):
                try:
                    with _interrupts_wait():  # the first call starts the processes
                        under_way.append((chunk, pool.submit(_work_here, chunk)))
                except BrokenProcessPool:  # earlier chunks may be finished
                    unsent = [chunk]
                    break
                if len(under_way) == CHUNKS_AHEAD * jobs:
                    yield from under_way[0][1].result()
                    under_way.popleft()
            while under_way:
                yield from under_way[0][1].result()
                under_way.popleft()
        except BrokenProcessPool:
            pass
        except BaseException:
            parent_end.close()
            raise
        finally:
            with _interrupts_wait():  # starting processes need semaphores of this one
                pool.shutdown()
    return [*(chunk for chunk, _ in under_way), *unsent]


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Defer Ctrl-C to the end of the block, and block it in the processes that start there.

    Without that, they would print a traceback if Ctrl-C interrupted their imports.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Printable(logging.Formatter):
    """Escapes unprintable characters of messages."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(record.getMessage())


_process_function: Callable[[Any], Any]


def _begin(child_end: Connection, function: Callable[[Any], Any], level: int) -> None:
    """Set up a worker process, which logs to stderr; the parent handles Ctrl-C."""
    global _process_function
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _process_function = function
    echo = logging.StreamHandler()
    echo.setFormatter(_Printable())
    LOG.addHandler(echo)
    LOG.setLevel(level)
    Thread(target=_end_with_parent, args=(child_end,), daemon=True).start()


def _end_with_parent(child_end: Connection) -> None:
    """Wait until the other end of the pipe is closed, even by a kill of the parent."""
    try:
        child_end.recv_bytes()
    except (EOFError, OSError):
        os._exit(1)


def _work_here(chunk: list[Any]) -> list[Any]:
    return [_process_function(item) for item in chunk]


def _map_on_ray(
    function: Callable[[T], R], items: Iterable[T], on: str, lost: Lost[T, R]
) -> Iterator[R]:
    """Results in the order of the items, from the cluster to which this process is connected."""
    with connected(on) as ray:
        task = ray.remote(max_retries=MAX_TRIES, num_cpus=1)(_work)
        work = ray.put(function)

        def results(chunk: list[T], under_way: Any) -> Iterator[R]:
            """Results of a chunk; if its workers die, each item is tried in a separate task."""
            try:
                found: list[R] = result(ray, under_way)
            except deaths(ray):
                if len(chunk) == 1:
                    yield lost(chunk[0], KILLED)
                    return
                for item in chunk:
                    yield from results([item], task.remote(work, [item]))
                return
            yield from found

        cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
        under_way: deque[tuple[list[T], Any]] = deque()
        for chunk in _chunks(iter(items), cores):
            under_way.append((chunk, task.remote(work, chunk)))
            if len(under_way) == CHUNKS_AHEAD * cores:
                yield from results(*under_way.popleft())
        while under_way:
            yield from results(*under_way.popleft())


def _work(function: Callable[[T], R], chunk: list[T]) -> list[R]:
    return [function(item) for item in chunk]

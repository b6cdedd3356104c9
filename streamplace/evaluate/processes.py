"""Parallel map over items on processes of this machine, in order.

An item is lost if its worker process dies twice, the second time on this item alone.
"""

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import chain
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any, TypeVar

from streamplace.errors import SettingError
from streamplace.evaluate.work import (
    AHEAD,
    KILLED,
    FinishedWork,
    Lost,
    Work,
    chunks,
    log_level,
    relog,
)

T = TypeVar("T")
R = TypeVar("R")


def available_cores() -> int:
    """Number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def map_on_processes(
    function: Callable[[T], R], items: Iterator[T], jobs: int, lost: Lost[T, R] | None = None
) -> Iterator[R]:
    """Results in the order of the items.

    When a process dies, the items in progress are repeated one at a time, until the item that
    kills its process is found; ``lost`` returns its result, without which it is an error.
    """
    lost = lost or _refuse
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
    """Yield results of chunks from a pool; return the unfinished chunks if a process dies."""
    context = multiprocessing.get_context("spawn")
    child_end, parent_end = context.Pipe(duplex=False)
    work = Work(function, log_level())
    under_way: deque[tuple[list[T], Future[FinishedWork[R]]]] = deque()
    with (
        child_end,
        parent_end,
        ProcessPoolExecutor(jobs, context, initializer=_begin, initargs=(child_end, work)) as pool,
    ):
        try:
            for chunk in coming:
                try:
                    with _interrupts_wait():  # the first call starts the processes
                        under_way.append((chunk, pool.submit(_work, chunk)))
                except BrokenProcessPool:
                    return [*(earlier for earlier, _ in under_way), chunk]
                if len(under_way) == AHEAD * jobs:
                    yield from relog(under_way[0][1].result())
                    under_way.popleft()
            while under_way:
                yield from relog(under_way[0][1].result())
                under_way.popleft()
        except BrokenProcessPool:
            return [chunk for chunk, _ in under_way]
        except BaseException:
            parent_end.close()
            raise
    return []


def _refuse(item: Any, why: str) -> Any:
    raise SettingError(
        "a worker process was killed, perhaps because memory ran out; run the command again with "
        "fewer --jobs (saved results are not computed again)"
    )


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Let Ctrl-C wait for the end of the block, and never meet the processes that it starts.

    They inherit what is blocked; else they would print where Ctrl-C met their imports.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_process_work: Work[Any, Any]


def _begin(child_end: Connection, work: Work[Any, Any]) -> None:
    """Set up a worker process; the parent handles Ctrl-C."""
    global _process_work
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _process_work = work
    Thread(target=_end_with_parent, args=(child_end,), daemon=True).start()


def _end_with_parent(child_end: Connection) -> None:
    """Wait until the other end of the pipe is closed, even by a kill of the parent."""
    try:
        child_end.recv_bytes()
    except (EOFError, OSError):
        os._exit(1)


def _work(chunk: list[Any]) -> FinishedWork[Any]:
    return _process_work(chunk)

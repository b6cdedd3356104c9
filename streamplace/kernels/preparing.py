"""Compile the kernels of all rehearsals, in one process per core, with a progress bar."""

import logging
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Final

from streamsim.kernel_cache import is_noted, note, turn_among_processes

from streamplace import __version__
from streamplace.cores import available_cores
from streamplace.kernels.rehearsals import DONE, REHEARSALS
from streamplace.model.messages import counted
from streamplace.model.report import duration
from streamplace.progress import progress, set_aside

LOG = logging.getLogger(__name__)
KERNELS: Final = 400
"""About as many kernels are compiled."""
PREPARED: Final = f"prepared-{__version__}"
Child = subprocess.Popen[str]


def prepare_kernels() -> bool:
    """Compile what common commands need, unless this was done; return whether kernels are kept.

    Where they can be kept nowhere, none is compiled. A process waits for another one that does the
    same. One that ends too early leaves kernels, which the next one does not compile again, and
    nothing else.
    """
    if is_noted(PREPARED):
        return True
    tell = partial(LOG.warning, "another process compiles the kernels; waiting for it …")
    turn = turn_among_processes(PREPARED, Path(__file__).parent, tell)
    if turn is None:
        return False
    with turn:
        if not is_noted(PREPARED):
            _rehearse()
            note(PREPARED)
    return True


def _rehearse() -> None:
    """Announce the rehearsals, and carry them out in child processes."""
    jobs = min(available_cores(), len(REHEARSALS))
    effort = [rehearsal.seconds for rehearsal in REHEARSALS.values()]
    LOG.warning(
        "compiling kernels (once per installation; about %s of computing on %s) …",
        duration(max(sum(effort) / jobs, *effort)),
        counted(jobs, "core"),
    )
    to_do = deque(REHEARSALS)
    children = [_child() for _ in range(jobs)]
    try:
        _feed_all(children, to_do)
    finally:
        for child in children:
            with suppress(OSError):
                child.communicate()


def _child() -> Child:
    """Start a process, which finds modules where this one does but not in the current folder."""
    command = [sys.executable, "-P", "-m", "streamplace.kernels.rehearsals"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _feed_all(children: Sequence[Child], to_do: deque[str]) -> None:
    """Let the children share the rehearsals, and show how many kernels they have compiled."""
    with (
        set_aside(),
        progress("compiling", KERNELS) as tick,
        ThreadPoolExecutor(len(children)) as threads,
    ):
        lock = Lock()

        def count() -> None:
            with lock:
                tick()

        try:
            for fed in [threads.submit(_feed, child, to_do, count) for child in children]:
                fed.result()
        except BaseException:
            to_do.clear()
            for child in children:
                child.kill()
            raise


def _feed(child: Child, to_do: deque[str], count: Callable[[], None]) -> None:
    """Give a child one rehearsal after the other until none is left, or until it dies."""
    assert child.stdin is not None
    assert child.stdout is not None
    while True:
        try:
            name = to_do.popleft()
        except IndexError:
            return
        with suppress(OSError):  # it has died; its output ends, too
            print(name, file=child.stdin, flush=True)
        for line in child.stdout:
            if line.strip() == DONE:
                break
            count()
        else:
            LOG.warning("kernels of %s are compiled when they are needed", name)
            return

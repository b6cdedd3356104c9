"""Turns of processes to compile a kernel: the others wait, and load what the first has compiled.

A turn is a lock of the operating system on one byte of a file, so it ends with its process, however
that ends. A process that is stopped, not ended, delays the others by `LONGEST` seconds only. Where
files cannot be locked, all processes compile.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

LONGEST: Final = 120.0
"""Seconds for which a process waits for another one."""
POLL: Final = 0.02
NAME: Final = "kernels.lock"


def turn(
    folder: Path, name: str, tell: Callable[[], None] = lambda: None
) -> AbstractContextManager[None]:
    """Return the turn among the processes that use the same folder and name, to be waited for.

    Parameters
    ----------
    tell
        Called if another process has the turn.

    Raises
    ------
    OSError
        When the file in the folder cannot be written.
    """
    byte = int.from_bytes(sha256(name.encode()).digest()[:7], "big")
    return _taken(_opened(folder), byte, tell)


@contextmanager
def _taken(file: int, byte: int, tell: Callable[[], None]) -> Iterator[None]:
    _wait(file, byte, tell)
    try:
        yield
    finally:
        _unlock(file, byte)


@cache
def _opened(folder: Path) -> int:
    """Open the file of a folder for as long as the process runs: closing it ends all its turns."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    return os.open(folder / NAME, flags, 0o644)


def _wait(file: int, byte: int, tell: Callable[[], None]) -> None:
    try:
        from fcntl import LOCK_EX, LOCK_NB, lockf
    except ImportError:  # Windows
        return
    until = None
    while until is None or time.monotonic() < until:
        try:
            lockf(file, LOCK_EX | LOCK_NB, 1, byte)
        except (BlockingIOError, PermissionError):
            if until is None:
                until = time.monotonic() + LONGEST
                tell()
            time.sleep(POLL)
        except OSError:  # a file system without locks
            return
        else:
            return


def _unlock(file: int, byte: int) -> None:
    with suppress(ImportError, OSError):
        from fcntl import LOCK_UN, lockf

        lockf(file, LOCK_UN, 1, byte)

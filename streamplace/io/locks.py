"""Locks on open files: held by one process at a time, and gone when it ends, however it ends."""

import errno
from contextlib import suppress
from typing import IO, Any

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


def lock_at_once(file: IO[Any] | int) -> None:
    """Lock an open file, or folder by its descriptor.

    Raises
    ------
    BlockingIOError
        If another process has it locked.
    OSError
        Where there are no locks, as on some network file systems.
    """
    if fcntl is None:
        raise OSError(errno.ENOTSUP, "no locks")
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def wait_for_lock(file: IO[Any]) -> None:
    """Lock an open file as soon as no other process has it locked, if there are locks at all."""
    if fcntl is not None:
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)

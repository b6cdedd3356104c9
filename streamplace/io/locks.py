"""Locks on open files, each held by one process and released when it ends."""

import errno
from contextlib import suppress
from typing import IO, Any

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


def lock_at_once(file: IO[Any] | int) -> None:
    """Lock an open file, or a folder by its descriptor; BlockingIOError if another process has it.

    Other OSErrors mean that locks are not supported, as on some network file systems.
    """
    if fcntl is None:
        raise OSError(errno.ENOTSUP, "no locks")
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def wait_for_lock(file: IO[Any]) -> None:
    """Lock an open file as soon as possible; do nothing where locks are not supported."""
    if fcntl is not None:
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)

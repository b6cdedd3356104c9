"""Line files that one process appends to: locked, and repaired after an interrupted write."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import FileIO
from mmap import ACCESS_READ, mmap
from pathlib import Path

from streamplace.errors import FormatError
from streamplace.io.files import lock_at_once, spot

WAIT = "wait until it has ended, or choose another folder"


@contextmanager
def claim(path: Path) -> Iterator[FileIO]:
    """Open a file to append lines, and lock it against other processes."""
    with open_to_append(path) as file:
        _lock(file, path, f"adding results to it; {WAIT}")
        yield file


@contextmanager
def claim_folder(folder: Path, doing: str = f"training into it; {WAIT}") -> Iterator[None]:
    """Lock a folder against other processes; ``doing`` tells what one that has it does."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:  # it cannot be locked
        yield
        return
    try:
        _lock(descriptor, folder, doing)
        yield
    finally:
        os.close(descriptor)


def _lock(file: FileIO | int, path: Path, doing: str) -> None:
    try:
        lock_at_once(file)
    except BlockingIOError:
        raise FormatError(f"{spot(path)}: another process is {doing}") from None
    except OSError:
        pass  # no locks here


def open_to_append(path: Path) -> FileIO:
    """Open a file to append to."""
    try:
        return path.open("a+b", buffering=0)
    except OSError as error:
        raise unwritable(path, error) from None


def append_lines(file: FileIO, lines: bytes, path: Path) -> None:
    """Write lines to the end of an open file."""
    left = lines
    try:
        while left:
            left = left[file.write(left) :]
    except OSError as error:
        raise unwritable(path, error) from None


def repair(file: FileIO, path: Path, start: bytes, is_ours: Callable[[bytes], bool]) -> None:
    """Remove an incomplete last line from a file of results; refuse any other file.

    A file has results if its first line ``is_ours``. If no line is complete, its beginning must
    agree with ``start``, with which all lines begin.
    """
    try:
        size = file.seek(0, os.SEEK_END)
        if not size:
            return
        with mmap(file.fileno(), 0, access=ACCESS_READ) as content:
            whole = content.rfind(b"\n") + 1
            first = content[: content.find(b"\n") + 1 if whole else len(start)]
        if whole == size:
            return
        if not (is_ours(first) if whole else start.startswith(first)):
            raise FormatError(f"{spot(path)}: does not contain such results; name another file")
        file.truncate(whole)
    except OSError as error:
        raise unwritable(path, error) from None


def unwritable(path: Path, error: OSError) -> FormatError:
    """Build the error for a file that cannot be written."""
    return FormatError(f"{spot(path)}: cannot be written: {error.strerror}")

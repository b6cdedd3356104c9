"""Standard streams that fail with one line, or silently, if they are closed, full or not read."""

import os
import sys
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import Any, TextIO

from streamplace.errors import FormatError


class ReaderGone(Exception):
    """The reader of stdout has ended, as in a pipe to ``head``."""


class _Stdout(FileIO):
    """Raises exceptions other than OSError, which click and rich would handle themselves."""

    def write(self, data: Any) -> int:
        """Write some bytes."""
        try:
            return super().write(data)
        except BrokenPipeError:
            raise ReaderGone from None
        except OSError as error:
            raise FormatError(
                f"cannot write to stdout: {error.strerror}; redirect it elsewhere"
            ) from None


class _Stderr(FileIO):
    """Ignores errors, as they cannot be reported."""

    def write(self, data: Any) -> int:
        """Write some bytes."""
        try:
            return super().write(data)
        except OSError:
            return len(data)


def guard() -> None:
    """Replace stdout and stderr by streams with defined errors."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number, which is this one
    if sys.stdout is sys.__stdout__:
        sys.stdout = _guarded(sys.stdout, _Stdout(1, "wb", closefd=False))
    if sys.stderr is sys.__stderr__:
        sys.stderr = _guarded(sys.stderr, _Stderr(2, "wb", closefd=False))


def finish() -> None:
    """Flush stdout, as the interpreter would report an error at its end."""
    try:
        sys.stdout.flush()
    except (FormatError, ReaderGone):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)


def _guarded(stream: TextIO | None, raw: FileIO) -> TextIO:
    encoding, errors = "utf-8", "replace"
    if stream is not None:
        stream.flush()
        encoding, errors = stream.encoding, stream.errors or errors
    at_once = raw.isatty() or raw.fileno() == 2
    return TextIOWrapper(BufferedWriter(raw), encoding, errors, line_buffering=at_once)

"""The process: its memory, its working folder, its signals, and streams with defined errors."""

import errno
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedWriter, FileIO, TextIOWrapper
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

from streamplace.errors import FormatError, SettingError

LEAST_BYTES = 512 * 2**20
"""Least address space to load libraries; with less, some end the process without an error."""
MISSING = ("failed to map segment", "cannot allocate memory")


def check_limits() -> None:
    """Raise SettingError if no command could work."""
    try:
        Path.cwd()
    except OSError as error:
        raise SettingError(
            f"cannot use the working folder: {error.strerror}; change to another folder"
        ) from None
    limit = _address_space()
    if limit is not None and limit < LEAST_BYTES:
        raise SettingError(
            f"memory is limited to {limit // 2**20} MiB (ulimit -v); allow at least "
            f"{LEAST_BYTES // 2**20} MiB"
        )


def lacks_memory(error: BaseException) -> bool:
    """Whether an error means that memory is used up, in any wording."""
    if isinstance(error, MemoryError):
        return True
    if not isinstance(error, OSError | ImportError | RuntimeError):
        return False
    no_memory = getattr(error, "errno", None) == errno.ENOMEM
    return no_memory or any(words in str(error).lower() for words in MISSING)


def _address_space() -> int | None:
    """Bytes that the process may map; None if unlimited."""
    if sys.platform == "win32":
        return None
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft


@contextmanager
def interruptible() -> Iterator[None]:
    """Let SIGTERM, and the end of the terminal, interrupt the block as Ctrl-C does.

    Only the main thread receives signals. A terminal that nohup has detached is left as it is.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers: dict[int, Callable[[int, FrameType | None], Any]]
    handlers = dict.fromkeys((signal.SIGINT, signal.SIGTERM), signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        handlers[signal.SIGHUP] = hung_up
    before = {one: signal.signal(one, handler) for one, handler in handlers.items()}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler or signal.SIG_DFL)


def hung_up(number: int, frame: FrameType | None) -> None:
    """Handle the end of the terminal as Ctrl-C, once: shell and kernel both send the signal."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    raise KeyboardInterrupt


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

"""The process: its signals, its standard streams, and its exit status."""

import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import click

from streamplace.cli._printing import say
from streamplace.errors import StreamplaceError
from streamplace.model.message_text import quoted

SOME_FAILED, INVALID, INTERRUPTED, READER_GONE = 1, 2, 130, 141
"""Exit statuses: graphs failed, invalid input or too little memory, Ctrl-C, closed pipe."""
_LONG = re.compile(r"'[^']{81,}'|\S{81,}")


@contextmanager
def interruptible() -> Iterator[None]:
    """Let SIGTERM, and the end of the terminal, interrupt the block as Ctrl-C does.

    Only the main thread receives signals. Under nohup, the end of the terminal stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers: dict[int, Callable[[int, FrameType | None], Any]]
    handlers = dict.fromkeys((signal.SIGINT, signal.SIGTERM), signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        handlers[signal.SIGHUP] = hung_up
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)


def hung_up(number: int, frame: FrameType | None) -> None:
    """Interrupt at the end of the terminal, once: shell and kernel both send the signal."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    raise KeyboardInterrupt


def open_streams() -> None:
    """Replace a missing stdout or stderr: some services start without them."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115


def finish() -> None:
    """Flush stdout; drop text that cannot be written, or the interpreter prints an error."""
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)


def failed(error: BaseException) -> int:
    """Print an error as one line, and return its exit status; raise unexpected errors again."""
    if isinstance(error, StreamplaceError):
        return _status(str(error))
    if isinstance(error, click.ClickException):
        return _status(_usage(error))
    if isinstance(error, BrokenPipeError | SystemExit):
        return READER_GONE  # click and rich exit if nobody reads stdout
    if any(isinstance(e, KeyboardInterrupt | click.Abort) for e in _chain(error)):
        return _status("interrupted", INTERRUPTED)
    if any(isinstance(e, MemoryError) for e in _chain(error)):
        return _status("not enough memory for this input")
    if isinstance(error, OSError):  # of stdout; readers and writers of files have FormatError
        return _status(": ".join(str(e) for e in (error.filename, error.strerror or error) if e))
    raise error


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and its causes: libraries wrap Ctrl-C and a lack of memory in their errors."""
    visited: set[int] = set()
    while error is not None and id(error) not in visited:
        yield error
        visited.add(id(error))
        error = error.__cause__ or error.__context__


def _usage(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    if isinstance(error, click.NoSuchOption) and context is not None:
        from streamplace.cli._command import as_key

        model = getattr(context.command, "settings", None)
        if model is not None and (key := as_key(model, error.option_name)) is not None:
            return f"{error.option_name} is a key of settings files: {key}"
    hint = f" (see {context.command_path} --help)" if context is not None else ""
    message = _LONG.sub(lambda match: quoted(match[0].strip("'")), error.format_message())
    return f"{message.rstrip('.')}{hint}"


def _status(message: str, status: int = INVALID) -> int:
    say(f"error: {' '.join(message.split())}")
    return status

"""The process: its signals, and its standard streams."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


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
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)


def hung_up(number: int, frame: FrameType | None) -> None:
    """Handle the end of the terminal as Ctrl-C, once: shell and kernel both send the signal."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    raise KeyboardInterrupt


def open_streams() -> None:
    """Replace a stdout or stderr with which the process was not started, as some services."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115


def finish() -> None:
    """Flush stdout, and drop what cannot be written: the interpreter would print an error."""
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)

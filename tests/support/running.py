"""Processes of this machine, as Linux tells of them, what they have written, and when they end."""

import os
import signal
import time
from contextlib import contextmanager
from pathlib import Path


def is_running(process):
    """Whether a process runs; one that has ended and that nobody waited for does not."""
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):  # it may end while its file is read
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def assert_end(*processes):
    """Check that processes end within a minute; those that do not are killed."""
    deadline = time.monotonic() + 60
    while any(map(is_running, processes)) and time.monotonic() < deadline:
        time.sleep(0.02)
    left = [process for process in processes if is_running(process)]
    for process in left:
        os.kill(process, signal.SIGKILL)
    assert not left


def lines_in(path):
    """How many lines a file has by now."""
    return path.read_bytes().count(b"\n") if path.exists() else 0


class Late(Exception):
    """A call that was ended."""


@contextmanager
def ended_after(seconds):
    """Raise `Late` by a signal when the block takes longer."""

    def end(*_):
        raise Late

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:  # the timer rings once, perhaps while it is turned off
        signal.signal(signal.SIGALRM, before)

"""Processes of this machine, as Linux tells of them, and what they have written so far."""

import os
import signal
import time
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

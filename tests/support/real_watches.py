"""The command ``flink watch`` beside a real cluster, without the minutes until a job is warm."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

_COLD = """
import dataclasses
from streamplace.cli._watch_request import WatchRequest
usual = WatchRequest._engine
WatchRequest._engine = lambda *given: dataclasses.replace(
    usual(*given), accept_cold=True, patience=30.0
)
from streamplace.__main__ import main
main()
"""


def command(*arguments: str) -> list[str]:
    """Command line of a watch that accepts a job that is not warm."""
    return [sys.executable, "-c", _COLD, "flink", "watch", *arguments]


@contextmanager
def watching(line: Sequence[str], told: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a watch while the block does; what it tells goes to a file."""
    with told.open("wb") as file:
        process = subprocess.Popen(line, stderr=file, stdout=file)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def await_words(told: Path, words: str, meanwhile: Callable[[], None] = lambda: None) -> None:
    """Wait until a watch has told something."""
    deadline = time.monotonic() + 240
    while words not in told.read_text():
        assert time.monotonic() < deadline, told.read_text()
        meanwhile()
        time.sleep(0.02)

"""Commands within limits of time and memory, on one core; for Linux."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import IO, Any

from streamplace.errors import SettingError

PROGRAM = Path(__file__).with_name("limited_program.py")
ELAPSED_FACTOR = 10
"""Elapsed seconds allowed per second of processor time, for machines with other work."""
THREADS = ("OMP", "OPENBLAS", "MKL", "NUMBA")
MEMORY = 4 * 2**30
"""Usual memory of a run or a check, in bytes."""
MAX_PRINTED = 4096
"""Bytes of what a program prints that are read."""


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Limits of each process of a command."""

    # Processor time, to the next second. The elapsed time of the command may be ten times as long.
    seconds: float
    memory: int  # bytes of the address space

    def __post_init__(self) -> None:
        if not 0 < self.seconds <= 1e6:
            raise SettingError(
                f"the time limit is {self.seconds:g} s; it must be above 0 and at most 1e6"
            )
        if self.memory < 2**20:
            raise SettingError("the memory limit is below 1 MiB; allow more")


@dataclass(frozen=True, slots=True)
class ResourceUsage:
    """Exit of a command, and resources that it used, with the processes that it waited for."""

    status: int  # exit status, negative if a signal ended the command
    timed_out: bool
    # Processor time, and elapsed time.
    seconds: float
    elapsed: float
    memory: int  # peak memory of its largest process, in bytes


def confined(
    command: Sequence[str],
    limits: RunLimits,
    *,
    folder: Path,
    stdout: IO[Any] | int = subprocess.DEVNULL,
    stderr: IO[Any] | int = subprocess.DEVNULL,
) -> ResourceUsage:
    """Run a command in a folder within limits, on one core; its process group ends with it.

    >>> import tempfile
    >>> limits = RunLimits(seconds=10, memory=2**30)
    >>> confined(["sleep", "0"], limits, folder=Path(tempfile.gettempdir())).status
    0
    """
    if not sys.platform.startswith("linux"):
        raise SettingError("limits of time and memory need Linux; run this command there")
    elapsed = ELAPSED_FACTOR * limits.seconds
    reader, writer = os.pipe()
    numbers = (writer, ceil(limits.seconds), ceil(elapsed), limits.memory, core())
    words = [sys.executable, "-E", "-s", "-S", str(PROGRAM), *map(str, numbers), *command]
    with os.fdopen(reader) as report:
        try:
            process = subprocess.Popen(
                words, cwd=folder, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr,
                env=one_thread(), pass_fds=[writer], start_new_session=True,
            )  # fmt: skip
        finally:
            os.close(writer)
        with process:
            try:
                usage = json.loads(report.read())
            except BaseException:
                process.terminate()
                raise
    is_late = usage["seconds"] > limits.seconds or usage["elapsed"] >= elapsed
    return ResourceUsage(timed_out=is_late or usage["status"] == -signal.SIGXCPU, **usage)


def core() -> int:
    """Core for measurements: the last one that this process may use."""
    return max(os.sched_getaffinity(0))


def one_thread() -> dict[str, str]:
    """Environment of this process, in which numeric libraries use one thread."""
    return {**os.environ, **{f"{name}_NUM_THREADS": "1" for name in THREADS}}

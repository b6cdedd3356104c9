"""Commands within limits of time and memory, which include all processes that they start."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from streamplace.errors import SettingError

SUPERVISOR = Path(__file__).with_name("supervisor.py")
PATIENCE = 10
"""Elapsed seconds allowed per second of processor time, for machines with other work."""
THREADS = ("OMP", "OPENBLAS", "MKL", "NUMBA")


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Limits of a command, together with all processes that it starts."""

    # Processor time. The elapsed time may be ten times as long.
    seconds: float
    memory: int  # bytes of memory, and of the address space of each process

    def __post_init__(self) -> None:
        if not 0 < self.seconds <= 1e6:
            raise SettingError(
                f"the time limit is {self.seconds:g} s; it must be above 0 and at most 1e6"
            )
        if self.memory < 2**20:
            raise SettingError("the memory limit is below 1 MiB; allow more")


@dataclass(frozen=True, slots=True)
class ResourceUsage:
    """Exit of a command, and resources that it used."""

    status: int  # exit status, negative if a signal ended the command
    reason: str  # limit that was exceeded (``time``, ``memory``), ``stopped``, or empty
    # Processor time of all its processes, and elapsed time.
    seconds: float
    elapsed: float
    memory: int  # peak memory of all its processes together, in bytes


class ConfinedProcess:
    """A command within limits on one core; `end` ends it with all processes that it started."""

    def __init__(
        self,
        command: Sequence[str],
        limits: RunLimits,
        *,
        folder: Path,
        stdin: IO[Any] | int = subprocess.DEVNULL,
        stdout: IO[Any] | int = subprocess.DEVNULL,
        stderr: IO[Any] | int = subprocess.DEVNULL,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        if not sys.platform.startswith("linux"):
            raise SettingError("limits of time and memory need Linux; run this command there")
        self._report, report = os.pipe()
        words = (
            *(str(report), str(limits.seconds), str(PATIENCE * limits.seconds)),
            *(str(limits.memory), str(core())),
        )
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-E", "-s", "-S", str(SUPERVISOR), *words, *command],
                cwd=folder, stdin=stdin, stdout=stdout, stderr=stderr, pass_fds=[report],
                env=one_thread(os.environ if environment is None else environment),
            )  # fmt: skip
        finally:
            os.close(report)

    def __enter__(self) -> "ConfinedProcess":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.returncode is None:
            self.process.terminate()
            self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()
        os.close(self._report)

    def end(self) -> ResourceUsage:
        """End the command if it runs, and return its usage."""
        self.process.terminate()
        return self.wait()

    def wait(self) -> ResourceUsage:
        """Wait for the end of the command, and return its usage."""
        content = b""
        while part := os.read(self._report, 4096):
            content += part
        self.process.wait()
        return ResourceUsage(**json.loads(content))


def confined(
    command: Sequence[str],
    limits: RunLimits,
    *,
    folder: Path,
    stdout: IO[Any] | int = subprocess.DEVNULL,
    stderr: IO[Any] | int = subprocess.DEVNULL,
) -> ResourceUsage:
    """Run a command in a folder within limits, on one core.

    >>> import tempfile
    >>> limits = RunLimits(seconds=10, memory=2**30)
    >>> confined(["sleep", "0"], limits, folder=Path(tempfile.gettempdir())).status
    0
    """
    with ConfinedProcess(command, limits, folder=folder, stdout=stdout, stderr=stderr) as process:
        return process.wait()


def core() -> int:
    """Core for measurements: the last one that this process may use."""
    return max(os.sched_getaffinity(0))


def one_thread(environment: Mapping[str, str]) -> dict[str, str]:
    """Environment in which numeric libraries use one thread."""
    return {**environment, **{f"{name}_NUM_THREADS": "1" for name in THREADS}}

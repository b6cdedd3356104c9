"""Sample stacks of the threads of Java processes on this machine with Java's Flight Recorder.

The recorder is part of Java, and ``jcmd`` starts it in a running process. Execution samples are the
only enabled event: at most five threads are sampled, 100 times per second. A recording ends by
itself if it is not stopped. Some MB of memory and two idle threads remain until the process ends.

Processes are sampled only if they were started with `EXACT`. Without it, Java reports positions in
compiled code at safepoints only, and a sample in a loop counts for the inlined call that follows.
"""

import re
import secrets
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from streamplace.engines.flink.cpu.stack_samples import StackCounts, read_stacks
from streamplace.engines.flink.cpu.threads import PATIENCE_SECONDS, local_task_managers

SECONDS = 30
"""Duration of a recording, after which sampling ends."""
DEPTH = 64
"""Default number of stack frames that the recorder stores."""
_EVENT = "jdk.ExecutionSample"
_SETTINGS = ("settings=none", f"+{_EVENT}#enabled=true", f"+{_EVENT}#period=10ms", "disk=false")
_STARTED = "Started recording"
EXACT = ("-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints")
"""Options of Java that make a sample name the method in which it was taken."""
RECORDER_THREAD = "JFR Recorder Thread"
"""Thread of a process in which the recorder was started; its first start discards compiled code."""
_IS_EXACT = re.compile(r"\bDebugNonSafepoints\s*=\s*true\b")

Stacks = Mapping[str, Mapping[int, StackCounts]]
"""TaskManager → number of a thread → counts of its stacks."""


class _Recording(NamedTuple):
    """A recording of a process, which has the file system of its container."""

    device: str
    process: int
    name: str
    root: str

    @property
    def target(self) -> str:
        """Path of the recording, as the process sees it."""
        return f"/tmp/{self.name}.jfr"

    @property
    def path(self) -> Path:
        """Path of the recording, as this process sees it, even after the process has ended."""
        return Path(self.root + self.target)

    def command(self, *words: str) -> list[str]:
        """Command line that sends a command to the process."""
        return ["jcmd", str(self.process), *words, f"name={self.name}"]


@contextmanager
def sampled_stacks(processes: Mapping[str, int]) -> Iterator[Callable[[], Stacks]]:
    """Sample stacks while the block runs; the function that it gets ends sampling and returns them.

    TaskManagers whose stacks cannot be sampled are left out.

    ``processes``: TaskManager → process.
    """
    recordings = _started(processes)
    try:
        yield lambda: _stopped(recordings)
    finally:
        _answers(one.command("JFR.stop") for one in recordings)
        for one in recordings:
            with suppress(OSError):
                one.path.unlink(missing_ok=True)


def why_unsampled(processes: Mapping[str, int]) -> str:
    """Instruction that makes stacks of TaskManagers available; empty if they are.

    ``processes``: TaskManager → process, for those on this machine.
    """
    if not processes:
        return "profile on the machines of the TaskManagers"
    if missing := [tool for tool in ("jcmd", "jfr") if shutil.which(tool) is None]:
        return f"install a JDK here, of which {' and '.join(missing)} are missing"
    for process in processes.values():
        with suppress(OSError):  # the process has ended, or belongs to another user
            if b"-XX:+DebugNonSafepoints" in Path(f"/proc/{process}/cmdline").read_bytes():
                return ""
    return f"start TaskManagers with {' '.join(EXACT)}"


def _started(processes: Mapping[str, int]) -> list[_Recording]:
    if not processes or shutil.which("jcmd") is None or shutil.which("jfr") is None:
        return []
    live = set(local_task_managers())
    candidates = [(device, process) for device, process in processes.items() if process in live]
    flags = _answers(["jcmd", str(process), "VM.flags", "-all"] for _, process in candidates)
    asked = [
        _Recording(device, process, f"streamplace-{secrets.token_hex(8)}", _root(process))
        for (device, process), text in zip(candidates, flags, strict=True)
        if _IS_EXACT.search(text)
    ]
    answers = _answers(
        one.command("JFR.start", *_SETTINGS, f"duration={SECONDS}s", f"filename={one.target}")
        for one in asked
    )
    return [one for one, answer in zip(asked, answers, strict=True) if _STARTED in answer]


def _root(process: int) -> str:
    """Root of the file system of a process; empty if it is the same as that of this process."""
    with suppress(OSError):  # the process has ended
        own, other = (Path("/proc", one, "ns/mnt").readlink() for one in ("self", str(process)))
        if own == other and Path("/proc", str(process), "root").readlink() == Path("/"):
            return ""
    return f"/proc/{process}/root"


def _stopped(recordings: list[_Recording]) -> Stacks:
    """End recordings and read them; those that have ended by themselves already have a file."""
    ended = [*recordings]
    _answers(one.command("JFR.stop") for one in ended)
    recordings.clear()
    stacks = {one.device: _read(one.path) for one in ended}
    return {device: threads for device, threads in stacks.items() if threads}


def _read(path: Path) -> dict[int, StackCounts]:
    """Read the samples in a file and delete it."""
    command = ["jfr", "print", "--events", _EVENT, "--stack-depth", str(DEPTH), str(path)]
    (text,) = _answers([command])
    with suppress(OSError):
        path.unlink(missing_ok=True)
    return read_stacks(text.splitlines())


def _answers(commands: Iterable[Sequence[str]]) -> list[str]:
    """Output of commands that run in parallel; empty for those that fail."""
    running = [
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        for command in commands
    ]
    return [_answer(process) for process in running]


def _answer(process: "subprocess.Popen[bytes]") -> str:
    try:
        output, _ = process.communicate(timeout=PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return ""
    return output.decode(errors="replace") if process.returncode == 0 else ""

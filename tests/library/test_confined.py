"""Limits hold for a command and for the processes of its group."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from running import assert_end

from streamplace.errors import SettingError
from streamplace.library.confined import ResourceUsage, RunLimits, confined, core

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits need Linux")
SPIN = "while True: pass"


def run(code: str, *words: str, seconds: float = 5.0, memory: int = 2**30) -> ResourceUsage:
    command = [sys.executable, "-S", "-c", code, *words]
    return confined(command, RunLimits(seconds, memory), folder=Path(tempfile.gettempdir()))


def test_a_command_that_ends_is_reported() -> None:
    usage = run("raise SystemExit(3)")
    assert (usage.status, usage.timed_out) == (3, False)
    assert 0 < usage.seconds < 5
    assert 2**20 < usage.memory < 2**28


def test_a_command_that_does_not_exist_fails() -> None:
    usage = confined(["no-such-program"], RunLimits(5, 2**30), folder=Path("/"))
    assert (usage.status, usage.timed_out) == (127, False)


@pytest.mark.parametrize("caught", ["", "import signal; signal.signal(24, lambda *_: None)\n"])
def test_processor_time_is_limited(caught: str) -> None:
    """Also if the program ignores that its time is over."""
    usage = run(caught + SPIN, seconds=0.3)
    assert usage.timed_out
    assert 0.3 <= usage.seconds < 3


def test_a_command_that_sleeps_is_ended_as_well() -> None:
    usage = run("import time; time.sleep(600)", seconds=0.05)
    assert usage.timed_out
    assert usage.seconds < 0.5


def test_memory_is_limited() -> None:
    usage = run("bytearray(2**29)", memory=2**28)
    assert usage.status == 1  # a MemoryError
    assert usage.memory <= 2**28


def test_processes_of_a_command_end_with_it(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    code = (
        "import os, sys, time\n"
        "if child := os.fork():\n"
        "    open(sys.argv[1], 'w').write(str(child))\n"
        "else:\n"
        f"    {SPIN}"
    )
    usage = run(code, str(file))
    assert (usage.status, usage.timed_out) == (0, False)
    assert_end(int(file.read_text()))


def test_a_command_ends_with_its_caller(tmp_path: Path) -> None:
    """Even if that is killed."""
    file = tmp_path / "pid"
    command = f"import os; open({str(file)!r}, 'w').write(str(os.getpid()))\n{SPIN}"
    code = (
        "import sys; from pathlib import Path\n"
        "from streamplace.library.confined import RunLimits, confined\n"
        f"command = [sys.executable, '-S', '-c', {command!r}]\n"
        "confined(command, RunLimits(60, 2**30), folder=Path('/'))\n"
    )
    caller = subprocess.Popen([sys.executable, "-c", code])
    while not (file.exists() and file.read_text()):
        time.sleep(0.01)
    caller.kill()
    caller.wait()
    assert_end(int(file.read_text()))


def test_one_core_and_one_thread() -> None:
    code = (
        "import os, sys\n"
        f"sys.exit(os.sched_getaffinity(0) != {{{core()}}} or os.environ['OMP_NUM_THREADS'] != '1')"
    )
    assert run(code).status == 0


@pytest.mark.parametrize(("seconds", "memory"), [(0.0, 2**30), (1.0, 1000), (float("nan"), 2**30)])
def test_limits_are_checked(seconds: float, memory: int) -> None:
    with pytest.raises(SettingError):
        RunLimits(seconds, memory)

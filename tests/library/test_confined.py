"""Limits hold for a command and for everything that it starts."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from running import is_running

from streamplace.errors import SettingError
from streamplace.library.confined import ConfinedProcess, ResourceUsage, RunLimits, confined, core

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits need Linux")
SPIN = "while True: pass"
DAEMON = """
import os, sys, time
for _ in range(2):
    if os.fork():
        os._exit(0)
    os.setsid()
open(sys.argv[1], "w").write(str(os.getpid()))
{}
"""


def run(code: str, *words: str, seconds: float = 5.0, memory: int = 2**30) -> ResourceUsage:
    command = [sys.executable, "-S", "-c", code, *words]
    return confined(command, RunLimits(seconds, memory), folder=Path(tempfile.gettempdir()))


def test_a_command_that_ends_is_reported() -> None:
    usage = run("raise SystemExit(3)")
    assert (usage.status, usage.reason) == (3, "")
    assert 0 < usage.seconds < 5
    assert usage.memory > 2**20


def test_a_command_that_does_not_exist_fails() -> None:
    usage = confined(["no-such-program"], RunLimits(5, 2**30), folder=Path("/"))
    assert (usage.status, usage.reason) == (127, "")


def test_processor_time_is_limited() -> None:
    usage = run(SPIN, seconds=0.3)
    assert usage.reason == "time"
    assert 0.3 <= usage.seconds < 2


def test_the_time_of_all_processes_counts_together() -> None:
    """Four processes that spin use up the time four times as fast, on one core as well."""
    usage = run(f"import os\nos.fork(), os.fork()\n{SPIN}", seconds=0.4)
    assert usage.reason == "time"
    assert usage.seconds < 2


def test_a_command_that_sleeps_is_ended_as_well() -> None:
    usage = run("import time; time.sleep(600)", seconds=0.05)
    assert usage.reason == "time"
    assert usage.seconds < 0.5


def test_memory_is_limited_in_each_process() -> None:
    usage = run("bytearray(2**29)", memory=2**28)
    assert usage.status == 1  # a MemoryError
    assert usage.memory <= 2**28


def test_memory_is_limited_over_all_processes() -> None:
    """Each of them stays below the limit."""
    code = "import os, time\nos.fork(), os.fork()\nx = b'a' * (150 * 2**20)\ntime.sleep(600)"
    assert run(code, memory=2**29, seconds=60).reason == "memory"


def test_what_is_shared_counts_once() -> None:
    code = (
        "import os, time\nx = bytearray(b'a') * (150 * 2**20)\n"
        "os.fork(), os.fork()\ntime.sleep(0.3)"
    )
    usage = run(code, memory=2**29, seconds=60)
    assert (usage.status, usage.reason) == (0, "")


@pytest.mark.parametrize("rest", ["time.sleep(600)", SPIN])
def test_a_daemon_ends_with_its_command(rest: str, tmp_path: Path) -> None:
    """In whatever session it is; the command itself ends at once and well."""
    file = tmp_path / "pid"
    code = DAEMON.format(rest).replace("os._exit(0)", "time.sleep(0.3), os._exit(0)")
    usage = run(code, str(file))
    assert (usage.status, usage.reason) == (0, "")
    assert not is_running(int(file.read_text()))


def test_leaving_ends_everything(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    command = [sys.executable, "-S", "-c", DAEMON.format("time.sleep(600)"), str(file)]
    command[3] = command[3].replace("os._exit(0)", "time.sleep(600)", 1)
    with ConfinedProcess(command, RunLimits(60, 2**30), folder=tmp_path) as process:
        while not (file.exists() and file.read_text()):
            time.sleep(0.01)
        daemon = int(file.read_text())
        assert is_running(daemon)
        assert process.end().reason == "stopped"
    assert not is_running(daemon)


def test_the_end_of_the_caller_ends_everything(tmp_path: Path) -> None:
    """Even if it is killed."""
    file = tmp_path / "pid"
    code = (
        "import os, sys; from pathlib import Path\n"
        "from streamplace.library.confined import RunLimits, confined\n"
        f"command = [sys.executable, '-S', '-c', {DAEMON.format(SPIN)!r}, {str(file)!r}]\n"
        "command[3] = command[3].replace('os._exit(0)', 'time.sleep(600)', 1)\n"
        "confined(command, RunLimits(60, 2**30), folder=Path('/'))\n"
    )
    caller = subprocess.Popen([sys.executable, "-c", code])
    while not (file.exists() and file.read_text()):
        time.sleep(0.01)
    caller.kill()
    caller.wait()
    deadline = time.monotonic() + 60
    while is_running(int(file.read_text())) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_running(int(file.read_text()))


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

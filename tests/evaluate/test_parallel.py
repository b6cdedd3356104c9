import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from running import assert_end

from streamplace.errors import SettingError
from streamplace.evaluate.parallel import parallel_map

PARENT = """
from streamplace.evaluate.parallel import parallel_map
from test_parallel import noted
if __name__ == "__main__":
    for number in parallel_map(noted, range(40), 2):
        print(number, flush=True)
"""


def noted(number):
    """Leave the number of this process behind; all but the first take ten minutes."""
    Path(str(os.getpid())).touch()
    time.sleep(600 if number else 0)
    return number


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="looks at /proc")
def test_workers_end_with_a_parent_that_is_killed(tmp_path):
    """Even in the middle of their work, and nobody could tell them to."""
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    (tmp_path / "parent.py").write_text(PARENT)
    with subprocess.Popen(
        [sys.executable, "parent.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as parent:
        assert parent.stdout.readline() == b"0\n"
        workers = [int(file.name) for file in tmp_path.iterdir() if file.name.isdigit()]
        assert workers
        parent.kill()
    assert_end(*workers)


def test_a_script_that_every_process_would_run_is_refused(tmp_path):
    (tmp_path / "script.py").write_text(
        "from streamplace.evaluate.parallel import parallel_map\n"
        "print(*parallel_map(abs, range(40), 2))"
    )
    run = subprocess.run([sys.executable, tmp_path / "script.py"], capture_output=True, text=True)
    assert run.stdout == ""
    assert "SettingError: every process would run the script" in run.stderr


def deadly(number):
    """Double a number; 7 and 30 kill the process."""
    logging.getLogger("streamplace.test").warning("at %d", number)
    if number in (7, 30):
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * number


def test_what_kills_its_worker_is_named_and_the_rest_goes_on():
    """Nobody else is lost with it, even if results are read after the process has died."""
    found = []
    for result in parallel_map(deadly, range(40), 2, lost=lambda number, why: -number):
        found.append(result)
        time.sleep(0.05)
    assert found == [-number if number in (7, 30) else 2 * number for number in range(40)]


@pytest.mark.parametrize("jobs", [0, -1])
def test_a_number_of_processes_is_at_least_one(jobs):
    with pytest.raises(SettingError, match=f"jobs is {jobs}"):
        parallel_map(str, range(40), jobs)


MET: list[int] = []


def leaking(number):
    """Double a number; the tenth number of a process kills it."""
    MET.append(number)
    if len(MET) == 10:
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * number


def test_what_dies_of_the_items_before_it_is_not_lost():
    found = list(parallel_map(leaking, range(30), 2, lost=lambda number, why: -number))
    assert found == [2 * number for number in range(30)]


def test_what_workers_log_is_on_stderr(capfd):
    found = parallel_map(deadly, range(8, 28), 2)
    assert len(list(found)) == 20
    assert {f"at {number}" for number in range(8, 28)} <= {*capfd.readouterr().err.splitlines()}


def test_a_killed_worker_is_told_instead_of_waited_for():
    with pytest.raises(SettingError, match="killed"):
        list(parallel_map(deadly, range(40), 2))

"""A Ray of our own whose parts are killed in a sweep: what was done is kept, and it goes on."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from running import lines_in

pytest.importorskip("ray")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ray")]

PATIENCE_S = 500
DATA = ("--branches", "3", "--depth", "3", "--devices", "3", "--copies", "40")
COMPARE = "compare b.jsonl --placers anneal:evaluations=200000 --budget 600"
GENERATE = "generate branched --branches 3 --depth 3 --devices 3 --copies 4000 --files 20"


@pytest.fixture(autouse=True)
def data(run):
    """Forty graphs."""
    assert run("generate", "branched", *DATA, "-o", "b.jsonl").status == 0


def started(folder, command):
    """A sweep on a Ray that it starts and stops."""
    (folder / "ray.toml").write_text("on = 'ray'\n")
    on_ray = ("--on", "ray") if command.startswith(GENERATE) else ("--settings", "ray.toml")
    return subprocess.Popen(
        [sys.executable, "-m", "streamplace", *command.split(), *on_ray],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@contextmanager
def under_way(folder, command, done):
    """A sweep of which some is done and some is not; in the end all is."""
    process, deadline = started(folder, command), time.monotonic() + PATIENCE_S
    try:
        while done() < 3:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield process
        _, err = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, err
    finally:
        for one in [*descendants(process.pid), process.pid]:
            kill(one)
        process.communicate()


def descendants(process):
    """Process ids of what a process started, and what that started."""
    family = [process]
    for parent in family:
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            family += map(int, task.read_text().split())
    return family[1:]


def named(process, name):
    """Descendants whose command line holds a name."""
    found = []
    for one in descendants(process):
        try:
            words = Path(f"/proc/{one}/cmdline").read_text()
        except FileNotFoundError:
            continue
        if name in words.partition("\0")[0]:
            found.append(one)
    return found


def kill_workers(process):
    """Kill all workers that compute, once there are some."""
    deadline = time.monotonic() + PATIENCE_S
    while not (workers := named(process, "ray::_work")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    for worker in workers:
        kill(worker)


def kill(process):
    """Kill a process, if it is there."""
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return


def results_of(folder):
    """Results without the times that they took."""
    rows = map(json.loads, (folder / "results.jsonl").read_text().splitlines())
    kept = [{k: v for k, v in row.items() if k != "milliseconds"} for row in rows]
    return sorted(kept, key=json.dumps)


def test_workers_that_are_killed_change_no_result(tmp_path, run):
    file = tmp_path / "there" / "results.jsonl"
    with under_way(tmp_path, f"{COMPARE} -o there", lambda: lines_in(file)) as process:
        for _ in range(3):
            kill_workers(process.pid)
    assert run(*f"{COMPARE} -o here".split()).status == 0
    assert results_of(tmp_path / "there") == results_of(tmp_path / "here")


def test_shards_whose_workers_are_killed_are_made_whole(tmp_path, run):
    """No file is half-written, and the files are those of one process."""
    files = lambda: len(list(tmp_path.glob("there-*.jsonl")))  # noqa: E731
    with under_way(tmp_path, f"{GENERATE} -o there.jsonl", files) as process:
        kill_workers(process.pid)
    assert run(*f"{GENERATE} -o there.jsonl".split()).status == 0
    (tmp_path / "here").mkdir()
    assert run(*f"{GENERATE} -o here/there.jsonl".split()).status == 0
    for one in (tmp_path / "here").iterdir():
        assert one.read_bytes() == (tmp_path / one.name).read_bytes()

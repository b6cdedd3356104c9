"""Training that is killed at random moments, again and again, ends as if it never had been."""

import os
import signal
import subprocess
import sys
import time
from random import Random

import pytest
from histories import assert_same
from problems import chain, diamond, fork_join
from rooms import needs_papers

from streamplace.io.graphs import write_graphs
from streamplace.learn.registry import MODELS

KILLS = 3
PATIENCE_S = 600
GRAPHS = [chain(2), chain(3), chain(5), diamond(), *(fork_join(n) for n in (1, 2, 3, 4))]

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("processes")]


OF_PAPERS = [pytest.param(name, marks=needs_papers) for name in ("giph", "doppler")]


@pytest.mark.parametrize("name", [*OF_PAPERS, "pilot", "pilot-makespan"])
def test_training_that_is_killed_goes_on_to_the_same_bits(name, tmp_path):
    """By SIGKILL, wherever it is in an epoch or in writing a file."""
    check_killed(name, tmp_path)


def check_killed(name, folder):
    """Kill and resume a run, and compare it with one that nobody killed."""
    write_graphs(GRAPHS, folder / "g.jsonl")
    objective = (*MODELS[name].objectives, "throughput")[0]
    words = ["train", name, "--data", "g.jsonl", "--objective", objective, "--epochs", "4"]
    whole = started(folder, [*words, "--out", "whole"])
    first = begun(whole, folder / "whole")
    assert finished(whole) == 0
    seconds, rng = time.monotonic() - first, Random(name)
    resume: list[str] = []
    for _ in range(KILLS):
        process = started(folder, [*words, "--out", "killed", *resume])
        begun(process, folder / "killed")
        time.sleep(rng.uniform(0, seconds))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        resume = ["--resume"] if (folder / "killed" / "last.safetensors").exists() else []
    assert finished(started(folder, [*words, "--out", "killed", *resume])) == 0
    assert_same(folder / "killed", folder / "whole", "best.safetensors", "last.safetensors")


def started(folder, words):
    """Train in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "streamplace", *words],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stderr=(folder / "log").open("ab"),
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )


def begun(process, folder):
    """Wait until a process reads or writes in its folder, or has ended; returns when that was."""
    before, deadline = snapshot(folder), time.monotonic() + PATIENCE_S
    while process.poll() is None and snapshot(folder) == before:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return time.monotonic()


def snapshot(folder):
    """Files and when they were written."""
    files = folder.rglob("*") if folder.exists() else ()
    return {(str(file), file.stat().st_mtime_ns) for file in files if file.exists()}


def finished(process):
    """Exit status of a process that nobody kills."""
    try:
        return process.wait(PATIENCE_S)
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)

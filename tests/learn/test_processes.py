"""Training by several processes: the same bits as by one, and an end that people understand."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import stub_model
from histories import assert_same, history
from running import is_running

import streamplace
from streamplace.families.branched import Branched, branched
from streamplace.io.graphs import write_graphs
from streamplace.learn.registry import MODELS

pytestmark = pytest.mark.xdist_group("processes")

TESTS = Path(stub_model.__file__).parent
TRAIN = ("train", "stub", "--data", "b.jsonl", "--config", "four.toml")
GRAPHS = list(branched(Branched(branches=2, depth=2, devices=2, copies=12), 0))
PATIENCE_S = 300
Started = subprocess.Popen[str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve graphs, options with four shards, and the run of one process in ``whole``."""
    folder = tmp_path_factory.mktemp("processes")
    write_graphs(GRAPHS, folder / "b.jsonl")
    (folder / "four.toml").write_text("[training]\nshards = 4\n")
    alone(folder, "whole")
    return folder


def alone(folder: Path, run: str, **options: Any) -> None:
    """Train in this process."""
    assert list(MODELS) is not None
    stubs = {**MODELS._found, "stub": stub_model.model()}
    graphs = [graph for graph in GRAPHS if graph.attributes["split"] == "train"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MODELS, "_found", stubs)
        streamplace.train("stub", graphs, folder / run, config=folder / "four.toml", **options)


def started(folder: Path, processes: int, *words: str, sleep: float = 0.0) -> Started:
    """Start training by torchrun; every loss takes so long."""
    path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    torchrun = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", f"{processes}")
    return subprocess.Popen(
        [sys.executable, *torchrun, str(TESTS / "stub_model.py"), *words],
        cwd=folder,
        env={**os.environ, "STUB_SLEEP": f"{sleep}", "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: Started) -> tuple[int, str, str]:
    """Exit status, stdout and stderr."""
    try:
        out, err = process.communicate(timeout=PATIENCE_S)
    finally:
        process.terminate()  # which torchrun passes on
    return process.returncode, out, err


@contextmanager
def in_its_third_epoch(folder: Path, run: str) -> Iterator[Started]:
    """Two processes that train into a folder, when two epochs are done."""
    process = started(folder, 2, *TRAIN, "--out", run, sleep=0.4)
    deadline, file = time.monotonic() + PATIENCE_S, folder / run / "history.jsonl"
    try:
        while not file.exists() or len(file.read_text().splitlines()) < 2:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            process.communicate()


def children_of(process: Started) -> list[int]:
    """Process ids of the processes that torchrun started."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(child) for child in children]


def child_of_rank(process: Started, rank: int) -> int:
    """Process id of a process that torchrun started."""
    wanted = f"RANK={rank}"
    (found,) = (
        child
        for child in children_of(process)
        if wanted in Path(f"/proc/{child}/environ").read_text().split("\0")
    )
    return found


def wait_for_end(processes: list[int]) -> None:
    """Wait until none of some processes runs."""
    deadline = time.monotonic() + PATIENCE_S
    while any(is_running(one) for one in processes):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.slow
def test_a_lost_process_ends_all_by_name_and_four_go_on_to_the_same_bits(folder: Path) -> None:
    """The second of two is killed in the third epoch."""
    with in_its_third_epoch(folder, "killed") as process:
        os.kill(child_of_rank(process, 1), signal.SIGKILL)
        status, _, err = ended(process)
    assert status != 0
    assert err.count("error: ") == 1
    assert "error: process 1 of 2 was lost" in err
    assert "Traceback" not in err.split("torch/distributed")[0]
    status, out, err = ended(started(folder, 4, *TRAIN, "--out", "killed", "--resume", "--json"))
    assert status == 0, err
    assert json.loads(out)["epochs"] == 6
    assert err.count("epoch 6/6") == 1
    assert_same(folder / "killed", folder / "whole", "best.safetensors", "last.safetensors")


@pytest.mark.slow
def test_the_first_process_can_be_lost_too(folder: Path) -> None:
    with in_its_third_epoch(folder, "headless") as process:
        os.kill(child_of_rank(process, 0), signal.SIGKILL)
        status, _, err = ended(process)
    assert status != 0
    assert err.count("error: ") == 1
    assert "error: process 0 of 2 was lost" in err


@pytest.mark.slow
@pytest.mark.parametrize("last", [0, 2])
def test_a_torchrun_that_is_killed_whole_goes_on_to_the_same_bits(folder: Path, last: int) -> None:
    """The launcher first, or its processes first; then two processes go on."""
    run = f"whole-{last}"
    with in_its_third_epoch(folder, run) as process:
        children = children_of(process)
        assert len(children) == 2
        family = [process.pid, *children]
        for one in (*family[last:], *family[:last]):
            os.kill(one, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    wait_for_end(children)
    status, _, err = ended(started(folder, 2, *TRAIN, "--out", run, "--resume"))
    assert status == 0, err
    assert_same(folder / run, folder / "whole", "best.safetensors", "last.safetensors")


@pytest.mark.slow
def test_processes_end_when_their_launcher_is_killed(folder: Path) -> None:
    """They keep what is done, so that others can go on in the folder."""
    with in_its_third_epoch(folder, "orphans") as process:
        children = children_of(process)
        process.kill()
        process.wait()
        wait_for_end(children)
        _, err = process.communicate()
    assert err.count("error: ") == err.count("error: torchrun ended") == 1
    assert len(history(folder / "orphans")) < 6
    status, _, err = ended(started(folder, 2, *TRAIN, "--out", "orphans", "--resume"))
    assert status == 0, err
    assert_same(folder / "orphans", folder / "whole", "best.safetensors", "last.safetensors")


@pytest.mark.slow
def test_ctrl_c_stops_all_and_one_goes_on_to_the_same_bits(folder: Path) -> None:
    with in_its_third_epoch(folder, "stopped") as process:
        process.send_signal(signal.SIGINT)
        _, _, err = ended(process)
    assert err.count("stopped; 2 epochs saved in stopped/\n") == 1
    again = "--data b.jsonl --out stopped --config four.toml --resume"
    assert f"continue with: torchrun --nproc-per-node 2 -m streamplace train stub {again}\n" in err
    assert "error: " not in err
    alone(folder, "stopped", resume=True)
    assert_same(folder / "stopped", folder / "whole", "best.safetensors", "last.safetensors")


@pytest.mark.slow
def test_an_error_is_told_once(folder: Path) -> None:
    _, out, err = ended(started(folder, 2, *TRAIN, "--out", "x", "--split", "nonsense"))
    assert out == ""
    assert (
        err.count("error: b.jsonl holds no graph of split 'nonsense'. Splits: test, train\n") == 1
    )
    assert not (folder / "x").exists()

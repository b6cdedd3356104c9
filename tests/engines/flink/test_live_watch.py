"""A watch of a real job that is killed while it moves the job, and goes on."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.pin.apply import apply
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.rest.client import Rest
from streamplace.engines.flink.rest.job_ids import successor
from streamplace.io.watch_store import read_records, usual_store

pytestmark = pytest.mark.xdist_group("flink")
GRAPH = {
    "name": "watched",
    "operators": [
        {"name": "src", "rate": 100, "payload": 100},
        {"name": "work", "rounds": 20_000, "parallelism": 3},
    ],
    "streams": [{"from": "src", "to": "work", "partitioning": "rebalance"}],
}
SPREAD = {"src": ["dev-0"], "work": ["dev-0", "dev-1", "dev-2"]}
COLD = """
import dataclasses
from streamplace.cli._watch_request import WatchRequest
usual = WatchRequest._engine
WatchRequest._engine = lambda *given: dataclasses.replace(
    usual(*given), accept_cold=True, patience=30.0
)
from streamplace.__main__ import main
main()
"""
"""The command, but that it does not wait until the job is warm, which may take minutes."""


def await_words(file: Path, words: str) -> None:
    """Wait until a watch has told something."""
    deadline = time.monotonic() + 240
    while words not in file.read_text():
        assert time.monotonic() < deadline, file.read_text()
        time.sleep(0.02)


@pytest.mark.slow
def test_a_watch_that_is_killed_in_a_move_finishes_it_once(
    rest: Rest, flink: Flink, graph_jar: Path, tmp_path: Path
) -> None:
    """A job that needs one TaskManager leaves the others; the next watch finds the journal."""
    job = apply(rest, flink, Program(graph_jar, "GraphJob", [json.dumps(GRAPH)]), SPREAD)
    options = ["--apply", "--policy", "ds2", "--every", "10", "--seconds", "2", "--least-time", "0"]
    saved = ["--savepoints", (tmp_path / "saved").as_uri(), "--flink-home", str(flink.home)]
    command = [sys.executable, "-c", COLD, "flink", "watch", "--rest", rest.url, *options, *saved]

    def watch(file: Path) -> subprocess.Popen[bytes]:
        with file.open("wb") as told:
            return subprocess.Popen(command, stderr=told, stdout=told)

    first, second = tmp_path / "first", tmp_path / "second"
    process = watch(first)
    try:
        await_words(first, "stopping job")
        process.kill()
        process.wait()
        process = watch(second)
        await_words(second, "; stays")
        assert f"a move of job {job} was interrupted; it is finished first" in second.read_text()
        refused = subprocess.run(command, capture_output=True, text=True)
        assert refused.returncode == 2
        assert f"is watched by process {process.pid} of" in refused.stderr
        assert rest.live_jobs() == [successor(job)]
        rest.cancel(successor(job))
        assert process.wait(60) == 0
    finally:
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
    assert second.read_text().endswith(f"job {successor(job)} is CANCELED\n")
    (record,) = read_records(usual_store(), 100)
    assert [(one.state, one.after) for one in record.decisions] == [("moved", successor(job))]

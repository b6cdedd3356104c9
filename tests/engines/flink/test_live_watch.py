"""Watches of real jobs: they move them, or are killed."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from command_lines import settings_file

from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.pin.apply import apply
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.rest.client import Rest, successor
from streamplace.io.store import Store
from streamplace.io.watches import read_records

pytestmark = [pytest.mark.xdist_group("flink"), pytest.mark.slow]
SPREAD = {"src": ["dev-0"], "work": ["dev-0", "dev-1", "dev-2"]}
GRAPH = {
    "name": "watched",
    "operators": [
        {"name": "src", "rate": 100, "payload": 100},
        {"name": "work", "rounds": 20_000, "parallelism": 3},  # 20 microseconds per tuple
    ],
    "streams": [{"from": "src", "to": "work", "partitioning": "rebalance"}],
}
COLD = """
import dataclasses
from streamplace.settings.flink import FlinkWatchSettings
usual = FlinkWatchSettings.engine
FlinkWatchSettings.engine = lambda *given: dataclasses.replace(
    usual(*given), patience=30.0
)
from streamplace.__main__ import main
main()
"""
"""The command line, without the minutes until a job is warm."""


@contextmanager
def watching(line: Sequence[str], told: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a watch while the block does; what it tells goes to a file."""
    with told.open("wb") as file:
        process = subprocess.Popen(line, stderr=file, stdout=file)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def await_words(told: Path, words: str) -> None:
    """Wait until a watch has told something."""
    deadline = time.monotonic() + 240
    while words not in told.read_text():
        assert time.monotonic() < deadline, told.read_text()
        time.sleep(0.02)


def test_a_watch_that_is_killed_in_a_move_finishes_it_once(
    rest: Rest, flink: Flink, graph_jar: Path, tmp_path: Path
) -> None:
    """A job that needs one TaskManager leaves the others; the next watch finds the journal."""
    program = Program(graph_jar, "GraphJob", [json.dumps(GRAPH)])
    job = apply(rest, flink, program, Layout(SPREAD))
    line = [
        *(sys.executable, "-c", COLD, "flink", "watch", "--rest", rest.url, "--apply"),
        *("--policy", "ds2", "--every", "10", "--savepoints", (tmp_path / "saved").as_uri()),
        *settings_file(tmp_path, seconds=2, least_time=0, flink_home=str(flink.home)),
    ]
    first, second = tmp_path / "first", tmp_path / "second"
    with watching(line, first):
        await_words(first, "stopping job")
    with watching(line, second) as process:
        await_words(second, "keeps up, stays")
        assert f"a move of job {job} was interrupted; it is finished first" in second.read_text()
        refused = subprocess.run(line, capture_output=True, text=True)
        assert refused.returncode == 2
        assert f"has been watched by process {process.pid} since" in refused.stderr
        assert rest.live_jobs() == [successor(job)]
        rest.cancel(successor(job))
        assert process.wait(60) == 0
    assert second.read_text().endswith(f"job {successor(job)} is CANCELED\n")
    (record,) = read_records(Store.usual())
    assert [(one.state, one.after) for one in record.decisions] == [("moved", successor(job))]

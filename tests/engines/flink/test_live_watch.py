"""Watches of real jobs: they move them, start and stop TaskManagers, or are killed."""

import json
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.local.session import Host, LocalCluster, local_cluster
from streamplace.engines.flink.pin.apply import apply
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.rest.client import Rest
from streamplace.engines.flink.rest.job_ids import successor
from streamplace.engines.flink.rest.tasks import layout_of
from streamplace.io.watch_store import read_records, usual_store

pytestmark = [pytest.mark.xdist_group("flink"), pytest.mark.slow]
ROUNDS = 20_000
"""Of work per tuple, which take about 20 microseconds."""
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
"""The command line, without the minutes until a job is warm."""


def command(*arguments: str) -> list[str]:
    """Command line of a watch that accepts a job that is not warm."""
    return [sys.executable, "-c", COLD, "flink", "watch", *arguments]


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


def await_words(told: Path, words: str, meanwhile: Callable[[], None] = lambda: None) -> None:
    """Wait until a watch has told something."""
    deadline = time.monotonic() + 240
    while words not in told.read_text():
        assert time.monotonic() < deadline, told.read_text()
        meanwhile()
        time.sleep(0.02)


def job_of(
    jar: Path, rate: float, rounds: int, parallelism: int, partitioning: str = "rebalance"
) -> Program:
    """A source, and work on what it sends."""
    work = {"name": "work", "rounds": rounds, "parallelism": parallelism}
    graph = {
        "name": "watched",
        "operators": [{"name": "src", "rate": rate, "payload": 100}, work],
        "streams": [{"from": "src", "to": "work", "partitioning": partitioning}],
    }
    return Program(jar, "GraphJob", [json.dumps(graph)])


def acting(rest: Rest, flink: Flink, saved: Path, *more: str) -> list[str]:
    """Command line of a watch that moves a job when that pays."""
    options = ["--apply", "--policy", "ds2", "--every", "10", "--seconds", "2"]
    options += ["--least-time", "0", *more]
    where = ["--savepoints", saved.as_uri(), "--flink-home", str(flink.home)]
    return command("--rest", rest.url, *options, *where)


def used(rest: Rest, job: str) -> set[str]:
    """TaskManagers on which a job runs."""
    layout = layout_of(rest, job, rest.running_job(job))
    return {device for devices in layout.values() for device in devices}


def test_a_watch_that_is_killed_in_a_move_finishes_it_once(
    rest: Rest, flink: Flink, graph_jar: Path, tmp_path: Path
) -> None:
    """A job that needs one TaskManager leaves the others; the next watch finds the journal."""
    job = apply(rest, flink, job_of(graph_jar, 100, ROUNDS, 3), SPREAD)
    line = acting(rest, flink, tmp_path / "saved")
    first, second = tmp_path / "first", tmp_path / "second"
    with watching(line, first):
        await_words(first, "stopping job")
    with watching(line, second) as process:
        await_words(second, "; stays")
        assert f"a move of job {job} was interrupted; it is finished first" in second.read_text()
        refused = subprocess.run(line, capture_output=True, text=True)
        assert refused.returncode == 2
        assert f"has been watched by process {process.pid} of" in refused.stderr
        assert rest.live_jobs() == [successor(job)]
        rest.cancel(successor(job))
        assert process.wait(60) == 0
    assert second.read_text().endswith(f"job {successor(job)} is CANCELED\n")
    (record,) = read_records(usual_store(), 100)
    assert [(one.state, one.after) for one in record.decisions] == [("moved", successor(job))]


@pytest.fixture
def growing(flink: Flink) -> Iterator[LocalCluster]:
    """A TaskManager on a core of its own, and room for another one on the other core."""
    if shutil.which("taskset") is None:
        pytest.skip("there is no taskset on this machine")
    names = ("dev-0", "new-1")
    hosts = {n: Host("127.0.0.1", ("taskset", "-c", str(i))) for i, n in enumerate(names)}
    with local_cluster(flink, names[:1], room=1, hosts=hosts) as running:
        yield running


def carrying_out(cluster: LocalCluster, asked: Path) -> Callable[[], None]:
    """Return what starts and stops TaskManagers as often as a watch has asked for it."""
    done: list[str] = []

    def carry_out() -> None:
        lines = asked.read_text().splitlines() if asked.exists() else []
        for line in lines[len(done) :]:
            verb, name = line.split()
            done.append(line)
            if verb == "start":
                cluster.start("new-1")
            else:
                cluster.kill(name)

    return carry_out


def test_machines_are_started_for_a_job_that_needs_them_and_stopped_after_it_has_left(
    growing: LocalCluster, flink: Flink, graph_jar: Path, tmp_path: Path
) -> None:
    """A job needs more than a core, and goes to two; one that needs little goes back to one."""
    rest, asked, told = Rest(growing.url), tmp_path / "asked", tmp_path / "told"
    script = tmp_path / "machines"
    script.write_text(f'#!/bin/sh\necho "$1 $2" >>{shlex.quote(str(asked))}\n')
    script.chmod(0o755)
    more = ["--machines", str(script), "--at-most", "2"]
    line, meanwhile = acting(rest, flink, tmp_path / "saved", *more), carrying_out(growing, asked)
    alone = {"src": ["dev-0"], "work": ["dev-0"] * 4}
    job = apply(rest, flink, job_of(graph_jar, 2000, 32 * ROUNDS, 4), alone)
    with watching(line, told) as process:
        await_words(told, "'new-1' joined", meanwhile)
        await_words(told, f"job {successor(job)} runs on its new devices")
        assert used(rest, successor(job)) == {"dev-0", "new-1"}
        rest.cancel(successor(job))
        assert process.wait(60) == 0
    assert asked.read_text() == "start dev-0\n"
    both = {"src": ["dev-0"], "work": ["dev-0", "new-1"]}
    job = apply(rest, flink, job_of(graph_jar, 100, ROUNDS, 2), both)
    with watching(line, told):
        await_words(told, "is stopped", meanwhile)
        (name,) = rest.offered()
        assert used(rest, successor(job)) == {name}
    assert asked.read_text().splitlines()[1:] == [f"stop {({'dev-0', 'new-1'} - {name}).pop()}"]

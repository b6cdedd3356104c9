"""Watches of real jobs: they move and rescale them, start and stop TaskManagers, or are killed."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from flink_clusters import await_flow
from submitted_jobs import submitted

from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.local.session import Host, LocalCluster, local_cluster
from streamplace.engines.flink.pin.apply import apply
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.rest.client import Rest
from streamplace.engines.flink.rest.job_ids import successor
from streamplace.engines.flink.rest.scheduler import requirements
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


@pytest.fixture
def adaptive(flink: Flink, tmp_path: Path) -> Iterator[LocalCluster]:
    """Three TaskManagers of two slots, whose scheduler rescales a job soon after it was asked."""
    settings = {
        "jobmanager.scheduler": "adaptive",
        "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling": "2 s",
        "taskmanager.numberOfTaskSlots": 2,
        "restart-strategy.type": "fixed-delay",
        "execution.checkpointing.interval": "1 s",
        "execution.checkpointing.dir": (tmp_path / "checkpoints").as_uri(),
    }
    with local_cluster(flink, ["dev-0", "dev-1", "dev-2"], settings=settings) as running:
        yield running


def test_a_watch_rescales_a_job_also_if_it_was_killed_meanwhile(
    adaptive: LocalCluster, graph_jar: Path, tmp_path: Path
) -> None:
    """The job needs one TaskManager; it keeps its id, and the next watch knows what was begun.

    In a session, Flink may spread subtasks for two slots over two TaskManagers, so it gets one.
    """
    rest = Rest(adaptive.url)
    program = job_of(graph_jar, 300, ROUNDS, 6, "hash")
    job = submitted(rest, graph_jar, "GraphJob", *program.arguments)
    await_flow(rest, job)
    line = command("--rest", rest.url, "--apply", "--policy", "ds2", "--every", "10")
    line += ["--seconds", "2", "--least-time", "0"]
    first, second = tmp_path / "first", tmp_path / "second"
    with watching(line, first) as watch:
        await_words(first, "the job is rescaled: 1 TaskManager alone should carry")

        def kill_once_it_has_asked() -> None:
            bounds = [one["parallelism"]["upperBound"] for one in requirements(rest, job).values()]
            if sorted(bounds) == [1, 1] and watch.poll() is None:
                os.kill(watch.pid, signal.SIGKILL)
                watch.wait()
                first.open("a").write("\nkilled")

        await_words(first, "killed", kill_once_it_has_asked)
    with watching(line, second):
        await_words(second, "runs with the subtasks 1 × 'src', 1 × 'work'")
        await_words(second, "on 1 TaskManager; it carries")
    (record,) = read_records(usual_store(), 9)
    (decision,) = record.decisions
    assert (decision.kind, decision.state, decision.after) == ("rescale", "moved", job)
    assert [v["parallelism"] for v in rest.job(job)["vertices"]] == [1, 1]
    rest.cancel(job)

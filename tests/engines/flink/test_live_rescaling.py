"""A watch of a real job that the adaptive scheduler runs gives it fewer and more subtasks."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from flink_clusters import await_flow
from real_watches import await_words, command, watching

from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.local.session import LocalCluster, local_cluster
from streamplace.engines.flink.rest.client import Rest
from streamplace.engines.flink.rest.scheduler import requirements
from streamplace.io.watch_store import read_records, usual_store

pytestmark = [pytest.mark.xdist_group("flink"), pytest.mark.slow]
JOB = {
    "name": "watched",
    "operators": [
        {"name": "src", "rate": 300, "payload": 100},
        {"name": "work", "rounds": 20_000, "parallelism": 6},
    ],
    "streams": [{"from": "src", "to": "work", "partitioning": "hash"}],
}


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
    job = rest.run_jar(rest.upload(graph_jar), "GraphJob", [json.dumps(JOB)])
    rest.wait_running(job)
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

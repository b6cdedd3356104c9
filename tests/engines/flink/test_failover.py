"""A JobManager that dies while another stands by: what watches a job goes on."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

import pytest
from flink_clusters import available_cluster
from flink_proxy import faulty_proxy

from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.local.session import JOB_MANAGER, LocalCluster
from streamplace.engines.flink.move.move import RETENTION, FlinkMove
from streamplace.engines.flink.move.settings import MoveSettings
from streamplace.engines.flink.move.settling import Settling
from streamplace.engines.flink.move.state import resumable
from streamplace.engines.flink.pin.apply import apply
from streamplace.engines.flink.pin.pinning import Vectors
from streamplace.engines.flink.pin.verify import verify
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.rest.client import FlinkError, Rest
from streamplace.engines.flink.watch.placed_job import PlacedJob
from streamplace.engines.flink.watch.replacing import Replacing
from streamplace.engines.flink.watch.watch import Watch

pytestmark = [pytest.mark.xdist_group("flink"), pytest.mark.slow]
TALLY: Vectors = {
    "numbers": ["dev-0"],
    "Map": ["dev-1"],
    "KeyedProcess": ["dev-0", "dev-1"],
    "Process": ["dev-0", "dev-1"],
    "Writer": ["dev-0", "dev-1"],
    "TumblingEventTimeWindows": ["dev-1", "dev-1"],
    "Process (2)": ["dev-1", "dev-1"],
    "Writer (2)": ["dev-0", "dev-0"],
}


@dataclass(frozen=True, slots=True)
class Run:
    """The job on a cluster of two JobManagers; the REST interface is that of the one in reserve."""

    cluster: LocalCluster
    rest: Rest
    program: Program
    job: str


@pytest.fixture
def running(flink: Flink, jobs: Path, tmp_path: Path) -> Iterator[Run]:
    """The job, which has saved its state."""
    (tmp_path / "told").mkdir()
    settings = {
        "execution.checkpointing.interval": "300 ms",
        "execution.checkpointing.dir": (tmp_path / "checkpoints").as_uri(),
        RETENTION: "RETAIN_ON_CANCELLATION",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "10000",
        "restart-strategy.fixed-delay.delay": "500 ms",
    }
    program = Program(jobs, "TallyJob", (str(tmp_path / "told"), "300"), settings=settings)
    with available_cluster(flink, ["dev-0", "dev-1", "dev-2"]) as (cluster, url):
        rest = Rest(url)
        job = apply(rest, flink, program, TALLY)
        while resumable(rest, job) is None:
            time.sleep(0.1)
        yield Run(cluster, rest, program, job)


def test_a_watch_goes_on_when_another_job_manager_takes_over(running: Run, flink: Flink) -> None:
    """The job is recovered where it was, and a spare stands in for what is lost after that."""
    cluster, rest, job = running.cluster, running.rest, running.job
    runs: list[PlacedJob] = []
    steps: list[str] = []
    watch = Watch(
        Replacing(rest, flink, running.program, ("dev-2",), steps.append, runs.append, patience=20)
    )
    thread = Thread(target=watch.run, args=(PlacedJob(job, TALLY),), daemon=True)
    thread.start()
    cluster.kill(JOB_MANAGER)
    while not any("trying again" in step for step in steps):
        assert thread.is_alive(), steps
        thread.join(0.1)
    rest = rest.patient(60.0, steps.append)  # the new leader begins to answer by and by
    while rest.state(job) is None:  # and recovers its jobs after that
        assert thread.is_alive(), steps
        thread.join(0.1)
    rest.wait_running(job, 120)
    assert runs == []
    assert verify(rest, job, TALLY).fine
    cluster.kill("dev-1")
    while not runs:
        assert thread.is_alive(), steps
        thread.join(0.1)
    assert runs[0].stand_ins == {"dev-1": "dev-2"}
    assert verify(rest, runs[0].job, runs[0].vectors).fine
    rest.cancel(runs[0].job)
    thread.join(30)
    assert not thread.is_alive()


@pytest.mark.parametrize("request_", ["/stop", "_placed-jobs.jar/run"])
def test_one_copy_runs_when_another_job_manager_takes_over_during_a_move(
    running: Run, flink: Flink, tmp_path: Path, request_: str
) -> None:
    """The one that leads ends just before it would stop the job, or start it again."""
    settings = MoveSettings((tmp_path / "saved").as_uri(), settling=Settling(0.0))
    with faulty_proxy(running.rest.url) as proxy:
        move = FlinkMove(Rest(proxy.url), flink, running.program, lambda _: None, settings)
        plan = move.plan(running.job, {**TALLY, "Map": ["dev-2"]})
        proxy.disturb(request_, "none")
        proxy.before = lambda: running.cluster.kill(JOB_MANAGER)
        try:
            move.run(plan)
        except FlinkError as error:
            if "--resume" in str(error):
                move.resume()
    (copy,) = running.rest.live_jobs()
    running.rest.wait_running(copy, 120)

"""Savepoints that moves leave: listed and removed by the command, on a real cluster."""

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.move.move import FlinkMove
from streamplace.engines.flink.move.settings import MoveSettings
from streamplace.engines.flink.move.settling import Settling
from streamplace.engines.flink.move.state import checkpoint_counts
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.rest.client import Rest

pytestmark = [pytest.mark.xdist_group("flink"), pytest.mark.slow]
PLACES = {
    "numbers": ["dev-0"],
    "count": ["dev-1", "dev-2"],
    "total": ["dev-1", "dev-2"],
    "nowhere": ["dev-1", "dev-2"],
}


def test_a_savepoint_stays_until_its_job_has_a_checkpoint(
    run: Callable, rest: Rest, flink: Flink, jobs: Path, tmp_path: Path
) -> None:
    """Then it is removed on request; what no move has left is never removed."""
    settings = {"execution.checkpointing.interval": "20 s"}
    program = Program(jobs, "MixedJob", ("200",), settings=settings)
    request = {
        "entryClass": "MixedJob",
        "programArgsList": ["200"],
        "flinkConfiguration": settings,
    }
    job = rest.post(f"/jars/{rest.upload(jobs)}/run", request)["jobid"]
    rest.wait_running(job)
    saved = (tmp_path / "saved").as_uri()
    move = FlinkMove(
        rest, flink, program, lambda _: None, MoveSettings(saved, settling=Settling(0.0))
    )
    moved = move.run(move.plan(job, PLACES))
    command = ("flink", "savepoints", "--rest", rest.url, "--flink-home", str(flink.home))
    command = (*command, "--savepoints", saved)
    answer = run(*command, "--json")
    (left,) = json.loads(answer.out)["savepoints"]
    assert (left["path"], left["job"]) == (moved.savepoint, job)
    if not checkpoint_counts(rest, moved.job).completed:
        answer = run(*command, "--remove", moved.savepoint)
        assert answer.status == 2
        assert "has completed no checkpoint since" in answer.err
    deadline = time.monotonic() + 90
    while not checkpoint_counts(rest, moved.job).completed:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    answer = run(*command, "--remove", f"{saved}/savepoint-else")
    assert answer.status == 2
    assert "is not a savepoint that a move left" in answer.err
    answer = run(*command, "--remove-all")
    assert answer.status == 0, answer.err
    assert moved.savepoint in answer.err
    assert not Path(moved.savepoint.removeprefix("file:")).exists()
    assert json.loads(run(*command, "--json").out)["savepoints"] == []
    assert rest.live_jobs() == [moved.job]

"""Jobs as others write them, moved twice by one command: results are as if they had not moved."""

from collections.abc import Callable
from pathlib import Path

import pytest
from flink_clusters import FAST, SLOW, Watched, chained, spread_job

from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.local.session import LocalCluster
from streamplace.engines.flink.rest.client import Rest

pytestmark = [pytest.mark.xdist_group("flink"), pytest.mark.slow]
Settings = dict[str, str]


@pytest.fixture
def watched(rest: Rest, jobs: Path, tmp_path: Path) -> Callable[..., tuple[Watched, list[str]]]:
    """A job, and what it tells when nobody moves it."""

    def start(given: Settings, entry: str, *before: str) -> tuple[Watched, list[str]]:
        alone = Watched(rest, jobs, tmp_path / f"alone-{entry}", entry, before, given)
        told = alone.finished(alone.start(FAST))
        assert len(told) > 20
        return Watched(rest, jobs, tmp_path / "moved", entry, before, given), told

    return start


@pytest.mark.parametrize(
    ("entry", "chaining", "then", "backend"),
    [
        ("EventsJob", "true", "false", "rocksdb"),
        ("TipsJob", "true", "true", "hashmap"),
        ("FaresJob", "false", "true", "rocksdb"),
    ],
)
def test_jobs_tell_what_they_would_have_told_unmoved(
    entry: str,
    chaining: str,
    then: str,
    backend: str,
    watched: Callable[..., tuple[Watched, list[str]]],
    run: Callable,
    rest: Rest,
    flink: Flink,
    cluster: LocalCluster,
    tmp_path: Path,
) -> None:
    """Keyed state, windows, a join and sinks with transactions; two subtasks, no uids.

    In the end the job goes on as it was first started, by Flink alone.
    """
    job, told = watched(chained(chaining, backend), entry)
    running = job.start(SLOW)
    for step, now in enumerate((then, chaining)):
        job.tells_more()
        placement = spread_job(tmp_path / "p.json", rest, running, cluster.devices, step)
        options = ("--placement", placement)
        running = job.move(run, flink.home, *options, settings=chained(now, backend))
    job.tells_more()
    assert job.resumed(running) == told


@pytest.mark.parametrize(("query", "chaining"), [("5", "false"), ("8", "true")])
def test_queries_of_nexmark_tell_what_they_would_have_told_unmoved(
    query: str,
    chaining: str,
    watched: Callable[..., tuple[Watched, list[str]]],
    run: Callable,
    rest: Rest,
    flink: Flink,
    cluster: LocalCluster,
    tmp_path: Path,
) -> None:
    """Measured, placed and moved by one command, and then where a placement says."""
    given = chained(chaining, "hashmap")
    job, told = watched(given, "NexmarkJob", query)
    job.start(SLOW)
    job.tells_more()
    running = job.move(run, flink.home, settings=given)
    job.tells_more()
    placement = spread_job(tmp_path / "p.json", rest, running, cluster.devices, 1)
    running = job.move(run, flink.home, "--placement", placement, settings=given)
    job.tells_more()
    assert job.resumed(running) == told

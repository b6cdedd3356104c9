"""Jobs as others write them, moved twice by one command: results are as if they had not moved."""

from collections.abc import Callable
from pathlib import Path

import pytest
from flink_clusters import FAST, SLOW, Watched, chained, spread_job

from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.local.session import LocalCluster
from streamplace.engines.flink.rest.client import Rest

pytestmark = [pytest.mark.xdist_group("flink"), pytest.mark.slow]


@pytest.mark.parametrize(
    ("entry", "query", "chaining", "then", "backend"),
    [
        ("EventsJob", "", "true", "false", "rocksdb"),
        ("TipsJob", "", "true", "true", "hashmap"),
        ("FaresJob", "", "false", "true", "rocksdb"),
        ("NexmarkJob", "5", "false", "false", "hashmap"),
        ("NexmarkJob", "8", "true", "true", "hashmap"),
    ],
)
def test_jobs_tell_what_they_would_have_told_unmoved(
    entry: str,
    query: str,
    chaining: str,
    then: str,
    backend: str,
    run: Callable,
    rest: Rest,
    flink: Flink,
    jobs: Path,
    cluster: LocalCluster,
    tmp_path: Path,
) -> None:
    """Keyed state, windows, a join and sinks with transactions; two subtasks, no uids.

    A query is first measured and placed by the command that moves it. In the end the job goes on as
    it was first started, by Flink alone.
    """
    given = chained(chaining, backend)
    before = [query] if query else []
    alone = Watched(rest, jobs, tmp_path / f"alone-{entry}", entry, before, given)
    told = alone.finished(alone.start(FAST))
    assert len(told) > 20
    job = Watched(rest, jobs, tmp_path / "moved", entry, before, given)
    running = job.start(SLOW)
    for step, now in enumerate((then, chaining)):
        job.tells_more()
        placement = spread_job(tmp_path / "p.json", rest, running, cluster.devices, step)
        options = () if query and not step else ("--placement", placement)
        running = job.move(run, flink.home, *options, settings=chained(now, backend))
    job.tells_more()
    assert job.resumed(running) == told

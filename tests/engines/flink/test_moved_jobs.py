"""Jobs as others write them, moved twice by one command: results are as if they had not moved."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from moved_jobs import FAST, SLOW, Watched, settings, write_spread

from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.local.session import LocalCluster
from streamplace.engines.flink.move.saving import stop
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
    job, told = watched(settings(chaining, backend), entry)
    running = job.start(SLOW)
    for step, now in enumerate((then, chaining)):
        job.tells_more()
        placement = write_spread(tmp_path / "p.json", rest, running, cluster.devices, step)
        options = ("--placement", placement)
        running = job.move(run, flink.home, *options, settings=settings(now, backend))
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
    given = settings(chaining, "hashmap")
    job, told = watched(given, "NexmarkJob", query)
    running = job.start(SLOW)
    job.tells_more()
    running = job.move(run, flink.home, "--seconds", "2", settings=given)
    job.tells_more()
    placement = write_spread(tmp_path / "p.json", rest, running, cluster.devices, 1)
    running = job.move(run, flink.home, "--placement", placement, settings=given)
    job.tells_more()
    assert job.resumed(running) == told


def test_jobs_placed_together_are_moved_one_after_the_other(
    watched: Callable[..., tuple[Watched, list[str]]],
    run: Callable,
    rest: Rest,
    flink: Flink,
    cluster: LocalCluster,
    tmp_path: Path,
) -> None:
    """Each tells what it would have told alone, and runs where the placement of both says."""
    given = settings("false", "hashmap")
    jobs = {entry: watched(given, entry) for entry in ("EventsJob", "TipsJob")}
    jobs = {
        entry: (replace(job, folder=tmp_path / entry), told) for entry, (job, told) in jobs.items()
    }
    where, running, graphs = ("--rest", rest.url), {}, []
    for i, (entry, (job, _)) in enumerate(jobs.items()):  # so that neither takes whole devices
        running[entry] = job.start(SLOW)
        job.tells_more()
        own = cluster.devices[2 * i : 2 * i + 2]
        placement = write_spread(tmp_path / "own.json", rest, running[entry], own, 1)
        options = ("--job", running[entry], "--placement", placement)
        running[entry] = job.move(run, flink.home, *options, settings=given, beside=i)
    for entry in jobs:
        graphs.append(f"{entry}.json")
        watch = ("--job", running[entry], "--seconds", "2", "-o", graphs[-1])
        at_once = ("--patience", "0")
        assert run("flink", "profile", *where, *watch, *at_once).status == 0
        document = json.loads(Path(graphs[-1]).read_text())
        Path(graphs[-1]).write_text(json.dumps(document | {"name": entry.lower()}))
    assert run("flink", "union", *graphs, "-o", "both.json").status == 0
    watch = ("--job", running["TipsJob"], "--seconds", "2")
    assert run("flink", "cluster", *where, *watch, "-o", "cluster.toml").status == 0
    dealt = (
        "--placer",
        "round-robin",
        "--cluster",
        "cluster.toml",
        "--subtasks",
        "--trust-profile",
    )
    assert run("place", "both.json", *dealt, "-o", "both-placed.json").status == 0
    assert run("flink", "split", "both-placed.json", "-o", "parts").status == 0
    for entry, (job, _) in jobs.items():
        part = ("--placement", f"parts/{entry.lower()}.json")
        options = ("--job", running[entry], *part)
        running[entry] = job.move(run, flink.home, *options, settings=given, beside=1)
        assert run("flink", "verify", *where, "--job", running[entry], *part).status == 0
    paths = {}
    for entry, (job, _) in jobs.items():
        job.tells_more()
        paths[entry] = stop(rest, running[entry], f"{job.folder.as_uri()}-saved")
    for entry, (job, told) in jobs.items():  # as Flink puts it, and so each alone
        assert job.finished(job.start(FAST, paths[entry])) == told

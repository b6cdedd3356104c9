"""Flink 1.20 on a cluster of its own: pinned and moved alike."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from flink_graphs import pipeline
from moved_jobs import FAST, SLOW, Watched, write_spread

from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.local.session import LocalCluster, local_cluster
from streamplace.engines.flink.pin.apply import apply
from streamplace.engines.flink.pin.verify import verify
from streamplace.engines.flink.program.jars import build_jar
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.rest.client import Rest

pytestmark = [pytest.mark.xdist_group("flink"), pytest.mark.slow]
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def old(fetched: Callable[[str], Flink]) -> Iterator[LocalCluster]:
    """Three devices on Flink 1.20."""
    with local_cluster(fetched("1.20.5"), ["dev-0", "dev-1", "dev-2"]) as running:
        yield running


@pytest.fixture(scope="module")
def jar(old: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Jobs, compiled against it."""
    built = tmp_path_factory.mktemp("jar") / "jobs.jar"
    examples = HERE.parents[2] / "examples" / "flink"
    build_jar(old.flink, [examples / "GraphJob.java", *sorted(HERE.glob("java/*.java"))], built)
    return built


def test_flink_1_20_pins_alike(old: LocalCluster, jar: Path) -> None:
    """The internal classes that pinning changes are there, and do the same."""
    vectors = {"op0": ["dev-2"], "op1": ["dev-0", "dev-1", "dev-1"], "op2": ["dev-1"]}
    rest, arguments = Rest(old.url), [json.dumps(pipeline(1, 3, 1))]
    job = apply(rest, old.flink, Program(jar, "GraphJob", arguments), vectors)
    found = verify(rest, job, vectors)
    rest.cancel(job)
    assert found.fine, found


def test_flink_1_20_moves_alike(
    old: LocalCluster, jar: Path, run: Callable, tmp_path: Path
) -> None:
    """A query of Nexmark, twice, to the results of one that was not moved."""
    rest, given = Rest(old.url), {"pipeline.operator-chaining.enabled": "true"}
    alone = Watched(rest, jar, tmp_path / "alone", "NexmarkJob", ["8"], given)
    told = alone.finished(alone.start(FAST))
    job = Watched(rest, jar, tmp_path / "moved", "NexmarkJob", ["8"], given)
    running = job.start(SLOW)
    for step in range(2):
        job.tells_more()
        placement = write_spread(tmp_path / "p.json", rest, running, old.devices, step)
        running = job.move(run, old.flink.home, "--placement", placement, settings=given)
    assert job.resumed(running) == told

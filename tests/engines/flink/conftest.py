"""One Flink cluster of five devices for all tests of a process, and a job of known costs."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from streamplace.engines.flink.apply import apply
from streamplace.engines.flink.dist import VERSION, Flink, fetched_home, find_flink
from streamplace.engines.flink.jars import build_jar
from streamplace.engines.flink.local import LocalCluster, local_cluster
from streamplace.engines.flink.rest import Rest
from streamplace.errors import StreamplaceError

DEVICES = tuple(f"dev-{i}" for i in range(5))
FETCHED = fetched_home(VERSION).parents[2]
"""The user's cache folder, as it is before tests get one of their own."""


@pytest.fixture(scope="session")
def flink() -> Flink:
    """Flink as it is installed or was fetched here; tests that need it are skipped without."""
    if shutil.which("javac") is None:
        pytest.skip("there is no Java (JDK) on this machine")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(FETCHED))
        try:
            return find_flink()
        except StreamplaceError as error:
            pytest.skip(str(error))


@pytest.fixture(scope="session")
def cluster(flink: Flink) -> Iterator[LocalCluster]:
    """A session cluster whose TaskManagers are dev-0 to dev-4."""
    with local_cluster(flink, DEVICES) as running:
        yield running


@pytest.fixture(scope="session")
def graph_jar(flink: Flink, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job that runs any stream graph given as JSON."""
    jar = tmp_path_factory.mktemp("jar") / "graph-job.jar"
    build_jar(flink, [Path(__file__).parents[3] / "examples" / "flink" / "GraphJob.java"], jar)
    return jar


@pytest.fixture
def rest(cluster: LocalCluster) -> Iterator[Rest]:
    """REST of the shared cluster; no job is left on it."""
    answer = Rest(cluster.url)
    yield answer
    for job in answer.get("/jobs")["jobs"]:
        answer.cancel(job["id"])


@pytest.fixture
def submit(rest: Rest, flink: Flink, graph_jar: Path) -> Callable[..., str]:
    """Submit a graph with a placement, operator → devices of its subtasks."""

    def call(graph: dict[str, Any], vectors: dict[str, list[str]]) -> str:
        return apply(
            rest, flink, graph_jar, vectors, entry_class="GraphJob", arguments=[json.dumps(graph)]
        )

    return call

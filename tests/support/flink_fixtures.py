"""Flink, a cluster for all tests of a process, and jobs on it."""

import json
import os
import shutil
from pathlib import Path

import pytest
from flink_clusters import come_back
from flink_jars import build_jar
from kafka import kafka_jars
from pods import VARIABLE, WHY_SKIPPED, kubernetes

from streamplace.flink.layout import Layout
from streamplace.flink.local.session import fetch_flink, fetched_home, local_cluster
from streamplace.flink.pin.apply import apply
from streamplace.flink.program.program import Program
from streamplace.flink.rest.client import Rest
from streamplace.flink.versions import DOWNLOADED

FETCHED = fetched_home(DOWNLOADED).parents[2]
"""The user's cache folder, as it is before tests get one of their own."""
TESTS = Path(__file__).parents[1]
EXAMPLES = TESTS.parent / "examples" / "flink"
DEVICES = tuple(f"dev-{i}" for i in range(5))


@pytest.fixture(scope="session")
def fetched():
    """Flink in a version, downloaded once per machine; tests that need it are skipped sans Java."""
    if shutil.which("javac") is None:
        pytest.skip("there is no Java (JDK) on this machine")

    def fetch(version):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_CACHE_HOME", str(FETCHED))
            return fetch_flink(version)

    return fetch


@pytest.fixture(scope="session")
def flink(fetched):
    """Flink in the version that streamplace is made for."""
    return fetched(DOWNLOADED)


@pytest.fixture(scope="session")
def cluster(flink):
    """A session cluster whose TaskManagers are dev-0 to dev-4."""
    with local_cluster(flink, DEVICES) as running:
        yield running


@pytest.fixture(scope="session")
def pods(flink, tmp_path_factory):
    """The one Kubernetes of all tests, which are of the xdist group of its name."""
    if not os.environ.get(VARIABLE):
        pytest.skip(WHY_SKIPPED)
    with kubernetes(flink, tmp_path_factory.mktemp("pods")) as running:
        yield running


@pytest.fixture(scope="session")
def graph_jar(flink, tmp_path_factory):
    """A job that runs any stream graph given as JSON."""
    jar = tmp_path_factory.mktemp("jar") / "graph-job.jar"
    build_jar(flink, [EXAMPLES / "GraphJob.java"], jar)
    return jar


@pytest.fixture(scope="session")
def log_jar(flink, tmp_path_factory):
    """The example that sets the parallelism of one operator."""
    jar = tmp_path_factory.mktemp("jar") / "log.jar"
    build_jar(flink, [EXAMPLES / "LogJob.java"], jar)
    return jar


@pytest.fixture(scope="session")
def jobs(flink, tmp_path_factory):
    """A jar of jobs as others write them."""
    jar = tmp_path_factory.mktemp("jar") / "jobs.jar"
    build_jar(flink, sorted((TESTS / "flink" / "java").glob("*.java")), jar)
    return jar


@pytest.fixture
def rest(cluster):
    """REST of the shared cluster; no job is left on it.

    A TaskManager that has ended is started again: cancelling PyFlink's jobs may end some.
    """
    answer = Rest(cluster.url)
    for device in cluster.devices:
        if cluster.processes[device].poll() is not None:
            come_back(answer, cluster, device)
    cluster.wait()
    yield answer
    for job in answer.live_jobs():
        answer.cancel(job)
    answer.wait_released()


@pytest.fixture
def submit(rest, graph_jar):
    """Submit a graph with a placement, operator → devices of its subtasks."""

    def call(graph, vectors):
        program = Program(graph_jar, "GraphJob", [json.dumps(graph)])
        return apply(rest, program, Layout(vectors))

    return call


@pytest.fixture
def kafka_libraries(flink, tmp_path_factory, monkeypatch):
    """Folders that a page names by variables."""
    folder = tmp_path_factory.mktemp("jars")
    for jar in kafka_jars():
        (folder / jar.name).symlink_to(jar)
    places = {"KAFKA": folder, "FLINK": flink.home, "FLINK_HOME": flink.home, "CLONE": TESTS.parent}
    for name, value in places.items():
        monkeypatch.setenv(name, str(value))

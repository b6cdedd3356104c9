"""Exports written to a folder; one Flink cluster for all tests of a process."""

import json
import os
from functools import cache
from pathlib import Path

import pytest
from engine_deployments import DEPLOYMENTS
from flink_clusters import come_back
from flink_jars import build_jar
from module_files import module_of
from pods import VARIABLE, WHY_SKIPPED, kubernetes

from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.local.session import local_cluster
from streamplace.engines.flink.pin.apply import apply
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.rest.client import Rest
from streamplace.engines.registry import EXPORTS

collect_ignore = ["golden"]


EXAMPLES = Path(__file__).parents[2] / "examples" / "flink"
DEVICES = tuple(f"dev-{i}" for i in range(5))


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
    build_jar(flink, sorted((Path(__file__).parent / "flink" / "java").glob("*.java")), jar)
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


@pytest.fixture(scope="session")
def check_manifest():
    """Check of a manifest by the schemas of Kubernetes itself; unknown fields are faults.

    A schema is read once: the definitions that all share are large.
    """
    validator = pytest.importorskip("kubernetes_validate")
    newest = validator.latest_version()
    with pytest.MonkeyPatch.context() as patch:
        read = cache(validator.utils.schema_contents)
        patch.setattr(validator.utils, "schema_contents", read)
        yield lambda document: validator.validate(document, newest, strict=True)


@pytest.fixture
def written(tmp_path):
    """Write an export of a named deployment into an empty folder, and return the folder."""

    def write(export, deployment="shop"):
        for name, text in EXPORTS[export].files(DEPLOYMENTS[deployment]).items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return tmp_path

    return write


@pytest.fixture
def module(written):
    """Import ``placement.py`` of an export of a named deployment."""

    def load(export, deployment="shop"):
        return module_of(written(export, deployment) / "placement.py")

    return load

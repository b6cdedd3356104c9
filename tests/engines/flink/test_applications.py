"""The applications' jobs are the graphs that stand in their files."""

import json
from pathlib import Path

import pytest

from streamplace.engines.flink.dist import Flink
from streamplace.engines.flink.jars import build_jar
from streamplace.engines.flink.local import LocalCluster, local_cluster
from streamplace.engines.flink.plan import read_plan
from streamplace.engines.flink.rest import Rest

pytestmark = pytest.mark.xdist_group("flink")

FOLDER = Path(__file__).parents[3] / "datasets" / "applications"
FILES = sorted(FOLDER.glob("*.json"))


def test_jobs_have_the_operators_and_streams_of_their_files(flink: Flink, tmp_path: Path) -> None:
    """All of them come up, too."""
    built = tmp_path / "applications.jar"
    build_jar(flink, sorted(FOLDER.joinpath("jobs").glob("*.java")), built)
    unchained = {"pipeline.operator-chaining.enabled": False}
    with local_cluster(flink, ["dev-0"], settings=unchained, layers=1) as cluster:
        assert_all_agree(cluster, built)


def assert_all_agree(cluster: LocalCluster, built: Path) -> None:
    """Start every job for a moment, and compare it with its file."""
    rest = Rest(cluster.url)
    jar = rest.upload(built)
    for file in FILES:
        document = json.loads(file.read_text("utf-8"))
        job = rest.run_jar(jar, Path(document["attributes"]["job"]).stem, ["1"])
        rest.wait_running(job)
        _, tasks, edges = read_plan(rest, job)
        rest.cancel(job)
        names = {task.id: task.name for task in tasks}
        streams = [(names[edge.source], names[edge.target]) for edge in edges]
        assert sorted(names.values()) == sorted(row["name"] for row in document["operators"])
        assert sorted(streams) == sorted((row["from"], row["to"]) for row in document["streams"])

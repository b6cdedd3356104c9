"""The applications' jobs are the graphs that stand in their files."""

import json
from pathlib import Path

import pytest

from streamplace.engines.flink.dist import Flink
from streamplace.engines.flink.jars import build_jar
from streamplace.engines.flink.local import LocalCluster
from streamplace.engines.flink.names import operator_name
from streamplace.engines.flink.rest import Rest

pytestmark = pytest.mark.xdist_group("flink")

FOLDER = Path(__file__).parents[3] / "datasets" / "applications"
FILES = sorted(FOLDER.glob("*.json"))


@pytest.fixture(scope="module")
def jar(flink: Flink, cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> str:
    """All jobs, uploaded."""
    built = tmp_path_factory.mktemp("applications") / "applications.jar"
    build_jar(flink, sorted(FOLDER.joinpath("jobs").glob("*.java")), built)
    return Rest(cluster.url).upload(built)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_job_has_the_operators_and_streams_of_its_file(file: Path, jar: str, rest: Rest) -> None:
    """As Flink plans it, without running it."""
    document = json.loads(file.read_text("utf-8"))
    entry = Path(document["attributes"]["job"]).stem
    unchained = {"pipeline.operator-chaining.enabled": "false"}
    asked = {"entryClass": entry, "programArgsList": ["1"], "flinkConfiguration": unchained}
    nodes = rest.post(f"/jars/{jar}/plan", asked)["plan"]["nodes"]
    names = {node["id"]: operator_name(node["description"]) for node in nodes}
    streams = [
        (names[one["id"]], names[node["id"]]) for node in nodes for one in node.get("inputs", ())
    ]
    assert sorted(names.values()) == sorted(row["name"] for row in document["operators"])
    assert sorted(streams) == sorted((row["from"], row["to"]) for row in document["streams"])

"""The applications' jobs are the graphs that stand in their files."""

import json
from pathlib import Path

import pytest

from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.program.jars import build_jar
from streamplace.engines.flink.rest.client import Rest
from streamplace.engines.flink.rest.plan import read_plan

pytestmark = pytest.mark.xdist_group("flink")

FOLDER = Path(__file__).parents[3] / "datasets" / "applications"
FILES = sorted(FOLDER.glob("*.json"))


@pytest.mark.slow
def test_jobs_have_the_operators_and_streams_of_their_files(
    rest: Rest, flink: Flink, tmp_path: Path
) -> None:
    """All of them come up, too."""
    built = tmp_path / "applications.jar"
    build_jar(flink, sorted(FOLDER.joinpath("jobs").glob("*.java")), built)
    jar = rest.upload(built)
    for file in FILES:
        document = json.loads(file.read_text("utf-8"))
        request = {
            "entryClass": Path(document["attributes"]["job"]).stem,
            "programArgsList": ["1"],
            "flinkConfiguration": {"pipeline.operator-chaining.enabled": "false"},
        }
        job: str = rest.post(f"/jars/{jar}/run", request)["jobid"]
        rest.wait_running(job)
        _, tasks, edges = read_plan(rest, job)
        rest.cancel(job)
        names = {task.id: task.name for task in tasks}
        streams = [(names[edge.source], names[edge.target]) for edge in edges]
        assert sorted(names.values()) == sorted(row["name"] for row in document["operators"])
        assert sorted(streams) == sorted((row["from"], row["to"]) for row in document["streams"])

"""Jobs of the data sets as their files say, and examples that run on a Flink of their own."""

import json
import runpy
from pathlib import Path

import pytest
from flink_clusters import await_flow, posted

from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.program.jars import build_jar
from streamplace.engines.flink.rest.client import Rest
from streamplace.engines.flink.rest.plan import read_plan

pytestmark = [pytest.mark.xdist_group("flink"), pytest.mark.slow]
EXAMPLES = Path(__file__).parents[3] / "examples"
APPLICATIONS = EXAMPLES.parent / "datasets" / "applications"


def test_the_loop_ends_verified(flink: Flink, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "flink_loop.py"))["run"](flink, seconds=2)
    told = capsys.readouterr().out
    assert "verified: every subtask runs where it was placed" in told
    assert "| streamplace |" in told


def test_every_subtask_of_the_log_jobs_source_writes_lines_that_are_parsed(
    rest: Rest, flink: Flink, tmp_path: Path
) -> None:
    """The second of them counts from the middle of all numbers, where products overflow."""
    build_jar(flink, [EXAMPLES / "flink" / "LogJob.java"], tmp_path / "log.jar")
    job = posted(rest, tmp_path / "log.jar", "LogJob", "400", parallelism=2)
    rest.wait_running(job)
    await_flow(rest, job)
    assert rest.state(job) == "RUNNING", rest.failure(job)


def test_jobs_have_the_operators_and_streams_of_their_files(
    rest: Rest, flink: Flink, tmp_path: Path
) -> None:
    """All of them come up, too."""
    built = tmp_path / "applications.jar"
    build_jar(flink, sorted(APPLICATIONS.joinpath("jobs").glob("*.java")), built)
    jar = rest.upload(built)
    for file in sorted(APPLICATIONS.glob("*.json")):
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

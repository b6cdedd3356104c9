"""Key groups of a real job: what its subtasks read, beside what the model says of them."""

import json
import time
from pathlib import Path
from urllib.parse import quote
from urllib.request import urlopen

import pytest

from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.measure.profile import profile
from streamplace.engines.flink.program.jars import build_jar
from streamplace.engines.flink.rest.client import Rest
from streamplace.model.expansion import expand

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("flink")]
ROOT = Path(__file__).parents[3]
JOBS = [
    file
    for folder in ("benchmarks/jobs", "datasets/applications/jobs")
    for file in sorted((ROOT / folder).glob("*.java"))
]
GROUPS, TUPLES, SECONDS = 6, 50_000, 120.0
TWO = {"parallelism.default": "2"}
SETTINGS = {"pipeline.max-parallelism": str(GROUPS)}


def submitted(rest: Rest, flink: Flink, folder: Path, program: list[str], **settings: str) -> str:
    """Id of a job of the benchmarks that runs; the program is its class and its arguments."""
    jar = folder / "jobs.jar"
    build_jar(flink, JOBS, jar)
    request = {
        "entryClass": program[0],
        "programArgsList": program[1:],
        "flinkConfiguration": settings,
    }
    started = rest.post(f"/jars/{quote(rest.upload(jar), safe='')}/run", request)
    rest.wait_running(started["jobid"])
    return str(started["jobid"])


@pytest.fixture
def job(rest: Rest, flink: Flink, tmp_path: Path) -> str:
    """Readings of 10,000 meters, which four subtasks average in six key groups."""
    return submitted(rest, flink, tmp_path, ["Readings", "5000"], **SETTINGS)


def read_counts(rest: Rest, job: str, task: str) -> list[int]:
    """Tuples that each of the subtasks of a task has read so far."""
    vertex = next(v for v in rest.job(job)["vertices"] if v["name"] == task)
    names = [f"{i}.numRecordsIn" for i in range(vertex["parallelism"])]
    path = f"/jobs/{job}/vertices/{vertex['id']}/metrics?get={','.join(names)}"
    with urlopen(rest.url + path) as answer:
        counts = {row["id"]: int(row["value"]) for row in json.load(answer)}
    return [counts.get(name, 0) for name in names]


def test_subtasks_read_what_their_key_groups_bring(rest: Rest, job: str) -> None:
    """Two groups, one, two and one; the keys of a group are many, so shares are close."""
    deadline = time.monotonic() + SECONDS
    counts = read_counts(rest, job, "mean")
    while sum(counts) < TUPLES and time.monotonic() < deadline:
        time.sleep(1.0)
        counts = read_counts(rest, job, "mean")
    assert sum(counts) >= TUPLES
    graph = profile(rest, job, 3.0).graph(1000.0)
    assert graph.operators["mean"].max_parallelism == GROUPS
    expansion = expand(graph)
    subtasks = expansion.graph.operators.rows(expansion.subtasks("mean"))
    rates = expansion.graph.input_rate[subtasks]
    assert (rates / rates.sum()).tolist() == pytest.approx([2 / 6, 1 / 6, 2 / 6, 1 / 6])
    shares = [count / sum(counts) for count in counts]
    assert shares == pytest.approx((rates / rates.sum()).tolist(), rel=0.1)


def test_popular_keys_are_counted_by_subtask(rest: Rest, flink: Flink, tmp_path: Path) -> None:
    """Half of all readings are of one machine; its subtask reads those and a part of the rest."""
    job = submitted(rest, flink, tmp_path, ["Alarms", "5000", "0.5"], **TWO)
    seen = profile(rest, job, 15.0)
    largest = [(max(own), len(own)) for own in seen.shares.values()]
    assert largest
    for share, number in largest:
        assert share == pytest.approx(0.5 + 0.5 / number, abs=0.05)

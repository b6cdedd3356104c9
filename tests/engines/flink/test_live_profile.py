"""Profiles of real jobs, against their truth."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from flink_clusters import await_flow, submitted

from streamplace.engines.flink.cpu.threads import OF_PROCESS
from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.measure import sampling
from streamplace.engines.flink.measure.graph import measured_graph
from streamplace.engines.flink.measure.profile import JobProfile, profile
from streamplace.engines.flink.move.interruption import LAUNCH_SECONDS, expected_interruptions
from streamplace.engines.flink.program.jars import build_jar
from streamplace.engines.flink.rest.client import Rest
from streamplace.model.expansion import expand
from streamplace.model.graph import StreamGraph

pytestmark = [pytest.mark.xdist_group("flink"), pytest.mark.slow]
ROOT = Path(__file__).parents[3]
TRIES, SECONDS, ALIKE = 6, 15.0, 0.1
CHAINED = "pipeline.operator-chaining.enabled"
JOB = {
    "name": "known",
    "operators": [
        {"name": "src", "rate": 200, "payload": 2000},
        {"name": "light", "rounds": 20_000, "payload": 500},
        {"name": "heavy", "rounds": 400_000, "payload": 8000},
        {"name": "out"},
    ],
    "streams": [
        {"from": "src", "to": "light"},
        {"from": "light", "to": "heavy", "selectivity": 0.5},
        {"from": "heavy", "to": "out", "selectivity": 2},
    ],
}
PLACEMENT = {"src": ["dev-0"], "light": ["dev-1"], "heavy": ["dev-2"], "out": ["dev-3"]}


def looked_at(rest: Rest, job: str, offered: dict[str, float]) -> StreamGraph:
    """A profile of a time in which the machine let the sources send what they offer.

    Where it does not come the last one counts, whatever it says.
    """
    for _ in range(TRIES):
        graph = measured_graph(profile(rest, job, SECONDS), 1000.0)
        rates = dict(zip(graph.operators.name, graph.operators.rate, strict=True))
        if all(rates[name] == pytest.approx(rate, rel=ALIKE) for name, rate in offered.items()):
            break
    return graph


def test_what_operators_do_is_measured(rest: Rest, submit: Callable[..., str]) -> None:
    """Within a tenth of the truth; bytes on the wire carry some framing.

    Heavy works twenty times as much as light; as tuples cost something besides, not with twenty
    times the CPU. Chaining is off, and a quarter of a minute evens other load out.
    """
    graph = looked_at(rest, submit(JOB, PLACEMENT), {"src": 200})
    assert graph.operators.name == ("src", "light", "heavy", "out")
    assert graph.source_rate == pytest.approx(200, rel=0.1)
    selectivity = {stream.source: stream.selectivity for stream in graph.streams}
    assert selectivity == pytest.approx({"src": 1, "light": 0.5, "heavy": 2}, rel=0.1)
    assert graph.operators.payload[:3].tolist() == pytest.approx([2000, 500, 8000], rel=0.1)
    light, heavy = graph.charged_ipt[1:3]
    assert heavy > 5 * light


SATURATED = {
    "name": "saturated",
    "operators": [
        {"name": "src", "rate": 1_000_000, "payload": 2000},
        {"name": "slow", "rounds": 20_000_000},
    ],
    "streams": [{"from": "src", "to": "slow"}],
}


def test_full_queues_prolong_the_expected_interruption(
    rest: Rest, submit: Callable[..., str]
) -> None:
    """Hundreds of tuples wait, each of which takes some ten milliseconds."""
    job = submit(SATURATED, {"src": ["dev-0"], "slow": ["dev-1"]})
    await_flow(rest, job)
    deadline = time.monotonic() + 60
    while expected_interruptions(rest, job).warm.low < 2 * LAUNCH_SECONDS:
        assert time.monotonic() < deadline
        time.sleep(0.5)


FUSED: dict[str, Any] = {
    "name": "fused",
    "chain": True,
    "operators": [
        {"name": "src", "rate": 500, "payload": 100},
        {"name": "other, too", "rate": 100, "payload": 1500},
        {"name": "keep(a -> b)"},
        {"name": "small", "payload": 40},
        {"name": "big", "payload": 4000},
        {"name": "x"},
        {"name": "j"},
    ],
    "streams": [
        {"from": "src", "to": "keep(a -> b)"},
        {"from": "keep(a -> b)", "to": "small", "selectivity": 0.2},
        {"from": "keep(a -> b)", "to": "big", "selectivity": 0.4},
        {"from": "small", "to": "x", "partitioning": "rebalance"},
        {"from": "big", "to": "j", "partitioning": "rebalance"},
        {"from": "other, too", "to": "j", "partitioning": "rebalance"},
    ],
}


def test_fused_operators_are_measured_at_both_ends(rest: Rest, submit: Callable[..., str]) -> None:
    """What enters them, and what each of their streams carries, into a mixed input too."""
    names = [operator["name"] for operator in FUSED["operators"]]
    devices = ["dev-0", "dev-1", *["dev-0"] * 3, "dev-2", "dev-3"]
    job = submit(FUSED, {name: [device] for name, device in zip(names, devices, strict=True)})
    fused = "src -> keep(a -> b) -> small -> big"
    graph = looked_at(rest, job, {fused: 500, "other, too": 100})
    rates = dict(zip(graph.operators.name, graph.operators.rate, strict=True))
    assert rates == pytest.approx({fused: 500, "other, too": 100, "x": 0, "j": 0}, rel=0.1)
    usual = dict(zip(graph.operators.name, graph.operators.payload, strict=True))
    found = {
        (stream.source, stream.target): (stream.selectivity, stream.payload or usual[stream.source])
        for stream in graph.streams
    }
    assert {pair: selectivity for pair, (selectivity, _) in found.items()} == pytest.approx(
        {(fused, "x"): 0.2, (fused, "j"): 0.4, ("other, too", "j"): 1}, rel=0.15
    )
    assert {pair: payload for pair, (_, payload) in found.items()} == pytest.approx(
        {(fused, "x"): 57, (fused, "j"): 4017, ("other, too", "j"): 1517}, rel=0.3
    )


ROUNDS = ("1000", "400000", "40000")
"""Of the three maps with work; each is followed by one without."""


def profiled(rest: Rest, jar: Path, is_chained: str = "true") -> JobProfile:
    """A profile of a job, every subtask of which shares a TaskManager with others."""
    job = submitted(rest, jar, "MapsJob", "150", *ROUNDS, settings={CHAINED: is_chained})
    return profile(rest, job, 6.0)


def worked(seen: JobProfile) -> list[float]:
    """Core seconds per second of the tasks with work, in their order."""
    maps = [task for task in seen.tasks if task.thread_name.startswith("Map")]
    return [seen.cpu[task.id].cores for task in maps[:: len(maps) // len(ROUNDS)]]


@pytest.mark.parametrize("is_chained", ["false", "true"])
def test_the_cpu_is_where_the_work_is(rest: Rest, jobs: Path, is_chained: str) -> None:
    seen = profiled(rest, jobs, is_chained)
    assert not any(one.source for one in seen.cpu.values())
    light, heavy, middle = worked(seen)
    assert heavy > 3 * middle > 3 * light


def test_task_managers_on_other_machines_have_their_cpu_dealt_out(
    rest: Rest, jobs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REST tells what whole TaskManagers took; no operator has more than it was busy."""
    monkeypatch.setattr(sampling, "processes_of", lambda rest: {})
    seen = profiled(rest, jobs)
    assert {one.source for one in seen.cpu.values()} == {OF_PROCESS}
    for task in seen.tasks:
        assert seen.cpu[task.id].cores <= (seen.activity[task.id].busy or 0) * 1.001
    _, heavy, middle = worked(seen)
    assert heavy > middle


@pytest.fixture(scope="module")
def keyed_jobs(flink: Flink, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A jar of the jobs of the benchmarks and of the applications."""
    folders = (ROOT / name for name in ("benchmarks/jobs", "datasets/applications/jobs"))
    jar = tmp_path_factory.mktemp("jar") / "keyed-jobs.jar"
    build_jar(flink, [file for folder in folders for file in sorted(folder.glob("*.java"))], jar)
    return jar


def read_counts(rest: Rest, job: str, task: str) -> list[int]:
    """Tuples that each of the subtasks of a task has read so far."""
    vertex = next(v for v in rest.job(job)["vertices"] if v["name"] == task)
    names = [f"{i}.numRecordsIn" for i in range(vertex["parallelism"])]
    path = f"/jobs/{job}/vertices/{vertex['id']}/metrics?get={','.join(names)}"
    with urlopen(rest.url + path) as answer:
        counts = {row["id"]: int(row["value"]) for row in json.load(answer)}
    return [counts.get(name, 0) for name in names]


def test_subtasks_read_what_their_key_groups_bring(rest: Rest, keyed_jobs: Path) -> None:
    """Of readings of 10,000 meters, which four subtasks average in six key groups.

    These have two groups, one, two and one; the keys of a group are many, so shares are close.
    """
    groups, tuples = 6, 50_000
    settings = {"pipeline.max-parallelism": str(groups)}
    job = submitted(rest, keyed_jobs, "Readings", "5000", settings=settings)
    deadline = time.monotonic() + 120
    while sum(counts := read_counts(rest, job, "mean")) < tuples:
        assert time.monotonic() < deadline
        time.sleep(1.0)
    graph = measured_graph(profile(rest, job, 3.0), 1000.0)
    assert graph.operators["mean"].max_parallelism == groups
    expansion = expand(graph)
    subtasks = expansion.graph.operators.rows(expansion.subtasks("mean"))
    rates = expansion.graph.input_rate[subtasks]
    assert (rates / rates.sum()).tolist() == pytest.approx([2 / 6, 1 / 6, 2 / 6, 1 / 6])
    shares = [count / sum(counts) for count in counts]
    assert shares == pytest.approx((rates / rates.sum()).tolist(), rel=0.1)


def test_popular_keys_are_counted_by_subtask(rest: Rest, keyed_jobs: Path) -> None:
    """Half of all readings are of one machine; its subtask reads those and a part of the rest."""
    settings = {"parallelism.default": "2"}
    seen = profile(
        rest, submitted(rest, keyed_jobs, "Alarms", "5000", "0.5", settings=settings), 15
    )
    largest = [(max(own), len(own)) for own in seen.shares.values()]
    assert largest
    for share, number in largest:
        assert share == pytest.approx(0.5 + 0.5 / number, abs=0.05)


@pytest.mark.parametrize("rate", ["120", "1000"])
def test_the_limit_of_an_operator_that_blocks_is_measured(
    rest: Rest, jobs: Path, rate: str
) -> None:
    """Two subtasks sleep 5 ms per tuple: no more than 200/s each, also where they are offered less.

    What waits for a core, on a busy machine, is no part of the limit.
    """
    job = submitted(rest, jobs, "BlockingJob", rate, "5", "2")
    graph = measured_graph(profile(rest, job, SECONDS), 1000.0)
    assert graph.operators["look up"].max_rate == pytest.approx(200, rel=0.2)
    assert [row.name for row in graph.operators if row.max_rate] == ["look up"]
    assert "max_rate of look up: it waits" in str(graph.attributes["unmeasured"])

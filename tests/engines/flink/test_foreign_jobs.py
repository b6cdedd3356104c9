"""Jobs that others write, on a real cluster: state, SQL, open parallelism, jobs beside others."""

import json
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from flink_clusters import TALLY, flink_run, mover, pipeline

from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.local.session import LocalCluster
from streamplace.engines.flink.measure.graph import measured_graph
from streamplace.engines.flink.measure.profile import profile
from streamplace.engines.flink.move.savepoints import Savepoint, last_kept, stop
from streamplace.engines.flink.pin.apply import apply, check
from streamplace.engines.flink.pin.pinning import SpreadLimits, pinning
from streamplace.engines.flink.pin.verify import verify
from streamplace.engines.flink.program.jars import compile_java, placed_java
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.rest.client import FlinkError, Rest

pytestmark = pytest.mark.xdist_group("flink")
Start = Callable[..., str]

SQL = {
    "bids": ["dev-1"],
    "Calc": ["dev-1"],
    "WindowAggregate": ["dev-3", "dev-4"],
    "Calc (2)": ["dev-3", "dev-4"],
    "totals": ["dev-3", "dev-4"],
}

ROCKS = {"state.backend.type": "rocksdb"}


def placed(triple: str, count: str) -> dict[str, list[str]]:
    """Operators of the job with state; two subtasks of each that leaves their number open."""
    return {
        "numbers": ["dev-0"],
        "triple": [triple] * 2,
        "count": [count] * 2,
        "nowhere": [count] * 2,
    }


@pytest.fixture
def start(rest: Rest, flink: Flink, jobs: Path) -> Start:
    """Apply a placement to the job with state."""

    def call(vectors: dict[str, list[str]], *names: str, savepoint: str | None = None) -> str:
        restored = None if savepoint is None else Savepoint(savepoint)
        return apply(
            rest, flink, Program(jobs, "StateJob", names), Layout(vectors), savepoint=restored
        )

    return call


def free_memory(rest: Rest) -> dict[str, int]:
    """Managed memory that no slot has taken, by TaskManager, in MB."""
    return {row["id"]: row["freeResource"]["managedMemory"] for row in rest.task_managers()}


def test_a_job_gets_its_parallelism_its_memory_and_its_state_wherever_it_is_placed(
    rest: Rest, start: Start, tmp_path: Path
) -> None:
    """The slots of the operator with state share what their TaskManager has."""
    before, vectors, names = free_memory(rest), placed("dev-1", "dev-2"), ("triple", "count", "c-1")
    job = start(vectors, *names)
    assert verify(rest, job, Layout(vectors)).fine
    assert before["dev-2"] >= 64
    assert free_memory(rest) == before | {"dev-2": 0}

    savepoint = stop(rest, job, tmp_path.as_uri())
    assert last_kept(rest, job) == savepoint
    elsewhere = placed("dev-0", "dev-3")
    job = start(elsewhere, *names, savepoint=savepoint)
    assert verify(rest, job, Layout(elsewhere)).fine
    assert rest.get(f"/jobs/{job}/checkpoints")["latest"]["restored"]["external_path"] == savepoint


@pytest.mark.slow
def test_a_job_takes_no_more_managed_memory_than_it_may_and_never_none(
    rest: Rest, flink: Flink, jobs: Path
) -> None:
    """RocksDB with nothing would crawl, so the job is refused."""
    vectors, before = placed("dev-1", "dev-2"), free_memory(rest)
    program = Program(jobs, "StateJob", ("triple", "count"), managed_mb=1)
    told = "'dev-2' has 1 MB of managed memory left for 2 slots that need it"
    with pytest.raises(FlinkError, match=told):
        apply(rest, flink, program, Layout(vectors))
    apply(rest, flink, replace(program, managed_mb=20), Layout(vectors))
    assert free_memory(rest) == before | {"dev-2": before["dev-2"] - 20}


@pytest.mark.slow
def test_state_that_no_operator_takes_over_is_refused(
    rest: Rest, flink: Flink, jobs: Path, start: Start, tmp_path: Path
) -> None:
    """By what can be done; nothing is left running."""
    tally = Program(jobs, "TallyJob", (str(tmp_path), "100"))
    job = apply(rest, flink, tally, Layout({name: ["dev-0"] for name in TALLY}))
    path = stop(rest, job, tmp_path.as_uri())
    with pytest.raises(FlinkError, match="operators that this job does not have"):
        start(placed("dev-1", "dev-2"), "triple", "count", savepoint=path)
    assert rest.live_jobs() == []


@pytest.mark.slow
def test_sql_runs_where_it_was_placed_by_flink_run_and_through_rest(
    rest: Rest, flink: Flink, jobs: Path, cluster: LocalCluster, tmp_path: Path
) -> None:
    """With the exported classes in the jar, and then moved with its windows.

    In a process of its own the planner numbers operators from 1, in the JobManager it goes on.
    """
    for name, text in placed_java(
        pinning(Layout(SQL), SpreadLimits.untouched(cluster.devices))
    ).items():
        (tmp_path / name).write_text(text)
    compile_java(flink, sorted(tmp_path.glob("*.java")), tmp_path)
    jar = shutil.copyfile(jobs, tmp_path / "jobs.jar")
    with zipfile.ZipFile(jar, "a") as opened:
        for path in tmp_path.glob("*.class"):
            opened.write(path, path.name)
    flink_run(flink, tmp_path, cluster.url, "-c", "Placed", str(jar), "SqlJob")
    (job,) = rest.live_jobs()
    rest.wait_running(job)
    found = verify(rest, job, Layout(SQL))
    assert found.fine, found
    seen = measured_graph(profile(rest, job, 2), 2500).operators
    assert "Calc(select=[" in seen["WindowAggregate -> Calc (2) -> totals"].about
    elsewhere = {name: ["dev-0" for _ in devices] for name, devices in SQL.items()}
    move = mover(rest, flink, Program(jobs, "SqlJob"), tmp_path)
    job = move.run(move.plan(job, Layout(elsewhere))).job
    assert verify(rest, job, Layout(elsewhere)).fine


def managed(rest: Rest, job: str) -> list[int]:
    """Managed memory of each slot of a job, in MB."""
    return [
        slot["resource"]["managedMemory"]
        for device in rest.offered()
        for slot in rest.task_manager(device)["allocatedSlots"]
        if slot["jobId"] == job
    ]


@pytest.mark.slow
def test_only_a_job_that_uses_managed_memory_asks_for_it(
    rest: Rest, flink: Flink, jobs: Path, tmp_path: Path
) -> None:
    """State on the heap takes none; a move counts as free what the job itself has, and no more."""
    heap = Program(jobs, "TallyJob", (str(tmp_path), "100"))
    rocks = Program(jobs, "TallyJob", (str(tmp_path), "100"), settings=ROCKS)
    first, second = (apply(rest, flink, program, TALLY) for program in (heap, rocks))
    assert sum(managed(rest, first)) == 0
    assert sorted(managed(rest, second)) == [0, 0, 21, 21, 21, 21]
    third = apply(rest, flink, heap, TALLY)
    check(rest, flink, rocks, TALLY, second)
    with pytest.raises(FlinkError, match=r"'dev-1' has [0-9] MB of managed memory left for [34]"):
        check(rest, flink, rocks, TALLY, first)
    assert all(verify(rest, job, TALLY).fine for job in (first, second, third))


@pytest.mark.slow
def test_a_task_manager_with_too_little_left_is_named(
    rest: Rest, flink: Flink, graph_jar: Path
) -> None:
    """Before the job is submitted: each slot takes a megabyte of heap, and other jobs have some."""
    small = Program(graph_jar, "GraphJob", [json.dumps(pipeline(1, 3))])
    crowded = {"op0": ["dev-0"], "op1": ["dev-0"] * 191}
    job = apply(rest, flink, small, Layout({"op0": ["dev-0"], "op1": ["dev-0"] * 3}))
    told = "'dev-0' has room for 189 slots beside those of other jobs, but 191 are placed on it"
    with pytest.raises(FlinkError, match=told):
        apply(rest, flink, small, Layout(crowded))
    with pytest.raises(FlinkError, match="'op1' has parallelism 3 but is placed for 191"):
        check(rest, flink, small, Layout(crowded), job)

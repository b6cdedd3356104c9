"""Placements on a real cluster, also of jobs that others write, of examples and of data sets."""

import json
import os
import random
import re
import runpy
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flink_clusters import TALLY, await_flow, awaited, flink_run, mover, pipeline, posted, submitted
from flink_jars import build_jar, compile_java

from streamplace.errors import PlacementError
from streamplace.flink import FlinkEngine
from streamplace.flink.engines.flink import placed_py
from streamplace.flink.layout import Layout
from streamplace.flink.local.session import local_cluster
from streamplace.flink.measure.measured_graph import measured_graph
from streamplace.flink.measure.profile import profile
from streamplace.flink.move.savepoints import checkpoint_totals, last_kept, stop
from streamplace.flink.move.settling import MoveSettings
from streamplace.flink.pin.apply import apply, check, verify
from streamplace.flink.pin.pinning import SpreadLimits, pinning
from streamplace.flink.program.jars import placed_java
from streamplace.flink.program.program import Program, Savepoint
from streamplace.flink.rest.client import FlinkError, Rest
from streamplace.flink.rest.plan import job_operators, read_plan

pytestmark = pytest.mark.xdist_group("flink")

SQL = {
    "bids": ["dev-1"],
    "Calc": ["dev-1"],
    "WindowAggregate": ["dev-3", "dev-4"],
    "Calc (2)": ["dev-3", "dev-4"],
    "totals": ["dev-3", "dev-4"],
}

ROCKS = {"state.backend.type": "rocksdb"}


def placed(triple, count):
    """Operators of the job with state; two subtasks of each that leaves their number open."""
    return {
        "numbers": ["dev-0"],
        "triple": [triple] * 2,
        "count": [count] * 2,
        "nowhere": [count] * 2,
    }


@pytest.fixture
def start(rest, jobs):
    """Apply a placement to the job with state."""

    def call(vectors, *names, savepoint=None):
        restored = None if savepoint is None else Savepoint(savepoint)
        return apply(rest, Program(jobs, "StateJob", names), Layout(vectors), savepoint=restored)

    return call


def free_memory(rest):
    """Managed memory that no slot has taken, by TaskManager, in MB."""
    return {row["id"]: row["freeResource"]["managedMemory"] for row in rest.task_managers()}


def test_a_job_gets_its_parallelism_its_memory_and_its_state_wherever_it_is_placed(
    rest, start, tmp_path
):
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
def test_a_job_takes_no_more_managed_memory_than_it_may_and_never_none(rest, jobs):
    """RocksDB with nothing would crawl, so the job is refused."""
    vectors, before = placed("dev-1", "dev-2"), free_memory(rest)
    program = Program(jobs, "StateJob", ("triple", "count"), managed_mb=1)
    with pytest.raises(FlinkError, match=r"'dev-2' .*1 MB .*2 slots"):
        apply(rest, program, Layout(vectors))
    apply(rest, replace(program, managed_mb=20), Layout(vectors))
    assert free_memory(rest) == before | {"dev-2": before["dev-2"] - 20}


@pytest.mark.slow
def test_state_that_no_operator_takes_over_is_refused(rest, jobs, start, tmp_path):
    """By what can be done; nothing is left running."""
    tally = Program(jobs, "TallyJob", (str(tmp_path), "100"))
    job = apply(rest, tally, Layout({name: ["dev-0"] for name in TALLY}))
    path = stop(rest, job, tmp_path.as_uri())
    with pytest.raises(FlinkError):
        start(placed("dev-1", "dev-2"), "triple", "count", savepoint=path)
    assert rest.live_jobs() == []


@pytest.mark.slow
def test_operators_that_nobody_has_named_are_moved(rest, jobs, tmp_path):
    """The program is checked in the JobManager, which its `System.exit` would end with all jobs."""
    kept = {
        "execution.checkpointing.interval": "10 s",
        "execution.checkpointing.dir": (tmp_path / "checkpoints").as_uri(),
    }
    job = submitted(rest, jobs, "UnnamedJob", settings=kept)
    names = [own.name for task in job_operators(rest.running_job(job)) for own in task]
    assert names == ["numbers", "Map", "Map (2)", "Map (3)", "Writer"]
    awaited(lambda: checkpoint_totals(rest, job).completed)
    one, two = (Layout({name: [device] * 2 for name in names}) for device in ("dev-0", "dev-1"))
    with pytest.raises(FlinkError, match="state of an operator"):
        mover(rest, Program(jobs, "UnnamedJob", ("count",)), tmp_path).plan(job, one)
    move = mover(rest, Program(jobs, "UnnamedJob"), tmp_path)
    with pytest.raises(PlacementError, match="'Writer'"):
        move.plan(job, Layout({name: one[name] for name in names[:-1]}))
    for layout in (one, two):
        job = move.run(move.plan(job, layout)).job
        assert verify(rest, job, layout).fine


@pytest.mark.slow
def test_sql_runs_where_it_was_placed_by_flink_run_and_through_rest(
    rest, flink, jobs, cluster, tmp_path
):
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
    move = mover(rest, Program(jobs, "SqlJob"), tmp_path)
    job = move.run(move.plan(job, Layout(elsewhere))).job
    assert verify(rest, job, Layout(elsewhere)).fine


def managed(rest, job):
    """Managed memory of each slot of a job, in MB."""
    return [
        slot["resource"]["managedMemory"]
        for device in rest.offered()
        for slot in rest.task_manager(device)["allocatedSlots"]
        if slot["jobId"] == job
    ]


@pytest.mark.slow
def test_only_a_job_that_uses_managed_memory_asks_for_it(rest, jobs, tmp_path):
    """State on the heap takes none; a move counts as free what the job itself has, and no more."""
    heap = Program(jobs, "TallyJob", (str(tmp_path), "100"))
    rocks = Program(jobs, "TallyJob", (str(tmp_path), "100"), settings=ROCKS)
    first, second = (apply(rest, program, TALLY) for program in (heap, rocks))
    assert sum(managed(rest, first)) == 0
    assert sorted(managed(rest, second)) == [0, 0, 21, 21, 21, 21]
    third = apply(rest, heap, TALLY)
    check(rest, rocks, TALLY, second)
    with pytest.raises(FlinkError, match=r"'dev-1' has [0-9] MB .*[34]"):
        check(rest, rocks, TALLY, first)
    assert all(verify(rest, job, TALLY).fine for job in (first, second, third))


EXAMPLES = Path(__file__).parents[2] / "examples"
APPLICATIONS = EXAMPLES.parent / "datasets" / "applications"


@pytest.mark.slow
def test_the_loop_ends_verified(flink, capsys):
    runpy.run_path(str(EXAMPLES / "flink_loop.py"))["run"](flink, seconds=2)
    told = capsys.readouterr().out
    assert "verified: every subtask runs where it was placed" in told
    assert "| streamplace |" in told


@pytest.mark.slow
def test_every_subtask_of_the_log_jobs_source_writes_lines_that_are_parsed(rest, log_jar):
    """The second of them counts from the middle of all numbers, where products overflow."""
    job = posted(rest, log_jar, "LogJob", "400", parallelism=2)
    rest.wait_running(job)
    await_flow(rest, job)
    assert rest.state(job) == "RUNNING", rest.failure(job)


@pytest.mark.slow
def test_jobs_have_the_operators_and_streams_of_their_files(rest, flink, tmp_path):
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


def random_vectors(seed, cluster):
    """A pipeline with whole and spread operators, every subtask on a random device."""
    draw = random.Random(seed)
    parallelism = [draw.choice([1, 1, 2, 3, 4, 6]) for _ in range(5)]
    vectors = {
        f"op{i}": [draw.choice(cluster.devices) for _ in range(p)]
        for i, p in enumerate(parallelism)
    }
    return pipeline(*parallelism), vectors


def left(rest):
    """What TaskManagers have left of their resources."""
    return {row["id"]: row["freeResource"]["extendedResources"] for row in rest.task_managers()}


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_random_placements_land_exactly(seed, rest, submit, cluster):
    """Whole operators on their devices, spread ones in their counts."""
    graph, vectors = random_vectors(seed, cluster)
    found = verify(rest, submit(graph, vectors), Layout(vectors))
    assert found.fine, found


def test_cancelled_jobs_can_be_placed_again_elsewhere(rest, submit, cluster):
    """Another placement of the same job, and the group indexes are free again."""
    before = left(rest)
    for device in cluster.devices[1:3]:
        vectors = {"op0": ["dev-0"], "op1": [device], "op2": ["dev-0", device]}
        job = submit(pipeline(1, 1, 2), vectors)
        assert verify(rest, job, Layout(vectors)).fine
        rest.cancel(job)
        rest.cancel(job)  # an ended job is left alone
        assert left(rest) == before


def test_a_job_that_does_not_fit_its_placement_is_refused(submit):
    """Operators that are not placed, and other parallelisms than placed."""
    with pytest.raises(FlinkError, match="'op1'"):
        submit(pipeline(1, 1), {"op0": ["dev-0"]})
    with pytest.raises(FlinkError, match=r"'op1' .*3 .*2"):
        submit(pipeline(1, 3), {"op0": ["dev-0"], "op1": ["dev-0", "dev-1"]})


@pytest.mark.slow
def test_whole_operators_are_placed_and_moved_and_spread_ones_refused(flink, graph_jar, tmp_path):
    """Operators of several subtasks, too; the refusal says which settings spreading needs."""
    with local_cluster(flink, ["a", "b"], layers=0) as bare:
        rest = Rest(bare.url)
        offered = {device: [*names] for device, names in rest.offered().items()}
        assert offered == {"a": ["dev-a"], "b": ["dev-b"]}
        moves = MoveSettings(tmp_path.as_uri(), settle=0.0)
        engine = FlinkEngine(rest, moves=moves)
        program = Program(graph_jar, "GraphJob", [json.dumps(pipeline(1, 2, 3))])
        first = {"op0": ["a"], "op1": ["b"] * 2, "op2": ["a"] * 3}
        second = {"op0": ["b"], "op1": ["b"] * 2, "op2": ["b"] * 3}
        job = engine.apply(program, first)
        assert engine.verify(job, first).fine
        assert engine.move(job, program, first).job == job  # it is there already
        with pytest.raises(PlacementError, match=r"'lim-0'.*config --subtasks'"):
            engine.move(job, program, first | {"op1": ["a", "b"]})
        moved = engine.move(job, program, second)
        assert engine.verify(moved.job, second).fine
        rest.cancel(moved.job)


ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "python"
PYTHON = Path(sys.prefix) / "pyflink" / "bin" / "python"
"""PyFlink and OR-tools cannot share an environment: they ask for different protobufs."""
PYTHON_JARS = [*PYTHON.parents[1].glob("lib/python3*/site-packages/pyflink/opt/flink-python-*")]
"""The part of PyFlink that runs inside TaskManagers."""


@pytest.mark.slow
def test_the_lines_of_the_page_measure_place_and_move_a_job(
    rest, flink, log_jar, tmp_path, monkeypatch, capsys
):
    """The job of the page, on a cluster of the tests."""
    page = (ROOT / "docs" / "how-to" / "flink-moves.md").read_text()
    match = re.search(r'```py title="move.py"\n(.*?)```', page, re.DOTALL)
    imports, lines = match[1].rsplit("\n\n", 1)
    lines = lines.replace("http://localhost:8081", rest.url)
    lines = lines.replace("file:///var/flink/savepoints", (tmp_path / "saved").as_uri())
    shutil.copy(log_jar, tmp_path / "job.jar")
    with zipfile.ZipFile(tmp_path / "job.jar", "a") as jar:
        jar.writestr("META-INF/MANIFEST.MF", "Main-Class: LogJob\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FLINK_HOME", str(flink.home))
    settings = {"pipeline.operator-chaining.enabled": "false"}
    job = submitted(rest, Path("job.jar"), "LogJob", "200", settings=settings)
    await_flow(rest, job)
    names: dict[str, Any] = {}
    exec(f"{imports}\n\n{lines}", names)
    moved, placement = names["moved"], names["placement"]
    assert rest.live_jobs() == [moved.job]
    assert moved.job != names["job"]
    assert verify(rest, moved.job, Layout.of(placement)).fine
    assert capsys.readouterr().out.startswith(moved.job)


@pytest.mark.skipif(not PYTHON_JARS, reason="there is no PyFlink; run: make pyflink")
@pytest.mark.parametrize(
    ("program", "placement"),
    [
        pytest.param(
            "sql_job",
            {"bids": "dev-4", "Calc": "dev-0", "GroupAggregate": "dev-1", "totals": "dev-4"},
            marks=pytest.mark.slow,
        ),
        # the last on the cluster: TaskManagers may end a while after a Python job was cancelled
        (
            "numbers_job",
            {
                "numbers": "dev-2",
                "Map": "dev-0",
                "Map (2)": "dev-1",
                "pick": "dev-1",
                "show": "dev-2",
            },
        ),
    ],
)
def test_a_program_runs_where_it_was_placed(program, placement, rest, cluster, tmp_path):
    """One line of the program is changed, and nothing of streamplace is needed to run it."""
    vectors = {operator: [device] for operator, device in placement.items()}
    code = placed_py(pinning(Layout(vectors), SpreadLimits.untouched(cluster.devices)))
    (tmp_path / "placed.py").write_text(code, encoding="utf-8")
    shutil.copytree(PROGRAMS, tmp_path, dirs_exist_ok=True)
    address = cluster.url.removeprefix("http://").split(":")
    done = subprocess.run(
        [str(PYTHON), f"{program}.py", *address, str(PYTHON_JARS[0])],
        cwd=tmp_path,
        env={**os.environ, "_python_worker_execution_mode": "process"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    job = done.stdout.split()[-1]
    rest.wait_running(job, 120)
    found = verify(rest, job, Layout(vectors))
    assert found.fine, found

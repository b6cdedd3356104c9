"""Operators whose program sets their parallelism, found by planning the program twice."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from moving_cases import cluster_jar

from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.program import fixed
from streamplace.engines.flink.program.fixed import PlannedProgram, fixed_parts, planned_twice
from streamplace.engines.flink.program.jars import build_jar
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.rest.client import FlinkError, Rest
from streamplace.engines.flink.rest.plan import FlinkTask

pytestmark = pytest.mark.xdist_group("flink")
ROOT = Path(__file__).parents[3]
LOG_JOB = ROOT / "examples" / "flink" / "LogJob.java"
JOBS = ROOT / "datasets" / "applications" / "jobs"
NEEDED = ("Application", "Auctions", "NexmarkQ5")


@pytest.fixture(scope="module")
def log_jar(flink: Flink, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example that sets the parallelism of one operator."""
    jar = tmp_path_factory.mktemp("jar") / "log.jar"
    build_jar(flink, [LOG_JOB], jar)
    return jar


def fixed_parallelism(rest: Rest, program: Program) -> dict[str, int]:
    """Operator → parallelism, where the program sets it."""
    planned = planned_twice(rest, program)
    return {planned.name[id_]: number for id_, number in planned.fixed.items()}


def test_what_the_program_sets_is_told(rest: Rest, log_jar: Path) -> None:
    """LogJob says 4 for 'detect' alone, and nothing of it is left on the cluster."""
    before = rest.get("/jars")["files"]
    assert fixed_parallelism(rest, Program(log_jar, "LogJob", ["200"])) == {"detect": 4}
    assert rest.get("/jars")["files"] == before
    assert not rest.live_jobs()


@pytest.mark.slow
def test_a_program_whose_classes_are_in_a_library_is_planned(
    rest: Rest, log_jar: Path, jobs: Path
) -> None:
    """Jars that it names with --library go with it; MixedJob sets all numbers of its own."""
    found = fixed_parallelism(rest, Program(log_jar, "MixedJob", ["100"], [jobs]))
    assert found["numbers"] == 1
    assert found["count"] == found["total"] == 2


@pytest.mark.slow
def test_streams_of_a_fixed_operator_are_forwarded_only_for_its_parallelism(
    rest: Rest, flink: Flink, tmp_path: Path
) -> None:
    """A window over all tuples has one subtask; names of its function change with every plan."""
    jar = tmp_path / "q5.jar"
    build_jar(flink, [JOBS / f"{name}.java" for name in NEEDED], jar)
    planned = planned_twice(rest, Program(jar, "NexmarkQ5", ["200"]))
    (window,) = planned.fixed
    assert planned.name[window].startswith("TriggerWindow(TumblingProcessingTimeWindows(2000)")
    ((source, target),) = planned.loose
    assert (source, planned.name[target]) == (window, "join-max")


def program_plan(**parts: int) -> PlannedProgram:
    """Plan of operators of which some are fixed."""
    names = ("src", "parse", "out", "Window(Count, Job$$Lambda)", "sink")
    ids = {name: f"v{i}" for i, name in enumerate(names)}
    fixed = {ids[name]: number for name, number in parts.items()}
    loose = {(ids["Window(Count, Job$$Lambda)"], ids["sink"])}
    return PlannedProgram({id_: name for name, id_ in ids.items()}, fixed, loose)


def task(name: str, parallelism: int, *texts: str) -> FlinkTask:
    """A task of a running job."""
    return FlinkTask(name, name, name, parallelism, (name,), texts=texts)


def test_a_chain_keeps_its_parallelism_for_one_of_its_operators(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And a program that sets another parallelism than the job has is not its program."""
    monkeypatch.setattr(fixed, "planned_twice", lambda *_: program_plan(parse=4, out=1))
    rest, program = Rest("http://flink:8081"), Program(Path("job.jar"))
    tasks = [task("src -> parse", 4), task("detect", 2), task("out", 1)]
    assert fixed_parts(rest, program, tasks).tasks == {"src -> parse", "out"}
    with pytest.raises(FlinkError, match=r"sets parallelism 4 for .*'parse', which runs with 3"):
        fixed_parts(rest, program, [task("src -> parse", 3)])


def test_operators_are_recognised_by_texts_that_change_with_every_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Windows have the addresses of functions in their texts, and are named otherwise in jobs."""
    window = {"Window(Count, Job$$Lambda)": 1}
    monkeypatch.setattr(fixed, "planned_twice", lambda *_: program_plan(**window))
    tasks = [task("sums", 1, "Window(Count, Job$$Lambda$23/0x7f@12ab)"), task("sink", 1)]
    found = fixed_parts(Rest("http://flink:8081"), Program(Path("job.jar")), tasks)
    assert found.tasks == {"sums"}
    assert found.loose == {("sums", "sink")}


def test_operators_of_one_text_may_have_different_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two windows whose functions have no names; only the addresses of these tell them apart."""
    text = "Window(Count, Job$$Lambda)"
    plan = PlannedProgram({"v0": text, "v1": text}, {"v0": 3, "v1": 1}, set())
    monkeypatch.setattr(fixed, "planned_twice", lambda *_: plan)
    rest, program = Rest("http://flink:8081"), Program(Path("job.jar"))
    texts = [f"Window(Count, Job$$Lambda${i}/0x7f@12a{i})" for i in range(2)]
    tasks = [task("keyed", 3, texts[0]), task("all", 1, texts[1])]
    assert fixed_parts(rest, program, tasks).tasks == {"keyed", "all"}
    with pytest.raises(FlinkError, match=r"sets parallelism 1 or 3 for .* which runs with 2"):
        fixed_parts(rest, program, [task("keyed", 2, texts[0])])


@pytest.mark.parametrize("number", [1, 2, 4])
def test_streams_of_a_fixed_operator_are_loose_whatever_its_parallelism(
    monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Of a source of four subtasks, the plans have one and two of the others; the job has four."""

    def planned(rest: Rest, jar: str, program: Program, default: int) -> dict[str, Any]:
        way = "FORWARD" if number == default else "REBALANCE"
        nodes = {"src": (number, "", ""), "map": (default, "src", way)}
        nodes |= {"sum": (default, "map", "HASH"), "out": (default, "sum", "FORWARD")}
        nodes |= {"even": (default, "map", "REBALANCE"), "all": (default, "src", "BROADCAST")}
        return {
            name: {
                "id": name,
                "description": f"{name}<br/>",
                "parallelism": own,
                "inputs": [{"id": before, "ship_strategy": way}] if before else [],
            }
            for name, (own, before, way) in nodes.items()
        }

    monkeypatch.setattr(fixed, "_planned", planned)
    monkeypatch.setattr(fixed, "check_upload", lambda rest: None)
    monkeypatch.setattr(
        fixed, "uploaded", lambda rest, make: nullcontext(cluster_jar(rest, "job.jar"))
    )
    monkeypatch.setattr(Program, "check", lambda program: None)
    found = planned_twice(Rest("http://flink:8081"), Program(Path("job.jar")))
    assert found.fixed == {"src": number}
    assert found.loose == {("src", "map")}

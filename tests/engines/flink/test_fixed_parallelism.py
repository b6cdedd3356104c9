"""Operators whose program sets their parallelism, found by planning the program twice."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from moving_cases import cluster_jar

from streamplace.engines.flink.advise import fixed_parallelism
from streamplace.engines.flink.advise.fixed_parallelism import (
    PlannedProgram,
    fixed_parts,
    planned_twice,
)
from streamplace.engines.flink.local.dist import Flink
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


def set_by_program(rest: Rest, program: Program) -> dict[str, int]:
    """Operator → parallelism, where the program sets it."""
    planned = planned_twice(rest, program)
    return {planned.name[id_]: number for id_, number in planned.fixed.items()}


def test_what_the_program_sets_is_told(rest: Rest, log_jar: Path) -> None:
    """LogJob says 4 for 'detect' alone, and nothing of it is left on the cluster."""
    before = rest.get("/jars")["files"]
    assert set_by_program(rest, Program(log_jar, "LogJob", ["200"])) == {"detect": 4}
    assert rest.get("/jars")["files"] == before
    assert not rest.live_jobs()


@pytest.mark.slow
def test_a_program_whose_classes_are_in_a_library_is_planned(
    rest: Rest, log_jar: Path, jobs: Path
) -> None:
    """Jars that it names with --library go with it; MixedJob sets all numbers of its own."""
    found = set_by_program(rest, Program(log_jar, "MixedJob", ["100"], [jobs]))
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


WINDOW = "Window(Count, Job$$Lambda)"
TEXTS = [f"Window(Count, Job$$Lambda${i}/0x7f@12a{i})" for i in range(2)]
"""Addresses of functions change with every plan, and are all that tells two windows apart."""
NAMES = {"v0": "src", "v1": "parse", "v2": "out", "v3": WINDOW, "v4": WINDOW, "v5": "sink"}
CHAIN = [("src -> parse", 4, ""), ("detect", 2, ""), ("out", 1, "")]
SUMS = [("keyed", 3, TEXTS[0]), ("all", 1, TEXTS[1]), ("sink", 1, "")]


@pytest.mark.parametrize(
    ("numbers", "tasks", "found"),
    [
        ({"v1": 4, "v2": 1}, CHAIN, {"src -> parse", "out"}),
        ({"v3": 3, "v4": 1}, SUMS, {"keyed", "all"}),
        ({"v1": 3}, CHAIN, "sets parallelism 3 for .*'parse', which runs with 4"),
        ({"v3": 2, "v4": 1}, SUMS, "sets parallelism 1 or 2 for .* which runs with 3"),
    ],
)
def test_tasks_of_fixed_operators_are_found(
    monkeypatch: pytest.MonkeyPatch,
    numbers: dict[str, int],
    tasks: list[tuple[str, int, str]],
    found: set[str] | str,
) -> None:
    """By names or texts; a program that sets other numbers than the job has is not its program."""
    plan = PlannedProgram(NAMES, numbers, {("v4", "v5")})
    monkeypatch.setattr(fixed_parallelism, "planned_twice", lambda *_: plan)
    rest, program = Rest("http://flink:8081"), Program(Path("job.jar"))
    job = [FlinkTask(name, name, name, n, (name,), texts=(text,)) for name, n, text in tasks]
    if isinstance(found, str):
        with pytest.raises(FlinkError, match=found):
            fixed_parts(rest, program, job)
    else:
        loose = {("all", "sink")} if tasks is SUMS else set[tuple[str, str]]()
        assert fixed_parts(rest, program, job) == (found, loose)


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

    monkeypatch.setattr(fixed_parallelism, "_planned", planned)
    monkeypatch.setattr(fixed_parallelism, "check_upload", lambda rest: None)
    monkeypatch.setattr(fixed_parallelism, "jar_copy", lambda *_: nullcontext(Path("job.jar")))
    jar = cluster_jar(Rest("http://flink:8081"), "job.jar")
    monkeypatch.setattr(fixed_parallelism, "uploaded", lambda *_: nullcontext(jar))
    monkeypatch.setattr(Program, "check", lambda program: None)
    found = planned_twice(jar.rest, Program(Path("job.jar")))
    assert found.fixed == {"src": number}
    assert found.loose == {("src", "map")}

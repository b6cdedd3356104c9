"""Operators whose program sets their parallelism, found by planning the program twice."""

import shutil
from pathlib import Path

import pytest

from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.program import fixed
from streamplace.engines.flink.program.fixed import fixed_parallelism, fixed_tasks
from streamplace.engines.flink.program.jars import build_jar
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.rest.client import FlinkError, Rest

pytestmark = pytest.mark.xdist_group("flink")
LOG_JOB = Path(__file__).parents[3] / "examples" / "flink" / "LogJob.java"


def test_what_the_program_sets_is_told(rest: Rest, flink: Flink, tmp_path: Path) -> None:
    """LogJob says 4 for 'detect' alone, and nothing of it is left on the cluster."""
    jar = tmp_path / "log.jar"
    build_jar(flink, [LOG_JOB], jar)
    before = rest.get("/jars")["files"]
    assert fixed_parallelism(rest, Program(jar, "LogJob", ["200"])) == {"detect": 4}
    assert rest.get("/jars")["files"] == before
    assert not rest.live_jobs()


def test_operators_that_fix_different_numbers_are_told(rest: Rest, jobs: Path) -> None:
    """MixedJob sets all of its own: one source and two of each of the others."""
    found = fixed_parallelism(rest, Program(jobs, "MixedJob", ["100"]))
    assert found["numbers"] == 1
    assert found["count"] == found["total"] == 2


def test_a_program_whose_classes_are_in_a_library_is_planned(
    rest: Rest, flink: Flink, jobs: Path, tmp_path: Path
) -> None:
    """Jars that the program names with --library go with it."""
    jar, library = tmp_path / "log.jar", tmp_path / "jobs.jar"
    build_jar(flink, [LOG_JOB], jar)
    shutil.copyfile(jobs, library)
    found = fixed_parallelism(rest, Program(jar, "MixedJob", ["100"], [library]))
    assert found["numbers"] == 1


def test_a_chain_keeps_its_parallelism_for_one_of_its_operators(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And a program that sets another parallelism than the job has is not its program."""
    monkeypatch.setattr(fixed, "fixed_parallelism", lambda *_: {"parse": 4, "out": 1})
    rest, program = Rest("http://flink:8081"), Program(Path("job.jar"))
    tasks = {"src -> parse": 4, "detect": 2, "out": 1}
    assert fixed_tasks(rest, program, tasks) == {"src -> parse", "out"}
    with pytest.raises(FlinkError, match=r"sets parallelism 4 for .*'parse', which runs with 3"):
        fixed_tasks(rest, program, tasks | {"src -> parse": 3})

"""Operators whose program sets their parallelism, found by planning the program twice."""

from pathlib import Path

from streamplace.engines.flink.dist import Flink
from streamplace.engines.flink.fixed import fixed_parallelism
from streamplace.engines.flink.jars import build_jar
from streamplace.engines.flink.program import Program
from streamplace.engines.flink.rest import Rest

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

"""Jobs of the data sets as their files say, and examples that run on a Flink of their own."""

import importlib.util
import json
import os
import resource
import time
from pathlib import Path
from types import ModuleType

import pytest
from benchmark_modules import benchmark_modules
from flink_clusters import await_flow

from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.program.jars import build_jar
from streamplace.engines.flink.rest.client import Rest
from streamplace.engines.flink.rest.plan import read_plan

pytestmark = [pytest.mark.xdist_group("flink"), pytest.mark.slow]
EXAMPLES = Path(__file__).parents[3] / "examples"
APPLICATIONS = EXAMPLES.parent / "datasets" / "applications"


def example(name: str) -> ModuleType:
    """An example as a module."""
    path = EXAMPLES / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Crowd:
    """How many cores others take on this machine, from when it is made until it is asked."""

    def __init__(self) -> None:
        self._began, self._before = time.monotonic(), self._others()

    def cores(self) -> float:
        """On the average."""
        return (self._others() - self._before) / (time.monotonic() - self._began)

    @staticmethod
    def _others() -> float:
        """Core seconds that went to neither this process nor those that it has waited for."""
        user, nice, system, _, _, *rest = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
        ticks = sum(map(int, (user, nice, system, *rest[:3])))
        own = [resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return ticks / os.sysconf("SC_CLK_TCK") - sum(use.ru_utime + use.ru_stime for use in own)


def gains(appendix: ModuleType, flink: Flink) -> dict[tuple[str, str], float]:
    """How much faster it is to spread the operators than to keep them together."""
    measured = {
        (cell.cpu, cell.payload, cell.placement): cell.measured
        for cell in appendix.measured_cells(flink, seconds=5)
    }
    return {
        (cpu, size): measured[cpu, size, "P2"] / measured[cpu, size, "P1"]
        for cpu in ("HIGH", "LOW")
        for size in ("BIG", "SMALL")
    }


def is_as_in_the_paper(gain: dict[tuple[str, str], float]) -> bool:
    """Spread what computes, keep together what talks; with margin."""
    return (
        gain["HIGH", "BIG"] > 1.1
        and gain["HIGH", "SMALL"] > 1.8
        and gain["LOW", "BIG"] < 0.5
        and 0.8 < gain["LOW", "SMALL"] < 1.25
    )


def test_appendix_a_ranks_placements_as_the_paper_does(flink: Flink) -> None:
    """Where neither counts nothing is gained or lost.

    What is measured while others take the cores that the devices should have says nothing.
    """
    appendix = benchmark_modules("flink_appendix_a").flink_appendix_a
    if reason := appendix.why_unlimited():
        pytest.skip(reason)
    needed = appendix.CORES * len(appendix.DEVICES)
    for _ in range(2):
        crowd = Crowd()
        gain = gains(appendix, flink)
        others = crowd.cores()
        if is_as_in_the_paper(gain):
            return
        assert others > (os.cpu_count() or 1) - needed, gain
    pytest.skip(f"others take {others:.1f} cores here, so the devices lack theirs: {gain}")


def test_the_loop_ends_verified(flink: Flink, capsys: pytest.CaptureFixture[str]) -> None:
    example("flink_loop").run(flink, seconds=2)
    told = capsys.readouterr().out
    assert "verified: every subtask runs where it was placed" in told
    assert "| streamplace |" in told


def test_every_subtask_of_the_log_jobs_source_writes_lines_that_are_parsed(
    rest: Rest, flink: Flink, tmp_path: Path
) -> None:
    """The second of them counts from the middle of all numbers, where products overflow."""
    build_jar(flink, [EXAMPLES / "flink" / "LogJob.java"], tmp_path / "log.jar")
    request = {"entryClass": "LogJob", "programArgsList": ["400"], "parallelism": 2}
    job = rest.post(f"/jars/{rest.upload(tmp_path / 'log.jar')}/run", request)["jobid"]
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

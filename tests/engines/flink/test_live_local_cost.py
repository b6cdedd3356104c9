"""The cost of tuples between threads of a real job, told from the work of its operators."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from flink_graphs import pipeline

from streamplace.engines.flink.cpu.threads import processes_of
from streamplace.engines.flink.measure.local_cost import measured_work
from streamplace.engines.flink.measure.profile import profile
from streamplace.engines.flink.rest.client import Rest

pytestmark = [pytest.mark.xdist_group("flink"), pytest.mark.slow]


def test_stacks_of_a_real_job_tell_the_cost_of_its_streams(
    rest: Rest, submit: Callable[..., str]
) -> None:
    """Little work and many tuples: streams take a good part of the CPU, and never all of it."""
    graph = pipeline(1, 1, 1)
    graph["operators"][0]["rate"] = 100_000
    names = [operator["name"] for operator in graph["operators"]]
    before = recordings()
    job = submit(graph, {name: ["dev-0"] for name in names})
    time.sleep(10)
    seen = profile(rest, job, 15)
    measured = seen.graph(1000.0)
    assert str(measured.attributes["local cost"]).startswith("measured by ")
    assert (measured.streams.ipt > 0).all()
    assert measured.operators.ipt.sum() > 0
    cores = [seen.cpu[task.id].cores / seen.tuples[task.id] for task in seen.tasks]
    assert measured.charged_ipt.tolist() == pytest.approx([1e9 * each for each in cores])
    assert recordings() <= before
    for process in processes_of(rest).values():
        command = ["jcmd", str(process), "JFR.check"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert "No available recordings" in done.stdout


def recordings() -> set[Path]:
    """Files of recordings; commands that were killed may have left some."""
    return {*Path("/tmp").glob("streamplace-*.jfr")}


def test_stacks_of_a_chain_tell_the_work_of_its_operators(rest: Rest, jobs: Path) -> None:
    """The second map works three times as much as the third, and the rest does hardly anything."""
    document = {
        "programArgsList": ["100", "100", "1500000", "500000"],
        "entryClass": "ChainJob",
        "flinkConfiguration": {"pipeline.operator-chaining.enabled": "true"},
    }
    job = str(rest.post(f"/jars/{rest.upload(jobs)}/run", document)["jobid"])
    rest.wait_running(job)
    try:
        graph = profile(rest, job, 10).graph(1000.0)
    finally:
        rest.cancel(job)
    work = measured_work(graph, graph.operators.name[0])
    assert work == pytest.approx([0.0, 0.0, 0.75, 0.25], abs=0.1)

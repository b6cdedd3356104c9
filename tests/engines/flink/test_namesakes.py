"""CPU of operators that nobody has named, on a real cluster."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from streamplace.engines.flink.cpu import task_cpu
from streamplace.engines.flink.measure import job_watch
from streamplace.engines.flink.measure.profile import JobProfile, profile
from streamplace.engines.flink.rest.client import Rest

pytestmark = [pytest.mark.xdist_group("flink"), pytest.mark.slow]
ROUNDS = ("1000", "400000", "40000")
"""Of the three maps with work; each is followed by one without."""
RATE, SECONDS = "150", 6.0


def profiled(rest: Rest, jar: Path, settings: Mapping[str, str]) -> JobProfile:
    """A profile of the job, every subtask of which shares a TaskManager with its namesakes."""
    document = {
        "programArgsList": [RATE, *ROUNDS],
        "entryClass": "NamelessJob",
        "flinkConfiguration": dict(settings),
    }
    job = str(rest.post(f"/jars/{rest.upload(jar)}/run", document)["jobid"])
    rest.wait_running(job)
    try:
        return profile(rest, job, SECONDS)
    finally:
        rest.cancel(job)


def worked(seen: JobProfile) -> list[float]:
    """Core seconds per second of the tasks with work, in their order."""
    maps = [task for task in seen.tasks if task.thread_name.startswith("Map")]
    return [seen.cpu[task.id].cores for task in maps[:: len(maps) // len(ROUNDS)]]


@pytest.mark.parametrize("is_chained", ["false", "true"])
def test_threads_of_operators_without_names_are_told_apart(
    rest: Rest, jobs: Path, is_chained: str
) -> None:
    """The CPU is where the work is, though three to six threads bear each name."""
    seen = profiled(rest, jobs, {"pipeline.operator-chaining.enabled": is_chained})
    assert not any(one.source for one in seen.cpu.values())
    light, heavy, middle = worked(seen)
    assert heavy > 3 * middle > 3 * light


def test_namesakes_without_a_log_have_the_cpu_of_their_threads_together(
    rest: Rest, jobs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Busy time says how they share it, and the graph says so of each."""
    monkeypatch.setattr(task_cpu, "received_tasks", lambda process: [])
    seen = profiled(rest, jobs, {"pipeline.operator-chaining.enabled": "true"})
    told = {name for name in seen.graph(1000.0).attributes if name.startswith("cpu of Map")}
    assert len(told) == len(ROUNDS)
    _, heavy, middle = worked(seen)
    assert heavy > middle


def test_task_managers_on_other_machines_have_their_cpu_dealt_out(
    rest: Rest, jobs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REST tells what whole TaskManagers took; no operator has more than it was busy."""
    monkeypatch.setattr(job_watch, "processes_of", lambda rest: {})
    seen = profiled(rest, jobs, {"pipeline.operator-chaining.enabled": "true"})
    assert {one.source for one in seen.cpu.values()} == {task_cpu.OF_PROCESS}
    for task in seen.tasks:
        assert seen.cpu[task.id].cores <= (seen.activity[task.id].busy or 0) * 1.001
    _, heavy, middle = worked(seen)
    assert heavy > middle

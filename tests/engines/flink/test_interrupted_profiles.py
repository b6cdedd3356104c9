"""Profiles of jobs that end, restart or lose subtasks while they are measured."""

from typing import Any

import pytest
from lazy_flink import START, Clock, Vertex
from shop_flink import writing_shop

from streamplace.engines.flink.cpu import task_cpu
from streamplace.engines.flink.measure.profile import profile
from streamplace.engines.flink.rest.client import FlinkError


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("FINISHED", "has finished because it has read all"),
        *((one, f"is {one}, not RUNNING") for one in ("CANCELED", "FAILED", "RESTARTING")),
        ("CREATED", "is CREATED, not RUNNING"),
    ],
)
def test_a_job_that_does_not_run_is_told_by_its_state(clock: Clock, state: str, words: str) -> None:
    """At once: nothing is measured."""
    flink = writing_shop(clock)
    flink.states = [state]
    with pytest.raises(FlinkError, match=f"job job {words}"):
        profile(flink.rest, "job", 10)
    assert not [path for path in flink.requests("GET") if "metrics" in path]
    assert clock.now == START


def test_a_job_that_ends_while_it_is_watched_is_told(clock: Clock) -> None:
    """With the reason, where Flink knows one."""
    flink = writing_shop(clock)
    flink.states = ["RUNNING", "RUNNING", "RESTARTING"]
    with pytest.raises(FlinkError, match=r"is RESTARTING, not RUNNING; .*: .*the reason"):
        profile(flink.rest, "job", 10)
    assert clock.now < START + 1


def test_a_subtask_that_begins_again_is_told(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Although the sums over all subtasks grow on, as those of a young job may."""
    flink = writing_shop(clock)
    usual = flink._subtasks

    def subtasks(vertex: Vertex) -> list[dict[str, Any]]:
        first, *others = usual(vertex)
        return [first | {"attempt": int(clock.now > START + 5)}, *others]

    monkeypatch.setattr(flink, "_subtasks", subtasks)
    with pytest.raises(FlinkError, match="was restarted during the measurement"):
        profile(flink.rest, "job", 10)


def test_a_subtask_without_a_task_manager_is_not_measured(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Flink calls its TaskManager unassigned while other subtasks of its task run."""
    flink = writing_shop(clock)
    flink.process_cpu = {"dev-0": 0.13}
    usual = flink._subtasks

    def subtasks(vertex: Vertex) -> list[dict[str, Any]]:
        first, *others = usual(vertex)
        return [first | {"taskmanager-id": "(unassigned)"}, *others]

    monkeypatch.setattr(flink, "_subtasks", subtasks)
    monkeypatch.setattr(task_cpu, "time", clock)
    profile(flink.rest, "job", 10)
    assert not [path for path in flink.requests("GET") if "unassigned" in path]


def test_a_task_manager_of_ended_tasks_is_not_waited_for(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be gone, as on Kubernetes, where idle ones are released."""
    flink = writing_shop(clock)
    flink.vertices["v3"] = Vertex("Source: file", {}, ends=START)
    flink.process_cpu = {"dev-0": 0.13}
    subtasks, gone = flink._subtasks, {"Source: file": {"taskmanager-id": "gone"}}
    monkeypatch.setattr(
        flink, "_subtasks", lambda v: [row | gone.get(v.name, {}) for row in subtasks(v)]
    )
    profile(flink.rest, "job", 10)
    assert clock.now - START < 12


def test_counts_that_begin_again_are_told(clock: Clock) -> None:
    """A job can restart between two looks."""
    flink = writing_shop(clock)

    def fall() -> None:
        clock.now += 0.25
        if clock.now > START + 5:
            flink.fetched = dict.fromkeys(flink.fetched, 1.0)

    clock.sleep = lambda _: fall()  # type: ignore[method-assign]
    with pytest.raises(FlinkError, match="was restarted during the measurement"):
        profile(flink.rest, "job", 10)

"""Rates of sources in advice, and costs that are scaled, on a Flink that answers as a real one."""

from dataclasses import replace
from typing import Any

import pytest
from lazy_flink import Shop, Vertex, advised, rates

from streamplace.engines.flink.advise.advise import Advice
from streamplace.engines.flink.measure.profile import JobProfile, steady_profile


@pytest.mark.parametrize("status", ["RUNNING", "FINISHED"])
def test_a_source_that_sends_nothing_is_planned_beside_one_that_does(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    """An empty topic, or a file that was read at the start."""
    flink = shop()
    silent = Vertex("Source: more", rates(busy=0.1) | {"Source__more.numRecordsOut": 0})
    flink.vertices = {"v3": silent, **flink.vertices}
    flink.vertices["v1"].inputs = [("v0", "HASH"), ("v3", "HASH")]
    usual = flink._vertex
    more = {"v3": {"status": status}}
    monkeypatch.setattr(flink, "_vertex", lambda v: usual(v) | more.get(v, {}))
    advice = advised(flink)
    assert advice.rate == pytest.approx(200)
    assert advice.plan.machines == {"small": 1}
    assert any("more" in note for note in advice.notes)
    (more,) = (one for one in advice.operators if one.name == "more")
    assert more.cpu == 0  # what it takes per second is not what a tuple takes


def test_a_source_in_the_old_interface_that_is_silent_now_is_planned_beside_others(
    shop: Shop,
) -> None:
    """Nothing of it changes, as Flink does not count its time; it has sent something before."""
    flink = shop()
    times = {"accumulateBusyTimeMs": "NaN", "Source__old.numRecordsOut": 0.0}
    flink.vertices = {"v3": Vertex("Source: old", rates() | times), **flink.vertices}
    flink.vertices["v1"].inputs = [("v0", "HASH"), ("v3", "HASH")]
    flink.counted["v3"] = {"Source__old.numRecordsOut": 600.0}
    assert advised(flink, "200").plan.machines == {"small": 1}


def is_corrected(advice: Advice) -> bool:
    """Whether all costs were scaled, because the job carries another rate than the model says."""
    return any("all costs count" in note for note in advice.notes)


def test_costs_are_not_scaled_for_what_is_offered_to_one_of_two_sources(shop: Shop) -> None:
    """Two full subtasks hold one source back at what the model says; half as much again arrives."""
    flink = shop(process_cpu=dict.fromkeys(("dev-0", "dev-1", "dev-2"), 5.0))
    sent = {"Source__more.numRecordsOut": 100.0, "Source__more.pendingRecords": 50.0}
    more = rates(0, 100, 0, 100 * 400, busy=0.01, blocked=1.0)
    flink.vertices["v3"] = Vertex("Source: more", more | sent)
    heavy = rates(100, 0, 100 * 400, busy=1.94)
    flink.vertices["v4"] = Vertex("heavy", heavy, [("v3", "HASH")])
    advice = advised(flink, "400")
    assert advice.flow.offered == pytest.approx(250)
    assert not is_corrected(advice)


@pytest.mark.parametrize("beside", [0.0, 0.35])
def test_costs_are_not_scaled_for_the_cpu_of_other_jobs(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, beside: float
) -> None:
    """They take it where the job runs now, and not where it is planned."""

    def profiled(*given: Any, **more: Any) -> JobProfile:
        seen = steady_profile(*given, **more)
        assert seen.present is not None
        taken = dict.fromkeys(("dev-0", "dev-1"), beside) if beside else {}
        return replace(seen, present=seen.present._replace(beside=taken))

    monkeypatch.setattr("streamplace.engines.flink.engine.steady_profile", profiled)
    flink = shop(blocked=1.0, process_cpu=dict.fromkeys(("dev-0", "dev-1", "dev-2"), 5.0))
    flink.vertices["v1"].rates = rates(100, 250, 100 * 400, 250 * 40, busy=1.6)
    assert is_corrected(advised(flink, "300")) is not bool(beside)


def test_a_task_manager_that_was_released_when_its_subtasks_ended_hinders_no_advice(
    shop: Shop,
) -> None:
    """Flink still tells that they ran there; what today's machines carry is not known then."""
    flink = shop()
    read = {"v3": Vertex("Source: file", {}, ends=flink.clock.now)}
    flink.vertices = {**read, **flink.vertices}
    flink.vertices["v1"].inputs = [("v0", "HASH"), ("v3", "HASH")]
    subtasks = [{"subtask": i, "attempt": 0, "taskmanager-id": "gone"} for i in range(2)]
    flink.answers["GET /jobs/job/vertices/v3"] = {"subtasks": subtasks}
    advice = advised(flink)
    assert advice.plan.machines == {"small": 1}
    assert advice.carried is None


def test_a_source_that_reads_a_backlog_to_which_nothing_is_added_is_offered_nothing(
    shop: Shop,
) -> None:
    """All of what is offered twice is that of the other source."""
    flink = shop()
    sent = {"Source__more.numRecordsOut": 100.0, "Source__more.pendingRecords": -101.0}
    flink.vertices["v3"] = Vertex("Source: more", rates(0, 100, 0, 100 * 400, busy=0.01) | sent)
    flink.counted["v3"] = {"Source__more.pendingRecords": 1e6}
    flink.vertices["v4"] = Vertex("load", rates(100, 0, 100 * 400, busy=0.05), [("v3", "HASH")])
    advice = advised(flink, "2x")
    assert advice.rate == pytest.approx(200)
    assert advice.plan.graph.operators["src"].rate == pytest.approx(200)


def test_a_job_of_which_no_cpu_is_known_carries_any_rate(shop: Shop) -> None:
    """A SourceFunction that is the whole job: Flink does not tell its busy time."""
    flink = shop()
    source = rates() | {"Source__src.numRecordsOut": 100.0, "accumulateBusyTimeMs": "NaN"}
    flink.vertices = {"v0": Vertex("Source: src -> out: Writer", source)}
    advice = advised(flink)
    text = " ".join(str(advice).split())
    assert "it can carry any rate there, as far as is known." in text
    assert advice.to_json()["current"]["carried"] is None

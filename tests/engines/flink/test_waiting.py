"""Waiting for slots, with a Flink that answers what it is told to, and a clock of our own."""

from collections.abc import Iterator
from typing import Any

import pytest
from scripted_flink import ScriptedFlink, healthy, scripted_flink

from streamplace.engines.flink.rest import client as waiting
from streamplace.engines.flink.rest.client import Rest

DEVICES = tuple(f"dev-{i}" for i in range(100))
NOW = 1_000_000


class Clock:
    """A clock that goes on only when somebody sleeps.

    Attributes
    ----------
    free_at
        When the last slot of the job that has ended is given back.
    """

    def __init__(self) -> None:
        self.now, self.free_at = 0.0, 4.0

    def monotonic(self) -> float:
        """Seconds."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock that waiting goes by."""
    found = Clock()
    monkeypatch.setattr(waiting, "time", found)
    return found


class Busy(ScriptedFlink):
    """A cluster whose TaskManagers have slots of a job that has ended, until a clock says so."""

    def __init__(self, clock: Clock, *others: str) -> None:
        super().__init__(healthy(*DEVICES))
        self.clock, self.others = clock, others
        self.times: list[float] = []

    def answer(self, request: str, document: Any) -> tuple[int, Any]:
        """Status and document, and when it was asked."""
        self.times.append(self.clock.now)
        is_free = self.clock.now >= self.clock.free_at
        held = [{"jobId": job} for job in (*self.others, *(() if is_free else ("gone",)))]
        status, found = super().answer(request, document)
        if request == "GET /taskmanagers":
            rows = found["taskmanagers"]
            left = {"freeResource": {"managedMemory": 0}} if held else {}
            found = {"taskmanagers": [row | left for row in rows]}
        elif request.startswith("GET /taskmanagers/"):
            found = {"allocatedSlots": held}
        return status, found


def summary(job: str, state: str, end: int) -> dict[str, Any]:
    """A job in the overview; one that has not ended runs until now."""
    times = {"start-time": 0, "end-time": end, "duration": NOW if end < 0 else end}
    return {"jid": job, "state": state, **times}


@pytest.fixture
def busy(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Busy]:
    """A hundred TaskManagers with slots of a job that has just ended, and of none that runs."""
    flink = Busy(clock)
    flink.answers["GET /jobs/overview"] = {"jobs": [summary("gone", "CANCELED", NOW - 10)]}
    monkeypatch.setattr("scripted_flink.ScriptedFlink", lambda _: flink)
    with scripted_flink({}):
        yield flink


def most_per_second(times: list[float]) -> int:
    """Largest number of requests within a second."""
    return max(sum(start <= time < start + 0.999 for time in times) for start in times)


def test_slots_are_awaited_by_five_requests_per_second(busy: Busy, clock: Clock) -> None:
    """However many TaskManagers there are; it ends when the slots are free, and not later."""
    Rest(busy.url).wait_released()
    assert clock.free_at <= clock.now < clock.free_at + 0.5
    assert most_per_second(busy.times[1:]) <= 5


def test_beside_another_job_every_task_manager_is_asked_in_turn(busy: Busy, clock: Clock) -> None:
    """Until each was seen without the job that has ended, or ten seconds have passed."""
    busy.others, clock.free_at = ("other",), 1.0
    busy.answers["GET /jobs/overview"]["jobs"].append(summary("other", "RUNNING", -1))
    Rest(busy.url).wait_released(60)
    assert clock.now == pytest.approx(0.2 * (len(DEVICES) + 4))
    assert most_per_second(busy.times[1:]) <= 5
    clock.now, clock.free_at = 0.0, 100.0
    Rest(busy.url).wait_released()
    assert clock.now == pytest.approx(10, abs=0.3)


def test_jobs_that_ended_long_ago_are_not_waited_for(busy: Busy, clock: Clock) -> None:
    """One request tells that there is nothing to wait for."""
    busy.answers["GET /jobs/overview"]["jobs"] = [
        summary("gone", "FINISHED", NOW - 60_000),
        summary("other", "RUNNING", -1),
    ]
    Rest(busy.url).wait_released()
    assert clock.now == 0
    assert len(busy.times) == 1

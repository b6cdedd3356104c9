"""Waiting for slots, with a Flink that answers what it is told to, and a clock of our own."""

from collections.abc import Iterator

import pytest
from fake_flink import FakeFlink, healthy, jobs
from lazy_flink import Clock

from streamplace.engines.flink.rest import client as waiting
from streamplace.engines.flink.rest.client import Rest

DEVICES = tuple(f"dev-{i}" for i in range(100))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock that waiting goes by."""
    found = Clock(0.0)
    monkeypatch.setattr(waiting, "time", found)
    return found


class Busy(FakeFlink):
    """A cluster whose TaskManagers have slots of a job that has ended, until a clock says so.

    Attributes
    ----------
    free_at
        When the last slot of the job that has ended is given back.
    """

    def __init__(self, clock: Clock, *others: str) -> None:
        super().__init__(healthy(*DEVICES))
        self.clock, self.others, self.free_at = clock, others, 4.0
        rows = self.answers["GET /taskmanagers"]["taskmanagers"]
        taken = [row | {"freeResource": {"managedMemory": 0}} for row in rows]
        self.answers["GET /taskmanagers"] = lambda: {
            "taskmanagers": taken if self._held() else rows
        }
        for device in DEVICES:
            self.answers[f"GET /taskmanagers/{device}"] = lambda: {"allocatedSlots": self._held()}

    def _held(self) -> list[dict[str, str]]:
        gone = () if self.clock.now >= self.free_at else ("gone",)
        return [{"jobId": job} for job in (*self.others, *gone)]


@pytest.fixture
def busy(clock: Clock) -> Iterator[Busy]:
    """A hundred TaskManagers with slots of a job that has just ended, and of none that runs."""
    flink = Busy(clock)
    flink.answers["GET /jobs"] = jobs({"gone": "CANCELED"})
    with flink.served():
        yield flink


def test_slots_are_awaited_until_they_are_free(busy: Busy, clock: Clock) -> None:
    """And not longer; each TaskManager is asked until it is free, and then the next one."""
    Rest(busy.url).wait_released()
    assert busy.free_at <= clock.now < busy.free_at + 0.2
    asked = busy.requests("GET")
    assert asked[-len(DEVICES) :] == [f"/taskmanagers/{device}" for device in DEVICES]
    assert len(asked) - len(DEVICES) <= 3 + busy.free_at / waiting.POLL_SECONDS


def test_slots_of_other_jobs_are_not_awaited(busy: Busy, clock: Clock) -> None:
    """Those of the job that has ended are awaited for ten seconds at most."""
    busy.others, busy.free_at = ("other",), 1.0
    busy.answers["GET /jobs"] = jobs({"gone": "CANCELED", "other": "RUNNING"})
    Rest(busy.url).wait_released()
    assert clock.now == pytest.approx(1.0, abs=0.2)
    clock.now, busy.free_at = 0.0, 100.0
    Rest(busy.url).wait_released()
    assert clock.now == pytest.approx(10, abs=0.3)

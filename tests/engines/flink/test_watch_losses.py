"""A TaskManager is lost while a watch moves its job: the job goes on at once without it."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from lazy_flink import Clock
from losing_flink import PATH, LosingFlink, Places
from moving_cases import MemoryFolder
from watched_jobs import OLD, Killed, outcome

from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.move import move as moving
from streamplace.engines.flink.move import transaction
from streamplace.engines.flink.move.move import FlinkMove, MovePlan
from streamplace.engines.flink.move.settings import MoveSettings
from streamplace.engines.flink.move.settling import Settling
from streamplace.engines.flink.pin.pinning import Vectors
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.rest.job_ids import successor
from streamplace.engines.flink.watch import acting
from streamplace.engines.flink.watch.acting import WatchMover
from streamplace.engines.flink.watch.log import WatchLog
from streamplace.engines.flink.watch.placed_job import move_without_lost
from streamplace.engines.flink.watch.plans import JobModel, WatchPlan
from streamplace.engines.flink.watch.watch import settled
from streamplace.io.watch_store import WatchStore
from streamplace.model.intervals import RateInterval

NEW, BACK = successor(OLD), successor(successor(OLD))
CARRIES = RateInterval(90.0, 100.0, 110.0)
BOTH, FEWER, OTHER = ({"map": [*names]} for names in ("ab", "aa", "cc"))


class PlannedMove(FlinkMove):
    """A move of which nothing is checked before."""

    def plan(self, job: str, vectors: Vectors) -> MovePlan:
        """Whatever is placed fits."""
        return MovePlan(job, BOTH, {"map": [*vectors["map"]]})


class Scene:
    """A job on a and b that a watch moves, and the processes of the watch."""

    def __init__(self, folder: Path, managers: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.flink = LosingFlink(OLD, BOTH, *managers)
        self.store = WatchStore(folder / "watch.sqlite")
        self.told: list[str] = []
        self.program = Program(folder / "a.jar")
        self.program.jar.touch()
        self.clock = Clock()
        MemoryFolder.files.clear()
        monkeypatch.setattr(time, "sleep", self.clock.sleep)
        monkeypatch.setattr(time, "monotonic", self.clock.monotonic)
        monkeypatch.setattr(moving, "savepoint_folder", self.flink.folder)
        monkeypatch.setattr(moving, "placed_upload", self.flink.upload)
        monkeypatch.setattr(moving, "fitted", lambda _, places, *__: (places, {}))
        monkeypatch.setattr(moving, "check_saving", lambda *_: None)
        monkeypatch.setattr(transaction, "verify", self.flink.verify)
        monkeypatch.setattr(acting, "source_flow", lambda *_: None)
        request = lambda _, saved: {"savepointPath": saved.path}  # noqa: E731
        monkeypatch.setattr(Program, "run_request", request)

    @property
    def mover(self) -> WatchMover:
        """What a new process of the watch moves the job with."""
        rest = self.flink.rest
        move = PlannedMove(
            rest,
            Flink(Path(), "2.3.0"),
            self.program,
            self.told.append,
            MoveSettings("file:///s", settling=Settling(0.0)),
            without_lost=partial(move_without_lost, rest, ()),
        )
        log = WatchLog.claimed(self.store, OLD, "shop", self.told.append)
        return WatchMover(move, log, self.told.append)

    def moves(self, places: Places) -> str:
        """Move the job; return the id of the one that runs afterwards."""
        now = WatchPlan(2, BOTH, CARRIES)
        model = JobModel(OLD, "shop", (now,), 0, now, "")
        return self.mover.carry_out(model, WatchPlan(1, dict(places), CARRIES), "")

    def begins_again(self) -> str:
        """Start the watch again after it was killed; return the id of the job that runs."""
        self.flink.is_dead, self.flink.kill_at = False, -1
        mover = self.mover
        replacing = SimpleNamespace(is_wanted=True, moved=lambda _: None)
        watch: Any = SimpleNamespace(rest=self.flink.rest, replacing=replacing)
        return settled(watch, mover, mover.log, OLD)


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Scene]:
    """Make a scene with some TaskManagers."""
    return lambda managers: Scene(tmp_path, managers, monkeypatch)


@pytest.mark.parametrize("when", ["stop", "start"])
@pytest.mark.parametrize(
    ("managers", "lost", "target", "found"),
    [
        ("abc", "c", OTHER, "ab"),  # where it was before
        ("abc", "a", FEWER, "cb"),  # a spare stands in
        ("ab", "a", FEWER, "bb"),  # what is left takes over
    ],
)
def test_a_task_manager_that_is_lost_in_a_move_is_not_waited_for(
    scene: Callable[[str], Scene], when: str, managers: str, lost: str, target: Places, found: str
) -> None:
    """Neither after the job was stopped, nor while it starts; it continues from its savepoint."""
    site = scene(managers)
    site.flink.losses[when] = lost
    assert site.moves(target) == BACK
    assert site.flink.alive == {BACK: True}
    assert site.flink.places[BACK] == {"map": [*found]}
    assert outcome(site.store) == ("returned", BACK)
    starts = [given for _, given in site.flink.asked if given and "jobId" in given]
    assert {given["savepointPath"] for given in starts} == {PATH}
    assert len(starts) == (1 if when == "stop" else 2)
    assert site.clock.now < 110


def test_a_move_that_is_finished_later_tells_that_it_compares_no_rates(
    scene: Callable[[str], Scene], tmp_path: Path
) -> None:
    """The rate before it was measured by the command that was killed."""
    whole = scene("abc")
    whole.moves(FEWER)
    whole.store.close()
    (tmp_path / "watch.sqlite").unlink()
    site = scene("abc")
    asked = [request for request, _ in whole.flink.asked]
    site.flink.kill_at = asked.index(f"POST /jobs/{OLD}/stop") + 1
    with pytest.raises(Killed):
        site.moves(FEWER)
    site.flink.is_dead, site.flink.kill_at = False, -1
    settings = MoveSettings("file:///s", settling=Settling(1.0))
    assert replace(site.mover.move, settings=settings).resume(OLD).job == NEW
    told = "the rate before the interruption is not known, so the rates before and after the move"
    assert sum(told in line for line in site.told) == 1


def test_one_copy_runs_whenever_a_watch_is_killed_that_loses_a_task_manager(
    scene: Callable[[str], Scene], tmp_path: Path
) -> None:
    """Before each of its requests, and after each that changes something."""
    whole = scene("abc")
    whole.flink.losses["start"] = "a"
    whole.moves(FEWER)
    asked = [request for request, _ in whole.flink.asked]
    whole.store.close()
    moments = [(n, late) for n, one in enumerate(asked) for late in (False, one[:4] != "GET ")]
    for at, late in dict.fromkeys(moments):
        (tmp_path / "watch.sqlite").unlink()
        site = scene("abc")
        site.flink.losses["start"] = "a"
        site.flink.kill_at, site.flink.kills_late = at, late
        with pytest.raises(Killed):
            site.moves(FEWER)
        job = site.begins_again()
        assert site.flink.alive == {job: True}, asked[at]
        site.store.close()

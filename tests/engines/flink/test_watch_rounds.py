"""Rounds of a watch, with a fake clock and a job whose looks are told."""

from dataclasses import dataclass, field, replace
from datetime import datetime, time
from pathlib import Path
from typing import Any

import pytest
from watched_jobs import plan

from streamplace.control.policy import POLICIES
from streamplace.engines.flink.move.journal import MoveUnderWay
from streamplace.engines.flink.move.state import CheckpointTotals
from streamplace.engines.flink.rest.client import FlinkError, NoAnswer, Rest
from streamplace.engines.flink.watch import rounds as passing
from streamplace.engines.flink.watch.judging import Guards, QuietHours, RateJudge
from streamplace.engines.flink.watch.log import WatchLog
from streamplace.engines.flink.watch.look import JobLook
from streamplace.engines.flink.watch.plans import JobModel, WatchPlan
from streamplace.engines.flink.watch.rounds import JobRounds
from streamplace.errors import SettingError
from streamplace.io.watch_store import StoreError, WatchDecision, WatchStore, utc_now
from streamplace.model.intervals import RateInterval

DEVICES = ("dev-0", "dev-1", "dev-2")


PLANS = (plan("dev-0"), plan("dev-0", "dev-1"), plan(*DEVICES))


def look(rate: float, machines: int = 1, job: str = "job", **facts: Any) -> JobLook:
    """A job that emits a rate on some TaskManagers."""
    usual: dict[str, Any] = {
        "is_limited": False,
        "backlog": None,
        "layout": PLANS[machines - 1].layout,
        "shape": {"map": 1},
        "checkpoints": CheckpointTotals(5, 0),
        "managers": frozenset(DEVICES),
    }
    return JobLook(job, rate, **(usual | facts))


@dataclass
class Scene:
    """A watched job on a clock of its own.

    Attributes
    ----------
    looks
        What is seen, one after the other; errors are raised.
    """

    log: WatchLog
    looks: list[JobLook | Exception] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    moves: list[int] = field(default_factory=list)
    measured: int = 0
    now: float = 1000.0
    hour: int = 12
    failure: Exception | None = None

    def look_at(self, *_: Any) -> JobLook:
        """Next look."""
        seen = self.looks.pop(0)
        if isinstance(seen, Exception):
            raise seen
        return seen

    def model(self, seen: JobLook) -> JobModel:
        """What a measurement finds."""
        self.measured += 1
        level = seen.machines - 1
        return JobModel(seen.job, "shop", PLANS, level, PLANS[level], "the CPU of dev-0")

    def carry_out(self, model: JobModel, target: WatchPlan, reason: str) -> str:
        """Move the job, or fail."""
        if self.failure is not None:
            raise self.failure
        self.moves.append(target.machines)
        return f"{model.job}+"

    def rounds(self, policy: str = "ds2", acts: bool = True, **guards: Any) -> JobRounds:
        """Rounds of one process."""
        made = JobRounds(
            Rest("http://localhost:1"),
            self.log,
            RateJudge(POLICIES[policy].make, 60.0),
            Guards(**guards),
            self.model,
            self if acts else None,  # type: ignore[arg-type]
            self.told.append,
            60.0,
            lambda: self.now,
            lambda: datetime(2026, 5, 4, self.hour, 30),
        )
        made.recall()
        return made

    def passes(self, rounds: JobRounds, *looks: JobLook | Exception) -> list[str]:
        """Pass rounds a minute apart; return what they told."""
        self.looks, before = [*looks], len(self.told)
        for _ in looks:
            assert rounds.is_due
            rounds.pass_round("job")
            self.now += 60
        return self.told[before:]


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """A job that nobody has watched yet."""
    store = WatchStore(tmp_path / "watch.sqlite")
    told: list[str] = []
    made = Scene(WatchLog.claimed(store, "job", "shop", told.append), told=told)
    monkeypatch.setattr(passing, "look_at", made.look_at)
    return made


def test_a_watch_that_only_looks_says_what_would_pay_and_why(scene: Scene) -> None:
    told = scene.passes(scene.rounds(acts=False), look(50), look(95))
    assert told[0].startswith(
        "12:30:00  50 tuples/s on 1 TaskManager; the CPU of dev-0 is used to 50.0 %, and carries "
        "100 tuples/s (90 to 110); stays"
    )
    assert "a move would pay: the present layout may carry only 90 of 95 tuples/s" in told[1]
    assert "dev-0, dev-1 should carry 200 tuples/s (180 to 220)" in told[1]
    assert scene.moves == []
    assert scene.measured == 1


def test_a_job_moves_up_where_its_rate_may_not_be_carried_and_down_where_less_carries_it(
    scene: Scene,
) -> None:
    up = scene.rounds(least_seconds=0.0)
    scene.passes(up, look(80), look(95))
    assert scene.moves == [2]
    told = scene.passes(up, look(50, 2, "job+"))
    assert scene.moves == [2, 1]
    assert "dev-0 alone should carry 100 tuples/s (90 to 110), which saves 1 TaskMan" in told[0]


def test_a_watch_that_has_just_begun_leaves_no_task_managers(scene: Scene) -> None:
    """A single look may be a lull; more TaskManagers are taken at once."""
    told = scene.passes(scene.rounds(), *[look(50, 2)] * 5)
    assert told[0].endswith("saves 1 TaskManager; but it has been watched for 1 min only")
    assert [("the job is moved" in line) for line in told] == [False] * 4 + [True]
    assert scene.moves == [1]


def test_fewer_task_managers_must_carry_what_arrives_now(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if the policy expects less, or would let some tuples be late."""
    rounds = scene.rounds(least_seconds=0.0)
    monkeypatch.setattr(RateJudge, "choose", lambda *_: 0)
    told = scene.passes(rounds, look(95, 2), look(85, 2))
    assert told[0].endswith("stays; fewer TaskManagers may not carry what arrives now")
    assert "the job is moved" in told[1]
    assert scene.moves == [1]


def test_a_move_that_came_back_is_not_repeated_at_once(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second time it is waited for twice as long."""
    rounds, clock = scene.rounds(least_seconds=0.0), [0.0]
    monkeypatch.setattr(passing, "seconds_since", lambda _: clock[0])

    def fails() -> None:
        decision = WatchDecision("", "move", "job", "next", {"map": ["dev-0"]}, (1, 2), "")
        scene.log.end(scene.log.begin(decision), decision, "returned", "it was slower", "job")

    fails()
    told = scene.passes(rounds, look(95))
    assert told[0].endswith("a move to 2 TaskManagers failed, and is tried again in 30 min")
    clock[0] = 1801.0
    assert "the job is moved" in scene.passes(rounds, look(95))[0]
    fails()
    assert "tried again in 29 min 59 s" in scene.passes(rounds, look(95))[0]
    clock[0] = 3601.0
    assert "the job is moved" in scene.passes(rounds, look(95))[0]
    assert scene.moves == [2, 2]


def test_an_own_move_that_changes_chains_is_no_other_controller(scene: Scene) -> None:
    rounds = scene.rounds(least_seconds=0.0)
    scene.passes(rounds, look(95))
    joined = {"source -> map": 1}
    told = scene.passes(rounds, look(50, 2, "job+", shape=joined), look(190, 2, "job+", shape={}))
    assert "another controller" not in told[0]
    assert any("another controller acts" in line for line in told[1:])


def test_what_arrived_before_is_remembered_when_task_managers_join(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new policy that knew one look only would leave TaskManagers in every lull."""
    rounds = scene.rounds("work-function", least_seconds=0.0)
    busy = [look(250, 3)] * 60
    assert "stays" in scene.passes(rounds, *busy)[-1]
    more = (*PLANS, plan(*DEVICES, "dev-3"))
    monkeypatch.setitem(globals(), "PLANS", more)
    rounds._model = None
    assert "stays" in scene.passes(rounds, look(20, 3))[0]
    fresh = scene.rounds("work-function", least_seconds=0.0)
    fresh.judge = RateJudge(POLICIES["work-function"].make, 60.0)
    assert "the job is moved" in scene.passes(fresh, look(20, 3))[0]


def test_what_back_pressure_hides_and_what_waits_counts(scene: Scene) -> None:
    """80 are carried; a fifth more may be offered, and a backlog that grows is offered."""
    assert "stays" in scene.passes(scene.rounds(), look(80))[0]
    assert "is moved" in scene.passes(scene.rounds(), look(88, is_limited=True))[0]
    growing = scene.rounds(least_seconds=0.0)
    told = scene.passes(growing, look(80, backlog=0.0), look(80, backlog=1200.0))
    assert "80 tuples/s, 1200 wait" in told[1]
    assert "only 90 of 100 tuples/s" in told[1]


def test_a_policy_may_wait_although_the_rate_may_not_be_carried(scene: Scene) -> None:
    """The work function lets tuples be late by up to a minute: six rounds of 14 of 90 too many."""
    rounds = scene.rounds("work-function")
    told = scene.passes(rounds, *[look(104)] * 6)
    assert told[0].endswith("stays; the policy does not move it yet")
    assert 1 <= next(n for n, line in enumerate(told) if "the job is moved" in line) <= 5


def test_a_job_is_not_moved_to_where_it_would_carry_no_more(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing carries the rate, so the policy wants all TaskManagers, which promise 5 % more."""
    little = replace(PLANS[2], carries=RateInterval(95.0, 105.0, 115.0))
    monkeypatch.setitem(globals(), "PLANS", (PLANS[0], PLANS[0], little))
    told = scene.passes(scene.rounds(), look(98, is_limited=True))
    assert told[0].endswith("stays, because no layout is known that surely carries more")
    assert scene.moves == []


@pytest.mark.parametrize(
    ("guards", "facts", "told"),
    [
        ({"quiet": (QuietHours.of("08:00-18:00"),)}, {}, "nothing is moved between 08:00 and 18"),
        ({}, {"checkpoints": CheckpointTotals(5, 2)}, "its checkpoints fail"),
        ({}, {"shape": {"map": 4}}, "the parallelism of 'map' is 4 now, not 1"),
    ],
)
def test_guards_keep_what_would_pay_from_being_done(
    scene: Scene, guards: dict[str, Any], facts: dict[str, Any], told: str
) -> None:
    found = scene.passes(scene.rounds(**guards), look(50), look(95, **facts))
    assert told in " ".join(found)
    assert "a move would pay" in found[-1]
    assert scene.moves == []


def test_moves_that_guards_refuse_are_not_charged_to_the_policy(scene: Scene) -> None:
    """It wants them further on, though many would have cost more than it may spend."""
    rounds = scene.rounds("work-function", quiet=(QuietHours.of("08:00-18:00"),))
    scene.passes(rounds, *[look(250, 3)] * 30)
    told = scene.passes(rounds, *[look(80, 3)] * 25)
    assert all("a move would pay: dev-0 alone" in line for line in told[-10:])


def test_checkpoints_fail_until_one_completes(scene: Scene) -> None:
    failed, again = CheckpointTotals(5, 2), CheckpointTotals(6, 2)
    rounds = scene.rounds()
    looks = [look(50), look(95, checkpoints=failed), look(95, checkpoints=failed)]
    scene.passes(rounds, *looks)
    assert scene.moves == []
    scene.passes(rounds, look(95, checkpoints=again))
    assert scene.moves == [2]


def test_moves_keep_the_least_time_also_over_processes(scene: Scene) -> None:
    """The clock for waiting is not the one of the day, which may be set."""
    rounds = scene.rounds(least_seconds=200.0)
    scene.passes(rounds, look(50), look(95))
    scene.hour = 3
    scene.passes(rounds, look(50, 2, "job+"), look(50, 2, "job+"))
    assert "the last move is too recent (for 1 min 20 s more)" in scene.told[-1]
    assert scene.moves == [2]
    scene.passes(rounds, look(50, 2, "job+"), look(50, 2, "job+"))
    assert scene.moves == [2, 1]
    layout: dict[str, list[str] | str] = {"map": ["dev-0"]}
    decision = WatchDecision(utc_now(), "move", "job", "job+", layout, (2, 1), "")
    scene.log.begin(decision)
    told = scene.passes(scene.rounds(least_seconds=1e6), look(95))
    assert "but the last move is too recent" in told[0]


def test_a_model_that_is_contradicted_is_measured_again_but_not_in_every_round(
    scene: Scene,
) -> None:
    """As is one that is old, before the job is moved by it."""
    rounds = scene.rounds("static", acts=False)
    slow = look(60, is_limited=True)
    scene.passes(rounds, look(50), slow)
    assert scene.measured == 1
    scene.passes(rounds, slow, slow)
    assert scene.measured == 2
    old = scene.rounds(least_seconds=0.0)
    scene.passes(old, look(50), *[look(50)] * 6)
    told = scene.passes(old, look(95))
    assert "the job is measured first" in told[0]
    assert scene.moves == []
    scene.now -= 60
    scene.passes(old, look(95))
    assert (scene.moves, scene.measured) == ([2], 4)


def test_a_job_is_measured_again_when_none_of_its_sources_is_held_back_any_more(
    scene: Scene,
) -> None:
    """The model of a job with one such source says nothing about lower rates of the others."""
    rounds = scene.rounds("static", acts=False)
    rounds.model_of = lambda seen: replace(scene.model(seen), kept=40.0 * seen.is_limited)
    scene.passes(rounds, *[look(90, is_limited=True)] * 2)
    assert scene.measured == 1
    scene.passes(rounds, *[look(50)] * 2)
    assert scene.measured == 2
    kept = [one.kept for one in scene.log.store.rounds(scene.log.watch, 9)]
    assert kept == [40.0, 40.0, 0.0, 0.0]


def test_a_rate_outside_its_interval_widens_intervals_until_they_hold(scene: Scene) -> None:
    """The next process goes on with them, and what is sure of a layout is not widened."""
    rounds = scene.rounds("static", acts=False)
    told = scene.passes(rounds, look(50), *[look(rate, is_limited=True) for rate in (80, 85)])
    assert "carries 100 tuples/s (90 to 110)" in told[0]
    assert "carries 100 tuples/s (82.25 to 120.4)" in told[1]
    assert "carries 100 tuples/s (83.08 to 119.2)" in told[2]
    later = scene.rounds("static", acts=False)
    assert "carries 100 tuples/s (83.08 to 119.2)" in scene.passes(later, look(50))[0]
    seen = scene.log.store.rounds(scene.log.watch, 9)
    assert [one.held for one in seen] == [None, False, True, None]
    assert seen[1].capacity == pytest.approx([90 / 1.0941743, 180 / 1.0941743, 270 / 1.0941743])


def test_without_confidence_intervals_stay_points(scene: Scene) -> None:
    rounds = scene.rounds("static", acts=False)
    rounds.confidence = 0.0
    told = scene.passes(rounds, look(50), look(80, is_limited=True))
    assert "carries 100 tuples/s (90 to 110)" in told[1]


def test_another_layout_says_nothing_about_the_interval_of_the_last(scene: Scene) -> None:
    rounds = scene.rounds("static", acts=False)
    scene.passes(rounds, look(95), look(150, 2), look(150, 2))
    seen = scene.log.store.rounds(scene.log.watch, 9)
    assert [one.held for one in seen] == [None, None, None]


def test_a_job_that_cannot_be_measured_is_looked_at_further(scene: Scene) -> None:
    """The reason is told once."""
    rounds = scene.rounds()
    rounds.model_of = lambda _: (_ for _ in ()).throw(FlinkError("not warm"))
    told = scene.passes(rounds, look(50), look(50))
    assert told == [
        "note: the job is not measured: not warm",
        "12:30:00  50 tuples/s on 1 TaskManager",
        "12:30:00  50 tuples/s on 1 TaskManager",
    ]


def test_where_another_command_moves_the_job_nothing_is_moved_any_more(scene: Scene) -> None:
    rounds = scene.rounds(least_seconds=0.0)
    scene.failure = MoveUnderWay("job job is being moved, by process 1 of me on host")
    scene.passes(rounds, look(50), look(95))
    scene.failure = None
    told = scene.passes(rounds, look(95))
    assert "but another controller acts on this job: job job is being moved" in told[-1]
    assert scene.moves == []


def test_a_round_without_an_answer_is_no_round(scene: Scene) -> None:
    rounds = scene.rounds()
    with pytest.raises(NoAnswer):
        scene.passes(rounds, NoAnswer("gone"))
    assert "stays" in scene.passes(rounds, look(50))[0]


def test_a_full_disk_stops_moves_and_not_the_watch(scene: Scene) -> None:
    """It is told once, and when there is room again."""
    rounds = scene.rounds()
    database = scene.log.store._database
    scene.passes(rounds, look(50))
    pages = database.execute("PRAGMA page_count").fetchone()[0]
    database.execute(f"PRAGMA max_page_count = {pages}")
    for _ in range(200):  # fill what is left of the last page
        scene.passes(rounds, look(50))
    assert [line for line in scene.told if "rounds are not recorded" in line] == [
        next(line for line in scene.told if "database or disk is full" in line)
    ]
    scene.failure = StoreError("watch.sqlite cannot be used: database or disk is full")
    assert "nothing is moved without a record" in scene.passes(rounds, look(95), look(95))[-1]
    database.execute("PRAGMA max_page_count = 100000")
    assert scene.passes(rounds, look(50))[-1] == "rounds are recorded again"


def test_a_watch_that_was_killed_decides_as_if_it_had_gone_on(scene: Scene, tmp_path: Path) -> None:
    """The policy remembers what has arrived: the move comes in the same round."""

    def move_of(kill_at: int | None) -> int:
        store = WatchStore(tmp_path / f"{kill_at}.sqlite")
        scene.log = WatchLog.claimed(store, "job", "shop", scene.told.append)
        rounds = scene.rounds("work-function", acts=False)
        for number in range(100):
            if number == kill_at:
                rounds = scene.rounds("work-function", acts=False)
            if "a move would pay" in scene.passes(rounds, look(95))[0]:
                return number
        raise AssertionError("never")

    whole = move_of(None)
    assert 2 <= whole <= 20
    assert move_of(1) == whole
    assert move_of(whole) == whole


def test_hours_are_told_apart_and_checked() -> None:
    night = QuietHours.of("22:00-06:00")
    assert [time(hour) in night for hour in (21, 22, 0, 5, 6)] == [False, True, True, True, False]
    for text in ("8-18", "08:00", "08:00-08:00"):
        with pytest.raises(SettingError, match="--not-between is"):
            QuietHours.of(text)

"""Rounds of a watch: when a job is measured and moved, and what keeps it from being moved."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from stores import fill_disk
from watched_jobs import plan
from watched_rounds import DEVICES, PLANS, Scene, look

from streamplace.control.policy import POLICIES, PlanChoice, SlotObservation
from streamplace.engines.flink.move.journal import MoveUnderWay
from streamplace.engines.flink.move.saving import CheckpointTotals
from streamplace.engines.flink.rest.client import FlinkError, NoAnswer
from streamplace.engines.flink.watch.judging import QuietHours, RateJudge
from streamplace.engines.flink.watch.log import JobWatched, WatchLog
from streamplace.errors import SettingError
from streamplace.io.store import Holder, Store, StoreError
from streamplace.io.watch_store import (
    WatchDecision,
    WatchRound,
    utc_now,
)
from streamplace.model.intervals import RateInterval


class Shown:
    """A policy that writes down when it was asked, and stays."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def __call__(self, _: PlanChoice) -> "Shown":
        """Policy for plans."""
        return self

    def choose(self, seen: SlotObservation) -> int:
        """The present plan."""
        self.times.append(seen.time)
        return seen.level


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


def test_a_move_that_came_back_is_not_repeated_at_once(scene: Scene) -> None:
    """The second time it is waited for twice as long, by a clock that nobody sets."""
    rounds = scene.rounds(least_seconds=0.0)
    scene.ends = "returned"
    scene.passes(rounds, look(95))
    told = scene.passes(rounds, look(95))
    assert told[0].endswith("a move to 2 TaskManagers failed, and is tried again in 29 min")
    scene.now += 1740
    assert "the job is moved" in scene.passes(rounds, look(95))[0]
    assert "tried again in 59 min" in scene.passes(rounds, look(95))[0]
    scene.now += 3540
    assert "the job is moved" in scene.passes(rounds, look(95))[0]
    assert scene.moves == [2, 2, 2]


def test_after_two_moves_in_a_row_that_failed_no_other_number_is_tried_at_once(
    scene: Scene,
) -> None:
    """They may have failed for a reason that has nothing to do with the number."""
    rounds = scene.rounds(least_seconds=0.0)
    scene.ends = "returned"
    scene.passes(rounds, look(95), look(185))
    assert scene.moves == [2, 3]
    told = scene.passes(rounds, look(185), look(95))
    assert scene.moves == [2, 3]
    assert "the last 2 moves failed; the next is tried in 2" in told[-1]


def test_a_job_that_cannot_be_saved_is_stopped_less_and_less_often(scene: Scene) -> None:
    """Wherever it should go, and whichever process watches it: Flink may restart it each time."""
    rounds = scene.rounds(least_seconds=300.0)
    scene.ends = "not saved"
    told = scene.passes(rounds, *[look(rate) for _ in range(60) for rate in (95, 250)])
    assert len(scene.moves) == 3
    waits = "the job could not be saved, which is tried again in "
    assert waits in told[-1]
    assert waits in scene.passes(scene.rounds(least_seconds=0.0), look(95))[-1]
    scene.now += 86_400
    scene.ends = "moved"
    assert "the job is moved" in scene.passes(rounds, look(95))[0]
    scene.now += 300
    assert "the job is moved" in scene.passes(rounds, look(250, 2, "job+"))[0]


def test_a_move_that_could_not_be_begun_is_no_move_that_was(scene: Scene) -> None:
    """It is tried again after the least time."""
    rounds = scene.rounds(least_seconds=120.0)
    scene.failure = SettingError("the program does not fit")
    first, second, third = scene.passes(rounds, look(95), look(95))
    assert "the job is moved" in first
    assert second == "the job is not moved: the program does not fit"
    assert third.endswith("but the last move failed to begin, and is tried again in 1 min")
    scene.failure = None
    scene.passes(rounds, look(95))
    assert scene.moves == [2]


def test_an_own_move_that_changes_chains_is_no_other_controller(scene: Scene) -> None:
    rounds = scene.rounds(least_seconds=0.0)
    scene.passes(rounds, look(95))
    joined = {"source -> map": 1}
    told = scene.passes(rounds, look(50, 2, "job+", shape=joined), look(190, 2, "job+", shape={}))
    assert "another controller" not in told[0]
    assert any("another controller acts" in line for line in told[1:])


def test_what_arrived_before_is_remembered_when_task_managers_join(scene: Scene) -> None:
    """A new policy that knew one look only would leave TaskManagers in every lull."""
    rounds = scene.rounds("work-function", least_seconds=0.0)
    busy = [look(250, 3)] * 60
    assert "stays" in scene.passes(rounds, *busy)[-1]
    scene.plans = (*PLANS, plan(*DEVICES, "dev-3"))
    joined = frozenset((*DEVICES, "dev-3"))
    assert "stays" in scene.passes(rounds, look(20, 3, managers=joined))[0]
    fresh = scene.rounds("work-function", least_seconds=0.0)
    fresh.judge = RateJudge(POLICIES["work-function"].make, 60.0)
    assert "the job is moved" in scene.passes(fresh, look(20, 3))[0]


def test_what_was_seen_before_the_first_measurement_is_remembered(scene: Scene) -> None:
    """The watch moves the job as soon as it has a model, and leaves nothing in a lull."""
    cold, scene.unmeasured = scene.rounds("work-function"), FlinkError("not warm")
    scene.passes(cold, *[look(104)] * 6)
    scene.unmeasured = None
    assert "the job is moved" in scene.passes(cold, look(104))[0]
    later, scene.unmeasured = scene.rounds("work-function", least_seconds=0.0), FlinkError("")
    scene.passes(later, *[look(250, 3)] * 60)
    scene.unmeasured = None
    scene.now += 3600  # it is tried again after so long
    assert "; stays" in scene.passes(later, look(20, 3))[0]


def test_a_round_decides_by_what_it_sees_after_a_measurement(scene: Scene) -> None:
    """That takes a minute. A job that is elsewhere by then has to be measured again."""
    rounds = scene.rounds(acts=False)
    scene.meanwhile = look(95)
    told = scene.passes(rounds, look(50))
    assert told[0].startswith("12:30:00  95 tuples/s")
    assert "a move would pay" in told[0]
    scene.meanwhile = look(50, 3)
    told = scene.passes(rounds, look(50, 2), look(50, 3))
    assert told[0] == "12:30:00  50 tuples/s on 3 TaskManagers"
    assert "carries 300" in told[1]


def test_what_back_pressure_hides_and_what_waits_counts(scene: Scene) -> None:
    """80 are carried; a fifth more may be offered, and a backlog that grows is offered."""
    assert "stays" in scene.passes(scene.rounds(), look(80))[0]
    assert "is moved" in scene.passes(scene.rounds(), look(88, is_limited=True))[0]
    growing = scene.rounds(least_seconds=0.0)
    told = scene.passes(growing, look(80, backlog=0.0), look(80, backlog=1200.0))
    assert "80 tuples/s, 1200 wait" in told[1]
    assert "only 90 of 100 tuples/s" in told[1]


@pytest.mark.parametrize(("is_known", "moves"), [(True, []), (False, [2])])
def test_nothing_is_hidden_where_all_sources_report_what_waits(
    scene: Scene, is_known: bool, moves: list[int]
) -> None:
    """88 of 90 tuples/s arrive, although a source is held back."""
    scene.takes = 60.0
    steady = look(88, is_limited=True, backlog=500.0, knows_backlog=is_known)
    scene.passes(scene.rounds(), steady)
    assert scene.moves == moves


def test_what_arrives_is_what_was_read_and_by_how_much_the_backlog_has_changed(
    scene: Scene,
) -> None:
    """In the mean of a round, and never from one job to the next."""
    rounds = scene.rounds("static", acts=False)
    scene.passes(rounds, look(60, backlog=0.0), look(80, backlog=1200.0))
    scene.unmeasured = FlinkError("not warm")
    scene.passes(rounds, look(50, 1, "next", backlog=0.0))
    assert [one.arriving for one in scene.seen] == [60.0, 90.0, 50.0]


@pytest.mark.parametrize("facts", [{"started": 7.0}, {"knows_backlog": True}])
def test_what_arrives_is_not_derived_from_a_restart_or_a_source_that_did_not_report(
    scene: Scene, facts: dict[str, Any]
) -> None:
    """Its backlog grew while the job did not read, or was not counted before."""
    rounds = scene.rounds("static", acts=False)
    scene.passes(rounds, look(60, backlog=0.0), look(80, backlog=1200.0, **facts))
    assert [one.arriving for one in scene.seen] == [60.0, 80.0]


def test_a_policy_is_shown_a_long_round_once_for_each_interval(scene: Scene) -> None:
    """Also by the next process; hours without an answer count as ten minutes."""
    shown = Shown()
    rounds = scene.rounds(shown)
    for _ in range(5):
        scene.passes(rounds, look(50))
        scene.now += 60
    assert shown.times == [60.0 * minute for minute in range(1, 10)]
    scene.now += 7200
    scene.passes(rounds, look(50))
    assert len(shown.times) == 19
    again = Shown()
    scene.passes(scene.rounds(again), look(50))
    assert again.times[:-1] == shown.times


def test_a_policy_remembers_a_whole_day_however_short_its_rounds_are() -> None:
    shown = Shown()
    judge = RateJudge(shown, 10.0)
    past = [WatchRound("", 10.0 * i, "job", 50.0, 50.0, False, 0.0, 1) for i in range(9500)]
    judge.recall(past)
    judge.choose(replace(past[-1], time=95_000.0, level=0, capacity=(90.0,), cost=(1.0,)))
    assert shown.times[-1] - shown.times[0] >= 86_400 + 900


def test_a_policy_may_wait_although_the_rate_may_not_be_carried(scene: Scene) -> None:
    """The work function lets tuples be late by up to a minute: six rounds of 14 of 90 too many."""
    rounds = scene.rounds("work-function")
    told = scene.passes(rounds, *[look(104)] * 6)
    assert told[0].endswith("stays; the policy does not move it yet")
    assert 1 <= next(n for n, line in enumerate(told) if "the job is moved" in line) <= 5


def test_a_job_is_not_moved_to_where_it_would_carry_no_more(scene: Scene) -> None:
    """Nothing carries the rate, so the policy wants all TaskManagers, which promise 5 % more."""
    little = replace(PLANS[2], carries=RateInterval(95.0, 105.0, 115.0))
    scene.plans = (PLANS[0], PLANS[0], little)
    told = scene.passes(scene.rounds(), look(98, is_limited=True))
    assert told[0].endswith("stays, because no layout is known that surely carries more")
    assert scene.moves == []


@pytest.mark.parametrize(
    ("guards", "facts", "told"),
    [
        ({"quiet": (QuietHours.of("08:00-18:00"),)}, {}, "nothing is moved between 08:00 and 18"),
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
    told = scene.passes(rounds, look(50), *[look(95, checkpoints=failed)] * 2)
    assert ["its checkpoints fail" in line for line in told] == [False, True, True]
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


def test_where_another_command_moves_the_job_nothing_is_moved_any_more(scene: Scene) -> None:
    rounds = scene.rounds(least_seconds=0.0)
    scene.failure = MoveUnderWay("job job is being moved, by process 1")
    scene.passes(rounds, look(50), look(95))
    scene.failure = None
    told = scene.passes(rounds, look(95))
    assert "but another controller acts on this job: job job is being moved" in told[-1]
    assert scene.moves == []


@pytest.mark.parametrize("act", ["pass", "move"])
def test_a_watch_that_another_process_has_taken_over_ends(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    """It moves nothing any more, and leaves the watch to that process, of another machine."""
    rounds = scene.rounds()
    scene.passes(rounds, look(50))
    own = Holder.current()
    other = own.model_copy(update={"host": "elsewhere"})

    def take_over(*_: object) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(Holder, "current", lambda: other)
            patch.setattr(Holder, "runs", False)
            WatchLog.claimed(scene.log.store, "job", "shop", print)

    if act == "move":
        monkeypatch.setattr(WatchLog, "add", take_over)
    else:
        take_over()
    with pytest.raises(JobWatched, match="another command has watched the job since 20"):
        scene.passes(rounds, look(95))
    assert scene.decisions == []
    monkeypatch.setattr(Holder, "runs", True)
    with pytest.raises(JobWatched, match=r"has been watched by process \d+ since"):
        WatchLog.claimed(scene.log.store, "job", "shop", print)


def test_a_round_without_an_answer_is_no_round(scene: Scene) -> None:
    rounds = scene.rounds()
    with pytest.raises(NoAnswer):
        scene.passes(rounds, NoAnswer("gone"))
    assert "stays" in scene.passes(rounds, look(50))[0]


def test_a_full_disk_stops_moves_and_not_the_watch(scene: Scene) -> None:
    """It is told once, and when there is room again."""
    rounds = scene.rounds()
    with pytest.MonkeyPatch.context() as patch:
        scene.passes(rounds, look(50))
        fill_disk(patch)
        for _ in range(200):  # fill what is left of the last page
            scene.passes(rounds, look(50))
        assert [line for line in scene.told if "rounds are not recorded" in line] == [
            next(line for line in scene.told if "database or disk is full" in line)
        ]
        scene.failure = StoreError("store.sqlite cannot be used: database or disk is full")
        told = scene.passes(rounds, look(95), look(95))
        assert "nothing is moved without a record" in " ".join(told)
    assert scene.passes(rounds, look(50))[-1] == "rounds are recorded again"


def test_a_watch_that_was_killed_decides_as_if_it_had_gone_on(scene: Scene, tmp_path: Path) -> None:
    """The policy remembers what has arrived: the move comes in the same round."""

    def move_of(kill_at: int | None) -> int:
        store = Store(tmp_path / f"{kill_at}.sqlite")
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


@pytest.mark.parametrize(
    ("rate", "minutes", "moves"), [(50, 1, [1]), (95, 1, [1, 2]), (50, 2, [1, 2])]
)
def test_what_was_just_left_is_taken_back_for_what_arrives_and_not_for_a_forecast(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, rate: float, minutes: int, moves: list[int]
) -> None:
    """For twice the least time."""
    rounds, wanted = scene.rounds(least_seconds=60.0), [0]
    monkeypatch.setattr(RateJudge, "choose", lambda *_: wanted[0])
    scene.passes(rounds, look(50, 2))
    scene.now += 60 * (minutes - 1)
    wanted[0] = 1
    told = scene.passes(rounds, look(rate, 1, "job+"))
    assert scene.moves == moves
    assert ("but it has left TaskManagers only 1 min ago" in told[0]) == (moves == [1])


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


def test_an_operator_that_becomes_slower_is_noticed_although_the_job_keeps_up(scene: Scene) -> None:
    """A quarter of an hour after the last measurement."""
    rounds = scene.rounds("static", acts=False)
    scene.passes(rounds, *[look(50)] * 15)
    assert scene.measured == 1
    scene.plans = (replace(PLANS[0], carries=RateInterval(45.0, 50.0, 55.0)), *PLANS[1:])
    told = scene.passes(rounds, look(50))
    assert "carries 50 tuples/s (45 to 55), limited by the CPU of dev-0" in told[0]
    assert "; a move would pay" in told[0]
    assert scene.measured == 2


def test_a_job_that_cannot_be_measured_again_is_tried_less_and_less_often(scene: Scene) -> None:
    """After 15 min, 45 min and 105 min; the earlier model stays."""
    rounds = scene.rounds("static", acts=False)
    scene.passes(rounds, look(50))
    scene.unmeasured = FlinkError("not warm")
    told = scene.passes(rounds, *[look(50)] * 180)
    assert scene.measured == 4
    assert sum(line.startswith("note: ") for line in told) == 1
    assert "carries 100 tuples/s (90 to 110)" in told[-1]


def test_a_job_is_measured_again_when_none_of_its_sources_is_held_back_any_more(
    scene: Scene,
) -> None:
    """The model of a job with one such source says nothing about lower rates of the others."""
    rounds = scene.rounds("static", acts=False)
    scene.kept = 40.0
    scene.passes(rounds, *[look(90, is_limited=True)] * 2)
    assert scene.measured == 1
    scene.passes(rounds, *[look(50)] * 2)
    assert scene.measured == 2
    kept = [one.kept for one in scene.seen]
    assert kept == [40.0, 40.0, 0.0, 0.0]


def test_a_job_that_cannot_be_measured_is_looked_at_further(scene: Scene) -> None:
    """The reason is told once."""
    rounds = scene.rounds()
    scene.unmeasured = FlinkError("not warm")
    told = scene.passes(rounds, look(50), look(50))
    assert told == [
        "note: the job is not measured: not warm",
        "12:30:00  50 tuples/s on 1 TaskManager",
        "12:30:00  50 tuples/s on 1 TaskManager",
    ]


def test_a_job_that_can_never_be_measured_is_tried_less_and_less_often(scene: Scene) -> None:
    """A measurement takes minutes of CPU; another layout is measured at once."""
    rounds = scene.rounds()
    scene.unmeasured = FlinkError("its model is wrong")
    scene.passes(rounds, *[look(50)] * 60)
    assert 5 < scene.measured < 12
    before = scene.measured
    scene.passes(rounds, look(50, 2))
    assert scene.measured == before + 1


def test_a_rate_outside_its_interval_widens_intervals_until_they_hold(scene: Scene) -> None:
    """The next process goes on with them, and what is sure of a layout is not widened."""
    rounds = scene.rounds("static", acts=False)
    told = scene.passes(rounds, look(50), *[look(rate, is_limited=True) for rate in (80, 85)])
    assert "carries 100 tuples/s (90 to 110)" in told[0]
    assert "carries 100 tuples/s (82.25 to 120.4)" in told[1]
    assert "carries 100 tuples/s (83.08 to 119.2)" in told[2]
    later = scene.rounds("static", acts=False)
    assert "carries 100 tuples/s (83.08 to 119.2)" in scene.passes(later, look(50))[0]
    seen = scene.seen
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
    seen = scene.seen
    assert [one.held for one in seen] == [None, None, None]

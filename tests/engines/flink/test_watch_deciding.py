"""Decisions of a watch, by tables: where a job goes, what lag is, and what guards forbid."""

from dataclasses import replace
from datetime import time
from math import inf
from typing import Any

import pytest

from streamplace.control.policy import PlanChoice, SlotObservation
from streamplace.engines.flink.decide.improving import Trial
from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.move.savepoints import CheckpointTotals
from streamplace.engines.flink.watch.deciding import (
    Guards,
    LayoutOption,
    QuietHours,
    RateJudge,
    WatchChoice,
    choose,
    known_options,
    state_words,
    wanted_rate,
    wasted,
)
from streamplace.engines.flink.watch.rounds import JobLook, round_of
from streamplace.io.watches import WatchDecision, WatchRound
from streamplace.model.intervals import RateInterval


def option(devices: str, value: float, best: float = 0.0, **facts: Any) -> LayoutOption:
    """A layout that should carry a rate, or a tenth less."""
    carries = RateInterval(0.9 * value, value, 1.1 * value)
    return LayoutOption(
        Layout({"map": devices.split()}), carries, optimistic=best or 1.1 * value, **facts
    )


def tried(one: LayoutOption, rate: float, *, is_limited: bool = True) -> LayoutOption:
    """A layout in which a rate was measured."""
    return one.tried(Trial("", one.layout, rate, is_limited=is_limited))


def seen(rate: float, **facts: Any) -> WatchRound:
    """A round of a job that keeps up."""
    usual = {
        "arriving": rate,
        "is_limited": False,
        "backlog": 0.0,
        "machines": 2,
        "falls_behind": False,
    }
    return WatchRound("", 0.0, "job", rate, **(usual | facts))


BEHIND: dict[str, Any] = {"is_limited": True, "falls_behind": True, "shows_capacity": True}
A, AB, ABC = option("a a a", 100.0), option("a b b", 200.0), option("a b c", 300.0)
AAB = option("a a b", 150.0, 260.0)  # predicted to carry less, but may carry more


@pytest.mark.parametrize(
    ("rate", "facts", "here", "most", "is_tried", "target", "words"),
    [
        # a job that keeps up is not moved for more rate, whatever the policy expects
        (190, {}, AB, 3, False, None, "keeps up, stays"),
        (190, {"is_limited": True, "is_known": True}, AB, 3, False, None, "keeps up, stays"),
        (50, {}, AB, 2, False, None, "keeps up, stays"),
        # it leaves TaskManagers if the rest surely carry what arrives
        (85, {}, AB, 1, False, A, "a should carry 100 tuples/s (90 to 110), which saves 1 Task"),
        (95, {}, AB, 1, False, None, "fewer TaskManagers may not carry what arrives now"),
        (50, {"shows_capacity": True}, AB, 1, False, None, "it works off what waits"),
        # one that falls behind goes where what arrives is surely carried: to as few as possible
        (200, BEHIND, tried(AB, 200), 3, False, ABC, "it falls behind at 240 tuples/s; a, b, c sh"),
        # or where the most may be carried, also on as many TaskManagers as now
        (200, BEHIND, tried(AB, 200), 2, False, AAB, "a, b may carry up to 260"),
        (290, BEHIND, tried(AB, 290), 2, False, None, "the policy does not move it yet"),
        (290, BEHIND, tried(AB, 290), 3, False, ABC, "may carry up to 330"),
        (320, BEHIND, tried(AB, 320), 3, False, None, "no layout is known that may carry more"),
        # a try that carries less than the best measured layout ends there
        (150, BEHIND, tried(AB, 150), 2, True, tried(A, 160), "only 150 tuples/s are carried here"),
        (158, BEHIND, tried(AB, 158), 2, True, AAB, "may carry up to 260"),
        (158, {}, tried(AB, 158), 2, True, None, "keeps up, stays"),
    ],
)  # fmt: skip
def test_a_job_goes_where_what_arrives_is_carried(
    rate: float,
    facts: dict[str, Any],
    here: LayoutOption,
    most: int,
    is_tried: bool,
    target: LayoutOption | None,
    words: str,
) -> None:
    """Lag first, then the policy's number of TaskManagers, then what layouts carry."""
    first = target if target is not None and target.measured else A
    chosen = choose(here, [first, AAB, ABC], most, seen(rate, **facts), is_tried=is_tried)
    assert chosen.target == target
    assert words in chosen.words
    assert chosen.returns == (is_tried and target == first)


def test_a_model_that_contradicts_forbids_nothing() -> None:
    """Of layouts of which nothing is known, the usual order decides."""
    unknown = [option("b b a", 20.0, inf, order=2), option("b a a", 10.0, inf, order=0)]
    chosen = choose(tried(AB, 100), unknown, 2, seen(100, **BEHIND), is_tried=False)
    assert chosen.target == unknown[1]
    assert chosen.words.endswith("how much a, b carry is not known")


def test_what_was_measured_replaces_what_was_predicted() -> None:
    """A layout in which the job did not run is none, and one that kept up may carry more."""
    trials = [
        Trial("", A.layout, 80.0, is_limited=True),
        Trial("", AB.layout, 250.0),
        Trial("", ABC.layout, 0.0, failure="too few slots"),
        Trial("", Layout({"map": ["c"] * 3}), 40.0, is_limited=True),
    ]
    here, others = known_options(AB, [A, ABC], trials)
    assert (here.carries, here.measured) == ((250.0, 250.0, 250.0), 250.0)
    assert [(one.devices, one.measured) for one in others] == [(["a"], 80.0), (["c"], 40.0)]
    assert others[0].carries == pytest.approx((77.6, 80.0, 82.4))


@pytest.mark.parametrize(
    ("facts", "rate"),
    [
        ({}, 100.0),
        ({"is_limited": True}, 120.0),
        ({"is_limited": True, "is_known": True}, 100.0),
        ({"is_limited": True, "kept": 50.0}, 110.0),
    ],
)
def test_a_fifth_more_may_arrive_for_sources_that_are_held_back(
    facts: dict[str, Any], rate: float
) -> None:
    """Unless they report what waits for them."""
    assert wanted_rate(seen(100.0, **facts)) == pytest.approx(rate)


def look(rate: float, backlog: float | None, **facts: Any) -> JobLook:
    """A job whose sources report what waits."""
    usual: dict[str, Any] = {"job": "job", "is_limited": True}
    rest: dict[str, Any] = {"layout": Layout(), "checkpoints": CheckpointTotals(0, 0)}
    return JobLook(rate=rate, backlog=backlog, managers=frozenset(), **rest, **(usual | facts))


@pytest.mark.parametrize(
    ("before", "now", "arriving", "falls_behind", "shows_capacity"),
    [
        (look(60, 0), look(80, 1200), 90.0, True, True),
        (look(80, 0), look(80, 120), 82.0, False, False),  # too little waits to be a lag
        (look(80, 9000), look(80, 8400), 70.0, False, True),  # drained: this is what it carries
        (look(80, 9000), look(80, 9060), 81.0, False, True),
        (look(80, None), look(80, None), 80.0, True, True),  # only back-pressure tells
        (None, look(80, 9000), 80.0, None, False),
        (look(80, 0), look(80, 9000, started=7.0), 80.0, None, False),
        (look(80, 0), look(80, 9000, job="next"), 80.0, None, False),
        (look(80, None), look(80, 9000), 80.0, None, False),
    ],
)
def test_lag_decides_where_sources_report_what_waits(
    before: JobLook | None,
    now: JobLook,
    arriving: float,
    falls_behind: bool | None,
    shows_capacity: bool,
) -> None:
    """Their back-pressure decides nothing then; a restart, or other sources, tell nothing."""
    seen = round_of(before, now, 60.0)
    assert (seen.arriving, seen.falls_behind) == (arriving, falls_behind)
    assert seen.shows_capacity == shows_capacity


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"low": 90.0, "value": 100.0, "high": 110.0, "limit": "the CPU of a"},
         "50 tuples/s on 2 TaskManagers; it carries 100 tuples/s (90 to 110), limited by the CPU "
         "of a (50.0 % in use)"),
        ({"backlog": 600.0, "growth": -20.0, "is_known": True, "shows_capacity": True,
          "low": 49.0, "value": 50.0, "high": 51.0},
         "50 tuples/s on 2 TaskManagers, 600 wait (20/s fewer); it carries 50 tuples/s (measured)"),
        ({"is_limited": True, "falls_behind": True}, "50 tuples/s on 2 TaskManagers, held back"),
    ],
)  # fmt: skip
def test_lag_and_capacity_are_told(facts: dict[str, Any], told: str) -> None:
    assert state_words(replace(seen(50.0), **facts)) == told


UP, DOWN, BACK = WatchChoice("", ABC), WatchChoice("", A), WatchChoice("", ABC, returns=True)
NOON = time(12)
OFFICE = Guards(300.0, (QuietHours.of("08:00-18:00"),))


@pytest.mark.parametrize(
    ("guards", "facts", "choice", "told"),
    [
        (Guards(), {}, UP, ""),
        (Guards(), {"checkpoints_fail": True}, BACK, "its checkpoints fail"),
        (OFFICE, {}, UP, "nothing is moved between 08:00 and 18:00"),
        (OFFICE, {"since_move": 100.0}, BACK, ""),  # a try ends when it is measured
        (Guards(), {"since_move": 100.0}, UP, "the last move is too recent (for 3 min 20 s more)"),
        # moves that have brought nothing are followed by longer and longer pauses
        (Guards(0.0), {"since_move": 599.0, "failures": 1}, UP, "too recent (for 1 s more)"),
        (Guards(0.0), {"since_move": 601.0, "failures": 1}, UP, ""),
        (Guards(0.0), {"since_move": 80_000.0, "failures": 20}, UP, "too recent"),
        (Guards(0.0), {"since_move": 86_401.0, "failures": 20}, UP, ""),
        (Guards(), {"watched": 60.0}, DOWN, "it has been watched for 1 min only"),
    ],
)
def test_guards_say_why_nothing_is_moved(
    guards: Guards, facts: dict[str, Any], choice: WatchChoice, told: str
) -> None:
    held = guards.hold(choice, 2, NOON, **facts)
    assert told in held
    assert bool(held) == bool(told)


def decision(state: str, kind: str = "move") -> WatchDecision:
    """A decision with an outcome."""
    return WatchDecision("", kind, "job", "next", {}, (1, 2), "", state=state)


@pytest.mark.parametrize(
    ("decisions", "number"),
    [
        ([], 0),
        ([decision("moved")], 0),
        ([decision("returned"), decision("not saved")], 2),
        ([decision("failed"), decision("moved"), decision("returned")], 1),
        ([decision("returned"), decision("moved"), decision("moved", "return")], 2),
        ([decision("moved"), decision("moved", "return"), decision("moved")], 0),
        ([decision("returned"), decision("not begun")], 1),
    ],
)
def test_moves_that_brought_nothing_are_counted(
    decisions: list[WatchDecision], number: int
) -> None:
    """Those that failed, and those after which the job returned."""
    assert wasted(decisions) == number


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


def test_a_policy_remembers_a_whole_day_however_short_its_rounds_are() -> None:
    """Rounds that take longer are shown once for each interval; hours count as a quarter of one."""
    shown = Shown()
    judge = RateJudge(shown, 10.0)
    past = [replace(seen(50.0), time=10.0 * i) for i in range(9500)]
    for one in past:
        judge.remember(one)
    planned = {"level": 0, "capacity": (90.0,), "cost": (1.0,)}
    judge.choose(replace(past[-1], time=95_000.0, **planned))
    assert shown.times[-1] - shown.times[0] >= 86_400 + 900
    known = len(shown.times)
    judge.choose(replace(past[-1], time=95_060.0, **planned))
    assert len(shown.times) == known + 6
    judge.choose(replace(past[-1], time=105_060.0, **planned))
    assert len(shown.times) == known + 6 + 90

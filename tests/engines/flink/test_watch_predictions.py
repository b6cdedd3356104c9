"""Moves to fewer TaskManagers: how far predictions are believed, and when some are taken back."""

import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from watched_rounds import PLANS, Scene, look

from streamplace.engines.flink.watch.judging import RateJudge, believed_share
from streamplace.io.watch_store import WatchDecision, WatchStore
from streamplace.model.intervals import RateInterval

LESS = (replace(PLANS[0], carries=RateInterval(70.0, 75.0, 80.0)), *PLANS[1:])
"""The job carries 75 tuples/s on one TaskManager, where 100 are predicted."""


def moved(carried: float | None, believed: float = 1.0) -> WatchDecision:
    """A move to one TaskManager of which 100 tuples/s were predicted."""
    value = 100.0 * believed
    carries = (0.9 * value, value, 1.1 * value)
    return WatchDecision(
        "", "move", "job", "", {}, (2, 1), "", *carries, believed=believed, carried=carried
    )


def after_a_move_that_carried_less(scene: Scene) -> None:
    """The job moves to one TaskManager, and back, because it carries less than predicted."""
    rounds = scene.rounds(least_seconds=0.0)
    scene.passes(rounds, look(50, 2))
    scene.plans = LESS
    scene.passes(rounds, look(80, 1, "job+"))
    assert scene.moves == [1, 2]
    scene.plans = PLANS


def test_fewer_task_managers_are_believed_to_carry_what_they_did_before(scene: Scene) -> None:
    """Also by the next process. What was believed is written down, so nothing counts twice."""
    after_a_move_that_carried_less(scene)
    rounds = scene.rounds(least_seconds=0.0)
    assert scene.passes(rounds, look(70, 2, "job++"))[0].endswith("stays")
    told = scene.passes(rounds, look(60, 2, "job++"))
    assert "dev-0 alone should carry 75 tuples/s (67.5 to 82.5)" in told[0]
    scene.plans = LESS
    scene.passes(rounds, look(60, 1, "job+++"))
    first, _, last = scene.decisions
    assert (first.believed, first.value, first.carried) == (1.0, 100.0, 75.0)
    assert (last.believed, last.value, last.carried) == (0.75, 75.0, 75.0)
    scene.plans = PLANS
    assert "should carry 75 tuples/s" in scene.passes(scene.rounds(acts=False), look(60, 2))[0]


def test_a_day_later_a_prediction_is_believed_as_it_is(scene: Scene) -> None:
    """A job that stays would never find out that the model is right again."""
    after_a_move_that_carried_less(scene)
    rounds = scene.rounds(acts=False)
    scene.now += 86_400
    assert "should carry 100 tuples/s" in scene.passes(rounds, look(60, 2, "job++"))[0]


@pytest.mark.parametrize(
    ("moves", "share"),
    [
        ([], 1.0),
        ([moved(None)], 1.0),
        ([moved(130.0)], 1.0),
        ([moved(75.6), moved(68.7, believed=0.75), moved(71.6)], 0.716),
        ([moved(10.0)] * 2, 0.5),
        ([moved(60.0)] * 5 + [moved(90.0)] * 3, 0.9),
    ],
)
def test_the_middle_one_of_the_last_moves_tells_how_much_is_believed(
    moves: list[WatchDecision], share: float
) -> None:
    """Never more than is predicted, and at least half of it."""
    assert believed_share(moves) == pytest.approx(share)


def test_rates_that_a_layout_does_not_limit_are_always_believed() -> None:
    """They are no part of what the model predicts for a layout, nor of what comes true of it."""
    rates = (70.0, 80.0, 90.0)
    move = WatchDecision(
        "", "move", "job", "", {}, (2, 1), "", *rates, believed=0.8, kept=40.0, carried=85.0
    )
    assert move.model == pytest.approx(RateInterval(77.5, 90.0, 102.5))
    assert believed_share([move]) == pytest.approx(0.9)


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


def test_decisions_and_rounds_of_earlier_versions_are_read(
    store: WatchStore, tmp_path: Path
) -> None:
    number = store.begin(1, moved(75.0, believed=0.75))
    with sqlite3.connect(tmp_path / "watch.sqlite") as database:
        (text,) = database.execute("SELECT document FROM decisions").fetchone()
        old = {k: v for k, v in json.loads(text).items() if k not in ("believed", "carried")}
        database.execute("UPDATE decisions SET document = ?", (json.dumps(old),))
    found = store.decisions(1)[number]
    assert (found.value, found.believed, found.carried) == (75.0, 1.0, None)

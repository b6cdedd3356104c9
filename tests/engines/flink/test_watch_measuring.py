"""Rounds of a watch: when a job is measured again, and how wide the intervals of its rate are."""

from dataclasses import replace

import pytest
from watched_rounds import PLANS, Scene, look

from streamplace.engines.flink.rest.client import FlinkError
from streamplace.model.intervals import RateInterval


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

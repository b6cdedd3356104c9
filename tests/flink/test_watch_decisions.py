"""Decisions of a watch: what must hold in every state, whatever a round has observed."""

from dataclasses import replace
from datetime import time
from itertools import pairwise, product
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from fake_flink import layout_option

from streamplace.control.problem import MoveTerms
from streamplace.flink.constants import DAY_SECONDS
from streamplace.flink.move.savepoints import CheckpointTotals
from streamplace.flink.watch.deciding import (
    Conclude,
    FinishMove,
    Guards,
    JobModel,
    JobSample,
    LastMeasurement,
    Measure,
    PastMove,
    QuietHours,
    RoundObservation,
    WatchRules,
    WatchState,
    decide,
    wanted_rate,
)
from streamplace.flink.watches import (
    BEGUN,
    FAILED,
    MOVED,
    RETURNED,
    UNBEGUN,
    UNSAVED,
    WatchDecision,
)

LEAST = 300.0
NIGHT = (QuietHours.of("22:00-06:00"),)
DEVICES = frozenset("abc")


RATES = {"aaa": 100, "aab": 200, "abc": 300, "abd": 900}
A, AB, ABC, ABD = (layout_option(devices, rate) for devices, rate in RATES.items())
MODEL = JobModel(AB, (A, layout_option("bba", 260), ABC, ABD), (1, 2, 3), "the CPU of a")


def move(kind, state, after, measured=None):
    """A decision to move the job from two TaskManagers to others, or back to two."""
    machines = (2, after.machines) if kind == "move" else (3, 2)
    layout = after.layout.to_json()
    return WatchDecision(
        "", kind, "old", "job", layout, machines, "", state=state, after="job", measured=measured
    )


MOVES = [
    *(move("move", state, to) for to in (A, ABC) for state in (RETURNED, FAILED, UNSAVED, UNBEGUN)),
    *(move("move", MOVED, to, rate) for to in (A, AB, ABC) for rate in (None, 260.0)),
    *(move("return", state, AB) for state in (MOVED, RETURNED, FAILED, UNSAVED, UNBEGUN)),
    move("move", BEGUN, ABC),
]


class Case(NamedTuple):
    """A state, an observation and the rules."""

    state: WatchState
    observation: RoundObservation
    rules: WatchRules


def rules(machines=3, may_move=True, quiet=()):
    """Rules with a policy that chooses a number of TaskManagers."""
    policy: Any = SimpleNamespace(choose=lambda facts: machines, terms=MoveTerms())
    return WatchRules(Guards(LEAST, quiet), policy, may_move)


def sample(at, rate, *, is_limited=False, **facts):
    """A sample of the job on two TaskManagers."""
    layout, counts = facts.pop("layout", AB.layout), CheckpointTotals(5, 1)
    return JobSample(
        at, "job", rate, is_limited, facts.pop("backlog", None), layout, counts, DEVICES
    )


SAMPLES = [  # it keeps up; falls behind by little or much; the next round shows what it does
    sample(0.0, 50.0),
    sample(0.0, 150.0, is_limited=True),
    sample(0.0, 230.0, is_limited=True),
    sample(0.0, 400.0, is_limited=True),
    sample(0.0, 150.0, is_limited=True, backlog=9000.0),
]


def measurement(now, age, model, failure):
    """The last measurement of the job in its present layout."""
    return LastMeasurement(replace(now, at=-age), -age, True, model, failure)


def cases():
    """All combinations."""
    pasts = [(), *(((age, one),) for age in (60.0, 500.0, 5000.0) for one in MOVES)]
    for now, past, returning in product(SAMPLES, pasts, ("", "job")):
        moves = tuple(PastMove(-age, decision) for age, decision in past)
        known: list[LastMeasurement | None] = [None, measurement(now, 60.0, MODEL, "")]
        known += [measurement(now, 2000.0, MODEL, ""), measurement(now, 60.0, None, "no metrics")]
        start = WatchState.resumed(1000.0, moves, 0.0)
        for last, fails, hour, (machines, may_move) in product(
            known, (False, True), (time(12), time(23)), ((1, True), (3, True), (3, False))
        ):
            state = replace(
                start, returning=returning, last_measurement=last, checkpoints_fail=fails,
                sample=replace(now, at=-60.0) if now.backlog is None else None,
            )  # fmt: skip
            observation = RoundObservation(now, hour, moves)
            yield Case(state, observation, rules(machines, may_move, NIGHT))


@pytest.fixture(scope="module")
def decided():
    """Every case with the state and the step that follow."""
    return [(case, *decide(*case)) for case in cases()]


def moving(decided):
    """The cases in which the job is moved."""
    return [
        (case, state, step)
        for case, state, step in decided
        if isinstance(step, Conclude) and step.moves
    ]


def last_move(case):
    """The last move of a case."""
    moves = case.observation.moves
    return moves[-1].decision if moves else None


def test_all_steps_occur(decided):
    """Moves up, down and back among them, so that no test below is empty."""
    assert {type(step) for _, _, step in decided} == {Measure, FinishMove, Conclude}
    moves = moving(decided)
    assert {step.choice.returns for *_, step in moves} == {True, False}
    assert {step.choice.target.machines for *_, step in moves if step.choice.target} == {1, 2, 3}


def test_a_move_without_an_outcome_is_finished_before_anything_else(decided):
    for case, state, step in decided:
        last = last_move(case)
        is_unfinished = case.rules.may_move and last is not None and last.state == BEGUN
        assert isinstance(step, FinishMove) == is_unfinished
        assert not is_unfinished or state == case.state


def test_what_is_measured_is_decided_on_without_another_measurement(decided):
    for case, state, step in decided[::5]:
        if isinstance(step, Measure):
            for result in (MODEL, "no metrics"):
                later = replace(case.observation.sample, at=60.0)
                observation = replace(case.observation, sample=later, measurement=result)
                after, conclusion = decide(state, observation, case.rules)
                assert isinstance(conclusion, Conclude)
                assert after.last_measurement.at == 60.0


def test_a_job_is_moved_only_when_and_where_it_may_be(decided):
    """When it is known to fall behind or not, and to TaskManagers where it has not failed.

    In quiet hours it only returns. If it keeps up, it only leaves TaskManagers that the others
    replace.
    """
    for case, state, step in moving(decided):
        target, last = step.choice.target, last_move(case)
        assert case.rules.may_move
        assert not state.checkpoints_fail
        assert step.facts.falls_behind is not None
        assert DEVICES.issuperset(target.devices)
        assert target.layout != case.observation.sample.layout
        if last is not None and last.state in (RETURNED, FAILED):
            assert target.layout.to_json() != last.layout
        assert step.choice.returns or case.observation.hour not in NIGHT[0]
        if not step.facts.falls_behind:
            assert target.machines < step.here.machines
            assert target.least_rate >= wanted_rate(step.facts)
        elif not step.choice.returns:
            assert target.machines >= step.here.machines or target.measured is not None


def test_the_least_time_is_waited_for_except_to_return_or_to_rescue(decided):
    """A job that falls behind is not held back from where it is expected to keep up."""
    is_rescued = False
    for case, _, step in moving(decided):
        last, target = last_move(case), step.choice.target
        if case.observation.sample.at - case.state.moved_at >= LEAST or step.choice.returns:
            continue
        assert last.state == MOVED
        assert step.facts.falls_behind
        is_wider = target.machines > step.here.machines
        assert is_wider or target.carries.value >= wanted_rate(step.facts)
        is_rescued = True
    assert is_rescued


def test_after_a_failed_move_or_return_the_watch_waits_for_longer(decided):
    """Each may have restarted the job; only a return from a trial waits for nothing."""
    for case, _, step in moving(decided):
        last, age = last_move(case), case.observation.sample.at - case.state.moved_at
        if last is not None and last.state in (RETURNED, FAILED, UNSAVED):
            assert age >= 2 * LEAST or (step.choice.returns and last.kind == "move")


def test_a_return_that_was_not_begun_is_begun_by_the_next_round(decided):
    for case, state, step in decided:
        if isinstance(step, Conclude):
            assert state.returning == ("job" if step.choice.returns else "")
        last = last_move(case)
        if isinstance(step, Conclude) and step.choice.returns and not case.state.checkpoints_fail:
            is_failed = last is not None and last.state in (RETURNED, FAILED, UNSAVED)
            assert step.moves >= (case.rules.may_move and not is_failed)


def moves_under(load):
    """Moves of a job whose load changes every 80 s, by a policy that follows it."""
    options = {one.layout: one for one in (A, AB, ABC)}
    here, moves, state = AB, list[PastMove](), WatchState.resumed(1000.0, (), 0.0)
    for number, rate in enumerate(load):
        carried, at = here.carries.value, 80.0 * number
        now = sample(at, min(rate, carried), is_limited=rate > carried, layout=here.layout)
        others = tuple(one for one in options.values() if one is not here)
        model = JobModel(here, others, (1, 2, 3))
        observation = RoundObservation(now, time(12), tuple(moves), None)
        wanted = 1 if rate == min(load) else 3
        state, step = decide(state, observation, rules(wanted))
        if isinstance(step, Measure):
            state, step = decide(state, replace(observation, measurement=model), rules(wanted))
        if step.moves and step.choice.target is not None:
            here = options[step.choice.target.layout]
            machines = (step.here.machines, here.machines)
            after = move("move", MOVED, here, here.carries.value)
            moves.append(PastMove(at, replace(after, machines=machines)))
    return moves


@pytest.mark.parametrize("rounds", [7, pytest.param(9, marks=pytest.mark.slow)])
def test_no_two_moves_undo_each_other_within_the_least_time(rounds):
    """Whatever arrives; but a job is rescued at once, and then stays."""
    for moves in map(moves_under, product((50.0, 280.0), repeat=rounds)):
        for (first, _), (second, rescue) in pairwise(moves):
            assert second - first >= LEAST or rescue.machines[1] > rescue.machines[0]
        savings = [at for at, one in moves if one.machines[1] < one.machines[0]]
        assert all(second - first >= LEAST for first, second in pairwise(savings))


@pytest.mark.parametrize(
    ("failures", "age", "held"),
    [
        (1, 599.0, True),
        (1, 601.0, False),
        (2, 1199.0, True),
        (20, 80_000.0, True),
        (20, DAY_SECONDS + 1, False),
    ],
)
def test_pauses_double_with_each_move_in_vain_up_to_a_day(failures, age, held):
    moves = tuple(PastMove(-age, move("move", UNSAVED, ABC)) for _ in range(failures))
    start = WatchState.resumed(1000.0, moves, 0.0)
    state = replace(start, last_measurement=measurement(SAMPLES[2], 60.0, MODEL, ""))
    _, step = decide(state, RoundObservation(SAMPLES[2], time(12), moves), rules())
    assert step.moves is not held
    assert ("the next move must wait for" in step.facts.words) is held


def test_a_watch_that_has_just_begun_saves_nothing_yet():
    """The time is that since it began, however long its rounds are."""
    state = replace(WatchState(), last_measurement=measurement(SAMPLES[0], 60.0, MODEL, ""))
    state, _ = decide(state, RoundObservation(SAMPLES[0], time(12)), rules(1))
    later = replace(SAMPLES[0], at=47.0)
    _, step = decide(state, RoundObservation(later, time(12)), rules(1))
    assert step.facts.words.endswith("but it has only been watched for 47 s")

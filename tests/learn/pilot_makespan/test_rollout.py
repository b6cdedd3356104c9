"""Schedules rebuilt task by task, held against the same in plain Python."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from makespan_cases import MAKESPAN, giph, problems
from numpy.typing import NDArray
from pilot_makespan_reference import ScheduleInProgress, measured, preferences

from streamplace.learn.models.pilot_makespan.features import before_of, features_of, staying
from streamplace.learn.models.pilot_makespan.learner import (
    PilotMakespanLearner,
    PilotMakespanModule,
    ScheduleSteps,
)
from streamplace.learn.models.pilot_makespan.network import network_of
from streamplace.learn.models.pilot_makespan.placing import (
    TrainedPilotMakespan,
    first_schedules,
    span,
)
from streamplace.learn.models.pilot_makespan.rollout import new_record, rollouts
from streamplace.learn.registry import MODELS, LearningTask
from streamplace.model import Cluster, Operator, Problem, Stream, StreamGraph
from streamplace.placers.registry import PLACERS, Budget
from streamplace.scheduling.insertion import ListSchedule

PROBLEMS = tuple(giph(4))


def module(seed: int = 0, width: int = 8) -> PilotMakespanModule:
    """Weights at random, also where training begins with nothing."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        made = PilotMakespanModule(width)
        torch.nn.init.normal_(made.out.weight, std=3.0)
        torch.nn.init.normal_(made.skip.weight, std=3.0)
    return made


def arrays(made: PilotMakespanModule) -> dict[str, NDArray[Any]]:
    """Parameters by name."""
    return {name: tensor.numpy() for name, tensor in made.state_dict().items()}


def shortest_first(problem: Problem) -> ListSchedule | None:
    """Best of the schedules to begin with."""
    first = [schedule for schedule in first_schedules(features_of(problem)) if schedule.complete]
    return min(first, key=span, default=None)


@given(problem=problems(), seed=st.integers(0, 5), disturbed=st.booleans())
def test_every_decision_is_the_one_of_the_equations(
    problem: Problem, seed: int, disturbed: bool
) -> None:
    """Features, preferences, choices, times."""
    made, schedule, view = module(seed), shortest_first(problem), features_of(problem)
    assert schedule is not None
    if schedule.finish.max() == 0:
        return
    n = view.tasks.n_tasks
    noise = np.random.default_rng(seed).random(n) if disturbed else np.zeros(n)
    before = before_of(view.tasks, schedule, noise)
    record, free = new_record(1, view), np.full((1, n), -1, np.int32)
    greedy = np.full((1, n), -1, np.float32)
    chosen, rebuilt = rollouts(view, before, network_of(arrays(made)), free, greedy, record)
    state = ScheduleInProgress(view.tasks, before)
    for t, v in enumerate(before.order.tolist()):
        rows, step = measured(state, v, t)
        assert np.flatnonzero(record.open[0, t]).tolist() == list(rows)
        for a, row in rows.items():
            assert record.devices[0, t, a] == pytest.approx(row, abs=1e-4)
        assert record.steps[0, t] == pytest.approx(step, abs=1e-4)
        wanted = preferences(arrays(made), rows, step)
        to = int(chosen[0, t])
        assert wanted[to] == pytest.approx(max(wanted.values()), abs=1e-2)
        state.run(v, to)
        assert (rebuilt.start[0, v], rebuilt.place[0, v]) == pytest.approx((state.start[v], to))


def test_torch_prefers_what_the_kernels_prefer() -> None:
    made, problem = module(), PROBLEMS[0]
    view, schedule = features_of(problem), shortest_first(problem)
    assert schedule is not None
    before = before_of(view.tasks, schedule, np.zeros(view.tasks.n_tasks))
    free = np.full((1, view.tasks.n_tasks), -1, np.int32)
    record = new_record(1, view)
    greedy = np.full(free.shape, -1, np.float32)
    chosen, _ = rollouts(view, before, network_of(arrays(made)), free, greedy, record)
    log_p = made(ScheduleSteps.of([record], "cpu")).detach().numpy()
    assert log_p[np.arange(len(log_p)), chosen[0]] == pytest.approx(log_p.max(axis=1), abs=1e-4)
    assert np.isneginf(log_p[~record.open[0]]).all()


def test_what_stays_stays_and_is_scheduled_anew() -> None:
    problem = PROBLEMS[1]
    view, schedule = features_of(problem), shortest_first(problem)
    assert schedule is not None
    before = before_of(view.tasks, schedule, np.zeros(view.tasks.n_tasks))
    stays = staying(before, np.ones((1, view.tasks.n_tasks), np.bool_))
    luck = np.zeros(stays.shape, np.float32)
    network, nothing = network_of(arrays(module())), new_record(0, view)
    _, rebuilt = rollouts(view, before, network, stays, luck, nothing)
    assert rebuilt.place[0].tolist() == schedule.place.tolist()
    assert rebuilt.finish.max() <= schedule.finish.max() * (1 + 1e-9)


def targets() -> tuple[NDArray[np.int32], ...]:
    """Good placements of the problems."""
    budget = Budget(None, 3000)
    found = (PLACERS["anneal"].place(one, MAKESPAN, budget=budget) for one in PROBLEMS)
    return tuple(result.placement.index for result in found)


TARGETS = targets()


def learner(
    known: Any = TARGETS, problems: tuple[Problem, ...] = PROBLEMS, **options: Any
) -> PilotMakespanLearner:
    """The learner on some problems."""
    config = MODELS["pilot-makespan"].config(**{"width": 8, **options})
    task = LearningTask(problems, problems[:2], seed=0, objective="makespan", targets=known)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return PilotMakespanLearner(task, config)


def rows(*numbers: int) -> Any:
    """Rows of training problems."""
    return np.array(numbers, np.int64)


def test_it_learns_where_good_placements_have_their_tasks() -> None:
    one = learner()
    before = sum(float(one.loss(rows(0, 1, 2, 3), 0, seed)[0].detach()) for seed in range(3))
    optimiser = torch.optim.Adam(one.module.parameters(), lr=1e-2)
    for step in range(40):
        optimiser.zero_grad()
        one.loss(rows(0, 1, 2, 3), 0, 3 + step)[0].backward()
        optimiser.step()
    after = sum(float(one.loss(rows(0, 1, 2, 3), 0, seed)[0].detach()) for seed in range(3))
    assert after < 0.9 * before
    assert (one.validate() <= 1).all()


def test_where_nothing_good_is_known_nothing_is_learned() -> None:
    loss, report = learner((None,) * 4).loss(rows(0, 1), 0, 0)
    assert float(loss.detach()) == 0
    assert report.reward == 0


def test_passes_that_take_no_time_are_the_best_possible() -> None:
    """In validation their reward is 1, and nothing is learned from them."""
    graph = StreamGraph.of("idle", [Operator("a", rate=1), Operator("b")], [Stream("a", "b")])
    one = learner((np.zeros(2, np.int32),), (Problem(graph, Cluster.uniform(2)),))
    assert float(one.loss(rows(0), 0, 0)[0].detach()) == 0
    assert one.validate().tolist() == [1.0]


def test_samples_of_one_seed_are_the_same() -> None:
    policy = TrainedPilotMakespan(network_of(arrays(module())))
    view = features_of(PROBLEMS[0])
    spans = [
        [span(s) for s in policy.schedules(view, first_schedules(view), span, 1, 10, seed)]
        for seed in (1, 1, 2)
    ]
    assert spans[0] == spans[1] != spans[2]

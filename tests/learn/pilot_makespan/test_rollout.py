"""Schedules rebuilt task by task, held against the same in plain Python."""

from functools import cache
from math import log, log1p

import numpy as np
import pytest
import torch
from adam import rows, train
from giph_reference import linear, relu
from hypothesis import given
from hypothesis import strategies as st
from makespan_cases import MAKESPAN, giph, problems
from schedules_reference import ScheduleInProgress

from streamplace.learn.algorithms.kernels import joined, weights_of
from streamplace.learn.models.pilot_makespan.features import features_of, previous_of, staying
from streamplace.learn.models.pilot_makespan.learner import (
    PilotMakespanLearner,
    PilotMakespanModule,
)
from streamplace.learn.models.pilot_makespan.placing import first_schedules, span
from streamplace.learn.models.pilot_makespan.rollouts import (
    PilotMakespanNetwork,
    recorded_rollouts,
    rollouts,
)
from streamplace.learn.parameters import arrays_of
from streamplace.learn.registry import MODELS, LearningTask
from streamplace.model import Cluster, Operator, Problem, Stream, StreamGraph
from streamplace.placers.registry import PLACERS, Budget
from streamplace.scheduling.tasks import tasks_of, transfer

PROBLEMS = tuple(giph(4))


class RebuiltSchedule(ScheduleInProgress):
    """A schedule in the making, beside what it was before."""

    def __init__(self, problem, before):
        super().__init__(problem)
        self.tasks, self.before = tasks_of(problem), before


def share(seconds, span):
    """Seconds as a share of the span, at most four."""
    return min(4.0, max(-4.0, seconds / span))


def way(tasks, v, a):
    """Least seconds from the end of a task on a device to the end of the pass."""
    ways = [0.0]
    for e, u in enumerate(tasks.source):
        if u == v:
            w = int(tasks.target[e])
            ways.append(
                min(
                    transfer(tasks, e, a, b) + tasks.work[w, b] + way(tasks, w, b)
                    for b in range(len(tasks.latency))
                )
            )
    return float(max(ways))


def late(state, v, a):
    """Seconds by which the pass would take longer if all that follows stayed as it was."""
    tasks, before = state.tasks, state.before
    finish = state.begin(v, a)[0] + tasks.work[v, a]
    delays = [finish - before.span]
    for e in state.out_of(v):
        u = int(tasks.target[e])
        there = finish + transfer(tasks, e, a, before.place[u])
        delays.append(there - before.latest[u])
    return float(max(delays))


def busy(state, a):
    """When a core of a device has done all that it has."""
    return min(max((end for _, end in core), default=0.0) for core in state.busy[a])


def coming(state, a):
    """Seconds per core that tasks still to come worked on a device before."""
    tasks, place = state.tasks, state.before.place
    left = [u for u in range(len(place)) if u not in state.place and place[u] == a]
    cores = tasks.core_start[a + 1] - tasks.core_start[a]
    return float(sum(tasks.work[u, a] / cores for u in left))


def homes(state, v, a):
    """Shares of inputs, outputs and partners that are, or were, on a device."""
    tasks, before = state.tasks, state.before

    def at(task):
        return state.place.get(task, int(before.place[task]))

    inputs = [(at(int(tasks.source[e])), e) for e in state.into(v)]
    outputs = [(int(before.place[tasks.target[e]]), e) for e in state.out_of(v)]
    partners = [
        (at(int(tasks.source[other])), other)
        for e in state.out_of(v)
        for other in state.into(int(tasks.target[e]))
        if tasks.source[other] != v
    ]
    shares = []
    for pairs in (inputs, outputs, partners):
        whole = sum(float(tasks.size[e]) for _, e in pairs)
        part = sum(float(tasks.size[e]) for spot, e in pairs if spot == a)
        shares.append(part / whole if whole else 0.0)
    return shares


def measured(state, v, t):
    """Features of every open device, and of the step."""
    tasks, before, span = state.tasks, state.before, state.before.span
    (n, d), spots = tasks.work.shape, state.open(v)
    begin = {a: state.begin(v, a)[0] for a in spots}
    finish = {a: begin[a] + tasks.work[v, a] for a in spots}
    ahead = {a: finish[a] + way(tasks, v, a) for a in spots}
    lates, until = {a: late(state, v, a) for a in spots}, {a: busy(state, a) for a in spots}
    loads = [coming(state, a) for a in range(d)]
    rows = {}
    for a in spots:
        rows[a] = [
            share(finish[a] - min(finish.values()), span),
            share(ahead[a] - min(ahead.values()), span),
            share(begin[a] - state.ready(v, a), span),
            share(state.ready(v, a) - min(state.ready(v, b) for b in spots), span),
            share(tasks.work[v, a] - min(tasks.work[v, b] for b in spots), span),
            share(lates[a], span),
            share(lates[a] - min(lates.values()), span),
            share(until[a] - min(until.values()), span),
            share(loads[a], span),
            float(before.place[v] == a),
            *homes(state, v, a),
            share(way(tasks, v, a), span),
        ]
    step = [
        share(before.latest[v] - min(begin.values()), span),
        t / n,
        log1p(len(state.out_of(v))) / 3,
        log1p(len(state.into(v))) / 3,
        share(float(tasks.work[v].min()), span),
        share(min(way(tasks, v, a) for a in range(d)), span),
        log(n) / 5,
        log(d) / 3,
        len(spots) / d,
        share(sum(loads) / d, span),
    ]
    return rows, step


def preferences(tensors, rows, step):
    """Preference for every open device, by the equations of the network."""
    known = linear(tensors, "step", step)
    first = {a: relu(linear(tensors, "device", row) + known) for a, row in rows.items()}
    mean = linear(tensors, "mean", np.mean(list(first.values()), axis=0))
    second = {a: relu(linear(tensors, "own", h) + mean) for a, h in first.items()}
    return {
        a: (linear(tensors, "out", second[a]) + linear(tensors, "skip", rows[a])).item()
        for a in rows
    }


def module(seed=0, width=8):
    """Weights at random, also where training begins with nothing."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        made = PilotMakespanModule(width)
        torch.nn.init.normal_(made.out.weight, std=3.0)
        torch.nn.init.normal_(made.skip.weight, std=3.0)
    return made


def beginning(problem):
    """A problem as the policy sees it, and the best of the schedules to begin with."""
    view = features_of(problem)
    return view, min((one for one in first_schedules(view) if one.complete), key=span)


def rebuilt_by(made, view, before):
    """Devices that the likeliest decisions choose, their schedule, and what was seen."""
    free = np.full((1, view.tasks.n_tasks), -1, np.int32)
    network = weights_of(PilotMakespanNetwork, arrays_of(made))
    return recorded_rollouts(view, before, network, free, free.astype(np.float32))


@given(problem=problems(), seed=st.integers(0, 5), disturbed=st.booleans())
def test_decisions_fit_the_equations(problem, seed, disturbed):
    made, (view, schedule) = module(seed), beginning(problem)
    if schedule.finish.max() == 0:
        return
    n = view.tasks.n_tasks
    noise = np.random.default_rng(seed).random(n) if disturbed else np.zeros(n)
    before = previous_of(view.tasks, schedule, noise)
    chosen, rebuilt, record = rebuilt_by(made, view, before)
    state = RebuiltSchedule(problem, before)
    for t, v in enumerate(before.order.tolist()):
        rows, step = measured(state, v, t)
        assert np.flatnonzero(record.open[0, t]).tolist() == list(rows)
        for a, row in rows.items():
            assert record.devices[0, t, a] == pytest.approx(row, abs=1e-4)
        assert record.steps[0, t] == pytest.approx(step, abs=1e-4)
        wanted = preferences(arrays_of(made), rows, step)
        to = int(chosen[0, t])
        assert wanted[to] == pytest.approx(max(wanted.values()), abs=1e-2)
        state.run(v, to)
        assert (rebuilt.start[0, v], rebuilt.place[0, v]) == pytest.approx((state.start[v], to))


def test_torch_prefers_what_the_kernels_prefer():
    made = module()
    view, schedule = beginning(PROBLEMS[0])
    before = previous_of(view.tasks, schedule, np.zeros(view.tasks.n_tasks))
    chosen, _, record = rebuilt_by(made, view, before)
    log_p = made(*map(torch.from_numpy, joined([record]))).detach().numpy()
    assert log_p[np.arange(len(log_p)), chosen[0]] == pytest.approx(log_p.max(axis=1), abs=1e-4)
    assert np.isneginf(log_p[~record.open[0]]).all()


def test_what_stays_stays_and_is_scheduled_anew():
    view, schedule = beginning(PROBLEMS[1])
    before = previous_of(view.tasks, schedule, np.zeros(view.tasks.n_tasks))
    stays = staying(before, np.ones((1, view.tasks.n_tasks), np.bool_))
    luck = np.zeros(stays.shape, np.float32)
    network = weights_of(PilotMakespanNetwork, arrays_of(module()))
    rebuilt = rollouts(view, before, network, stays, luck)
    assert rebuilt.place[0].tolist() == schedule.place.tolist()
    assert rebuilt.finish.max() <= schedule.finish.max() * (1 + 1e-9)


@cache
def targets():
    """Good placements of the problems."""
    budget = Budget(None, 3000)
    found = (PLACERS["anneal"].place(one, MAKESPAN, budget=budget) for one in PROBLEMS)
    return tuple(result.placement.index for result in found)


def learner(known=None, problems=PROBLEMS, **options):
    """The learner on some problems, by default with good placements of them."""
    config = MODELS["pilot-makespan"].config(**{"width": 8, **options})
    good = targets() if known is None else known
    task = LearningTask(problems, problems[:2], seed=0, objective="makespan", targets=good)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return PilotMakespanLearner(task, config)


def test_it_learns_where_good_placements_have_their_tasks():
    one = learner()
    before = sum(float(one.loss(rows(0, 1, 2, 3), 0, seed)[0].detach()) for seed in range(3))
    train(one, 40, rate=1e-2)
    after = sum(float(one.loss(rows(0, 1, 2, 3), 0, seed)[0].detach()) for seed in range(3))
    assert after < 0.9 * before
    assert (one.validate() <= 1).all()


def test_where_nothing_good_is_known_nothing_is_learned():
    loss, report = learner((None,) * 4).loss(rows(0, 1), 0, 0)
    assert float(loss.detach()) == 0
    assert report.reward == 0


def test_passes_that_take_no_time_are_the_best_possible():
    """In validation their reward is 1, and nothing is learned from them."""
    graph = StreamGraph.of("idle", [Operator("a", rate=1), Operator("b")], [Stream("a", "b")])
    one = learner((np.zeros(2, np.int32),), (Problem(graph, Cluster.uniform(2)),))
    assert float(one.loss(rows(0), 0, 0)[0].detach()) == 0
    assert one.validate().tolist() == [1.0]

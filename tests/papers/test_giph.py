"""GiPH's gpNet, forward pass and episode, against what the paper says literally."""

from itertools import product

import giph_reference as literal
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from improving_episodes import (
    PAPER,
    check_episodes_side_by_side,
    check_steps_learned_from_apart,
    check_tensors_are_where_the_parameters_are,
    edges_of,
    seen,
)
from problems import PROBLEMS
from seeded import seeded
from strategies import problems

from streamplace.learn.parameters import arrays_of
from streamplace.learn.registry import MODELS
from streamplace.model.problem import random_placements
from streamplace.papers.giph.model import GiphConfig
from streamplace.papers.giph.policy import GiphPolicy, first_criticality
from streamplace.papers.improving.batch import TaskBatch
from streamplace.papers.improving.episodes import improver_of

pytestmark = pytest.mark.slow

SOME = {name: PROBLEMS[name] for name in ("diamond", "heterogeneous", "constrained", "joined")}
ALL = [*SOME.values(), PAPER]
PRINTED, PRINTED_TASKS = (MODELS[name].presets["paper"].model for name in ("giph", "giph-task-eft"))
CONFIGS = {
    "giph": GiphConfig(),
    "giph-ne": GiphConfig(form="no-edges"),
    "sage": GiphConfig(form="sage"),
    "plain": GiphConfig(form="plain"),
    "tasks alone": GiphConfig(pairs=False),
    "printed": PRINTED,
    "printed tasks alone": PRINTED_TASKS,
    "printed sage": GiphConfig(form="sage", printed=True),
}


def policy_of(config):
    """A policy with random parameters."""
    return seeded(GiphPolicy(config), 0.0, 0.5)


def nodes_of(problem, place, pairs=True):
    """Task and device of every node that exists, by its number."""
    tasks, d = range(problem.n_operators), problem.n_devices
    if not pairs:
        return {v: (v, int(place[v])) for v in tasks}
    return {v * d + a: (v, a) for v in tasks for a in literal.devices_of(problem, v)}


@pytest.mark.parametrize("name", ["giph", "tasks alone", "printed", "printed tasks alone"])
@pytest.mark.parametrize("problem", ALL)
def test_a_walk_sees_every_placements_gpnet(problem, name):
    """Nodes, edges and features, with the criticality that the episode has learned so far."""
    config = CONFIGS[name]
    steps = seen(policy_of(config), problem, steps=4)
    criticality = literal.first_criticality(problem)
    first = first_criticality(TaskBatch([problem], torch.device("cpu")))
    assert first.numpy() == pytest.approx(criticality)
    for t, (graph,) in enumerate(steps.inputs):
        place = steps.places[t]
        criticality = literal.heeded(problem, place, criticality)
        net = literal.gp_net(problem, place, criticality, pairs=config.pairs)
        net = literal.as_printed(net) if config.printed else net
        nodes, wanted = nodes_of(problem, place, config.pairs), literal.scaled(net.nodes)
        assert set(nodes.values()) == set(wanted)
        for i, node in nodes.items():
            assert graph.nodes[:, i].numpy() == pytest.approx(wanted[node], abs=1e-4), (t, node)
        edges = sorted((nodes[i], nodes[j], *x.round(3).tolist()) for i, j, _, x in edges_of(graph))
        of_paper = sorted(
            (i, j, *x.round(3).tolist()) for (i, j, _), x in literal.scaled(net.edges).items()
        )
        assert len(edges) == len(of_paper)
        for mine, theirs in zip(edges, of_paper, strict=True):
            assert mine[:2] == theirs[:2]
            assert mine[2:] == pytest.approx(theirs[2:], abs=2e-3)


@pytest.mark.parametrize(
    ("name", "problem"),
    [*product(("giph", "printed"), ALL), ("sage", SOME["heterogeneous"])],
)
def test_scores_are_those_of_the_papers_equation(problem, name):
    """Of GraphSAGE those of three layers along the streams."""
    config = CONFIGS[name]
    policy = policy_of(config)
    steps = seen(policy, problem, steps=1)
    criticality = literal.heeded(problem, steps.places[0], literal.first_criticality(problem))
    net = literal.gp_net(problem, steps.places[0], criticality)
    net = literal.as_printed(net) if config.printed else net
    if name == "sage":
        wanted = literal.sage_scores(net, arrays_of(policy))
    else:
        wanted = literal.scores(net, arrays_of(policy), problem.graph.order.tolist())
    found = policy(*steps.inputs[0]).detach().numpy()
    for i, node in nodes_of(problem, steps.places[0]).items():
        assert found[i] == pytest.approx(wanted[node], abs=1e-4)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_episodes_side_by_side_do_not_change_each_other(config):
    check_episodes_side_by_side(policy_of(config), [*ALL, PAPER])


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_choices_have_the_probabilities_of_the_scores_of_open_nodes(config):
    policy = policy_of(config)
    steps = seen(policy, PAPER, steps=5)
    for t, graph in enumerate(steps.inputs):
        scores = np.where(steps.is_open[t], policy(*graph).detach().numpy(), -np.inf)
        log_p = literal.log_softmax(scores)
        assert steps.log_p[t] == pytest.approx(log_p[steps.actions[t]], abs=1e-4)
        some = log_p[steps.is_open[t]]
        assert steps.entropy[t] == pytest.approx(-(np.exp(some) * some).sum(), abs=1e-4)


@pytest.mark.parametrize("config", [GiphConfig(), PRINTED], ids=["giph", "printed"])
@pytest.mark.parametrize("problem", [PAPER, PROBLEMS["heterogeneous"], PROBLEMS["fork-join"]])
def test_steps_neither_stay_nor_move_the_same_task_twice(problem, config):
    """All of them as the text says; else as many as tasks and one, and then everything is open."""
    steps = seen(policy_of(config), problem)
    n, d = problem.n_operators, problem.n_devices
    tasks, devices = np.divmod(steps.actions, d)
    allowed = np.zeros((n, d), bool)
    allowed.flat[[*nodes_of(problem, steps.places[0])]] = True
    for t, place in enumerate(steps.places[:-1]):
        wanted = allowed.copy()
        if config.printed or t <= n:
            wanted &= np.arange(d) != place[:, None]
            wanted[tasks[t - 1 : t]] = False
            assert (steps.places[t + 1] != place).sum() == 1
        assert (steps.is_open[t].reshape(n, d) == wanted).all()
        assert steps.places[t + 1][tasks[t]] == devices[t]


@pytest.mark.parametrize("config", [GiphConfig(), GiphConfig(pairs=False)], ids=["pairs", "tasks"])
@settings(max_examples=25)
@given(problem=problems(most=5))
def test_all_placements_on_the_way_are_legal(config, problem):
    steps = seen(policy_of(config), problem)
    assert problem.legal(steps.places).all()
    assert steps.is_open[np.arange(len(steps.actions)), steps.actions].all()


def test_an_episode_is_the_same_in_pieces():
    improve = improver_of(policy_of(GiphConfig()))
    place = random_placements(PAPER, 1, np.random.default_rng(0))[0]
    whole, pieces = (
        np.concatenate([*improve(PAPER, place, np.random.default_rng(2), chunk)])
        for chunk in (1000, 7)
    )
    assert len(whole) == 2 * PAPER.n_operators
    assert (pieces == whole).all()


def test_tasks_alone_go_where_they_are_done_first():
    """By the finish of their inputs and the transfers, whatever else runs on the device."""
    steps = seen(policy_of(CONFIGS["tasks alone"]), PAPER, steps=10)
    for t, v in enumerate(steps.actions.tolist()):
        place = steps.places[t]
        done = {a: finish_on(place, v, a) for a in literal.devices_of(PAPER, v)}
        assert steps.places[t + 1][v] == min(done, key=lambda a, done=done: done[a])


def finish_on(place, v, a):
    """When task v of the paper's problem would be done on device a."""
    run = literal.schedule(PAPER.one_pass, place, literal.GIPH)
    arrivals = [
        run.finish[u] + literal.sending(PAPER, e, place[u], a)
        for e, (u, w) in enumerate(literal.ends(PAPER))
        if w == v
    ]
    return float(max(arrivals, default=0.0) + literal.seconds(PAPER)[v, a])


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_steps_are_learned_from_in_parts(config, monkeypatch):
    check_steps_learned_from_apart(policy_of(config), PAPER, monkeypatch)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_all_tensors_are_where_the_parameters_are(config):
    check_tensors_are_where_the_parameters_are(policy_of(config), PROBLEMS["constrained"])

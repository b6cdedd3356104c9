"""GiPH's gpNet, forward pass and episode, against what the paper says literally."""

from itertools import islice

import giph_reference as literal
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from problems import PROBLEMS
from seeded import seeded
from strategies import problems

from streamplace.learn.algorithms.kernels import weights_of
from streamplace.learn.improver import episode_chunks
from streamplace.learn.parameters import arrays_of
from streamplace.learn.registry import MODELS
from streamplace.model.problem import random_placements
from streamplace.papers.families.giph import Giph, giph
from streamplace.papers.giph import GiphConfig
from streamplace.papers.giph.network import GiphModule
from streamplace.papers.giph.placing import GiphNetwork, agent_on, first_criticality, scores
from streamplace.papers.improving.messages import NodeGraphBatch

pytestmark = pytest.mark.slow

PAPER = tuple(islice(giph(Giph("multiple_networks", 2), seed=3), 2))[1]
"""Of the first, a chain with shortcuts, no two tasks could run at the same time."""
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


def module_of(config):
    """A network with random parameters."""
    return seeded(GiphModule(config), 0.0, 0.5)


def agent_of(problem, config, module=None):
    """GiPH on a problem, with random weights."""
    tensors = arrays_of(module or module_of(config))
    return agent_on(weights_of(GiphNetwork, tensors), config, problem)


def reference(problem, config, steps=None, module=None):
    """Agent that began at a random placement, the placements before each step, what was seen."""
    rng = np.random.default_rng(5)
    agent = agent_of(problem, config, module)
    place = random_placements(problem, 1, rng)[0]
    episode = agent.recorded(place, rng.random(steps or agent.length))
    return (
        agent,
        np.concatenate([place[None], episode.places[:-1]]),
        episode.record,
        episode.places,
    )


def pairs_of(agent, place):
    """Task and device of every node."""
    graph = agent.graph
    devices = graph.device if graph.pairs else place
    return list(zip(graph.task.tolist(), devices.tolist(), strict=True))


@pytest.mark.parametrize("name", ["giph", "tasks alone", "printed", "printed tasks alone"])
@pytest.mark.parametrize("problem", ALL)
def test_a_walk_sees_every_placements_gpnet(problem, name):
    """Nodes, edges and features, with the criticality that the episode has learned so far."""
    config = CONFIGS[name]
    agent, places, record, _ = reference(problem, config, steps=4)
    criticality = literal.first_criticality(problem)
    assert first_criticality(agent.graph) == pytest.approx(criticality)
    for t, place in enumerate(places):
        criticality = literal.heeded(problem, place, criticality)
        net = literal.gp_net(problem, place, criticality, pairs=config.pairs)
        net = literal.as_printed(net) if config.printed else net
        nodes = pairs_of(agent, place)
        wanted = literal.scaled(net.nodes)
        assert set(nodes) == set(wanted)
        found = dict(zip(nodes, record.nodes[t], strict=True))
        for node, features in wanted.items():
            assert found[node] == pytest.approx(features, abs=1e-4), (t, node)
        edges = sorted(
            (nodes[i], nodes[j], *features.round(3).tolist())
            for i, j, features in zip(
                record.source[t], record.target[t], record.edges[t], strict=True
            )
        )
        of_paper = sorted(
            (i, j, *x.round(3).tolist()) for (i, j, _), x in literal.scaled(net.edges).items()
        )
        assert len(edges) == len(of_paper)
        for mine, theirs in zip(edges, of_paper, strict=True):
            assert mine[:2] == theirs[:2]
            assert mine[2:] == pytest.approx(theirs[2:], abs=2e-3)


@pytest.mark.parametrize("config", [GiphConfig(), PRINTED], ids=["giph", "printed"])
@pytest.mark.parametrize("problem", ALL)
def test_scores_are_those_of_the_papers_equation(problem, config):
    module = module_of(config)
    agent, places, record, _ = reference(problem, config, steps=1, module=module)
    criticality = literal.heeded(problem, places[0], literal.first_criticality(problem))
    net = literal.gp_net(problem, places[0], criticality)
    net = literal.as_printed(net) if config.printed else net
    wanted = literal.scores(net, arrays_of(module), problem.graph.order.tolist())
    found = scores(agent.network, agent.graph, agent.state.features)
    assert found == pytest.approx([wanted[p] for p in pairs_of(agent, places[0])], abs=1e-4)
    in_torch = module.scores(NodeGraphBatch.of([(agent.graph, record)]))
    assert in_torch.detach().numpy() == pytest.approx(found, abs=1e-4)


def test_scores_of_graphsage_are_those_of_three_layers_along_the_streams():
    config = CONFIGS["sage"]
    module = module_of(config)
    agent, places, _, _ = reference(SOME["heterogeneous"], config, steps=1, module=module)
    problem = SOME["heterogeneous"]
    criticality = literal.heeded(problem, places[0], literal.first_criticality(problem))
    wanted = literal.sage_scores(literal.gp_net(problem, places[0], criticality), arrays_of(module))
    found = scores(agent.network, agent.graph, agent.state.features)
    assert found == pytest.approx([wanted[p] for p in pairs_of(agent, places[0])], abs=1e-4)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_torch_says_of_all_walks_at_once_what_numpy_says_step_by_step(config):
    module = module_of(config)
    runs = [reference(problem, config, module=module) for problem in ALL]
    steps = NodeGraphBatch.of([(agent.graph, record) for agent, _, record, _ in runs])
    log_p = module(steps).detach()
    total = torch.zeros(len(steps.chosen)).index_add(0, steps.step, log_p.exp())
    assert total.numpy() == pytest.approx(1, abs=1e-5)
    assert steps.open[steps.chosen].all()
    found = module.scores(steps).detach().numpy()
    step_by_step = [
        scores(agent.network, agent.graph, features)
        for agent, _, record, _ in runs
        for features in (
            agent.state.features._replace(**{n: getattr(record, n)[t] for n in SEEN})
            for t in range(len(record.chosen))
        )
    ]
    assert found == pytest.approx(np.concatenate(step_by_step), abs=1e-3)


SEEN = ("nodes", "edges", "source", "target", "open")


@pytest.mark.parametrize("config", [GiphConfig(), PRINTED], ids=["giph", "printed"])
@pytest.mark.parametrize("problem", [PAPER, PROBLEMS["heterogeneous"], PROBLEMS["fork-join"]])
def test_steps_neither_stay_nor_move_the_same_task_twice(problem, config):
    """All of them as the text says; else as many as tasks and one, and then everything is open."""
    agent, places, record, after = reference(problem, config)
    n, graph = problem.n_operators, agent.graph
    tasks = graph.task[record.chosen]
    for t in range(len(places)):
        current = places[t][graph.task] == graph.device
        if config.printed or t <= n:
            last = graph.task == tasks[t - 1] if t else np.zeros(len(graph.task), bool)
            assert (record.open[t] == ~(current | last)).all()
            assert (after[t] != places[t]).sum() == 1
        else:
            assert record.open[t].all()
        assert after[t][tasks[t]] == graph.device[record.chosen[t]]


@pytest.mark.parametrize("config", [GiphConfig(), GiphConfig(pairs=False)], ids=["pairs", "tasks"])
@settings(max_examples=25)
@given(problem=problems(most=5))
def test_all_placements_on_the_way_are_legal(config, problem):
    _, _, record, after = reference(problem, config)
    assert problem.legal(after).all()
    assert record.open[np.arange(len(after)), record.chosen].all()


def test_a_walk_is_the_same_in_pieces():
    agent = agent_of(PAPER, GiphConfig())
    place = random_placements(PAPER, 1, np.random.default_rng(0))[0]
    steps = agent.length
    uniform = np.random.default_rng(2).random(steps)
    whole = agent.recorded(place, uniform).places
    pieces = np.concatenate([*episode_chunks(agent, place, np.random.default_rng(2), steps)])
    assert (pieces == whole).all()


def test_the_likeliest_is_taken_where_nothing_is_drawn():
    """A number below 0 stands for no draw."""
    agent = agent_of(PAPER, GiphConfig())
    place = random_placements(PAPER, 1, np.random.default_rng(0))[0]
    record = agent.recorded(place, np.full(3, -1.0)).record
    for t in range(3):
        features = agent.state.features._replace(**{n: getattr(record, n)[t] for n in SEEN})
        score = np.where(record.open[t], scores(agent.network, agent.graph, features), -np.inf)
        assert record.chosen[t] == np.argmax(score)


def test_tasks_alone_go_where_they_are_done_first():
    """By the finish of their inputs and the transfers, whatever else runs on the device."""
    agent, places, record, after = reference(PAPER, CONFIGS["tasks alone"], steps=10)
    for t, place in enumerate(places):
        v = int(agent.graph.task[record.chosen[t]])
        done = {a: finish_on(place, v, a) for a in literal.devices_of(PAPER, v)}
        assert after[t][v] == min(done, key=lambda a, done=done: done[a])


def finish_on(place, v, a):
    """When task v of the paper's problem would be done on device a."""
    run = literal.schedule(PAPER.one_pass, place, literal.GIPH)
    arrivals = [
        run.finish[u] + literal.sending(PAPER, e, place[u], a)
        for e, (u, w) in enumerate(literal.ends(PAPER))
        if w == v
    ]
    return float(max(arrivals, default=0.0) + literal.seconds(PAPER)[v, a])

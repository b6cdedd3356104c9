"""Placeto: what it sees at every visit, and its two forms."""

from itertools import islice
from typing import get_args

import giph_reference as literal
import numpy as np
import pytest
from hypothesis import given, settings
from problems import PROBLEMS
from seeded import seeded
from strategies import problems
from streamsim.passes import GIPH, schedule

from streamplace.learn.algorithms.orders import decision_order
from streamplace.learn.parameters import arrays_of
from streamplace.learn.registry import MODELS
from streamplace.model.problem import random_placements
from streamplace.papers.families.giph import Giph, giph
from streamplace.papers.placeto import Order
from streamplace.papers.placeto.network import PlacetoPolicy
from streamplace.papers.placeto.placing import N_OPERATOR

pytestmark = pytest.mark.slow

PAPER = tuple(islice(giph(Giph("multiple_networks", 2), seed=3), 2))[1]
"""Of the first, a chain with shortcuts, no two tasks could run at the same time."""
ALL = [PAPER, *(PROBLEMS[n] for n in ("diamond", "heterogeneous", "constrained", "disconnected"))]
ORDERS = get_args(Order)


def policy(order="topological", devices=24):
    """A policy of the preset ``paper`` with random parameters."""
    paper = MODELS["placeto"].presets["paper"].model
    found = PlacetoPolicy(paper.model_copy(update={"order": order, "devices": devices}))
    seeded(found.module, 0.5, 0.25)
    return found


def toured(problem, of):
    """One tour from a random placement, and the placements before each visit."""
    rng = np.random.default_rng(5)
    place, agent = random_placements(problem, 1, rng)[0], of.improver()(problem)
    episode = agent.recorded(place, rng.random(agent.length))
    return agent, episode, np.concatenate([place[None], episode.places[:-1]])


def log_probabilities(problem, of, nodes, v, may):
    """What the module's equations say of one visit, literally."""
    tensors, streams = arrays_of(of.module), literal.ends(problem)
    order = problem.graph.order.tolist()
    edges = {((u, 0), (w, 0), e): np.zeros(0) for e, (u, w) in enumerate(streams)}
    back = {(j, i, e): x for (i, j, e), x in edges.items()}
    rows = {(u, 0): nodes[u] for u in range(len(nodes))}
    along = literal.known_by(rows, edges, tensors, "along", order)
    against = literal.known_by(rows, back, tensors, "against", order[::-1])
    known = [np.concatenate([along[u, 0], against[u, 0]]) for u in range(len(nodes))]
    above, below = upstream(problem, v, streams), downstream(problem, v, streams)
    beside = set(range(len(nodes))) - above - below - {v}
    parts = [known[v]]
    for name, group in (("upstream", above), ("downstream", below), ("beside", beside)):
        each = [literal.relu(literal.linear(tensors, f"{name}.each", known[u])) for u in group]
        mean = np.mean(each, axis=0) if each else np.zeros(10)
        parts.append(literal.relu(literal.linear(tensors, f"{name}.pooled", mean)))
    hidden = literal.relu(literal.linear(tensors, "hidden", np.concatenate(parts)))
    return literal.log_softmax(np.where(may, literal.linear(tensors, "out", hidden), -np.inf))


def upstream(problem, v, streams):
    """Operators from which something leads to v."""
    direct = {u for u, w in streams if w == v}
    return direct.union(*(upstream(problem, u, streams) for u in direct))


def downstream(problem, v, streams):
    """Operators to which something leads from v."""
    return upstream(problem, v, [(w, u) for u, w in streams])


@pytest.mark.parametrize("order", ORDERS)
def test_every_operator_is_visited_once_in_the_order(order):
    for problem in ALL:
        _, episode, before = toured(problem, policy(order))
        assert episode.record.current.tolist() == decision_order(problem, order).tolist()
        unit = np.arange(problem.n_operators) if problem.rules is None else problem.rules.unit
        for v, then, now in zip(episode.record.current, before, episode.places, strict=True):
            assert set(unit[then != now]) <= {unit[v]}


@pytest.mark.parametrize("problem", ALL)
def test_a_visit_sees_costs_bits_start_and_device(problem):
    """Costs and starts between -1 and 1, the device as a place of its own."""
    _, episode, before = toured(problem, policy())
    streams, size = literal.ends(problem), problem.one_pass.streams["size"]
    n = problem.n_operators
    out = [[size[e] for e, (u, _) in enumerate(streams) if u == v] for v in range(n)]
    for t, place in enumerate(before):
        start = schedule(problem.one_pass, place, GIPH).start
        visited, current = episode.record.current[:t], episode.record.current[t]
        plain = {
            v: np.array([literal.seconds(problem)[v].mean(), np.mean(out[v] or [0]), start[v]])
            for v in range(n)
        }
        for v, (cost, sent, begun) in literal.scaled(plain).items():
            row = episode.record.nodes[t, v]
            wanted = [cost, sent, float(v in visited), float(v == current), begun]
            assert row[:N_OPERATOR] == pytest.approx(wanted, abs=1e-4)
            assert row[N_OPERATOR:].tolist() == [float(a == place[v]) for a in range(24)]


@pytest.mark.parametrize("problem", ALL)
def test_choices_have_the_probabilities_of_the_equations(problem):
    """Torch for all visits at once, numpy when it drew, and the equations agree."""
    of = policy()
    agent, episode, _ = toured(problem, of)
    chosen, entropy = (part.detach().numpy() for part in of.choices([(agent, episode)]))
    for t in range(0, len(chosen), 5):
        nodes, v = episode.record.nodes[t].astype(float), int(episode.record.current[t])
        wanted = log_probabilities(problem, of, nodes, v, episode.record.open[t])
        assert chosen[t] == pytest.approx(wanted[episode.record.chosen[t]], abs=1e-4)
        some = wanted[episode.record.open[t]]
        assert entropy[t] == pytest.approx(-(np.exp(some) * some).sum(), abs=1e-4)
    likeliest = of.improver()(problem)
    likeliest.begin(toured(problem, of)[2][0])
    first = int(likeliest.steps(np.array([-1.0]))[0][episode.record.current[0]])
    nodes, v = episode.record.nodes[0].astype(float), int(episode.record.current[0])
    wanted = log_probabilities(problem, of, nodes, v, episode.record.open[0])
    assert wanted[first] == pytest.approx(wanted.max(), abs=1e-4)


@settings(max_examples=25)
@given(problem=problems(most=5))
def test_all_placements_on_the_way_are_legal(problem):
    assert problem.legal(toured(problem, policy())[1].places).all()

"""Placeto: what it sees at every visit, and its network."""

from typing import get_args

import giph_reference as literal
import numpy as np
import pytest
from hypothesis import given, settings
from improving_episodes import (
    PAPER,
    check_episodes_side_by_side,
    check_steps_learned_from_apart,
    check_tensors_are_where_the_parameters_are,
    seen,
)
from problems import PROBLEMS
from seeded import seeded
from strategies import problems
from streamsim.passes import GIPH, schedule

from streamplace.learn.algorithms.orders import decision_order
from streamplace.learn.parameters import arrays_of
from streamplace.learn.registry import MODELS
from streamplace.papers.placeto.model import Order
from streamplace.papers.placeto.policy import OPERATOR_FEATURES, PlacetoPolicy

pytestmark = pytest.mark.slow

ALL = [PAPER, *(PROBLEMS[n] for n in ("diamond", "heterogeneous", "constrained", "disconnected"))]
ORDERS = get_args(Order)


def policy(order="topological", devices=24):
    """A policy of the preset ``paper`` with random parameters."""
    paper = MODELS["placeto"].presets["paper"].model
    config = paper.model_copy(update={"order": order, "devices": devices})
    return seeded(PlacetoPolicy(config), 0.5, 0.25)


def log_probabilities(problem, of, nodes, v, may):
    """What the module's equations say of one visit, literally."""
    tensors, streams = arrays_of(of), literal.ends(problem)
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
        visits = seen(policy(order), problem)
        visited = [int(groups[0].int().argmax()) for _, groups in visits.inputs]
        assert visited == decision_order(problem, order).tolist()
        unit = np.arange(problem.n_operators) if problem.rules is None else problem.rules.unit
        for v, then, now in zip(visited, visits.places[:-1], visits.places[1:], strict=True):
            assert set(unit[then != now]) <= {unit[v]}


@pytest.mark.parametrize("problem", ALL)
def test_a_visit_sees_costs_bits_start_and_device(problem):
    """Costs and starts between -1 and 1, the device as a place of its own."""
    visits, n = seen(policy(), problem), problem.n_operators
    streams, size = literal.ends(problem), problem.one_pass.streams["size"]
    out = [[size[e] for e, (u, _) in enumerate(streams) if u == v] for v in range(n)]
    visited: list[int] = []
    for place, (graph, groups) in zip(visits.places[:-1], visits.inputs, strict=True):
        current = int(groups[0].int().argmax())
        start = schedule(problem.one_pass, place, GIPH).start
        plain = {
            v: np.array([literal.seconds(problem)[v].mean(), np.mean(out[v] or [0]), start[v]])
            for v in range(n)
        }
        for v, (cost, sent, begun) in literal.scaled(plain).items():
            row = graph.nodes[:, v].numpy()
            wanted = [cost, sent, float(v in visited), float(v == current), begun]
            assert row[: len(OPERATOR_FEATURES)] == pytest.approx(wanted, abs=1e-4)
            at = row[len(OPERATOR_FEATURES) :].tolist()
            assert at == [float(a == place[v]) for a in range(24)]
        visited.append(current)


@pytest.mark.parametrize("problem", ALL)
def test_choices_have_the_probabilities_of_the_equations(problem):
    of = policy()
    visits = seen(of, problem)
    for t in range(0, len(visits.inputs), 5):
        graph, groups = visits.inputs[t]
        v = int(groups[0].int().argmax())
        nodes, is_open = graph.nodes.T.numpy().astype(float), visits.is_open[t]
        wanted = log_probabilities(problem, of, nodes, v, is_open)
        assert visits.log_p[t] == pytest.approx(wanted[visits.actions[t]], abs=1e-4)
        some = wanted[is_open]
        assert visits.entropy[t] == pytest.approx(-(np.exp(some) * some).sum(), abs=1e-4)


@settings(max_examples=25)
@given(problem=problems(most=5))
def test_all_placements_on_the_way_are_legal(problem):
    assert problem.legal(seen(policy(), problem).places).all()


@pytest.mark.parametrize("order", ORDERS)
def test_episodes_side_by_side_do_not_change_each_other(order):
    check_episodes_side_by_side(policy(order), [*ALL, PAPER])


def test_steps_are_learned_from_in_parts(monkeypatch):
    check_steps_learned_from_apart(policy(), PAPER, monkeypatch)


def test_all_tensors_are_where_the_parameters_are():
    check_tensors_are_where_the_parameters_are(policy(), PROBLEMS["constrained"])

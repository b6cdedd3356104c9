"""Orders of decision."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import diamond
from strategies import problems

from streamplace.learn.algorithms.orders import ORDERS, decision_order
from streamplace.model import Cluster, Problem, StreamGraph

DIAMOND = Problem(diamond(), Cluster.uniform(2))


def positions(problem, name, rank=None):
    order = decision_order(problem, name, rank)
    found = np.empty(len(order), int)
    found[order] = np.arange(len(order))
    return found


def ranks(problem):
    return st.none() | st.permutations(range(problem.n_operators)).map(np.array)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("topological", ["src", "left", "right", "sink"]),
        ("reversed-topological", ["sink", "right", "left", "src"]),
        ("bfs", ["src", "left", "right", "sink"]),
        ("dfs-preorder", ["src", "left", "sink", "right"]),
        ("dfs-postorder", ["sink", "left", "right", "src"]),
        ("lexicographic", ["left", "right", "sink", "src"]),
    ],
)
def test_orders_of_a_diamond(name, expected):
    names = DIAMOND.graph.operators.name
    assert [names[v] for v in decision_order(DIAMOND, name)] == expected


@given(st.data())
def test_every_operator_is_decided_once(data):
    problem = data.draw(problems())
    rank = data.draw(ranks(problem))
    for name in ORDERS:
        order = decision_order(problem, name, rank)
        assert sorted(order.tolist()) == list(range(problem.n_operators))


@given(st.data())
def test_orders_along_the_streams(data):
    """Two put upstream operators first, as equation 3 supposes, and two downstream ones.

    Depth-first search leaves an operator after all that it leads to.
    """
    problem = data.draw(problems())
    rank = data.draw(ranks(problem))
    source, target = problem.instance.source, problem.instance.target
    for name in ("topological", "bfs"):
        at = positions(problem, name, rank)
        assert (at[source] < at[target]).all()
    for name in ("reversed-topological", "dfs-postorder"):
        at = positions(problem, name, rank)
        assert (at[source] > at[target]).all()


@given(problems())
def test_breadth_first_is_the_order_of_the_instance(problem):
    assert decision_order(problem, "bfs").tolist() == problem.instance.order.tolist()


@pytest.mark.parametrize("name", list(ORDERS))
def test_an_order_by_rank_does_not_depend_on_how_a_graph_is_stored(name):
    """The same ranks, operators stored in another order: the same names come out."""
    graph = diamond()
    stored = [2, 0, 3, 1]
    names = graph.operators.name
    operators = [graph.operators[names[v]] for v in stored]
    other = StreamGraph.of("other", operators, list(graph.streams))
    problem = Problem(other, Cluster.uniform(2))
    rank = np.arange(4)
    found = decision_order(problem, name, rank[stored])
    assert [other.operators.name[v] for v in found] == [
        names[v] for v in decision_order(DIAMOND, name, rank)
    ]

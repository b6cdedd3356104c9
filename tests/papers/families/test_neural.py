"""Families of neural networks: cifar10, nmt, ptb and enas-ptb."""

from collections import Counter

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamplace.errors import SettingError
from streamplace.families.registry import FAMILIES
from streamplace.objectives.registry import OBJECTIVES
from streamplace.papers.families.enas_ptb import EnasPtb, enas_ptb
from streamplace.papers.families.neural import draw_cell, ends_of
from streamplace.papers.families.nmt import nmt
from streamplace.papers.families.ptb import Ptb, ptb
from streamplace.papers.families.tasks import grouped

TABLE = {
    "cifar10": (303.44, 444.22, 1.47, 95.63, (74, 154)),
    "nmt": (179.44, 476.25, 2.65, 63.13, (41, 69)),
    "ptb": (500.75, 1285.44, 2.56, 316.09, (216, 450)),
}
"""Table I of the traversal-order study: nodes, edges, degree, diameter and its range."""


def path(problem):
    """Edges of the longest path."""
    streams = problem.graph.streams
    ends = zip(streams.source.tolist(), streams.target.tolist(), strict=True)
    return nx.dag_longest_path_length(nx.DiGraph(ends), weight=None)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", TABLE)
def test_the_graphs_are_those_of_table_1_on_average(name, seed):
    """Each figure within 5 %, over the default 32 graphs."""
    problems = list(FAMILIES[name].generate(seed=seed))
    nodes = np.array([problem.n_operators for problem in problems])
    edges = np.array([problem.graph.n_streams for problem in problems])
    paths = np.array([path(problem) for problem in problems])
    found = (nodes.mean(), edges.mean(), (edges / nodes).mean(), paths.mean())
    *means, (least, most) = TABLE[name]
    assert len(problems) == 32
    assert found == pytest.approx(means, rel=0.05)
    assert least <= paths.min()
    assert paths.max() <= most


@pytest.mark.parametrize("name", TABLE)
def test_devices_are_equal_and_links_are_placeto_s_buses(name):
    """7600 bytes per microsecond; one output, however many read it."""
    problem = next(FAMILIES[name].generate(FAMILIES[name].parameters(devices=3)))
    assert problem.cluster.interchangeable.tolist() == [0, 0, 0]
    assert problem.cluster.bandwidth_bps[0, 1] / 8 / 1e6 == 7600
    assert np.isnan(problem.graph.streams.payload).all()


@pytest.mark.parametrize("name", TABLE)
def test_a_task_takes_as_many_microseconds_as_its_ipt_says(name):
    """On one device all of them take their sum; those that hold data take none."""
    problem = next(FAMILIES[name].generate())
    together = problem.placement(np.zeros(problem.n_operators, int))
    seconds = OBJECTIVES["makespan"].value(problem, together)
    assert seconds == pytest.approx(problem.graph.operators.ipt.sum() * 1e-6)
    weights = [kind in ("weights", "input") for kind in problem.graph.operators.kind]
    assert problem.graph.operators.ipt[weights].max() == 0


def test_steps_and_layers_give_the_longest_path_of_a_translation():
    """2 T + 2 L + 5: 69 for thirty steps of two layers, as in the study."""
    for problem in nmt(FAMILIES["nmt"].parameters(), 0):
        facts = problem.graph.attributes
        assert path(problem) == 2 * facts["steps"] + 2 * facts["layers"] + 5


def test_operations_of_a_translation_sort_as_in_the_appendix():
    names = sorted(next(nmt(FAMILIES["nmt"].parameters(), 0)).graph.operators.name)
    assert names[:3] == [f"decoder/attention_decoder/attn_{t}/concat" for t in (0, 1, 10)]
    assert "encoder/depth_0/static_rnn_10/add_1" in names


def test_a_longer_language_model_is_the_same_cell_again():
    short, long = (next(ptb(Ptb(count=1, steps=steps), 0)) for steps in (20, 40))
    per_step = (long.n_operators - short.n_operators) / 20
    assert per_step == 14  # twelve nodes, their average and a loss
    assert path(long) == pytest.approx(2 * path(short), abs=5)


@given(st.integers(1, 20), st.integers(0, 2**32))
def test_nodes_of_a_cell_read_earlier_ones(nodes, seed):
    """And the ends are those that nobody reads, at least the last."""
    cell = draw_cell(nodes, np.random.default_rng(seed))
    assert [before < i for i, (before, _) in enumerate(cell)] == [True] * nodes
    assert [i for i, (before, _) in enumerate(cell) if before < 0] == [0]
    assert nodes - 1 in ends_of(cell)


@st.composite
def weighted_dags(draw):
    """Costs of tasks and bytes of edges from lower to higher ones."""
    size = draw(st.integers(2, 12))
    cost = draw(st.lists(st.integers(0, 9), min_size=size, max_size=size))
    pairs = [(u, v) for v in range(size) for u in range(v)]
    edges = draw(st.sets(st.sampled_from(pairs)))
    return cost, dict.fromkeys(sorted(edges), 1.0), draw(st.integers(1, size))


@given(weighted_dags())
def test_grouping_keeps_all_costs_and_stops_where_it_must(case):
    """At the size asked for, or where every group has no predecessor or several."""
    cost, edges, size = case
    groups = grouped(cost, edges, size)
    assert sum(groups.cost) == sum(cost)
    assert len(groups.first) >= size
    assert nx.is_directed_acyclic_graph(nx.DiGraph(groups.payload.keys()))
    degrees = Counter(v for _, v in groups.payload)
    assert len(groups.first) == size or 1 not in degrees.values()


def test_the_cheapest_task_joins_its_predecessor_first():
    """The task of 1 goes, the one of 2 stays; the join's two inputs are one message then."""
    groups = grouped([5, 1, 2, 9], {(0, 1): 10, (0, 2): 20, (1, 3): 30, (2, 3): 40}, size=3)
    assert groups == ([0, 2, 3], [6, 2, 9], {(0, 1): 20, (0, 2): 30, (1, 2): 40}, [0, 0, 1, 2])


def test_giph_s_language_models_have_forty_groups_on_one_network():
    """Ten cells, thirty graphs each, half of them to train with."""
    problems = list(enas_ptb(EnasPtb(), 0))
    assert {problem.n_operators for problem in problems} == {40}
    assert len({problem.cluster for problem in problems}) == 1
    assert problems[0].n_devices == 8
    assert len(set(problems[0].cluster.devices.mips)) > 1
    assert Counter(p.graph.attributes["split"] for p in problems) == {"train": 150, "test": 150}
    assert set(Counter(p.graph.attributes["design"] for p in problems).values()) == {30}
    for problem in problems:
        _, steps, batch, _ = problem.graph.name.split("-")
        assert 20 <= int(steps[1:]) <= 30
        assert 80 <= int(batch[1:]) <= 150


@pytest.mark.parametrize("groups", [33, 200])
def test_language_models_of_cells_have_the_groups_that_are_asked_for(groups):
    """From 33 on: words, the first state, the last loss, and each of up to 30 words remain."""
    problems = list(enas_ptb(EnasPtb(designs=3, copies=12, groups=groups), 0))
    assert any("-s30-" in problem.graph.name for problem in problems)
    assert {problem.n_operators for problem in problems} == {groups}
    with pytest.raises(SettingError, match="groups is 32"):
        EnasPtb(groups=32)

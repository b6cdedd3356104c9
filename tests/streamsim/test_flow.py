"""Flow through a graph whose operators fire for each tuple or join, its order and its groups."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamsim._core import group_by, topological_order, undirected
from streamsim.flow import CycleError, flow_of, unequal_inputs
from streamsim_strategies import descriptions

DIAMOND = [0, 0, 1, 2], [1, 2, 3, 3]
JOINED = [False, False, False, True]


def test_a_cycle_is_refused_with_the_operators_that_are_neither_on_nor_behind_it():
    with pytest.raises(CycleError, match="cycle") as caught:
        flow_of([1, 0, 0, 0], [0, 1, 2, 2], [1, 2, 1, 3])
    assert caught.value.order.tolist() == [0]


def test_streams_of_one_input_are_merged_before_the_join():
    ends = [0, 1, 2], [3, 3, 3]
    flow = flow_of([2, 3, 5, 0], *ends, joins=JOINED, inputs=[0, 0, 1])
    assert flow.input_rate[3] == 5
    assert unequal_inputs(flow) is None
    assert np.diff(flow.port_start).tolist() == [1, 1, 1, 2]


@pytest.mark.parametrize(
    ("selectivity", "found"), [(0.5, (2, 3, 4.0, 2.0)), (1 + 1e-9, None)], ids=["half", "rounding"]
)
def test_more_than_rounding_is_found(selectivity, found):
    flow = flow_of([4, 0, 0, 0], *DIAMOND, joins=JOINED, selectivity=[1, selectivity, 1, 1])
    assert unequal_inputs(flow) == found


@given(st.data())
def test_what_streams_bring_adds_up_to_what_is_taken_in(data):
    n = data.draw(st.integers(2, 7))
    pairs = [(u, v) for v in range(1, n) for u in range(v)]
    edges = data.draw(st.lists(st.sampled_from(pairs), min_size=1))
    fed = {v for _, v in edges}
    joins = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    rate = np.array([0.0 if v in fed else 1.0 for v in range(n)])
    flow = flow_of(rate, *zip(*edges, strict=True), joins=joins)
    if unequal_inputs(flow) is None:
        brought = np.bincount(flow.target, flow.intake, n) + rate
        np.testing.assert_allclose(brought, flow.input_rate)


def ints(*values):
    return np.array(values, np.int32)


@given(descriptions())
def test_every_operator_comes_after_all_that_feed_it(problem):
    source, target = ints(*problem.source), ints(*problem.target)
    order = topological_order(problem.n_operators, source, target)
    assert sorted(order) == list(range(problem.n_operators))
    position = np.argsort(order)
    assert (position[source] < position[target]).all()


def test_the_order_is_breadth_first():
    order = topological_order(5, ints(0, 0, 1, 2), ints(1, 2, 3, 4))
    assert order.tolist() == [0, 1, 2, 3, 4]


@given(st.lists(st.integers(0, 5)))
def test_groups_list_the_positions_of_each_key(keys):
    start, positions = group_by(ints(*keys), 6)
    for k in range(6):
        expected = [i for i, key in enumerate(keys) if key == k]
        assert positions[start[k] : start[k + 1]].tolist() == expected


@given(st.data())
def test_undirected_neighbours_equal_a_dictionary_of_sums(data):
    """Both directions, merged, without loops, in rising order."""
    n = data.draw(st.integers(1, 6))
    ends = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1), st.integers(1, 9))
    edges = data.draw(st.lists(ends, max_size=20))
    source, target, weight = (
        np.array([edge[i] for edge in edges], kind)
        for i, kind in enumerate((np.int32, np.int32, np.int64))
    )
    start, neighbour, total = undirected(source, target, weight, n)
    expected = {u: {} for u in range(n)}
    for u, v, w in edges:
        if u != v:
            expected[u][v] = expected[u].get(v, 0) + w
            expected[v][u] = expected[v].get(u, 0) + w
    rows = [slice(start[u], start[u + 1]) for u in range(n)]
    found = [list(zip(neighbour[r].tolist(), total[r].tolist(), strict=True)) for r in rows]
    assert found == [sorted(expected[u].items()) for u in range(n)]

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from streamsim.topology import group_by, topological_order, undirected
from streamsim_strategies import Description, descriptions


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


@given(descriptions())
def test_every_operator_comes_after_all_that_feed_it(problem: Description) -> None:
    source, target = ints(*problem.source), ints(*problem.target)
    order = topological_order(problem.n_operators, source, target)
    assert sorted(order) == list(range(problem.n_operators))
    position = np.argsort(order)
    assert (position[source] < position[target]).all()


def test_the_order_is_breadth_first() -> None:
    order = topological_order(5, ints(0, 0, 1, 2), ints(1, 2, 3, 4))
    assert order.tolist() == [0, 1, 2, 3, 4]


@given(st.lists(st.integers(0, 5)))
def test_groups_list_the_positions_of_each_key(keys: list[int]) -> None:
    start, positions = group_by(ints(*keys), 6)
    for k in range(6):
        expected = [i for i, key in enumerate(keys) if key == k]
        assert positions[start[k] : start[k + 1]].tolist() == expected


@given(st.data())
def test_undirected_neighbours_equal_a_dictionary_of_sums(data: Any) -> None:
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

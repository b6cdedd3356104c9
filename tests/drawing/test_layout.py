import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamplace.drawing.layout import Spacing, crossings, layered_layout, ordered, pooled

SPACING = Spacing(layers=20, boxes=8, bends=4, ports=6)
"""Ends of streams from lower to higher rows, and breadths and lengths of the boxes."""


@st.composite
def drawn_graphs(draw):
    n = draw(st.integers(1, 14))
    pairs = list(itertools.combinations(range(n), 2))
    ends = draw(st.lists(st.sampled_from(pairs), max_size=30)) if pairs else []
    sizes = st.lists(st.floats(1, 90), min_size=n, max_size=n)
    return ends, draw(sizes), draw(sizes)


def laid_out(ends, breadth, length):
    """Layout of a graph given by its ends."""
    source, target = np.array(ends, np.int32).reshape(-1, 2).T
    return layered_layout(source, target, np.array(breadth), np.array(length), SPACING)


def branches(n, depth):
    """A source 0, n branches, and a sink 1."""
    ends = []
    for b in range(n):
        row = [0, *range(2 + b * depth, 2 + (b + 1) * depth), 1]
        ends += list(itertools.pairwise(row))
    return ends


@given(drawn_graphs())
def test_no_two_boxes_overlap(graph):
    """Boxes of a layer keep their distance across, those of different layers along, all inside."""
    _, breadth, length = graph
    at = laid_out(*graph)
    for u, v in itertools.combinations(range(len(breadth)), 2):
        across = abs(at.across[u] - at.across[v]) - (breadth[u] + breadth[v]) / 2
        along = abs(at.along[u] - at.along[v]) - (length[u] + length[v]) / 2
        assert max(across - SPACING.boxes, along - SPACING.layers) >= -1e-6
    for centre, size, whole in (
        (at.across, np.array(breadth), at.breadth),
        (at.along, np.array(length), at.length),
    ):
        assert (centre - size / 2).min() >= -1e-9
        assert (centre + size / 2).max() <= whole + 1e-9


@given(drawn_graphs())
def test_streams_run_forward_from_box_to_box(graph):
    """Every route begins at the end of its source, never turns back, and ends at its target."""
    ends, breadth, length = graph
    at = laid_out(*graph)
    for (u, v), route in zip(ends, at.routes, strict=True):
        assert route[0, 1] == pytest.approx(at.along[u] + length[u] / 2)
        assert route[-1, 1] == pytest.approx(at.along[v] - length[v] / 2)
        assert abs(route[0, 0] - at.across[u]) < breadth[u] / 2
        assert abs(route[-1, 0] - at.across[v]) < breadth[v] / 2
        assert (np.diff(route[:, 1]) >= 0).all()
        assert route[-1, 1] - route[0, 1] >= SPACING.layers - 1e-6


def test_streams_go_around_the_boxes_of_the_layers_between():
    ends = [(0, 1), (1, 2), (2, 3), (0, 3)]
    at = laid_out(ends, [50.0] * 4, [10.0] * 4)
    shortcut = at.routes[3]
    for v in (1, 2):
        inside = np.abs(shortcut[:, 1] - at.along[v]) <= 5
        assert inside.any()
        assert (np.abs(shortcut[inside, 0] - at.across[v]) >= 25 + SPACING.bends - 1e-6).all()


@pytest.mark.parametrize(("n", "depth"), [(2, 3), (3, 4), (5, 1), (6, 2)])
def test_equal_branches_are_straight_symmetric_and_do_not_cross(n, depth):
    """The stages of a branch stand in a line, source and sink in the middle."""
    at = laid_out(branches(n, depth), [40.0] * (2 + n * depth), [10.0] * (2 + n * depth))
    rows = at.across[2:].reshape(n, depth)
    assert np.ptp(rows, axis=1).max() < 1e-6
    assert len(np.unique(rows[:, 0].round(3))) == n
    middle = (rows[:, 0].min() + rows[:, 0].max()) / 2
    np.testing.assert_allclose(at.across[:2], middle, atol=0.5)


def test_a_graph_that_can_be_drawn_without_crossings_is():
    """Two branches whose targets are listed the other way round."""
    rows = [[0, 1, 2], [3, 4, 5]]
    before, after = [[], [], [], [2], [1], [0]], [[5], [4], [3], [], [], []]
    assert crossings(rows, after) == 3
    assert crossings(ordered(rows, before, after), after) == 0


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=20))
def test_crossings_are_counted_as_by_looking_at_all_pairs(ends):
    """Streams between two layers cross where their ends are in opposite order."""
    after: list[list[int]] = [[] for _ in range(14)]
    for u, v in ends:
        after[u].append(7 + v)
    expected = sum((a - c) * (b - d) < 0 for (a, b), (c, d) in itertools.combinations(ends, 2))
    assert crossings([list(range(7)), list(range(7, 14))], after) == expected


@given(st.lists(st.tuples(st.floats(-9, 9), st.floats(0.1, 9)), min_size=1, max_size=12))
def test_pooled_values_are_the_nearest_that_never_fall(pairs):
    """No falling step; the pull on all prefixes is one that only a bound can resist."""
    wanted, weights = map(np.array, zip(*pairs, strict=True))
    fit = np.array(pooled(list(wanted), list(weights)))
    assert (np.diff(fit) >= -1e-9).all()
    pull = np.cumsum(weights * (wanted - fit))
    assert (pull >= -1e-6).all()  # the optimality condition of isotonic regression
    assert abs(pull[-1]) < 1e-6
    assert np.abs(pull[:-1][np.diff(fit) > 1e-6]).max(initial=0) < 1e-6


def test_streams_of_a_huge_span_bring_no_bends_beyond_the_limit():
    """Sixty shortcuts over a chain of a thousand boxes: most of them are straight lines."""
    chain = [(i, i + 1) for i in range(999)]
    at = laid_out([*chain, *[(0, 999)] * 60], [10.0] * 1000, [5.0] * 1000)
    assert sum(len(route) for route in at.routes) < 2 * (2 * 1060 + 20_000)
    assert min(len(route) for route in at.routes[999:]) == 2

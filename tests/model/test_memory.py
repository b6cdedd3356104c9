"""Memory as a rule: what runs on a device fits into it."""

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from planning_cases import chain

from streamplace.errors import PlacementError, ProblemError
from streamplace.model import (
    Cluster,
    Constraints,
    Device,
    Operator,
    Problem,
    Stream,
    StreamGraph,
)
from streamplace.model.expansion import expand
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.registry import PLACERS, Budget


def problem_of(sizes, rooms, **rules):
    """A chain of operators of these sizes on devices with this much room."""
    operators = [
        Operator(f"v{i}", ipt=1e5 * (1 + i % 3), payload=1e3 * i, memory=size, rate=float(i == 0))
        for i, size in enumerate(sizes)
    ]
    devices = [Device(f"d{i}", memory=room) for i, room in enumerate(rooms)]
    return Problem(chain(*operators).at_rate(2e4), Cluster.of(devices), Constraints(**rules))


def fitting(sizes, rooms, apart=False):
    """All placements that fit, by trying all; v0 and v1 apart if wanted."""
    found = []
    for place in product(range(len(rooms)), repeat=len(sizes)):
        taken = np.bincount(place, sizes, len(rooms))
        if (taken <= rooms).all() and not (apart and place[0] == place[1]):
            found.append(place)
    return found


SIZES = st.lists(st.integers(0, 9), min_size=2, max_size=6)
ROOMS = st.lists(st.integers(1, 14), min_size=2, max_size=3)


@given(SIZES, ROOMS, st.booleans())
def test_it_is_refused_where_nothing_fits(sizes, rooms, apart):
    rules = {"exlocate": [{"v0", "v1"}]} if apart else {}
    if not fitting(sizes, rooms, apart):
        with pytest.raises(ProblemError, match=r"memory|apart"):
            problem_of(sizes, rooms, **rules)
        return
    problem = problem_of(sizes, rooms, **rules)
    if problem.rules is not None:
        assert problem.legal(problem.rules.witness[problem.rules.unit])[0]


@given(SIZES, ROOMS, st.booleans(), st.integers(0, 2**32 - 1))
def test_what_fits_is_kept(sizes, rooms, apart, seed):
    legal = fitting(sizes, rooms, apart)
    assume(legal)
    problem = problem_of(sizes, rooms, **({"exlocate": [{"v0", "v1"}]} if apart else {}))
    batch = np.random.default_rng(seed).integers(0, len(rooms), (8, len(sizes)))
    repaired = problem.repaired(batch)
    assert {tuple(row) for row in repaired.tolist()} <= set(legal)
    for before, after in zip(batch.tolist(), repaired.tolist(), strict=True):
        assert (tuple(before) in legal) == (before == after)
        assert problem.legal(before)[0] == (tuple(before) in legal)


@pytest.mark.slow
@given(SIZES, ROOMS)
def test_exact_is_the_best_of_all_that_fit(sizes, rooms):
    legal = fitting(sizes, rooms)
    assume(legal)
    problem, judge = problem_of(sizes, rooms), OBJECTIVES["throughput"]
    best = judge.evaluate(problem, np.array(legal, np.int32)).max()
    result = PLACERS["exact"].place(problem, judge, budget=Budget(None, 200_000))
    assert result.value == pytest.approx(best)
    assert result.bound == pytest.approx(best, rel=1e-6)


@pytest.mark.slow
def test_a_large_graph_is_searched_level_by_level_within_memory():
    """Neither the coarse levels nor the moves on the fine ones ask too much of a device."""
    rng = np.random.default_rng(1)
    sizes = rng.integers(1, 10, 900)
    room = int(sizes.sum() / 4 * 1.02)
    problem = problem_of(sizes.tolist(), [room] * 4)
    judge = OBJECTIVES["throughput"]
    result = PLACERS["anneal"].place(problem, judge, budget=Budget(None, 200_000))
    taken = np.bincount(result.placement.index, sizes, 4)
    assert (taken <= room).all()
    assert result.value > judge.value(problem, PLACERS["random"].place(problem, judge).placement)


@pytest.mark.parametrize("objective", ["latency", "throughput"])
def test_memory_that_fits_nowhere_is_refused_beside_subtasks(objective):
    operators = [Operator("a", ipt=1e5, rate=100, memory=12), Operator("b", parallelism=2)]
    graph = StreamGraph.of("g", operators, [Stream("a", "b")])
    problem = Problem(graph, Cluster.of([Device("d0", memory=10)]))
    with pytest.raises(ProblemError, match="'a' cannot fit anywhere"):
        PLACERS["auto"].place(problem, OBJECTIVES[objective])


def test_memory_that_cannot_bind_is_no_rule():
    assert problem_of([1, 2, 3], [6, 7]).rules is None
    assert problem_of([1, 2, 3], [5, 7]).rules is not None


def test_subtasks_share_their_operators_memory():
    """Four subtasks of 2 GB each fit where their operator of 8 GB does not."""
    heavy = Operator("a", ipt=1.0, rate=1.0, parallelism=4, memory=8e9)
    graph = StreamGraph.of("one", [heavy])
    cluster = Cluster.of([Device(f"d{i}", memory="4 GB") for i in range(2)])
    whole = Problem(graph, cluster)
    with pytest.raises(ProblemError, match="8 GB"):
        PLACERS["auto"].place(whole, OBJECTIVES["throughput"])
    subtasks = expand(graph).problem(whole)
    assert subtasks.legal([0, 0, 1, 1])[0]
    assert not subtasks.legal([0, 0, 0, 1])[0]


def test_a_placement_that_does_not_fit_is_refused_with_what_is_too_much():
    problem = problem_of([3_000_000_000, 1_000_000_000, 0], [3_500_000_000, 3_500_000_000])
    with pytest.raises(PlacementError, match=r"device 'd0' has 3.5 GB .*500 MB .*'v0', 'v1'"):
        problem.check(problem.placement([0, 0, 0]))


@pytest.mark.parametrize(
    ("sizes", "rooms", "rules", "complaint"),
    [
        ([5, 1], [4, 3], {}, "'v0' .*5 B .*4 B, 1 B"),
        ([3, 3], [4, 5], {"colocate": [{"v0", "v1"}]}, "'v0', 'v1' .*6 B"),
        ([4, 1], [4, 3], {"pin": {"v0": "d1"}}, "3 B"),
        ([3, 3, 3], [4, 4], {}, "9 B .*1 B"),
        ([3, 3, 3, 1], [5, 5], {}, "'v2' .*3 B.*2 B"),
        ([1, 6, 3, 5], [8, 16], {"pin": {"v1": "d0", "v3": "d0"}}, "'v1', 'v3' .*8 B .*11 B"),
    ],
)
def test_what_cannot_fit_is_told_by_name_and_amount(sizes, rooms, rules, complaint):
    with pytest.raises(ProblemError, match=complaint):
        problem_of(sizes, rooms, **rules)


def test_a_problem_that_the_search_for_memory_does_not_settle_is_not_refused():
    """Each of twelve devices has room for 5 + 3 + 3 bytes; the search puts 5 + 5 together first."""
    sizes, rooms = [5] * 12 + [3] * 24, [11] * 12
    problem, place = problem_of(sizes, rooms), [*range(12), *range(12), *range(12)]
    assert problem.legal(place)[0]
    with pytest.raises(ProblemError):
        _ = problem.rules.witness
    known = Problem(problem.graph, problem.cluster, known=problem.placement(place))
    assert known.rules.witness.tolist() == place

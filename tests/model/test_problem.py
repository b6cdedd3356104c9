"""Problems: a graph on a cluster, compiled once."""

import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import chain, diamond, fork_join, heterogeneous
from strategies import placements, problems
from streamsim import throughput

from streamplace.errors import PlacementError, ProblemError
from streamplace.model import Cluster, Constraints, Placement, Problem
from streamplace.model.problem import random_placements


@st.composite
def swapped_cases(draw):
    """A problem, a placement, and the same after swapping interchangeable devices."""
    problem = draw(problems())
    rows = np.array(draw(placements(problem)), np.int32)
    new = np.arange(problem.n_devices, dtype=np.int32)
    for c in range(problem.interchangeable.max() + 1):
        members = np.flatnonzero(problem.interchangeable == c)
        new[members] = draw(st.permutations(members.tolist()))
    return problem, rows, new[rows]


@given(swapped_cases())
def test_interchangeable_devices_share_value_legality_and_canonical_form(case):
    problem, rows, swapped = case
    canonical = problem.canonical(rows)
    before, after, renumbered = throughput(problem.instance, [rows, swapped, canonical])
    assert (after, renumbered) == pytest.approx((before, before), rel=1e-9)
    assert problem.legal(rows)[0] == problem.legal(swapped)[0]
    assert problem.canonical(swapped).tolist() == canonical.tolist()
    assert problem.canonical(canonical).tolist() == canonical.tolist()


def test_canonical_takes_one_placement_or_many():
    problem = Problem(chain(3), Cluster.uniform(3))
    assert problem.canonical([2, 2, 1]).tolist() == [0, 0, 1]
    assert problem.canonical([[2, 2, 1], [1, 0, 1]]).tolist() == [[0, 0, 1], [0, 1, 0]]


def test_constraints_and_costs_tell_devices_apart():
    pinned = Problem(chain(3), Cluster.uniform(3), Constraints(pin={"v1": "d1"}))
    assert pinned.interchangeable.tolist() == [0, 1, 0]
    costly = Problem(chain(2), Cluster.uniform(3), seconds=[[1, 1, 2], [1, 1, 1]])
    assert costly.interchangeable.tolist() == [0, 0, 1]


def test_loads_are_instructions_over_speed_or_the_seconds_of_a_cost_matrix():
    """λ · ipt / (mips · 10⁶ · cores), of a type for each speed and number of cores."""
    problem = Problem(diamond(), heterogeneous())
    types = problem.instance.device_type
    assert problem.instance.load[1, types].tolist() == pytest.approx([0.25, 0.25, 2.0])
    seconds = np.arange(1, 7).reshape(3, 2) * 1e-5
    costly = Problem(chain(3), Cluster.uniform(2), seconds=seconds)
    np.testing.assert_allclose(costly.instance.load, seconds * 1e4)


@pytest.mark.parametrize(
    ("seconds", "message"),
    [
        ([[1, 2]], r"the cost matrix is \(1, 2\)"),
        ([[1, 2], [-1, 2]], "operator 'v1' costs -1 s per tuple on device 'd0'"),
        ([[1, math.nan], [1, 2]], "operator 'v0' costs nan s per tuple on device 'd1'"),
        ([[1, "x"], [1, 2]], "the cost matrix must be numbers"),
    ],
)
def test_a_bad_cost_matrix_is_refused(seconds, message):
    with pytest.raises(ProblemError, match=message):
        Problem(chain(2), Cluster.uniform(2), seconds=seconds)


def test_a_placement_of_another_graph_or_cluster_is_refused():
    problem = Problem(chain(2), Cluster.uniform(2))
    with pytest.raises(PlacementError, match="for another graph"):
        problem.check(Placement(("a", "b"), ("d0", "d1"), [0, 0]))
    with pytest.raises(PlacementError, match="for another cluster"):
        problem.check(Placement(("v0", "v1"), ("d0",), [0, 0]))


def test_what_follows_from_a_problem_is_made_once():
    problem, made = Problem(chain(), Cluster.uniform(2)), []

    def size(asked):
        made.append(asked)
        return asked.n_operators

    assert [problem.cached("size", size) for _ in range(3)] == [problem.n_operators] * 3
    assert made == [problem]


def test_problems_on_one_cluster_share_its_arrays():
    """The network of a cluster takes the memory of one, however many problems use it."""
    cluster = heterogeneous()
    one, other = Problem(chain(), cluster), Problem(diamond(), cluster)
    assert one.instance.latency is other.instance.latency
    assert one.one_pass.links is other.one_pass.links


def test_another_rate_is_another_graph():
    """Values that were computed from a graph do not stay with its copy at another rate."""
    problem = Problem(diamond(), Cluster.uniform(2))
    traffic, size = problem.instance.traffic, problem.one_pass.streams["size"].copy()
    faster = problem.at_rate(2 * problem.graph.source_rate)
    assert faster.instance.traffic == pytest.approx(2 * traffic)
    assert faster.one_pass.streams["size"] == pytest.approx(size)


def pickled(thing):
    """Copy by way of a file."""
    return pickle.loads(pickle.dumps(thing))


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickled])
def test_copies_compile_anew(duplicate):
    """To the arrays of their original; their own are read-only as well."""
    problem = Problem(diamond(), heterogeneous())
    assert problem.one_pass.n_operators == problem.n_operators
    again = Problem(duplicate(problem.graph), duplicate(problem.cluster))
    assert np.array_equal(again.one_pass.streams, problem.one_pass.streams)
    assert np.array_equal(again.one_pass.links, problem.one_pass.links)
    placement = duplicate(problem.placement(np.zeros(problem.n_operators, np.int32)))
    for array in (
        again.graph.operators.ipt, again.cluster.latency_s, again.cluster.devices.mips,
        placement.index,
    ):  # fmt: skip
        assert not array.flags.writeable


@given(problems(), st.integers(0, 99))
def test_random_placements_are_legal(problem, seed):
    found = random_placements(problem, 20, np.random.default_rng(seed))
    assert found.shape == (20, problem.n_operators)
    assert problem.legal(found).all()


def test_random_placements_use_any_number_of_devices():
    fork = Problem(fork_join(3), Cluster.uniform(4))
    found = random_placements(fork, 500, np.random.default_rng(0))
    assert {len(set(row)) for row in found.tolist()} == {1, 2, 3, 4}
    assert set(found.ravel().tolist()) == {0, 1, 2, 3}

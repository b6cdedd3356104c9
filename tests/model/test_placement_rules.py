"""Constraints compiled: what is legal, what is repaired, what is refused."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import chain
from strategies import placements, problems

from streamplace.errors import ProblemError, StreamplaceError
from streamplace.model import Cluster, Constraints, Device, Operator, Problem, Stream, StreamGraph
from streamplace.model.keep_apart import keep_apart


def ruled(n=4, devices=3, **rules):
    """A chain v0, v1, … on a few devices under constraints."""
    return Problem(chain(n), Cluster.uniform(devices), Constraints(**rules))


def legal(problem, *placement):
    """Whether one placement is legal, alone and in a batch."""
    found = bool(problem.legal([placement])[0])
    if problem.rules is not None:
        assert problem.rules.is_legal(np.array(placement, np.int32)) == found
    return found


@pytest.mark.parametrize(
    ("label", "names"),
    [
        ("big", {"big0", "big1"}),
        ("tag:gpu", {"big1", "small"}),
        ("small", {"small"}),
        ("box", None),
        ("tag:ssd", None),
    ],
)
def test_operators_are_allowed_by_tag_and_by_name(label, names):
    gpu = frozenset({"gpu"})
    devices = [
        Device("big0"),
        Device("big1", tags=gpu),
        Device("small", tags=gpu),
        Device("bigger"),
    ]
    rules = Constraints(allowed={"v1": [label]})
    if names is None:
        with pytest.raises(ProblemError, match=f"'{label.removeprefix('tag:')}'"):
            Problem(chain(4), Cluster.of(devices), rules)
    else:
        problem = Problem(chain(4), Cluster.of(devices), rules)
        assert problem.constraints.allowed == {"v1": names}


@pytest.mark.parametrize(
    ("rules", "fine", "wrong", "names"),
    [
        ({"pin": {"v1": "d2"}}, [0, 2, 0, 0], [0, 1, 0, 0], "'v1' on 'd1'"),
        ({"colocate": [["v1", "v3"]]}, [0, 1, 0, 1], [0, 1, 0, 2], "'v1' and 'v3'"),
        ({"exlocate": [["v1", "v3"]]}, [0, 1, 0, 2], [0, 1, 0, 1], "'v1' and 'v3'"),
        ({"exlocate": [["v0", "v1", "v3"]]}, [0, 1, 1, 2], [0, 1, 0, 0], "'v0' and 'v3'"),
    ],
)
def test_a_placement_is_legal_or_told_which_rule_it_breaks(rules, fine, wrong, names):
    problem = ruled(**rules)
    assert legal(problem, *fine)
    assert not legal(problem, *wrong)
    problem.check(problem.placement(fine))
    with pytest.raises(StreamplaceError, match=names):
        problem.check(problem.placement(wrong))


def test_overlapping_groups_of_colocated_operators_merge():
    problem = ruled(colocate=[{"v0", "v1"}, {"v1", "v3"}])
    assert legal(problem, 1, 1, 0, 1)
    assert not legal(problem, 1, 1, 0, 0)
    assert problem.rules.unit.tolist() == [0, 0, 1, 0]


def test_allowed_devices_and_tags_narrow_each_other():
    graph = StreamGraph.of("one", [Operator("a", rate=1, requires={"gpu"})])
    devices = [*Cluster.uniform(2).devices]
    cluster = Cluster.of([*devices, Device("g0", tags={"gpu"}), Device("g1", tags={"gpu"})])
    problem = Problem(graph, cluster, Constraints(allowed={"a": {"d0", "g1"}}))
    assert problem.legal([[0], [1], [2], [3]]).tolist() == [False, False, False, True]


def test_without_constraints_there_are_no_rules():
    problem = ruled()
    assert problem.rules is None
    assert legal(problem, 2, 2, 0, 1)
    assert problem.repaired([2, 2, 0, 1]).tolist() == [2, 2, 0, 1]


@given(problems().flatmap(lambda p: placements(p).map(lambda rows: (p, rows))))
def test_the_witness_and_repaired_placements_are_legal_and_legal_ones_stay(case):
    problem, rows = case
    repaired = problem.repaired(rows)
    assert problem.legal(repaired)[0]
    assert problem.repaired(repaired).tolist() == repaired.tolist()
    if problem.rules is not None:
        assert problem.legal(problem.rules.witness[problem.rules.unit])[0]


def test_repairs_go_to_the_next_legal_device():
    problem = ruled(allowed={"v1": {"d0", "d2"}}, exlocate=[{"v0", "v2"}])
    assert problem.repaired([1, 1, 1, 1]).tolist() == [1, 2, 2, 1]


@pytest.mark.parametrize(
    ("rules", "names"),
    [
        ({"pin": {"x": "d0"}}, "pin .*'x'"),
        ({"allowed": {"v0": [f"d{i}" for i in range(12, 8, -1)]}}, "allowed of 'v0' .*'d10'"),
        ({"pin": {1: "d0"}}, "pin .* operator 1; names are texts; write '1'"),
        ({"allowed": {"v0": ["tag:gpu"]}}, "'v0': no device has the tag 'gpu'; add it"),
        ({"pin": {"v0": "tag:gpu"}}, "unknown device 'tag:gpu'"),
        ({"colocate": [["v0", *"zyx"]]}, "colocate .*'x'"),
        ({"pin": {"v0": "d0"}, "allowed": {"v0": ["d1"]}}, "'v0'"),
        ({"pin": {"v0": "d0", "v1": "d1"}, "colocate": [["v0", "v1"]]}, "'v0', 'v1'"),
        ({"colocate": [["v0", "v1"]], "exlocate": [["v1", "v0"]]}, "'v0', 'v1'"),
        ({"exlocate": [["v0", "v1", "v2", "v3"]]}, "'v0', 'v1', 'v2', 'v3' .*3 devices"),
        ({"pin": {"v0": "d0", "v1": "d0"}, "exlocate": [["v0", "v1"]]}, "'v0', 'v1'"),
        ({"colocate": ["v0"]}, "colocate holds 'v0'"),
    ],
)
def test_constraints_that_cannot_be_met_are_refused(rules, names):
    with pytest.raises(ProblemError, match=names):
        ruled(**rules)


def test_a_tag_that_nobody_offers_is_refused():
    graph = StreamGraph.of("one", [Operator("a", rate=1, requires={"gpu", "ssd"})])
    cluster = Cluster.of([Device("d0", tags=frozenset({"ssd"}))])
    with pytest.raises(ProblemError, match="operator 'a' requires 'gpu', 'ssd'"):
        Problem(graph, cluster)


def test_a_tag_that_one_of_colocated_operators_requires_narrows_all_of_them():
    tasks = [Operator("a", rate=1), Operator("b", requires={"gpu"}), Operator("c")]
    graph = StreamGraph.of("three", tasks, [Stream("a", "b"), Stream("b", "c")])
    devices = [Device("d0"), Device("d1", tags=frozenset({"gpu"})), Device("d2")]
    rules = Constraints(colocate=[["a", "b"]])
    compiled = Problem(graph, Cluster.of(devices), rules).rules
    assert compiled.allowed.tolist() == [[False, True, False], [True, True, True]]
    assert compiled.first_operator.tolist() == [0, 2]


@st.composite
def cases(draw):
    """Up to five units on up to four devices."""
    units, devices = draw(st.integers(2, 5)), draw(st.integers(1, 4))
    cells = st.lists(st.booleans(), min_size=units * devices, max_size=units * devices)
    pairs = draw(
        st.sets(st.sampled_from(list(itertools.combinations(range(units), 2))), min_size=1)
    )
    allowed = np.array(draw(cells)).reshape(units, devices)
    return allowed, np.array(sorted(pairs))


@given(cases())
def test_units_are_kept_apart_exactly_where_there_is_a_way(case):
    allowed, pairs = case
    units, devices = allowed.shape

    def fits(chosen):
        return allowed[np.arange(units), chosen].all() and all(
            chosen[a] != chosen[b] for a, b in pairs
        )

    found = keep_apart(allowed, pairs)
    possible = any(map(fits, map(list, itertools.product(range(devices), repeat=units))))
    assert (found is not None) == possible
    assert found is None or fits(found.tolist())


def test_as_many_units_as_devices_are_kept_apart():
    pairs = np.array(list(itertools.combinations(range(300), 2)))
    found = keep_apart(np.ones((300, 300), bool), pairs)
    assert sorted(found) == list(range(300))


def test_more_units_than_allowed_devices_are_not_kept_apart():
    """Twelve units, of which each may use the same eleven of forty devices."""
    allowed = np.zeros((12, 40), bool)
    allowed[:, :11] = True
    pairs = np.array(list(itertools.combinations(range(12), 2)))
    assert keep_apart(allowed, pairs) is None

"""Constant loads of operators, and limits of subtasks: checks, files and subtasks."""

from dataclasses import replace

import numpy as np
import pytest
from library_documents import instance_document, plan_document
from streamsim import bottleneck, resource_loads, throughput
from streamsim.engine import settings_for, simulate

from streamplace import what_if
from streamplace.errors import ProblemError
from streamplace.io.graphs import graph_from_dict
from streamplace.model import Cluster, Operator, Problem, Stream, StreamGraph
from streamplace.model.expansion import expand
from streamplace.objectives.registry import OBJECTIVES
from streamplace.planning.offers import Catalogue, Offer


def graph(most=2500.0, **sink):
    """A source, and a sink of which a subtask reads so many tuples/s at most."""
    ends = [
        Operator("src", ipt=1e4, payload=10, rate=1e4, max_parallelism=1),
        Operator("ask", ipt=1e4, max_rate=most, **sink),  # type: ignore[arg-type]
    ]
    return StreamGraph.of("pipe", ends, [Stream("src", "ask", partitioning="hash")])


def test_a_largest_rate_is_read_with_its_unit():
    assert graph("2.5 k/s") == graph(2500.0)
    document = {"operators": [{"name": "src", "rate": 5, "max_rate": "2.5 k/s"}]}
    assert graph_from_dict(document).operators.max_rate.tolist() == [2500.0]
    assert what_if(graph(), change={"ask.max_rate": "5k"}) == graph(5000.0)


@pytest.mark.parametrize(
    ("subtasks", "groups", "share"),
    [(1, 0, 0.25), (2, 0, 0.5), (3, 0, 0.75), (4, 0, 1.0), (2, 3, 0.375)],
)
def test_together_or_apart_subtasks_have_the_rate(subtasks, groups, share):
    """Of three key groups, one of two subtasks has two: 6667 of 10,000 tuples/s."""
    before = graph(parallelism=subtasks, max_parallelism=groups)
    expansion = expand(before)
    assert expansion.graph.operators.max_rate.tolist() == [0.0] + [2500.0] * subtasks
    problem = Problem(before, Cluster.uniform(2))
    assert throughput(problem.instance, [[0, 0]])[0] == pytest.approx(share)
    apart = expansion.problem(problem).instance
    assert throughput(apart, [[0] * (subtasks + 1)])[0] == pytest.approx(share)


def test_subtasks_have_equal_parts_of_a_constant_load_whatever_their_key_groups():
    before = graph(0.0, constant=60.0, parallelism=2, max_parallelism=3)
    expansion = expand(before)
    assert expansion.graph.input_rate.round(6).tolist() == [1e4, 6666.666667, 3333.333333]
    assert expansion.graph.operators.constant.tolist() == [0.0, 30.0, 30.0]
    problem = Problem(before, Cluster.uniform(1, cores=4))
    apart = expansion.problem(problem)
    together = throughput(problem.instance, [[0, 0]])
    assert throughput(apart.instance, [[0, 0, 0]]) == pytest.approx(together, rel=1e-12)


@pytest.mark.parametrize(
    ("most", "cores", "share"),
    [(0.0, 1.0, 0.25), (0.0, 1.5, 0.375), (0.0, 8.0, 1.0), (1000.0, 8.0, 0.1)],
)
def test_subtasks_use_at_most_their_cores(most, cores, share):
    """It needs four, of which a device has four: alone, in an expansion, and in the engine."""
    before = graph(most, cores=cores)
    before = before.with_operators(replace(before.operators, ipt=np.array([0.0, 1e6])))
    problem = Problem(before, Cluster.uniform(2, mips=2500.0, cores=4))
    assert throughput(problem.instance, [[0, 1]])[0] == pytest.approx(share)
    apart = expand(before).problem(problem)
    assert throughput(apart.instance, [[0, 1]])[0] == pytest.approx(share)
    run = simulate(problem.instance, [[0, 1]], settings_for(problem.instance))
    assert run.relative[0] == pytest.approx(share, rel=1e-3)


def test_both_stay_where_the_rate_grows_and_hold_beside_a_matrix_of_costs():
    """A largest rate on all devices alike, a constant load by the speed of the device."""
    faster = graph(constant=50.0).at_rate(5e4)
    assert faster.operators.max_rate.tolist() == [0.0, 2500.0]
    assert faster.operators.constant.tolist() == [0.0, 50.0]
    for seconds in (None, np.full((2, 2), 1e-6)):
        problem = Problem(faster, Cluster.uniform(2, mips=1e5), seconds=seconds)
        top = bottleneck(resource_loads(problem.instance, [0, 1]))
        assert (top.kind, top.load) == ("core", pytest.approx(20, rel=1e-3))
        assert problem.instance.constant[1].tolist() == [5e-4] * problem.instance.constant.shape[1]


def test_passes_leave_a_largest_rate_out():
    problems = [Problem(graph(most), Cluster.uniform(2)) for most in (0.0, 1.0)]
    places = np.array([[0, 1]], np.int32)
    for name in ("makespan", "latency"):
        free, limited = (OBJECTIVES[name].values(problem, places) for problem in problems)
        assert free.tolist() == limited.tolist()


@pytest.mark.parametrize(
    ("most", "constant", "term"), [(2500.0, 0.0, "max_rate"), (0.0, 50.0, "constant loads")]
)
def test_the_library_refuses_what_it_cannot_say(most, constant, term):
    problem = Problem(graph(most, constant=constant), Cluster.uniform(2))
    with pytest.raises(ProblemError, match=term):
        instance_document(problem, OBJECTIVES["throughput"])
    keyed = graph(most, constant=constant, max_parallelism=4)
    with pytest.raises(ProblemError, match=term):
        plan_document(keyed, Catalogue.of([Offer("small", 1.0)]))

"""The largest rate of a subtask: its field, its checks, its files and its subtasks."""

import numpy as np
import pytest
from benchmark_modules import benchmark_modules
from streamsim import bottleneck, resource_loads, throughput

from streamplace import what_if
from streamplace.errors import GraphError, ProblemError, StreamplaceError
from streamplace.evaluate.records import problem_hash
from streamplace.io.graphs import graph_from_dict
from streamplace.model import Cluster, Operator, Problem, Stream, StreamGraph
from streamplace.model.expansion import expand
from streamplace.model.operators import Operators
from streamplace.objectives.registry import OBJECTIVES
from streamplace.planning.offers import Catalogue, Offer

MODULES = benchmark_modules("library_documents", "library_plan_instances")
instance_document = MODULES.library_documents.instance_document
plan_document = MODULES.library_plan_instances.plan_document


def graph(most: float | str = 2500.0, **sink: object) -> StreamGraph:
    """A source, and a sink of which a subtask reads so many tuples/s at most."""
    ends = [
        Operator("src", ipt=1e4, payload=10, rate=1e4, max_parallelism=1),
        Operator("ask", ipt=1e4, max_rate=most, **sink),  # type: ignore[arg-type]
    ]
    return StreamGraph.of("pipe", ends, [Stream("src", "ask", partitioning="hash")])


def test_it_is_read_with_its_unit() -> None:
    assert graph("2.5 k/s") == graph(2500.0)
    document = {"operators": [{"name": "src", "rate": 5, "max_rate": "2.5 k/s"}]}
    assert graph_from_dict(document).operators.max_rate.tolist() == [2500.0]
    assert what_if(graph(), change={"ask.max_rate": "5k"}) == graph(5000.0)


@pytest.mark.parametrize("most", [-1.0, np.inf, np.nan, 1e-9])
def test_it_is_positive_and_finite_or_0(most: float) -> None:
    with pytest.raises(GraphError, match="operator 'ask' has max_rate"):
        graph(most)
    with pytest.raises(GraphError, match="operator 'src' has max_rate"):
        Operators(["src"], rate=[1], max_rate=[most])


def test_other_units_are_refused() -> None:
    with pytest.raises(StreamplaceError, match="operator 'ask': rate '3 MB' has the unknown unit"):
        graph("3 MB")


@pytest.mark.parametrize(("subtasks", "share"), [(1, 0.25), (2, 0.5), (3, 0.75), (4, 1.0)])
def test_each_subtask_has_it_placed_together_or_apart(subtasks: int, share: float) -> None:
    before = graph(parallelism=subtasks)
    expansion = expand(before)
    assert expansion.graph.operators.max_rate.tolist() == [0.0] + [2500.0] * subtasks
    problem = Problem(before, Cluster.uniform(2))
    assert throughput(problem.instance, [[0, 0]])[0] == pytest.approx(share)
    apart = expansion.problem(problem).instance
    assert throughput(apart, [[0] * (subtasks + 1)])[0] == pytest.approx(share)


def test_the_subtask_with_the_most_key_groups_limits() -> None:
    """Of three key groups, one of two subtasks has two: 6667 of 10,000 tuples/s."""
    before = graph(parallelism=2, max_parallelism=3)
    expansion = expand(before)
    problem = Problem(before, Cluster.uniform(1))
    assert throughput(problem.instance, [[0, 0]])[0] == pytest.approx(0.375)
    apart = expansion.problem(problem).instance
    assert throughput(apart, [[0, 0, 0]])[0] == pytest.approx(0.375)


def test_it_stays_where_the_rate_grows_and_holds_on_all_devices_alike() -> None:
    faster = graph().at_rate(5e4)
    assert faster.operators.max_rate.tolist() == [0.0, 2500.0]
    for seconds in (None, np.full((2, 2), 1e-6)):
        problem = Problem(faster, Cluster.uniform(2, mips=1e5), seconds=seconds)
        top = bottleneck(resource_loads(problem.instance, [0, 1]))
        assert (top.kind, top.load) == ("core", pytest.approx(20))


def test_passes_leave_it_out() -> None:
    problems = [Problem(graph(most), Cluster.uniform(2)) for most in (0.0, 1.0)]
    places = np.array([[0, 1]], np.int32)
    for name in ("makespan", "latency"):
        free, limited = (OBJECTIVES[name].values(problem, places) for problem in problems)
        assert free.tolist() == limited.tolist()


def test_a_description_says_what_a_subtask_reads_at_most() -> None:
    assert "10 k/s, at most 2.5 k/s a subtask" in str(graph().report())


def test_problems_that_differ_in_it_have_other_hashes() -> None:
    """Not only as the loads differ: limits of nothing that limits are limits."""
    cluster = Cluster.uniform(1)
    hashes = {problem_hash(Problem(graph(most), cluster)) for most in (0.0, 2500.0, 1e9)}
    assert len(hashes) == 3


def test_the_library_refuses_what_its_instances_cannot_express() -> None:
    with pytest.raises(ProblemError, match="cannot express operators with a max_rate"):
        instance_document(Problem(graph(), Cluster.uniform(2)), OBJECTIVES["throughput"])
    with pytest.raises(ProblemError, match="cannot express a max_rate of operators"):
        plan_document(graph(max_parallelism=4), Catalogue.of([Offer("small", 1.0)]))

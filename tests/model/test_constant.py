"""The constant load of an operator: its field, its checks, its files and its subtasks."""

import numpy as np
import pytest
from benchmark_modules import benchmark_modules
from streamsim import throughput

from streamplace.errors import ProblemError
from streamplace.model import Cluster, Operator, Problem, Stream, StreamGraph
from streamplace.model.expansion import expand
from streamplace.objectives.registry import OBJECTIVES
from streamplace.planning.offers import Catalogue, Offer

MODULES = benchmark_modules("library_documents", "library_plan_instances")
instance_document = MODULES.library_documents.instance_document
plan_document = MODULES.library_plan_instances.plan_document


def graph(constant: float = 50.0, **sink: object) -> StreamGraph:
    """A source, and a sink that uses some MIPS at any rate."""
    ends = [
        Operator("src", ipt=1e5, payload=10, rate=1e4, max_parallelism=1),
        Operator("sink", ipt=1e5, constant=constant, **sink),  # type: ignore[arg-type]
    ]
    return StreamGraph.of("pipe", ends, [Stream("src", "sink", partitioning="hash")])


def test_subtasks_have_equal_parts_whatever_their_key_groups() -> None:
    before = graph(60.0, parallelism=2, max_parallelism=3)
    expansion = expand(before)
    assert expansion.graph.input_rate.round(6).tolist() == [1e4, 6666.666667, 3333.333333]
    assert expansion.graph.operators.constant.tolist() == [0.0, 30.0, 30.0]
    problem = Problem(before, Cluster.uniform(1, cores=4))
    apart = expansion.problem(problem)
    together = throughput(problem.instance, [[0, 0]])
    assert throughput(apart.instance, [[0, 0, 0]]) == pytest.approx(together, rel=1e-12)


def test_it_stays_where_the_rate_grows() -> None:
    assert graph().at_rate(5e4).operators.constant.tolist() == [0.0, 50.0]


def test_a_matrix_of_costs_leaves_it_to_the_speed_of_the_devices() -> None:
    cluster = Cluster.uniform(2, mips=100.0)
    problem = Problem(graph(), cluster, seconds=np.full((2, 2), 1e-4))
    assert problem.instance.constant[1].tolist() == [0.5, 0.5]
    assert throughput(problem.instance, [[0, 1]])[0] == pytest.approx(0.5)


def test_a_description_says_what_is_used_at_any_rate() -> None:
    assert "1050 MIPS, 50 at any rate" in str(graph().report())


def test_the_library_refuses_what_its_instances_cannot_express() -> None:
    reason = "cannot express constant loads of operators"
    with pytest.raises(ProblemError, match=reason):
        instance_document(Problem(graph(), Cluster.uniform(2)), OBJECTIVES["throughput"])
    keyed = graph(50.0, max_parallelism=4)
    with pytest.raises(ProblemError, match=reason):
        plan_document(keyed, Catalogue.of([Offer("small", 1.0)]))

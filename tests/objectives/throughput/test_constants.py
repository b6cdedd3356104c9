"""What is said of a placement beside constant loads."""

import pytest

from streamplace.model import Cluster, Operator, Problem, Stream, StreamGraph
from streamplace.objectives.registry import OBJECTIVES
from streamplace.objectives.throughput.explain import explain
from streamplace.report.placements import Shown, placement_part


def beside(constant: float, cores: int = 1, ipt: float = 1e5) -> Problem:
    """Two operators of 1000 MIPS at full rate, of which the second uses some at any rate."""
    ends = [Operator("src", ipt=1e5, rate=1e4), Operator("commit", ipt=ipt, constant=constant)]
    graph = StreamGraph.of("beside", ends, [Stream("src", "commit")])
    return Problem(graph, Cluster.uniform(2, cores=cores))


def test_the_part_that_is_used_at_any_rate_is_said() -> None:
    problem = beside(1500.0)
    told = explain(problem, problem.placement([0, 0]))
    assert told.relative_throughput == pytest.approx(0.5)
    assert (told.devices[0].load, told.devices[0].constant) == pytest.approx((1.4, 0.6))
    assert told.bottleneck.load == pytest.approx(1.4)
    assert "Bottleneck: the CPU of d0 at 140.0 % (60.0 % at any rate)" in str(told.report())
    assert told.move is not None
    assert told.move.relative_throughput == 1.0
    assert told.document()["devices"][0]["constant"] == pytest.approx(0.6)


def test_more_subtasks_share_what_one_core_uses_at_any_rate() -> None:
    """One subtask: 0.5 + 0.8 · x of a core. Two: 0.25 + 0.4 · x, which fits."""
    problem = beside(1250.0, cores=4, ipt=2e5)
    told = explain(problem, problem.placement([0, 0]))
    assert told.bottleneck.kind == "core"
    assert told.bottleneck.load == pytest.approx(1.3)
    assert told.bottleneck.constant == pytest.approx(0.5)
    assert told.relative_throughput == pytest.approx(0.625)
    assert told.parallelism is not None
    assert (told.parallelism.operators, told.parallelism.parallelism) == (("commit",), 2)
    assert told.parallelism.relative_throughput == 1.0


def test_a_report_marks_the_operator_that_fills_its_core() -> None:
    problem = beside(1250.0, cores=4, ipt=2e5)
    shown = Shown("one", problem.placement([0, 0]))
    part = placement_part(problem, shown, OBJECTIVES["throughput"])
    assert part["marks"]["operators"] == [1]
    assert part["bottleneck"]["load"] == pytest.approx(1.3)

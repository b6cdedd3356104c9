"""Words and advice where what a subtask reads at most is the limit, and not a core."""

from typing import Any

import pytest

from streamplace import Cluster, Device, Operator, Problem, Stream, StreamGraph
from streamplace.objectives.registry import OBJECTIVES
from streamplace.objectives.throughput.explain import explain

ASK = Operator("ask", ipt=5e3, max_rate=6e3)


def asking(*ask: Operator, rate: float = 1e4, source: float = 0.0, **more: Any) -> Problem:
    """A source and look-ups on devices of one core each."""
    operators = [Operator("src", ipt=1e4, rate=rate, max_rate=source), *(ask or (ASK,))]
    streams = [Stream("src", row.name, partitioning="rebalance") for row in operators[1:]]
    return Problem(StreamGraph.of("asking", operators, streams), Cluster.of([Device("d0", **more)]))


def test_the_limit_is_told_and_not_a_core() -> None:
    problem = asking()
    told = explain(problem, problem.placement([0, 0]))
    assert told.relative_throughput == pytest.approx(0.6)
    limit = told.bottleneck
    assert (limit.kind, limit.name, limit.load) == ("core", "d0", pytest.approx(10 / 6))
    assert told.verdict == (
        "60.0 % of the sources' rate; a subtask of ask (reads at most 6000 tuples/s) is the limit"
    )
    text = str(told.report())
    assert "Bottleneck: a subtask of ask (reads at most 6000 tuples/s) at 166.7 %\n" in text
    document = told.document()["bottleneck"]
    assert (document["max_rate"], document["emits"]) == (6000.0, False)
    picture = OBJECTIVES["throughput"].pictured(problem, problem.placement([0, 0]))
    assert picture.subtitle == "limit: a subtask of ask (reads at most 6000 tuples/s) at 166.7 %"
    assert picture.operators.tolist() == [False, True]


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (asking(source=4e3), "a subtask of src (emits at most 4000 tuples/s) is the limit"),
        (
            asking(rate=3e3),
            "the fullest resource is a subtask of ask (reads at most 6000 tuples/s) at 50.0 %",
        ),
        (
            asking(ASK, Operator("tell", max_rate=6e3)),
            "a subtask of ask (reads at most 6000 tuples/s) at 166.7 %; as full: tell",
        ),
    ],
)
def test_the_fullest_subtask_is_named(problem: Problem, words: str) -> None:
    """A source emits, others read; where all keep up, and where several are as full."""
    told = explain(problem, problem.placement([0] * problem.n_operators))
    assert words in f"{told.verdict} {' '.join(str(told.report()).split())}"


def test_a_core_that_is_fuller_than_the_limit_is_the_bottleneck() -> None:
    problem = asking(Operator("ask", ipt=5e5, max_rate=6e3), cores=4)
    told = explain(problem, problem.placement([0, 0]))
    assert "one core of d0 is the limit" in told.verdict
    assert "max_rate" not in told.document()["bottleneck"]
    assert told.parallelism is not None
    assert told.parallelism.parallelism == 2


def test_more_subtasks_on_the_same_core_are_advised() -> None:
    problem = asking(rate=2e4)
    told = explain(problem, problem.placement([0, 0]))
    assert told.parallelism is not None
    assert told.parallelism.operators == ("ask",)
    assert (told.parallelism.parallelism, told.parallelism.devices) == (4, {"d0": 4})
    assert told.parallelism.relative_throughput == 1.0
    text = " ".join(str(told.report()).split())
    assert "Parallelism: 4 for ask would give 100.0 % instead of 30.0 %" in text


def test_advice_counts_the_limit_beside_a_constant_load() -> None:
    """A subtask has half a core, which is enough; four subtasks read 6000 tuples/s each."""
    problem = asking(Operator("ask", ipt=5e3, max_rate=6e3, constant=1250), rate=2e4)
    told = explain(problem, problem.placement([0, 0]))
    assert told.bottleneck.load == pytest.approx(20 / 6)
    assert told.bottleneck.constant == 0.0
    assert told.parallelism is not None
    assert told.parallelism.parallelism == 4
    assert told.parallelism.relative_throughput == 1.0

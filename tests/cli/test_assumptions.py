"""Nothing that decides an answer is assumed in silence."""

import pytest

from streamplace import Cluster, Device, Operator, Problem, Stream, StreamGraph, place, simulate
from streamplace.display.assumptions import assumptions
from streamplace.model.operators import Window

SILENT = StreamGraph.of(
    "silent", [Operator("src", rate=100), Operator("out")], [Stream("src", "out")]
)
WORKING = StreamGraph.of(
    "working",
    [Operator("src", ipt=1e5, payload=8, rate=100, memory=1e6), Operator("out", ipt=1e5)],
    [Stream("src", "out")],
)


def test_every_default_that_decides_an_answer_is_printed():
    result = place(SILENT)
    printed = " ".join(str(result).split())
    assert [words for words in assumptions(result.problem) if words not in printed] == []
    assert printed.index("Assumed:") < printed.index("proven")


def test_pages_documents_and_simulations_say_what_was_assumed():
    result = place(SILENT)
    assumed = assumptions(result.problem)
    assert tuple(result.to_json()["assumptions"]) == assumed
    for explanation in (
        simulate(SILENT, result),
        simulate(SILENT, result, objective="makespan"),
        simulate(SILENT, result, objective="devices"),
    ):
        assert tuple(explanation.document()["assumptions"]) == assumed
        assert assumed[0] in str(explanation).replace("\n", " ")
    assert assumed[0] in result.report().html()


@pytest.mark.parametrize(
    ("cluster", "assumed"),
    [
        (Cluster.uniform(3), "2500 MIPS, 1 Gbps by default"),
        (Cluster.uniform(mips=100, bandwidth="1 Mbps"), "5 devices by default"),
        (Cluster.uniform(1, mips=100), "no memory limit, though operators need memory"),
        (Cluster.of([Device("d", memory=1e9)]), None),
    ],
)
def test_only_what_nobody_stated_is_assumed(cluster, assumed):
    found = assumptions(Problem(WORKING, cluster))
    assert assumed in found if assumed else not found
    silent = " ".join(assumptions(Problem(SILENT, cluster)))
    assert "(ipt)" in silent
    assert "(payload)" in silent


def test_long_windows_and_repeated_streams_are_named():
    """Two inputs of an operator that fires all are one tuple of each, and no slip."""
    operators = [Operator("a", ipt=1, payload=1, rate=1), Operator("w", window=Window(6e4, 6e4))]
    twice = StreamGraph.of("g", operators, [Stream("a", "w"), Stream("a", "w")])
    assumed = assumptions(Problem(twice, Cluster.uniform()))[1:]
    assert assumed == (
        "the window of w is 16 h 40 min long",
        "a→w written more than once, and sent as often",
    )
    tasks = StreamGraph.of("t", map(Operator, "ab"), [Stream("a", "b")] * 2, fires="all")
    assert not any(
        "more than once" in each for each in assumptions(Problem(tasks, Cluster.uniform()))
    )

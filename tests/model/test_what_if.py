"""Graphs and problems with some numbers changed."""

import pytest

from streamplace import Cluster, Operator, Problem, Stream, StreamGraph, what_if
from streamplace.errors import StreamplaceError

PIPE = StreamGraph.of(
    "pipe",
    [Operator("k.in", ipt=5, rate=1000), Operator("parse", ipt=10), Operator("sink", ipt=20)],
    [Stream("k.in", "parse"), Stream("parse", "sink", payload=9)],
)


def test_only_what_is_named_changes():
    """Operators and streams, by texts or numbers; names may contain points."""
    change = {"k.in.rate": "100k", "parse.parallelism": 4, "parse->sink.selectivity": "0.5"}
    changed = what_if(PIPE, scale={"parse": 2.5}, change=change)
    operators = [
        Operator("k.in", ipt=5, rate=100_000),
        Operator("parse", ipt=25, parallelism=4),
        Operator("sink", ipt=20),
    ]
    streams = [Stream("k.in", "parse"), Stream("parse", "sink", 0.5, 9)]
    assert changed == StreamGraph.of("pipe", operators, streams)
    assert what_if(PIPE) is PIPE


def test_costs_in_seconds_are_scaled_too():
    """Where a problem states them, instructions decide nothing."""
    problem = Problem(PIPE, Cluster.uniform(2), seconds=[[1, 2], [3, 4], [5, 6]])
    assert what_if(problem, scale={"parse": 2}).seconds.tolist() == [[1, 2], [6, 8], [5, 6]]
    with pytest.raises(StreamplaceError, match=r"parse\.ipt"):
        what_if(problem, change={"parse.ipt": 3})
    arrow = Problem(
        StreamGraph.of("one", [Operator("a->b", rate=1)]), Cluster.uniform(1), None, [[1]]
    )
    with pytest.raises(StreamplaceError, match=r"a->b\.ipt"):
        what_if(arrow, change={"a->b.ipt": 3})


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"scale": {"prse": 2}}, "'pipe' has no operator 'prse'"),
        ({"scale": {"parse": -1}}, "the factor of 'parse' is -1"),
        ({"change": {"parse": 2}}, "'parse' is no field"),
        ({"change": {"parse.kind": 2}}, "parse.kind: 'kind' cannot be set"),
        ({"change": {"parse.parallelism": 1.5}}, "parse.parallelism: number 1.5 must be whole"),
        ({"change": {"k.in->sink.selectivity": 2}}, "'pipe' has no stream k.in->sink"),
        ({"change": {"parse->sink.rate": 2}}, "parse->sink.rate: 'rate' cannot be set"),
    ],
)
def test_a_change_without_meaning_is_refused(asked, complaint):
    with pytest.raises(StreamplaceError) as error:
        what_if(PIPE, **asked)
    assert complaint in str(error.value)


@pytest.mark.parametrize("key", ["d9.mips", "d0->d9.bandwidth", "d9.price"])
def test_what_only_a_cluster_has_is_missed_there(key):
    with pytest.raises(StreamplaceError, match=f"^{key}: the cluster has no such device or link$"):
        what_if(Problem(PIPE, Cluster.uniform(2)), change={key: 5})

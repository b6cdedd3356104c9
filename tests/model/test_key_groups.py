"""Key groups: shares of subtasks as Flink's KeyGroupRangeAssignment makes them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from planning_cases import chain
from streamsim import throughput

from streamplace.errors import GraphError
from streamplace.model import Cluster, Device, Operator, Problem, Stream, StreamGraph
from streamplace.model.expansion import expand
from streamplace.model.key_groups import busiest_parts, subtask_parts, useful_parallelisms


def key_group_range_for_operator_index(max_parallelism, parallelism, index):
    """Transcription of Flink's computeKeyGroupRangeForOperatorIndex, both ends inclusive."""
    start = (index * max_parallelism + parallelism - 1) // parallelism
    end = ((index + 1) * max_parallelism - 1) // parallelism
    return start, end


@st.composite
def assignments(draw):
    """Draw a maximum parallelism and a parallelism."""
    groups = draw(st.integers(1, 400))
    return groups, draw(st.integers(1, groups))


@given(st.lists(assignments(), min_size=1, max_size=4))
def test_parts_are_the_groups_of_the_subtasks(assignments):
    """A subtask has the share of the groups that Flink gives it; the busiest has the largest."""
    groups, parallelism = zip(*assignments, strict=True)
    shares = []
    for m, p in assignments:
        ranges = [key_group_range_for_operator_index(m, p, i) for i in range(p)]
        shares.append([(end + 1 - start) / m for start, end in ranges])
    np.testing.assert_allclose(1 / subtask_parts(groups, parallelism), np.concatenate(shares))
    np.testing.assert_allclose(1 / busiest_parts(groups, parallelism), [max(s) for s in shares])


@given(st.integers(1, 400), st.integers(1, 500))
def test_parallelisms_between_useful_ones_change_nothing(groups, most):
    """The busiest subtask has as much to do as with the useful parallelism below."""
    useful = useful_parallelisms(groups, most).tolist()
    assert useful[0] == 1
    for p in range(1, min(groups, most) + 1):
        below = max(q for q in useful if q <= p)
        assert -(-groups // p) == -(-groups // below)
        assert (p in useful) == (p == 1 or -(-groups // p) < -(-groups // (p - 1)))


def keyed(p, groups, partitioning="", senders=2):
    """Two senders and a keyed operator."""
    return chain(
        Operator("src", ipt=10, payload=8, rate=1200, parallelism=senders),
        Operator("count", ipt=100, parallelism=p, max_parallelism=groups, memory=64),
        kind=partitioning,
    )


@pytest.mark.parametrize("partitioning", ["", "hash"])
def test_streams_to_an_operator_with_key_groups_are_dealt_by_them(partitioning):
    """Eight groups on three subtasks are three, three and two, of tuples and of memory."""
    graph = expand(keyed(3, 8, partitioning)).graph
    assert graph.input_rate[2:].tolist() == pytest.approx([450, 450, 300])
    assert graph.operators.memory[2:].tolist() == pytest.approx([24, 24, 16])


def test_equal_parallelisms_are_not_joined_one_to_one_across_key_groups():
    """Flink's forward needs no keys; with keys every sender sends to every subtask."""
    assert expand(keyed(2, 3)).graph.n_streams == 4


def test_splits_of_a_source_are_dealt_to_its_subtasks():
    graph = StreamGraph.of("src", [Operator("s", rate=8, parallelism=3, max_parallelism=4)])
    assert expand(graph).graph.operators.rate.tolist() == [4, 2, 2]


@given(assignments(), st.integers(1, 4), st.sampled_from(["", "rebalance"]))
def test_the_busiest_subtask_is_the_limit(assignment, senders, partitioning):
    """Placed whole or by subtasks, a machine of many cores reaches the same."""
    groups, p = assignment
    graph = keyed(p, groups, partitioning, senders).at_rate(1e6)
    cluster = Cluster.uniform(1, mips=10, cores=1000)
    whole, parts = Problem(graph, cluster).instance, Problem(expand(graph).graph, cluster).instance
    assert whole.core_load[1].max() == pytest.approx(parts.core_load[senders:].max())
    assert whole.load.sum() == pytest.approx(parts.load.sum())


@pytest.mark.parametrize(
    ("more", "partitioning"), [(0, ""), (0, "chained"), (128, "forward"), (3, "rebalance")]
)
def test_forward_streams_keep_the_parts_of_their_senders(more, partitioning):
    """Two of five groups go to a subtask of agg, and on to one of map, unless tuples are dealt."""
    operators = [
        Operator("s", rate=300),
        Operator("agg", parallelism=3, max_parallelism=5),
        Operator("map", ipt=2.25e7, parallelism=3, max_parallelism=more),
    ]
    streams = [Stream("s", "agg"), Stream("agg", "map", partitioning=partitioning)]
    graph = StreamGraph.of("uneven", operators, streams)
    cluster = Cluster.of([Device("d", cores=4)])
    whole, parts = Problem(graph, cluster).instance, Problem(expand(graph).graph, cluster).instance
    reached = throughput(whole, [[0] * 3])[0]
    assert reached == pytest.approx(throughput(parts, [[0] * 7])[0])
    assert reached == pytest.approx(1.0 if partitioning == "rebalance" else 2.5 / 2.7)


def test_inputs_that_are_distributed_differently_are_added_up():
    """Of 900 tuples by 8 groups and 300 in equal parts, the busiest of three gets 337.5 + 100."""
    operators = [
        Operator("many", rate=900),
        Operator("few", rate=300),
        Operator("count", ipt=1e6, parallelism=3, max_parallelism=8),
    ]
    streams = [Stream("many", "count"), Stream("few", "count", partitioning="rebalance")]
    graph = StreamGraph.of("mixed", operators, streams)
    assert expand(graph).graph.input_rate[2:].tolist() == pytest.approx([437.5, 437.5, 325])
    assert graph.flow.parallelism.tolist() == pytest.approx([1, 1, 1200 / 437.5])


@pytest.mark.parametrize(
    ("senders", "receivers", "arriving"),
    [(3, 2, [400, 800]), (2, 3, [300, 300, 600]), (2, 4, [300, 300, 300, 300]), (2, 2, [600, 600])],
)
def test_rescaling_joins_neighbours(senders, receivers, arriving):
    """As in Flink: each of the fewer subtasks has its own group of the others."""
    graph = keyed(receivers, 8, "rescale", senders)
    expanded = expand(graph).graph
    assert expanded.n_streams == max(senders, receivers)
    assert expanded.input_rate[senders:].tolist() == pytest.approx(arriving)
    assert graph.flow.parallelism[1] == pytest.approx(1200 / max(arriving))


def test_more_subtasks_than_key_groups_are_refused():
    with pytest.raises(GraphError, match="'s' has parallelism 5 and max_parallelism 4"):
        StreamGraph.of("src", [Operator("s", rate=8, parallelism=5, max_parallelism=4)])

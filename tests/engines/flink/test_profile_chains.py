"""Profiles of jobs whose operators Flink has chained, and of streams that meet."""

import pytest
from lazy_flink import MIPS, Clock, LazyFlink, Vertex, doubts, rates

from streamplace.engines.flink.measure.graph import measured_graph
from streamplace.engines.flink.measure.profile import profile


def chained(clock: Clock, head: str = "Source: src", **source: float) -> LazyFlink:
    """A source fused with what keeps a tenth, and with two writers of different payloads.

    The small ones go to a sink of their own, the big ones to one that has another input.
    """
    enters = {f"{head.replace(': ', '__')}.numRecordsOut": 1000.0} if not source else {}
    sent = 100 * 50.0 + 100 * 2000.0
    vertices = {
        "v": Vertex(f"{head} -> keep -> (small, big)", rates(0, 200, 0, sent) | enters | source),
        "w": Vertex("Source: other", rates(0, 50, 0, 50 * 300.0)),
        "x": Vertex("x", rates(100, 0, 100 * 50.0), [("v", "HASH")]),
        "j": Vertex(
            "j", rates(150, 0, 100 * 2000.0 + 50 * 300.0), [("v", "REBALANCE"), ("w", "HASH")]
        ),
    }
    return LazyFlink(clock, vertices)


def test_payloads_of_fused_senders_are_told_apart(clock: Clock) -> None:
    """Each stream has its own, and so has the other sender of the mixed input."""
    seen = profile(chained(clock).rest, "job", 100)
    graph = measured_graph(seen, MIPS)
    sizes = {
        (stream.source, stream.target): stream.payload
        or graph.operators.payload[graph.operators.name.index(stream.source)]
        for stream in graph.streams
    }
    fused = "src -> keep -> small -> big"
    expected = {(fused, "x"): 50, (fused, "j"): 2000, ("other", "j"): 300}
    assert sizes == pytest.approx(expected)
    assert doubts(seen) == []


def test_the_rate_of_a_fused_source_is_what_enters_the_job(clock: Clock) -> None:
    """Not what leaves the chain."""
    graph = measured_graph(profile(chained(clock).rest, "job", 100), MIPS)
    assert graph.operators.rate.tolist() == pytest.approx([1000, 50, 0, 0])
    assert graph.streams.selectivity.tolist() == pytest.approx([0.1, 0.1, 1])


def test_a_fused_source_whose_own_rate_is_not_told_is_told(clock: Clock) -> None:
    """What leaves the chain stands in for it."""
    seen = profile(chained(clock, unlike=0).rest, "job", 100)
    (doubt,) = [d for d in doubts(seen) if d.startswith("rate of src -> keep -> small -> big: ")]
    assert "that of the tuples that leave the chain" in doubt
    assert "chaining off" not in doubt
    assert measured_graph(seen, MIPS).operators.rate[0] == pytest.approx(200)


def test_fused_operators_of_the_sources_name_do_not_pass_for_it(clock: Clock) -> None:
    """Their counts are one metric."""
    flink = chained(clock)
    flink.vertices["v"].name = "Source: src -> Source  src -> (small, big)"
    assert [d for d in doubts(profile(flink.rest, "job", 100)) if d.startswith("rate of src")]


def test_broadcast_tuples_count_for_every_receiver(clock: Clock) -> None:
    """Their sender counts them once, and their bytes as often as they are sent."""
    flink = chained(clock)
    flink.vertices["w"].rates = rates(0, 25, 0, 50 * 300.0)
    flink.vertices["j"].inputs = [("v", "REBALANCE"), ("w", "BROADCAST")]
    seen = profile(flink.rest, "job", 100)
    graph = measured_graph(seen, MIPS)
    assert graph.streams.selectivity.tolist() == pytest.approx([0.1, 0.1, 2])
    assert graph.operators.payload[1] == pytest.approx(300)
    assert "gets every tuple" in graph.attributes["keeps parallelism of j"]
    assert doubts(seen) == []

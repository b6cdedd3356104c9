"""Arithmetic of `benchmarks/plan_on_flink.py`: shares received, rates and tables."""

import planned_facts
import pytest

from streamplace import Operator, Stream, StreamGraph
from streamplace.flink.measure.sampling import Activity
from streamplace.io.graphs import graph_to_dict

SPLIT = StreamGraph.of(
    "split",
    [
        Operator("source", ipt=2e5, payload=100, rate=500),
        Operator("words", ipt=1e5),
        Operator("sink"),
    ],
    [Stream("source", "words", partitioning="hash"), Stream("words", "sink", 10)],
)
PROFILE = {
    "kind": "profile",
    "job": "split",
    "graph": graph_to_dict(SPLIT),
    "rates": {
        "source": {"in": 0.0, "out": 500.0},
        "words": {"in": 500.0, "out": 5000.0},
        "sink": {"in": 5000.0, "out": 0.0},
    },
    "java": 0.01,
    "per_tuple": 0.0,
    "per_byte": 0.0,
}


def rates(source, words, sink):
    return {
        "source": {"in": 0.0, "out": source},
        "words": {"in": words, "out": 10 * words},
        "sink": {"in": sink, "out": 0.0},
    }


def test_least_received_share_is_that_of_the_source_or_of_a_reader():
    """Cores per tuple and throughput are in tuples of the source."""
    facts = planned_facts.JobFacts.of(PROFILE)
    assert facts.received(rates(1_000, 1_000, 10_000), 1_000) == pytest.approx(1.0)
    assert facts.received(rates(900, 900, 9_000), 1_000) == pytest.approx(0.9)
    assert facts.received(rates(1_000, 800, 8_000), 1_000) == pytest.approx(0.8)
    assert facts.received(rates(1_000, 1_000, 7_000), 1_000) == pytest.approx(0.7)
    assert facts.cost == pytest.approx((2e5 + 1e5) / 1e9)
    assert facts.throughput(rates(900, 850, 8_000)) == pytest.approx(800)


def test_an_operator_receives_all_of_the_only_stream_of_another():
    """In the profile, a reader seemed to read 3 % more than was written, as it was counted later.

    Of two streams, one with some of the tuples keeps its part, and one with about all has all.
    """
    streams = [Stream("source", "words", 1.03), Stream("words", "sink", 10.3)]
    streams += [Stream("words", "rare", 2.0), Stream("rare", "end", 1.02)]
    operators = [*SPLIT.operators, Operator("rare"), Operator("end")]
    graph = StreamGraph.of("split", operators, streams)
    more = {name: {"in": 1_000.0, "out": 1_000.0} for name in ("rare", "end")}
    profile = {**PROFILE, "graph": graph_to_dict(graph), "rates": {**PROFILE["rates"], **more}}
    found = planned_facts.JobFacts.of(profile).ratios
    assert found == {
        ("source", "words"): 1,
        ("words", "sink"): 1,
        ("words", "rare"): pytest.approx(0.2),
        ("rare", "end"): 1,
    }


def test_rates_are_between_the_same_two_updates():
    def readings(first, last, late):
        return tuple(
            (i + late, {"numRecordsIn": 100.0 * i, "numRecordsOut": 50.0 * i})
            for i in range(first, last)
        )

    own = {
        "a": Activity({}, 4, {}, readings(0, 5, 0.0)),
        "b": Activity({}, 4, {}, readings(1, 7, 0.2)),
    }
    found = planned_facts.rates_together(own)
    assert found["a"] == found["b"] == {"in": 100.0, "out": 50.0}

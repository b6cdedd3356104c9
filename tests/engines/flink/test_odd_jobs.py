"""Jobs that cannot be measured are told in one clear line, and soon; odd ones are measured."""

import math
from collections.abc import Mapping
from typing import Any

import pytest
from lazy_flink import MIPS, START, Clock, LazyFlink, Vertex, rates

from streamplace.engines.flink.measure.graph import measured_graph
from streamplace.engines.flink.measure.profile import profile
from streamplace.engines.flink.measure.steady import steady_profile
from streamplace.engines.flink.rest.client import FlinkError

OLD = 60_000


def job(clock: Clock, **changed: Mapping[str, Any]) -> LazyFlink:
    """A source and a sink, some of whose metrics differ."""
    source = rates(0, 100, 0, 4000, busy=0.1) | {"Source__src.numRecordsOut": 100}
    sink = rates(100, 0, 4000, 0, busy=0.2)
    vertices = {
        "v0": Vertex("Source: src", changed.get("v0", source)),
        "v1": Vertex("out", changed.get("v1", sink), [("v0", "HASH")]),
    }
    return LazyFlink(clock, vertices, duration=OLD)


def test_a_flink_without_metrics_is_told_within_ten_seconds(clock: Clock) -> None:
    """With what may be the cause."""
    with pytest.raises(FlinkError, match=r"no metrics of job job for 10 s.*up to web\.timeout"):
        steady_profile(job(clock, v0={}, v1={}).rest, "job", 30.0)
    assert clock.now - START <= 11


def test_a_young_job_may_have_no_metrics_yet(clock: Clock) -> None:
    """Flink fetches them every ten seconds."""
    flink = job(clock, v0={}, v1={})
    flink.duration = 5000
    with pytest.raises(FlinkError, match="does not report how many tuples source 'src' sends"):
        steady_profile(flink.rest, "job", 30.0)


def test_a_source_without_counts_is_told(clock: Clock) -> None:
    """It is not silent: nobody knows."""
    silent = {name: rate for name, rate in rates(busy=0.1).items() if name != "numRecordsOut"}
    with pytest.raises(FlinkError, match="does not report how many tuples source 'src' sends"):
        measured_graph(profile(job(clock, v0=silent).rest, "job", 10), MIPS)


def test_a_silent_source_is_told_after_the_first_window(clock: Clock) -> None:
    """No job becomes warm that does nothing."""
    with pytest.raises(FlinkError, match="source 'src' sent nothing"):
        steady_profile(job(clock, v0=rates()).rest, "job", 10.0)
    assert clock.now - START <= 41


def test_a_source_that_ends_is_told(clock: Clock) -> None:
    """While others still run."""
    flink = job(clock)
    flink.vertices["v0"].ends = START + 5
    with pytest.raises(FlinkError, match="source 'src' has ended; profile the job while all"):
        profile(flink.rest, "job", 10)


def with_more(clock: Clock, ends: float = math.inf) -> LazyFlink:
    """A job with one more source, which sends nothing; it and what only it feeds may end."""
    flink = job(clock)
    silent = rates() | {"Source__more.numRecordsOut": 0}
    flink.vertices["v2"] = Vertex("Source: more", silent, ends=ends)
    flink.vertices["v3"] = Vertex("load", rates(), [("v2", "HASH")], ends=ends)
    flink.vertices["v1"].inputs = [("v0", "HASH"), ("v3", "BROADCAST")]
    return flink


def test_a_silent_source_beside_one_that_sends_has_no_rate(clock: Clock) -> None:
    """A topic may be empty; what its source takes of the CPU is taken all the same."""
    flink = with_more(clock)
    flink.vertices["v2"].rates = {**flink.vertices["v2"].rates, "accumulateBusyTimeMs": 50}
    seen = profile(flink.rest, "job", 10)
    graph = measured_graph(seen, MIPS)
    assert graph.operators.rate.tolist() == pytest.approx([100, 0, 0, 0], abs=1e-6)
    assert graph.charged_ipt[2] == 0
    assert seen.constant["v2"] == pytest.approx(0.05)
    assert "rate of more: it has sent nothing, so its rate counts as 0" in "; ".join(seen.doubts)
    assert not seen.is_limited


def test_what_has_ended_before_is_not_waited_for(clock: Clock) -> None:
    """Such as a source that has read a file, and what loads that; the others run on."""
    flink = with_more(clock, START)
    flink.process_cpu = {"dev-0": 0.3}
    seen = steady_profile(flink.rest, "job", 10.0)
    assert clock.now - START <= 80
    graph = measured_graph(seen, MIPS)
    assert graph.operators.name == ("src", "out", "more", "load")
    assert graph.operators.rate.tolist() == pytest.approx([100, 0, 0, 0], abs=1e-6)
    assert graph.charged_ipt[2:].tolist() == [0, 0]
    assert not graph.operators.constant.any()
    (told,) = [doubt for doubt in seen.doubts if "more" in doubt and "payload" not in doubt]
    assert told.startswith("rate and ipt of 'more', 'load': counted as 0")


def test_a_source_that_ends_beside_others_while_it_is_measured_is_told(clock: Clock) -> None:
    """The next measurement leaves it out."""
    flink = with_more(clock, START + 5)
    with pytest.raises(FlinkError, match="source 'more' has ended while the job was measured"):
        profile(flink.rest, "job", 10)
    assert measured_graph(profile(flink.rest, "job", 10), MIPS).source_rate == pytest.approx(100)


@pytest.mark.parametrize("name", ["IterationSource-3", "IterationSink-3"])
def test_iterations_are_refused_by_name(clock: Clock, name: str) -> None:
    """Flink's plan does not show that tuples go round."""
    flink = job(clock)
    flink.vertices["v1"].name = name
    with pytest.raises(FlinkError, match=f"the job has an iteration, '{name}'"):
        profile(flink.rest, "job", 10)


def test_a_job_without_exchange_is_measured(clock: Clock) -> None:
    """All of it is one chain, on one TaskManager."""
    flink = job(clock)
    del flink.vertices["v1"]
    flink.vertices["v0"].name = "Source: src -> map -> out: Writer"
    flink.vertices["v0"].rates = rates(busy=0.2) | {"Source__src.numRecordsOut": 100}
    graph = measured_graph(steady_profile(flink.rest, "job", 10.0), MIPS)
    assert graph.n_operators == 1
    assert graph.source_rate == pytest.approx(100)
    assert graph.charged_ipt[0] == pytest.approx(0.2 / 100 * MIPS * 1e6)


def test_idle_operators_cost_nothing(clock: Clock) -> None:
    """And are told."""
    graph = measured_graph(profile(job(clock, v1=rates()).rest, "job", 10), MIPS)
    assert graph.charged_ipt[1] == 0
    assert graph.input_rate[1] == 0
    assert "ipt of out: it received no tuples" in str(graph.attributes["unmeasured"])

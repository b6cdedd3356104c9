"""What sources did, by their lag."""

import re
from collections.abc import Callable

import pytest
from lazy_flink import MIPS, START, Clock, LazyFlink, Vertex, rates

from streamplace.engines.flink.measure.graph import measured_graph
from streamplace.engines.flink.measure.profile import profile
from streamplace.engines.flink.measure.sources import SourceFlow, SubtaskFlow, source_flow

OFFSET = "{}.Source__src.KafkaSourceReader.topic.orders.partition.{}.currentOffset"
"""Metric of a subtask and a partition."""


def kafka(clock: Clock, growth: float, lag: float, blocked: float = 1.5) -> LazyFlink:
    """A source of 1000 tuples/s that is back-pressured, and reports its lag."""
    counts = rates(0, 1000, 0, 4e5, busy=0.2, blocked=blocked)
    counts |= {"Source__src.numRecordsOut": 1000.0, "Source__src.pendingRecords": growth}
    flink = LazyFlink(clock, {"v0": Vertex("Source: src", counts)})
    flink.counted["v0"] = {"Source__src.pendingRecords": lag - growth * START}
    return flink


@pytest.mark.parametrize(
    ("growth", "lag", "why"),
    [
        (0.0, 0.0, None),
        (-100.0, 30_000.0, None),  # gone in five minutes, half a minute's worth of tuples
        (200.0, 0.0, "its backlog grows"),
        (-100.0, 9e6, "8996000 tuples wait for it"),
    ],
)
def test_a_source_whose_lag_does_not_grow_keeps_up_whatever_else_is_seen(
    clock: Clock, growth: float, lag: float, why: str | None
) -> None:
    """Unless what waits is so much that another layout would be done with it much earlier."""
    seen = profile(kafka(clock, growth, lag).rest, "job", 10).flow
    assert seen.sources["src"].why == why
    assert seen.offered == pytest.approx(1000 + growth, rel=0.02)
    flow = source_flow(kafka(clock, growth, lag).rest, "job")
    assert flow is not None
    assert (flow.is_limited, flow.keeps_up) == (why is not None, why is None)


def lag(now: float, growth: float) -> Callable[[float], float]:
    """What waits for a subtask."""
    return lambda moment: now + growth * (moment - START)


def test_a_backlog_that_is_drained_shows_what_lasts(clock: Clock) -> None:
    """The second subtask reads 250 of 1000 tuples/s, and half of the input is for it."""
    flink = kafka(clock, 0.0, 0.0)
    vertex = flink.vertices["v0"]
    vertex.shares, vertex.lags = (0.75, 0.25), (lag(0.0, 0.0), lag(50_000.0, 250.0))
    windows = profile(flink.rest, "job", 10)
    first, second = windows.flow.sources["src"].subtasks
    assert (first.is_draining, second.is_draining) == (False, True)
    assert second.rate == pytest.approx(250, rel=0.02)
    half = 0.25 * 1000 * clock.now + second.pending[1]
    share = half / (half + 0.75 * 1000 * clock.now)
    assert windows.flow.sustained == pytest.approx(250 / share, rel=0.02)


@pytest.mark.parametrize("later", [550_000, -1])
def test_after_a_restart_offsets_tell_the_shares_of_partitions(clock: Clock, later: int) -> None:
    """Most of what has arrived since waits for the slow one; -1 is before its first tuple."""
    flink = kafka(clock, 0.0, 0.0)
    vertex = flink.vertices["v0"]
    vertex.shares, vertex.lags = (0.75, 0.25), (lag(0.0, 0.0), lag(50_000.0, 0.0))
    read = {(0, 0): 4e5, (0, 2): 2e5, (1, 1): later}
    vertex.offsets = {OFFSET.format(*place): offset for place, offset in read.items()}
    source = profile(flink.rest, "job", 10).flow.sources["src"]
    assert source.partitions == 3
    first, second = (one.arrived for one in source.subtasks)
    assert source.sustained == pytest.approx(250 * (first + second) / second, rel=0.02)
    assert (first == second) is (later > 0)


def test_without_a_backlog_nothing_says_what_lasts(clock: Clock) -> None:
    """Subtasks that wait for input show no limit; nor do those that report no lag."""
    assert profile(kafka(clock, 0.0, 0.0).rest, "job", 10).flow.sustained is None
    assert not SubtaskFlow(1000.0, 1e6, (0.0, 9e9)).is_draining


def test_the_lag_is_told_with_the_subtask_that_falls_behind(clock: Clock) -> None:
    """One that never read a record reports none, as Kafka's does without a partition."""
    flink = kafka(clock, 100.0, 5_000.0)
    vertex = flink.vertices["v0"]
    vertex.shares, vertex.lags = (1.0, 0.0), (lag(5_000.0, 100.0),)
    told = profile(flink.rest, "job", 10).flow.sources["src"].lag
    assert re.fullmatch(
        r"\d+ tuples wait, 100 more per second; src#0 falls behind by 1[\d.]+ tuples/s", told
    )


@pytest.mark.parametrize(("pending", "told"), [(None, "unknown, because "), (0.0, "nothing waits")])
def test_lag_that_is_not_reported_is_unknown(pending: float | None, told: str) -> None:
    assert SourceFlow(10.0, pending=pending).lag.startswith(told)


@pytest.mark.parametrize(("partitions", "most"), [(6, 6), (1, 2), (0, 0)])
def test_a_source_has_work_for_as_many_subtasks_as_partitions(
    clock: Clock, partitions: int, most: int
) -> None:
    """It has two subtasks; without metrics of partitions any number may have work."""
    flink = kafka(clock, 0.0, 0.0)
    vertex = flink.vertices["v0"]
    vertex.shares, vertex.lags = (0.5, 0.5), (lag(0.0, 0.0), lag(0.0, 0.0))
    vertex.offsets = {OFFSET.format(i % 2, i): 9e6 for i in range(partitions)}
    graph = measured_graph(profile(flink.rest, "job", 10), MIPS)
    assert graph.operators.max_parallelism.tolist() == [most]

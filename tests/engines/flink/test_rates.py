"""Rates of layouts: what each source and each of its subtasks may send, in closed cases."""

from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import pytest

from streamplace import Cluster, Device, Operator, Problem, Stream, StreamGraph
from streamplace.engines.flink.decide.candidates import (
    FOUND,
    Question,
    candidates,
)
from streamplace.engines.flink.decide.rates import JobRates
from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.measure.cluster import Measurement, capacity, placed
from streamplace.engines.flink.measure.sources import SourceFlow, SubtaskFlow
from streamplace.placers.registry import Budget

B = frozenset({"readings"})
NOBODY = frozenset({"nobody"})
DEVICES = Cluster.of([Device(f"d{i}") for i in range(3)] + [Device("slow", mips=500)])
"""Three devices of 2,500 MIPS, and a slower one."""
CHAINS = StreamGraph.of(
    "chains",
    [
        Operator("clicks", ipt=5e3, rate=100_000.0),
        Operator("count", ipt=5e3),
        Operator("readings", ipt=2.5e5, rate=5_000.0),
        Operator("score", ipt=2.5e5),
    ],
    [Stream("clicks", "count"), Stream("readings", "score")],
)
"""Clicks need 1,000 MIPS. Readings need 2,500, the whole of a device."""
PRESENT: Layout = Layout({"clicks": ["d0"], "count": ["d0"], "readings": ["d1"], "score": ["d1"]})
APART: Layout = Layout.from_json({**PRESENT, "score": ["d2"]})


def rates(
    graph: StreamGraph = CHAINS,
    present: Layout = PRESENT,
    held_back: frozenset[str] = B,
    cluster: Cluster = DEVICES,
    asked: float | None = None,
    **facts: Any,
) -> JobRates:
    """A job that is held back."""
    measured = Measurement(graph, cluster, True, held_back=held_back, **facts)
    return JobRates(measured, present, asked)


def test_a_layout_that_doubles_one_source_does_not_double_the_others() -> None:
    """Unless a total rate is asked for: then it is up to the first that falls behind."""
    job = rates()
    assert job.of(PRESENT) == pytest.approx(105_000.0)
    assert job.of(APART) == pytest.approx(110_000.0)
    assert rates(asked=1e6).of(APART) == pytest.approx(210_000.0)


def test_sources_that_are_limited_by_different_things_have_factors_of_their_own() -> None:
    """Clicks are held back at 40 % of a device, by something that is no CPU, and readings by it."""
    job = rates(held_back=B | {"clicks"})
    assert job.factors[[0, 2]].tolist() == pytest.approx([2.5, 1.0])
    assert job.of(PRESENT) == pytest.approx(105_000.0)
    assert job.of(APART) == pytest.approx(110_000.0)
    unknown = rates(held_back=frozenset())  # all change together
    assert unknown.of(APART) == pytest.approx(210_000.0)


def test_subtasks_of_a_source_without_shares_do_not_wait_for_each_other() -> None:
    """A generator on a device of 2,500 MIPS and on one of 500; partitions are read evenly."""
    source = Operator("readings", ipt=1e6, rate=3_000.0, parallelism=2)
    graph = StreamGraph.of("one", [source], [])
    present, layout = {"readings": ["d0", "slow"]}, {"readings": ["d0", "d1"]}
    job = rates(graph, Layout(present))
    assert job.factors[0] == pytest.approx(1.0)
    assert job.of(Layout(layout)) == pytest.approx(5_000.0)
    graph = graph.at_rate(1_000.0)
    assert rates(graph, Layout(present), shares={"readings": [0.5, 0.5]}).factors[
        0
    ] == pytest.approx(1.0)
    assert rates(graph, Layout(present), asked=1e6).of(Layout(layout)) == pytest.approx(5_000.0)
    assert rates(graph, Layout(present), shares={"readings": [0.8, 0.2]}).of(
        Layout(layout)
    ) == pytest.approx(2_500 / 0.8 * 0.4)


def test_what_draining_subtasks_read_is_what_a_layout_sustains() -> None:
    """Partitions are equal; the subtask on the slow device has a backlog, and the other has none.

    So 2,000 tuples/s were emitted, of which the slow one could read 500, and 1,000 are sustained.
    """
    source = Operator("readings", ipt=1e6, rate=2_000.0, parallelism=2)
    graph = StreamGraph.of("one", [source], [])
    subtasks = SubtaskFlow(1_500.0, 1e6, (0.0, 0.0)), SubtaskFlow(500.0, 1e6, (9e4, 8e4))
    flow = SourceFlow(2_000.0, is_limited=True, name="readings", subtasks=subtasks)
    whole = SourceFlow(2_000.0, is_limited=True, sources={"readings": flow})
    job = rates(graph, Layout({"readings": ["d0", "slow"]}), flow=whole)
    assert job.sustained.sum() == pytest.approx(1_000.0)
    assert job.contradiction is None
    assert job.of(Layout({"readings": ["d0", "d1"]})) == pytest.approx(5_000.0)


def test_sources_that_send_into_a_full_device_stop_there_and_others_go_on() -> None:
    """Both share d0, in which clicks take 40 %, and readings what is left."""
    operators = [CHAINS.operators[0], CHAINS.operators[1], replace(CHAINS.operators[2], ipt=3e5)]
    graph = StreamGraph.of("shared", operators, [CHAINS.streams[0]])
    present = {"clicks": ["d0"], "count": ["d0"], "readings": ["d0"]}
    job = rates(graph, Layout(present))
    assert job.of(Layout(present)) == pytest.approx(105_000.0)
    assert job.of(Layout({**present, "clicks": ["d2"], "count": ["d2"]})) == pytest.approx(
        100_000 + 5_000 / 0.6
    )
    assert job.of(Layout({**present, "count": ["d2"]})) == pytest.approx(
        100_000 + 5_000 * 0.8 / 0.6
    )
    behind = {**present, "clicks": ["slow"], "count": ["slow"]}
    assert job.of(Layout(behind)) == pytest.approx(50_000 + 5_000 / 0.6)


@pytest.mark.parametrize(
    ("ipt", "gain"),
    [(0.0, 8.0), (4e4, 8.0), (4e5, 4.0), (4e6, 4.0)],
)
def test_a_generator_on_a_slow_device_gives_way_to_what_reads_the_others(
    ipt: float, gain: float
) -> None:
    """A generator of 400,000 instructions on each of four devices, two of them slow, by a shuffle.

    All CPU is used as long as its subtasks are the largest threads of their devices: eight times
    that of one slow device. Else those that read it are full on the slow ones, and all wait.
    """
    operators = [
        Operator("src", ipt=4e5, rate=1_000.0, parallelism=4),
        Operator("read", ipt=ipt, parallelism=4),
    ]
    graph = StreamGraph.of("one", operators, [Stream("src", "read", partitioning="hash")])
    cluster = Cluster.of([Device(f"d{i}", mips=250 * (3, 3, 1, 1)[i]) for i in range(4)])
    together = Layout({"src": ["d2"] * 4, "read": ["d2"] * 4})
    job = rates(graph, together, frozenset({"src"}), cluster)
    apart = Layout({name: [f"d{i}" for i in range(4)] for name in together})
    assert job.of(apart) / job.of(together) == pytest.approx(gain)


def test_what_was_measured_scales_the_costs() -> None:
    """The model says 1.25 times the load of a whole device for what d1 carries."""
    cluster = Cluster.of([Device("d0"), Device("d1", mips=2000), Device("d2"), Device("slow")])
    job = rates(cluster=cluster)
    assert job.factors[2] == pytest.approx(0.8)
    assert job.contradiction is None
    assert job.of(PRESENT) == pytest.approx(105_000.0)
    assert job.of(APART) == pytest.approx(100_000 + 5_000 * 1.25 / 0.625)


def mixed(random: np.random.Generator) -> tuple[StreamGraph, Cluster, Layout, Layout]:
    """Subtasks, skewed keys, links and constant loads, in two random layouts."""
    operators = [
        Operator("clicks", ipt=1e5, payload=200, rate=1000.0, parallelism=2),
        Operator("readings", ipt=2e5, payload=500, rate=900.0, parallelism=2),
        Operator("parse", ipt=1e6, payload=300, parallelism=3, constant=20.0),
        Operator("join", ipt=2e5, parallelism=2),
    ]
    streams = [
        Stream("clicks", "join", partitioning="hash"),
        Stream("readings", "parse", partitioning="rebalance"),
        Stream("parse", "join", 0.5, partitioning="hash"),
    ]
    devices = [Device(f"d{i}", cores=2, egress=5e6, ingress=5e6) for i in range(3)]
    cluster = Cluster.of(devices, bandwidth="4 Mbps", overhead=1e-5)

    def layout() -> Layout:
        names = cluster.devices.name
        return Layout({one.name: random.choice(names, one.parallelism) for one in operators})

    return StreamGraph.of("mixed", operators, streams), cluster, layout(), layout()


@pytest.mark.parametrize("seed", range(6))
def test_what_a_layout_carries_fills_it(seed: int) -> None:
    """By the load equation at the predicted rates."""
    graph, cluster, present, layout = mixed(np.random.default_rng(seed))
    shares = {"join": [0.7, 0.3], "readings": [0.5, 0.5]}
    job = rates(graph, present, cluster=cluster, shares=shares)
    assert job.kept == 1000.0
    assert job.of(present) == pytest.approx(1900.0)
    if (most := job.of(layout)) > 1000.0 + 900.0:
        assert capacity(job.at_rate(most), cluster, layout, shares) == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(6))
def test_flows_are_those_of_the_simulator(seed: int) -> None:
    """Where nothing arrives but what was measured, as the simulator fills several sources."""
    from streamsim import throughput

    graph, cluster, present, layout = mixed(np.random.default_rng(seed))
    shares = {"join": [0.7, 0.3]}
    job = rates(graph, present, NOBODY, cluster, shares=shares)
    flows = placed(graph, cluster, layout, shares)
    (expected,) = throughput(flows.problem.instance, [flows.placement])
    assert job._flows(layout).total == pytest.approx(graph.source_rate * expected)


def test_the_best_layout_for_what_is_held_back_is_found() -> None:
    question = Question(rates().measured, PRESENT, {}, spreads=True, modes=())
    found = next(one for one in candidates(question, Budget(evaluations=2000)) if one.name == FOUND)
    assert found.predicted.value == pytest.approx(110_000.0)
    assert found.kept == 100_000.0


def test_a_job_of_which_no_cpu_is_known_carries_any_rate() -> None:
    free = StreamGraph.of("free", [Operator("src", rate=1000.0)], [])
    job = rates(free, Layout({"src": ["d0"]}), frozenset({"src"}))
    assert job.of(Layout({"src": ["slow"]})) == inf
    assert job.contradiction is None
    assert Problem(job.at_rate(2000.0), DEVICES).graph.source_rate == pytest.approx(2000.0)

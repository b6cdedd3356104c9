"""What is predicted for jobs of which some sources are held back and others are not."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from flink_layouts import judged

from streamplace import Cluster, Device, Operator, Stream, StreamGraph
from streamplace.engines.flink.decide.candidates import (
    FOUND,
    Judge,
    Question,
    check_model,
    decision,
)
from streamplace.engines.flink.decide.layouts import Layout
from streamplace.engines.flink.measure.measurement import Measurement
from streamplace.engines.flink.measure.placed_subtasks import capacity
from streamplace.placers.registry import Budget

BUDGET = Budget(evaluations=2000)
B = frozenset({"readings"})
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
PRESENT: Layout = {"clicks": ["d0"], "count": ["d0"], "readings": ["d1"], "score": ["d1"]}
APART: Layout = {**PRESENT, "score": ["d2"]}


def asked(
    graph: StreamGraph = CHAINS,
    present: Layout = PRESENT,
    held_back: frozenset[str] = B,
    cluster: Cluster = DEVICES,
    **more: Any,
) -> Question:
    """A question about a job that is held back."""
    measured = Measurement(graph, cluster, True, held_back=held_back)
    return Question(measured, present, {}, spreads=True, **({"modes": ()} | more))


def test_a_layout_that_doubles_one_source_does_not_double_the_others() -> None:
    """Whose rates are certain: the error of predictions applies to the readings only."""
    answer = judged(asked(), APART)
    assert answer.present.carries == pytest.approx((104_850.0, 105_000.0, 105_150.0))
    assert answer.chosen.carries == pytest.approx((109_020.0, 110_000.0, 110_980.0))
    together = judged(asked(held_back=frozenset()), APART)
    assert together.chosen.carries.value == pytest.approx(210_000.0)


def test_a_small_source_that_is_held_back_gains() -> None:
    """It adds 1 % to the rate of the job, and doubles its own."""
    operators = [
        replace(row, rate=row.rate / 5, ipt=row.ipt * 5)
        if row.name in ("readings", "score")
        else row
        for row in CHAINS.operators
    ]
    graph = StreamGraph.of("small", operators, list(CHAINS.streams))
    answer = judged(asked(graph), APART)
    assert answer.chosen.carries.value == pytest.approx(102_000.0)
    assert not answer.stays


def test_the_best_layout_for_what_is_held_back_is_found() -> None:
    answer = decision(asked(), budget=BUDGET)
    assert answer.chosen.name == FOUND
    assert answer.chosen.carries.value == pytest.approx(110_000.0)


def test_sources_that_keep_up_take_their_part_first() -> None:
    """Both share a device in which clicks take 40 %, and readings what is left."""
    operators = [replace(CHAINS.operators["readings"], ipt=3e5), *CHAINS.operators]
    operators = [one for i, one in enumerate(operators) if i != 3]
    graph = StreamGraph.of("shared", operators, list(CHAINS.streams))
    present = {**PRESENT, "readings": ["d0"], "score": ["d1"]}
    question = asked(graph, present)
    assert judged(question, present).present.carries.value == pytest.approx(105_000.0)
    free = judged(question, {**present, "clicks": ["d2"], "count": ["d2"]})
    assert free.chosen.carries.value == pytest.approx(100_000 + 5_000 / 0.6)
    half = judged(question, {**present, "count": ["d2"]})
    assert half.best.carries.value == pytest.approx(100_000 + 5_000 * 0.8 / 0.6)


def test_what_was_measured_scales_the_part_that_is_held_back() -> None:
    """The model says 1.25 times the load of a whole device for what d1 carries."""
    cluster = Cluster.of([Device("d0"), Device("d1", mips=2000), Device("d2"), Device("slow")])
    question = asked(cluster=cluster)
    assert Judge(question).scale == pytest.approx(1.25)
    assert check_model(question) == "the model is off by -20% for the placement that was profiled"
    answer = judged(question, APART)
    assert answer.present.carries.value == pytest.approx(105_000.0)
    assert answer.chosen.carries.value == pytest.approx(100_000 + 5_000 * 1.25 / 0.625)


def test_a_layout_that_holds_back_what_keeps_up_is_no_gain() -> None:
    """Clicks need twice what the slow device has, however much faster the readings would be."""
    answer = judged(asked(), {**APART, "clicks": ["slow"], "count": ["slow"]})
    assert answer.stays
    (worse,) = (one for one in answer.candidates if one is not answer.present)
    assert worse.carries.value == pytest.approx(105_000 / 2)


def test_the_flow_behind_a_source_follows_it_into_a_join() -> None:
    """The join has 44 % of a device to do, 40 % of it for what keeps up."""
    graph = StreamGraph.of(
        "join",
        [
            Operator("clicks", ipt=5e5, rate=1000.0),
            Operator("readings", ipt=1e7, rate=100.0),
            Operator("parse", ipt=1.5e7),
            Operator("join", ipt=1e6),
        ],
        [Stream("clicks", "join"), Stream("readings", "parse"), Stream("parse", "join")],
    )
    present = {"clicks": ["d0"], "join": ["d1"], "readings": ["d2"], "parse": ["d2"]}
    question = asked(graph, present)
    beside_clicks = judged(question, {**present, "parse": ["d0"]})
    assert beside_clicks.best.carries.value == pytest.approx(1000 + 100 * 0.8 / 0.6)
    beside_join = judged(question, {**present, "parse": ["d1"]})
    assert beside_join.candidates[-1].carries.value == pytest.approx(1000 + 100 * 0.6 / 0.64)


@pytest.mark.parametrize("seed", range(6))
def test_what_a_layout_carries_fills_it(seed: int) -> None:
    """By the model at the predicted rates, with subtasks, skewed keys, links and constant loads."""
    random = np.random.default_rng(seed)
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
    graph = StreamGraph.of("mixed", operators, streams)
    devices = [Device(f"d{i}", cores=2, egress=5e6, ingress=5e6) for i in range(3)]
    cluster = Cluster.of(devices, bandwidth="4 Mbps", overhead=1e-5)
    present, layout = (
        {
            one.name: random.choice(cluster.devices.name, one.parallelism).tolist()
            for one in operators
        }
        for _ in range(2)
    )
    measured = Measurement(graph, cluster, True, shares={"join": [0.7, 0.3]}, held_back=B)
    judge = Judge(Question(measured, present, {}, spreads=True))
    assert judge.kept == 1000.0
    assert judge.carried(judge.present().layout) == pytest.approx(1900.0)
    filled = judge.at_rate(judge.carried(layout))
    assert capacity(filled, cluster, layout, measured.shares) == pytest.approx(1.0)


def test_constant_loads_are_taken_first_as_well() -> None:
    """A tenth of the device, so that readings take 90 % of it, and 45 % of two."""
    operators = [
        replace(row, constant=250.0) if row.name == "score" else row for row in CHAINS.operators
    ]
    operators = [
        replace(row, ipt=2.25e5) if row.name in B | {"score"} else row for row in operators
    ]
    graph = StreamGraph.of("constant", operators, list(CHAINS.streams))
    answer = judged(asked(graph), APART)
    assert answer.present.carries.value == pytest.approx(105_000.0)
    assert answer.chosen.carries.value == pytest.approx(110_000.0)


def test_the_rates_of_all_sources_change_together_where_it_is_not_known_which_do() -> None:
    """If all or none are held back, a rate is given, or the model has no room for the others."""

    def same(question: Question) -> bool:
        measured = replace(question.measured, held_back=frozenset())
        unknown = replace(question, measured=measured)
        return decision(question, budget=BUDGET) == decision(unknown, budget=BUDGET)

    assert same(asked(held_back=frozenset({"clicks", "readings"})))
    assert same(asked(rate=150_000.0))
    clicks = {**PRESENT, "clicks": ["slow"], "count": ["slow"]}
    assert same(asked(present=clicks))
    one = StreamGraph.of("one", [CHAINS.operators[2], CHAINS.operators[3]], [CHAINS.streams[1]])
    assert same(asked(one, {"readings": ["d1"], "score": ["d1"]}))
    assert not same(asked())

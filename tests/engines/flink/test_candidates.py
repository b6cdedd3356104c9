"""Layouts that are judged for a job, in closed cases."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fake_flink import FakeFlink, task_manager

from streamplace import Cluster, Device, Operator, Stream, StreamGraph
from streamplace.engines.flink.decide.candidates import (
    EVEN,
    FOUND,
    Candidate,
    Question,
    candidate,
    candidates,
    known_modes,
    searched,
)
from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.measure.cluster import Measurement, capacity
from streamplace.engines.flink.pin.fitting import is_placed, pinnable
from streamplace.engines.flink.pin.pinning import SpreadLimits, offers, pinning
from streamplace.engines.flink.rest.client import FlinkError
from streamplace.model.graph import CONSISTENCY_ERROR
from streamplace.model.intervals import PredictionErrors
from streamplace.placers.registry import Budget

EQUAL = Cluster.uniform(4)
UNEQUAL = Cluster.of([Device(f"d{i}", mips=mips) for i, mips in enumerate((4000, 2500, 1000, 500))])
SLOTS = {f"d{i}": 4 for i in range(4)}
TOGETHER = {"src": ["d0"] * 4, "work": ["d0"] * 4}
SPREAD = {name: [f"d{i}" for i in range(4)] for name in TOGETHER}


def job(payload: float = 10.0, parallelism: int = 4) -> StreamGraph:
    """1,000 tuples/s, and 2.5e6 instructions for each, in two operators of so many subtasks."""
    operators = [
        Operator("src", ipt=5e5, payload=payload, rate=1000.0, parallelism=parallelism),
        Operator("work", ipt=2e6, parallelism=parallelism),
    ]
    return StreamGraph.of("job", operators, [Stream("src", "work", partitioning="rebalance")])


def asked(
    cluster: Cluster,
    present: Layout,
    rate: float | None = None,
    *,
    limited: bool = True,
    spreads: bool = True,
    slots: dict[str, int] = SLOTS,
    **more: Any,
) -> Question:
    """A question about a job that reads 1,000 tuples/s."""
    measured = Measurement(job(), cluster, limited)
    return Question(measured, present, slots, spreads, rate, **more)


def found_for(question: Question, evaluations: int = 2000) -> dict[str, Candidate]:
    """Name → candidate."""
    return {one.name: one for one in candidates(question, Budget(evaluations=evaluations))}


def best_rate(question: Question) -> float:
    """Tuples/s of the best candidate."""
    return max(one.predicted.value for one in found_for(question).values())


def test_on_equal_machines_flinks_own_layout_carries_as_much_as_any() -> None:
    """One device carries 1,000 tuples/s, and four devices 4,000 however they are filled."""
    question = asked(EQUAL, Layout(TOGETHER))
    slots = found_for(question)["Flink's SLOTS"]
    assert question.rates.of(Layout(TOGETHER)) == pytest.approx(1000.0)
    assert slots.predicted.value == pytest.approx(best_rate(question), rel=0.01)
    assert slots.predicted.value == pytest.approx(4000.0, rel=0.01)
    assert slots.line == "taskmanager.load-balance.mode: SLOTS"
    assert slots.can_be_pinned
    for other in (replace(question, spreads=False), replace(question, occupied=frozenset({"d3"}))):
        assert not found_for(other)["Flink's SLOTS"].can_be_pinned


def test_the_best_of_flinks_possible_layouts_is_pinned() -> None:
    """NONE fills one TaskManager after another: four slots on any of them, the slowest as well."""
    question = asked(UNEQUAL, Layout(SPREAD))
    none = found_for(question)["Flink's NONE"]
    assert none.by_flink is not None
    assert none.by_flink.low < none.by_flink.high == pytest.approx(none.predicted.high)
    assert none.predicted.value == pytest.approx(question.rates.of(none.layout))
    assert not none.line  # it gives a slow layout as well


def test_no_layout_is_expected_to_be_better_where_none_is() -> None:
    """The job has the best one, or there is one TaskManager."""
    assert best_rate(asked(EQUAL, Layout(SPREAD))) == pytest.approx(1000.0)
    assert best_rate(asked(Cluster.uniform(1), Layout(TOGETHER), slots={"d0": 4})) == pytest.approx(
        1000.0
    )


def test_on_unequal_machines_search_finds_the_best_layout() -> None:
    """SLOTS is limited by the slowest device: four times 500 MIPS of 8,000."""
    found = found_for(asked(UNEQUAL, Layout(SPREAD), 1e6))
    best = max(found.values(), key=lambda one: one.predicted.value)
    assert best.name == FOUND
    assert best.predicted.value > 1.5 * found["Flink's SLOTS"].predicted.value


def test_intervals_contain_the_errors_of_the_job_and_the_orders_of_flink() -> None:
    """Rates that no layout changes are certain."""
    errors = PredictionErrors.of({str(i): [np.log(0.8)] for i in range(9)}, 0.9, "9 jobs")
    question = asked(EQUAL, Layout(TOGETHER), errors=errors)
    places = TOGETHER, SPREAD, {name: ["d0", "d1"] * 2 for name in TOGETHER}
    layouts = [*map(Layout, places)]
    one = candidate(question, "any", *layouts)
    assert one.predicted == pytest.approx((800.0, 2000.0, 5000.0))
    assert one.layout == layouts[2]


@pytest.mark.parametrize("unpinned", [True, False])
def test_flinks_own_layouts_of_a_placed_job_are_those_without_its_placement(
    *, unpinned: bool
) -> None:
    """Slot sharing groups of a placement go with it, and those of a program stay."""
    alone = job().with_operators(replace(job().operators, slot_sharing_group=("a", "b")))
    measured = Measurement(alone, EQUAL, True)
    slots = dict.fromkeys(SLOTS, 1)
    found = found_for(Question(measured, Layout(SPREAD), slots, True, is_placed=unpinned))
    assert any("Flink" in name for name in found) is unpinned  # two groups of four take eight slots


def test_a_job_is_placed_if_its_slots_request_a_task_manager() -> None:
    device = task_manager("dev-0", ["dev-0", "dev-1"])
    for requested, known in (
        ({"dev-0": 1}, True),
        ({"lim-0": 5e5, "lim-0-dev-1": 1e6}, True),
        (device["totalResource"]["extendedResources"], False),
    ):
        wants = {"managedMemory": 0, "extendedResources": requested}
        manager = device | {"allocatedSlots": [{"jobId": "job", "resource": wants}]}
        assert is_placed("job", [manager]) is known
        assert is_placed("other", [manager]) is None


def test_the_present_layout_checks_the_model_where_sources_are_held_back() -> None:
    """1,000 tuples/s fill a device of 2,500 MIPS; a job that is limited on a faster one is odd.

    Predictions are scaled so that it carries what was measured, however odd.
    """

    def question(mips: float, *, limited: bool = True) -> Question:
        return asked(Cluster.uniform(4, mips=mips), Layout(TOGETHER), limited=limited)

    assert question(3000.0).rates.of(Layout(TOGETHER)) == pytest.approx(1000.0)
    assert best_rate(question(3000.0)) == pytest.approx(4000.0, rel=0.01)
    for mips in (2750.0, 3000.0):
        assert question(mips).rates.contradiction is None
    assert question(3500.0, limited=False).rates.contradiction is None
    for mips, error in ((3500.0, "+40%"), (1500.0, "-40%")):
        assert f"off by {error}" in str(question(mips).rates.contradiction)
    fast = question(3500.0)
    checked = replace(fast.measured.graph, attributes={CONSISTENCY_ERROR: 0.1})
    fine = replace(fast, measured=replace(fast.measured, graph=checked))
    assert fine.rates.contradiction is None


@pytest.mark.parametrize("limited", [True, False])
def test_a_model_by_which_the_present_layout_carries_nothing_is_wrong(*, limited: bool) -> None:
    """What operators take whatever their rate is more than their device has.

    No factor leads from nothing to what was measured, so every other layout would seem better.
    """
    graph = job().with_operators(replace(job().operators, constant=np.array([0.0, 3000.0])))
    question = Question(Measurement(graph, EQUAL, limited), Layout(TOGETHER), SLOTS, spreads=True)
    assert "off by -100%" in str(question.rates.contradiction)


def test_a_job_that_a_network_limits_does_not_contradict_the_model() -> None:
    """The profile says that CPU is left for four times as much, but the cards are full."""

    def question(egress: float) -> Question:
        devices = [Device(f"d{i}", egress=egress) for i in range(4)]
        graph = replace(job(payload=1000.0), attributes={CONSISTENCY_ERROR: 3.0})
        return Question(Measurement(graph, Cluster.of(devices), True), Layout(SPREAD), SLOTS, True)

    assert question(1.55e6).rates.contradiction is None  # 1.5 Mbit/s are sent
    assert "off by +" in str(question(8e6).rates.contradiction)


def test_without_spreading_only_whole_operators_are_placed() -> None:
    """And without slots, no layout of Flink's own is among the candidates."""
    found = found_for(asked(EQUAL, Layout(TOGETHER), spreads=False, slots={}))
    assert found.keys() == {FOUND}
    assert all(len(set(devices)) == 1 for devices in found[FOUND].layout.values())
    assert EVEN in found_for(asked(EQUAL, Layout(TOGETHER), slots={}))


def test_a_search_without_a_rate_goes_on_where_one_for_a_low_rate_ends() -> None:
    """Every layout carries 100 tuples/s, so a search for that has no reason to look further."""
    speeds = (4000, 3000, 2500, 1000, 500, 300)
    cluster = Cluster.of([Device(f"d{i}", mips=mips) for i, mips in enumerate(speeds)])
    operators = [Operator("o0", ipt=1e5, payload=10, rate=100.0, parallelism=4)]
    for i in range(1, 6):
        operators.append(Operator(f"o{i}", ipt=2e5 * (1 + i % 3), payload=100, parallelism=4))
    streams = [Stream(f"o{i}", f"o{i + 1}", partitioning="rebalance") for i in range(5)]
    graph = StreamGraph.of("chain", operators, streams)

    present = {f"o{i}": ["d0"] * 4 for i in range(6)}
    little = Budget(evaluations=300)

    def found(rate: float | None) -> float:
        question = Question(Measurement(graph, cluster, True), Layout(present), {}, True, rate)
        return question.rates.of(searched(question, little))

    most, enough = found(None), found(100.0)
    assert most > 1.01 * enough > 100.0


def test_what_other_jobs_have_whole_gets_nothing() -> None:
    """Of four equal devices two are left, which carry 2,000 tuples/s together."""
    occupied = frozenset({"d2", "d3"})
    question = asked(EQUAL, Layout(TOGETHER), slots={}, occupied=occupied)
    for one in found_for(question).values():
        assert occupied.isdisjoint(d for devices in one.layout.values() for d in devices)
    assert best_rate(question) == pytest.approx(2000.0, rel=0.01)
    assert not found_for(replace(question, occupied=frozenset(SLOTS)))


def prepared(*devices: str) -> list[dict[str, Any]]:
    """TaskManagers that are configured for spread operators, and on which no job runs."""
    rows = []
    for device in devices:
        resources = {"extendedResources": offers(device, devices)}
        rows.append({"id": device, "totalResource": resources, "freeResource": resources})
    return rows


@pytest.mark.parametrize(("number", "is_even_possible"), [(32, True), (33, False)])
def test_no_layout_is_proposed_that_takes_more_groups_than_task_managers_have(
    number: int, is_even_possible: bool
) -> None:
    """They have 32 indexes; as many operators of unlike parallelism can be spread over them."""
    sizes = range(2, number + 2)
    operators = [Operator(f"o{size}", ipt=1e5, parallelism=size) for size in sizes]
    source = Operator("src", ipt=1e3, payload=10, rate=1000.0)
    streams = [Stream("src", one.name, partitioning="rebalance") for one in operators]
    graph = StreamGraph.of("job", [source, *operators], streams)
    present = {one.name: ["d0"] * one.parallelism for one in (source, *operators)}
    measured = Measurement(graph, Cluster.uniform(2), True)
    question = Question(
        measured, Layout(present), {}, spreads=True, modes=(), managers=prepared("d0", "d1")
    )
    found = found_for(question, evaluations=200)
    assert (EVEN in found) is is_even_possible
    untouched = SpreadLimits.untouched(["d0", "d1"])
    pinning(found[FOUND].layout, untouched)  # raises where it cannot be


def test_operators_with_equal_numbers_on_the_same_devices_take_one_group() -> None:
    """The order matters for those of which subtask i is joined to subtask i alone."""
    managers = prepared("d0", "d1")
    for row in managers:
        row["freeResource"] = {
            "extendedResources": {
                name: amount
                for name, amount in row["totalResource"]["extendedResources"].items()
                if name in ("dev-d0", "dev-d1", "lim-0") or name.startswith("lim-0-")
            }
        }
    places = {"src": ["d1", "d0", "d0"], "work": ["d0", "d1", "d0"]}
    operators = [Operator("src", rate=1.0, parallelism=3), Operator("work", parallelism=3)]

    def pinned(partitioning: str) -> Layout | None:
        stream = Stream("src", "work", partitioning=partitioning)
        return pinnable(Layout(places), StreamGraph.of("job", operators, [stream]), managers)

    assert pinned("rebalance") == Layout({name: ["d0", "d0", "d1"] for name in places})
    assert pinned("forward") is None


CHAINED = StreamGraph.of(
    "chained",
    [Operator("src -> parse", ipt=1e5, rate=1e4), Operator("join", ipt=5e5, parallelism=2)],
    [Stream("src -> parse", "join")],
)


def test_what_a_placement_of_subtasks_carries_is_the_inverse_of_its_largest_load() -> None:
    """One device of 2500 MIPS has 6e9 instructions/s to do: 2.4 times what it can."""
    chain = {"src": ["d0"], "parse": ["d0"]}
    two = Cluster.uniform(2)
    assert capacity(CHAINED, two, chain | {"join": ["d0", "d0"]}) == pytest.approx(1 / 2.4)
    assert capacity(CHAINED, two, chain | {"join": ["d1", "d1"]}) == pytest.approx(1 / 2.0)
    told = "the devices that 'join' runs on are not those of the cluster"
    for other in ({"join": ["d0"]}, {"join": ["d0", "elsewhere"]}, {}):
        with pytest.raises(FlinkError, match=told):
            capacity(CHAINED, two, chain | other)


@pytest.mark.parametrize(
    ("version", "modes"), [("2.3.0", {"NONE", "SLOTS", "TASKS"}), ("1.20.5", {"NONE", "SLOTS"})]
)
def test_only_modes_that_a_flink_knows_are_recommended(version: str, modes: set[str]) -> None:
    """A JobManager with a mode that it does not know does not start."""
    flink = FakeFlink({"GET /config": {"flink-version": version}})
    assert set(known_modes(flink.rest)) == modes

"""Layouts that are judged for a job, in closed cases."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fake_flink import FakeFlink, failure
from flink_documents import config, task_manager

from streamplace import Cluster, Device, Operator, Stream, StreamGraph
from streamplace.engines.flink.decide.candidates import (
    BY_SPEED,
    EVEN,
    FOUND,
    PRESENT,
    Judge,
    Question,
    check_model,
    configured_mode,
    decision,
    is_placed,
    known_modes,
    searched,
)
from streamplace.engines.flink.decide.layouts import Layout
from streamplace.engines.flink.measure.measurement import Measurement
from streamplace.engines.flink.measure.placed_subtasks import capacity
from streamplace.engines.flink.pin.fitting import pinnable
from streamplace.engines.flink.pin.pinning import pinning
from streamplace.engines.flink.pin.spread import SpreadLimits, offers
from streamplace.engines.flink.rest.client import FlinkError
from streamplace.errors import ProblemError
from streamplace.model.graph import CONSISTENCY_ERROR
from streamplace.placers.registry import Budget

BUDGET = Budget(evaluations=2000)
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


def test_on_equal_machines_flinks_own_layout_carries_as_much_as_any() -> None:
    """One device carries 1,000 tuples/s, and four devices 4,000 however they are filled.

    If the cluster has that line, the job was started before the others joined, say.
    """
    answer = decision(asked(EQUAL, TOGETHER), budget=BUDGET)
    assert answer.present.carries.value == pytest.approx(1000.0)
    assert answer.best.carries.value == pytest.approx(4000.0, rel=0.01)
    (slots,) = (one for one in answer.candidates if one.mode == "SLOTS")
    assert slots.carries.value == pytest.approx(4000.0, rel=0.01)
    assert slots.line == "taskmanager.load-balance.mode: SLOTS"
    assert slots.can_be_pinned
    answer = decision(asked(EQUAL, TOGETHER, configured="SLOTS"), budget=BUDGET)
    assert [one.line for one in answer.candidates if one.mode == "SLOTS"] == [""]


def test_flinks_own_layouts_are_not_tried_where_nothing_can_be_pinned_to_them() -> None:
    """Operators cannot be spread, or another job has a device for itself."""
    for question in (
        replace(asked(EQUAL, TOGETHER), spreads=False),
        asked(EQUAL, TOGETHER, occupied=frozenset({"d3"})),
    ):
        answer = decision(question, budget=BUDGET)
        assert not any(one.can_be_pinned for one in answer.candidates if one.mode == "SLOTS")


def test_a_job_stays_where_no_layout_is_better() -> None:
    """It has the best one, no CPU is known of it, there is one TaskManager, or it keeps up.

    Of the last one the model says that its slow device carries 700 of the 1,000 tuples/s.
    """
    free = Measurement(StreamGraph.of("free", [Operator("src", rate=1000.0)]), EQUAL, True)
    slow = Cluster.of([Device(f"d{i}", mips=1750 if i == 0 else 2500) for i in range(4)])
    for question in (
        asked(EQUAL, SPREAD),
        Question(free, {"src": ["d0"]}, SLOTS, spreads=True),
        asked(Cluster.uniform(1), TOGETHER, slots={"d0": 4}),
        asked(slow, TOGETHER, limited=False),
    ):
        answer = decision(question, budget=BUDGET)
        assert answer.stays
    assert answer.present.carries.value == pytest.approx(1000.0)


def test_on_unequal_machines_the_layout_that_was_found_is_chosen() -> None:
    """SLOTS is limited by the slowest device: four times 500 MIPS of 8,000."""
    answer = decision(asked(UNEQUAL, SPREAD), budget=BUDGET)
    assert answer.chosen.name == FOUND
    slots = next(one for one in answer.candidates if one.mode == "SLOTS")
    assert answer.chosen.carries.value > 1.5 * slots.carries.value


@pytest.mark.parametrize("unpinned", [True, False])
def test_flinks_own_layouts_of_a_placed_job_are_those_without_its_placement(
    *, unpinned: bool
) -> None:
    """Slot sharing groups of a placement go with it, and those of a program stay."""
    alone = job().with_operators(replace(job().operators, slot_sharing_group=("a", "b")))
    measured = Measurement(alone, EQUAL, True)
    slots = dict.fromkeys(SLOTS, 1)
    answer = decision(Question(measured, SPREAD, slots, True, is_placed=unpinned), budget=BUDGET)
    own = [one.name for one in answer.candidates if one.mode is not None]
    assert bool(own) is unpinned  # two groups of four take eight slots


def test_a_job_is_placed_if_its_slots_request_a_task_manager() -> None:
    device = task_manager("dev-0", ["dev-0", "dev-1"])
    flink = FakeFlink({"GET /taskmanagers": {"taskmanagers": [device]}})
    for requested, known in (
        ({"dev-0": 1}, True),
        ({"lim-0": 5e5, "lim-0-dev-1": 1e6}, True),
        (device["totalResource"]["extendedResources"], False),
    ):
        wants = {"managedMemory": 0, "extendedResources": requested}
        slot = {"jobId": "job", "resource": wants}
        flink.answers["GET /taskmanagers/dev-0"] = {"allocatedSlots": [slot]}
        assert is_placed(flink.rest, "job") is known
        assert not is_placed(flink.rest, "other")


def test_operators_with_names_like_those_of_subtasks_are_placed() -> None:
    """A program that names operators in a loop is not one that was placed subtask by subtask."""
    shards = [Operator(f"shard#{i}", ipt=1e6) for i in range(2)]
    streams = [Stream("src", one.name, partitioning="rebalance") for one in shards]
    graph = StreamGraph.of("job", [job().operators["src"], *shards], streams)
    layout = {"src": ["d0"] * 4, "shard#0": ["d0"], "shard#1": ["d0"]}
    answer = decision(Question(Measurement(graph, EQUAL, True), layout, SLOTS, True), budget=BUDGET)
    assert answer.best.layout.keys() == layout.keys()


def test_predictions_are_scaled_to_what_was_measured_where_sources_are_held_back() -> None:
    """The model says 2,000 for the half that the job runs on, and 1,000 were measured."""
    half = {name: ["d0", "d1", "d0", "d1"] for name in TOGETHER}
    answer = decision(asked(EQUAL, half), budget=BUDGET)
    assert answer.present.carries.value == pytest.approx(1000.0)
    assert answer.best.carries.value == pytest.approx(2000.0, rel=0.01)


def test_where_no_profile_is_checked_the_present_layout_checks_the_model() -> None:
    """1,000 tuples/s fill a device of 2,500 MIPS; a job that is limited on a faster one is odd."""

    def question(mips: float, *, limited: bool = True) -> Question:
        return asked(Cluster.uniform(4, mips=mips), TOGETHER, limited=limited)

    assert check_model(question(2750.0)) is None
    assert check_model(question(3500.0, limited=False)) is None
    told = check_model(question(3000.0))
    assert told == "the model is off by +20% for the placement that was profiled"
    for mips, error in ((3500.0, r"\+40%"), (1500.0, "-40%")):
        with pytest.raises(ProblemError, match=f"off by {error} .* with trust-profile"):
            check_model(question(mips))
        assert check_model(question(mips), trusts=True) is not None
    fast = question(3500.0)
    checked = replace(fast.measured.graph, attributes={CONSISTENCY_ERROR: 0.1})
    assert check_model(replace(fast, measured=replace(fast.measured, graph=checked))) is None


@pytest.mark.parametrize("limited", [True, False])
def test_a_model_by_which_the_present_layout_carries_nothing_is_wrong(*, limited: bool) -> None:
    """What operators take whatever their rate is more than their device has.

    No scale leads from nothing to what was measured, so every other layout would seem to be better.
    """
    graph = job().with_operators(replace(job().operators, constant=np.array([0.0, 3000.0])))
    question = Question(Measurement(graph, EQUAL, limited), TOGETHER, SLOTS, spreads=True)
    with pytest.raises(ProblemError, match="off by -100%"):
        check_model(question)
    assert check_model(question, trusts=True) is not None


def test_a_job_that_a_network_limits_does_not_contradict_the_model() -> None:
    """The profile says that CPU is left for four times as much, but the cards are full."""

    def question(egress: float) -> Question:
        devices = [Device(f"d{i}", egress=egress) for i in range(4)]
        graph = replace(job(payload=1000.0), attributes={CONSISTENCY_ERROR: 3.0})
        return Question(Measurement(graph, Cluster.of(devices), True), SPREAD, SLOTS, True)

    assert check_model(question(1.55e6)) is None  # 1.5 Mbit/s are sent
    with pytest.raises(ProblemError, match=r"off by \+\d+%"):
        check_model(question(8e6))


def test_a_job_that_keeps_up_stays_unless_a_higher_rate_is_given() -> None:
    """More than it reads now, and a tenth of that."""
    assert decision(asked(EQUAL, TOGETHER, limited=False), budget=BUDGET).stays
    assert decision(asked(EQUAL, TOGETHER, 100.0, limited=False), budget=BUDGET).stays
    answer = decision(asked(EQUAL, TOGETHER, 3000.0, limited=False), budget=BUDGET)
    assert answer.chosen.carries.high == pytest.approx(3000.0)
    assert not answer.stays


def test_without_spreading_only_whole_operators_are_placed() -> None:
    """And without slots, no layout of Flink's own is among the candidates."""
    answer = decision(asked(EQUAL, TOGETHER, spreads=False, slots={}), budget=BUDGET)
    assert {one.name for one in answer.candidates} == {PRESENT, FOUND}
    found = next(one for one in answer.candidates if one.name == FOUND)
    assert all(len(set(devices)) == 1 for devices in found.layout.values())
    spread = decision(asked(EQUAL, TOGETHER, slots={}), budget=BUDGET)
    assert EVEN in {one.name for one in spread.candidates}


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
        question = Question(Measurement(graph, cluster, True), present, {}, True, rate)
        judge = Judge(question)
        return judge.carried(searched(question, judge, budget=little))

    most, enough = found(None), found(100.0)
    assert most > 1.01 * enough > 100.0


def test_what_other_jobs_have_whole_gets_nothing() -> None:
    """Of four equal devices two are left, which carry 2,000 tuples/s together."""
    occupied = frozenset({"d2", "d3"})
    answer = decision(asked(EQUAL, TOGETHER, slots={}, occupied=occupied), budget=BUDGET)
    for candidate in answer.candidates:
        assert occupied.isdisjoint(d for devices in candidate.layout.values() for d in devices)
    assert answer.best.carries.value == pytest.approx(2000.0, rel=0.01)
    none = decision(asked(EQUAL, TOGETHER, slots={}, occupied=frozenset(SLOTS)), budget=BUDGET)
    assert [one.name for one in none.candidates] == [PRESENT]


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
        measured, present, {}, spreads=True, modes=(), managers=prepared("d0", "d1")
    )
    answer = decision(question, budget=Budget(evaluations=200))
    assert (EVEN in {one.name for one in answer.candidates}) is is_even_possible
    found = next(one for one in answer.candidates if one.name == FOUND)
    pinning(found.layout, SpreadLimits.untouched(["d0", "d1"]))  # raises where it cannot be


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
        return pinnable(places, StreamGraph.of("job", operators, [stream]), managers)

    assert pinned("rebalance") == {name: ["d0", "d0", "d1"] for name in places}
    assert pinned("forward") is None


def test_where_cards_are_scarce_a_job_is_not_spread() -> None:
    """Three quarters of the tuples, of 1,000 bytes, would pass cards of 0.2 MB/s."""
    devices = [Device(f"d{i}", egress=1.6e6, ingress=1.6e6) for i in range(4)]
    question = Question(
        Measurement(job(payload=1000.0), Cluster.of(devices), True), TOGETHER, SLOTS, True
    )
    answer = decision(question, budget=BUDGET)
    assert answer.stays
    even = next(one for one in answer.candidates if one.name == EVEN)
    assert even.carries.high < 1.2 * answer.present.carries.value


def test_a_job_with_more_subtasks_than_taskmanagers_and_no_slot_left_is_judged() -> None:
    """All 16 slots are taken by sixteen subtasks of each operator."""
    present = {name: [f"d{i // 4}" for i in range(16)] for name in ("src", "work")}
    measured = Measurement(job(parallelism=16), UNEQUAL, True)
    question = Question(measured, present, SLOTS, spreads=True)
    answer = decision(question, budget=BUDGET)
    assert answer.chosen.name in (FOUND, BY_SPEED)
    assert {len(devices) for devices in answer.chosen.layout.values()} == {16}
    slots = next(one for one in answer.candidates if one.mode == "SLOTS")
    assert answer.chosen.carries.low > slots.carries.high


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
    ("settings", "mode"),
    [
        ({}, "NONE"),
        ({"taskmanager.load-balance.mode": "slots"}, "SLOTS"),
        ({"cluster.evenly-spread-out-slots": "true"}, "SLOTS"),
        ({"taskmanager.load-balance.mode": "MIN_RESOURCES"}, None),
        (None, None),
    ],
)
def test_the_mode_of_a_cluster_is_read(settings: dict[str, str] | None, mode: str | None) -> None:
    """Unless the JobManager does not show it."""
    hidden = failure("forbidden", status=403)
    flink = FakeFlink({"GET /jobmanager/config": hidden if settings is None else config(settings)})
    assert configured_mode(flink.rest) == mode


@pytest.mark.parametrize(
    ("version", "modes"), [("2.3.0", {"NONE", "SLOTS", "TASKS"}), ("1.20.5", {"NONE", "SLOTS"})]
)
def test_only_modes_that_a_flink_knows_are_recommended(version: str, modes: set[str]) -> None:
    """A JobManager with a mode that it does not know does not start."""
    flink = FakeFlink({"GET /config": {"flink-version": version}})
    assert set(known_modes(flink.rest)) == modes

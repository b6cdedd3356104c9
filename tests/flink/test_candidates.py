"""Layouts of a job in closed cases: what they carry, which are judged, and Flink's own."""

import json
import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from fake_flink import FakeFlink, failure, task_manager
from flink_clusters import pipeline
from hypothesis import given
from hypothesis import strategies as st

from streamplace import Cluster, Device, Operator, Stream, StreamGraph
from streamplace.flink.decide.candidates import (
    BY_SEARCH,
    BY_SPEED,
    Question,
    candidate,
    candidates,
    search_layout,
)
from streamplace.flink.decide.rates import JobRates
from streamplace.flink.decide.slot_assignment import (
    MODE_SETTING,
    MODES,
    balanced_bundles,
    known_modes,
    layouts,
    local_bundles,
)
from streamplace.flink.layout import Layout
from streamplace.flink.local.session import local_cluster
from streamplace.flink.measure.cluster import Measurement, capacity, placed
from streamplace.flink.measure.source_lag import SourceFlow, SubtaskFlow
from streamplace.flink.pin.free_resources import is_placed, pinnable
from streamplace.flink.pin.pinning import SpreadLimits, offers, pinning
from streamplace.flink.rest.client import FlinkError, Rest
from streamplace.flink.rest.plan import layout_of
from streamplace.model.graph import CONSISTENCY_ERROR
from streamplace.model.prediction_intervals import PredictionErrors
from streamplace.placers.registry import Budget

EQUAL = Cluster.uniform(4)
UNEQUAL = Cluster.of([Device(f"d{i}", mips=mips) for i, mips in enumerate((4000, 2500, 1000, 500))])
SLOTS = {f"d{i}": 4 for i in range(4)}
FREE, LIMITED = SourceFlow(0.0), SourceFlow(0.0, is_limited=True)
TOGETHER = {"src": ["d0"] * 4, "work": ["d0"] * 4}
SPREAD = {name: [f"d{i}" for i in range(4)] for name in TOGETHER}


def job(payload=10.0, parallelism=4):
    """1,000 tuples/s, and 2.5e6 instructions for each, in two operators of so many subtasks."""
    operators = [
        Operator("src", ipt=5e5, payload=payload, rate=1000.0, parallelism=parallelism),
        Operator("work", ipt=2e6, parallelism=parallelism),
    ]
    return StreamGraph.of("job", operators, [Stream("src", "work", partitioning="rebalance")])


def asked(cluster, present, rate=None, *, limited=True, spreads=True, slots=SLOTS, **more):
    """A question about a job that reads 1,000 tuples/s."""
    measured = Measurement(job(), cluster, LIMITED if limited else FREE)
    return Question(measured, present, slots, spreads, rate, **more)


def found_for(question, evaluations=2000):
    """Name → candidate."""
    return {one.name: one for one in candidates(question, Budget(evaluations=evaluations))}


def best_rate(question):
    """Tuples/s of the best candidate."""
    return max(one.predicted.value for one in found_for(question).values())


def test_on_equal_machines_flinks_own_layout_carries_as_much_as_any():
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


def test_flinks_layouts_on_task_managers_without_a_description_are_left_out():
    """One has joined since the cluster was described."""
    slots = {"d9": 4, **SLOTS}
    found = found_for(asked(EQUAL, Layout(SPREAD), slots=slots))
    assert found[BY_SEARCH].layout.devices <= {*EQUAL.devices.name}
    assert "Flink's SLOTS" not in found


def test_the_best_of_flinks_possible_layouts_is_pinned():
    """NONE fills one TaskManager after another: four slots on any of them, the slowest as well."""
    question = asked(UNEQUAL, Layout(SPREAD))
    none = found_for(question)["Flink's NONE"]
    assert none.by_flink.low < none.by_flink.high == pytest.approx(none.predicted.high)
    assert none.predicted.value == pytest.approx(question.rates.of(none.layout))
    assert not none.line  # it gives a slow layout as well


def test_on_unequal_machines_search_finds_the_best_layout():
    """SLOTS is limited by the slowest device: four times 500 MIPS of 8,000."""
    found = found_for(asked(UNEQUAL, Layout(SPREAD), 1e6))
    best = max(found.values(), key=lambda one: one.predicted.value)
    assert best.name == BY_SEARCH
    assert best.predicted.value > 1.5 * found["Flink's SLOTS"].predicted.value


def test_intervals_contain_the_errors_of_the_job_and_the_orders_of_flink():
    """Rates that no layout changes are certain."""
    errors = PredictionErrors.of({str(i): [np.log(0.8)] for i in range(9)}, 0.9, "9 jobs")
    question = asked(EQUAL, Layout(TOGETHER), errors=errors)
    places = TOGETHER, SPREAD, {name: ["d0", "d1"] * 2 for name in TOGETHER}
    layouts = [*map(Layout, places)]
    one = candidate(question, "any", *layouts)
    assert one.predicted == pytest.approx((800.0, 2000.0, 5000.0))
    assert one.layout == layouts[2]


@pytest.mark.parametrize("unpinned", [True, False])
def test_flinks_own_layouts_of_a_placed_job_are_those_without_its_placement(*, unpinned):
    """Slot sharing groups of a placement go with it, and those of a program stay."""
    alone = job().with_operators(replace(job().operators, slot_sharing_group=("a", "b")))
    measured = Measurement(alone, EQUAL, LIMITED)
    slots = dict.fromkeys(SLOTS, 1)
    found = found_for(Question(measured, Layout(SPREAD), slots, True, is_placed=unpinned))
    assert any("Flink" in name for name in found) is unpinned  # two groups of four take eight slots


def test_a_job_is_placed_if_its_slots_request_a_task_manager():
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


def test_the_present_layout_checks_the_model_where_sources_are_held_back():
    """1,000 tuples/s fill a device of 2,500 MIPS; a job that is limited on a faster one is odd.

    Predictions are scaled so that it carries what was measured, however odd.
    """

    def question(mips, *, limited=True):
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


def test_no_layout_is_predicted_to_carry_next_to_nothing():
    """What operators take whatever their rate is more than their device has.

    Threads that starve wake up less often, so a tenth of the device is left for tuples.
    """
    graph = job().with_operators(replace(job().operators, constant=np.array([0.0, 3000.0])))
    question = Question(Measurement(graph, EQUAL, FREE), Layout(TOGETHER), SLOTS, spreads=True)
    assert "off by -90%" in str(question.rates.contradiction)
    found = found_for(question, 300).values()
    assert all(one.predicted.low > 0.1 * graph.source_rate for one in found)


def test_a_job_that_a_network_limits_does_not_contradict_the_model():
    """The profile says that CPU is left for four times as much, but the cards are full."""

    def question(egress):
        devices = [Device(f"d{i}", egress=egress) for i in range(4)]
        graph = replace(job(payload=1000.0), attributes={CONSISTENCY_ERROR: 3.0})
        return Question(
            Measurement(graph, Cluster.of(devices), LIMITED), Layout(SPREAD), SLOTS, True
        )

    assert question(1.55e6).rates.contradiction is None  # 1.5 Mbit/s are sent
    assert "off by +" in str(question(8e6).rates.contradiction)


def test_without_spreading_only_whole_operators_are_placed():
    """And without slots, no layout of Flink's own is among the candidates."""
    found = found_for(asked(EQUAL, Layout(TOGETHER), spreads=False, slots={}))
    assert found.keys() == {BY_SEARCH}
    assert all(len(set(devices)) == 1 for devices in found[BY_SEARCH].layout.values())
    assert BY_SPEED in found_for(asked(EQUAL, Layout(TOGETHER), slots={}))


def test_a_search_without_a_rate_goes_on_where_one_for_a_low_rate_ends():
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

    def found(rate):
        question = Question(Measurement(graph, cluster, LIMITED), Layout(present), {}, True, rate)
        return question.rates.of(search_layout(question, little))

    most, enough = found(None), found(100.0)
    assert most > 1.01 * enough > 100.0


def test_what_other_jobs_have_whole_gets_nothing():
    """Of four equal devices two are left, which carry 2,000 tuples/s together."""
    occupied = frozenset({"d2", "d3"})
    question = asked(EQUAL, Layout(TOGETHER), slots={}, occupied=occupied)
    for one in found_for(question).values():
        assert occupied.isdisjoint(d for devices in one.layout.values() for d in devices)
    assert best_rate(question) == pytest.approx(2000.0, rel=0.01)
    assert not found_for(replace(question, occupied=frozenset(SLOTS)))


def prepared(*devices):
    """TaskManagers that are configured for spread operators, and on which no job runs."""
    rows = []
    for device in devices:
        resources = {"extendedResources": offers(device, devices)}
        rows.append({"id": device, "totalResource": resources, "freeResource": resources})
    return rows


@pytest.mark.parametrize(("number", "is_even_possible"), [(32, True), (33, False)])
def test_no_layout_is_proposed_that_takes_more_groups_than_task_managers_have(
    number, is_even_possible
):
    """They have 32 indexes; as many operators of unlike parallelism can be spread over them."""
    sizes = range(2, number + 2)
    operators = [Operator(f"o{size}", ipt=1e5, parallelism=size) for size in sizes]
    source = Operator("src", ipt=1e3, payload=10, rate=1000.0)
    streams = [Stream("src", one.name, partitioning="rebalance") for one in operators]
    graph = StreamGraph.of("job", [source, *operators], streams)
    present = {one.name: ["d0"] * one.parallelism for one in (source, *operators)}
    measured = Measurement(graph, Cluster.uniform(2), LIMITED)
    question = Question(
        measured, Layout(present), {}, spreads=True, modes=(), managers=prepared("d0", "d1")
    )
    found = found_for(question, evaluations=200)
    assert (BY_SPEED in found) is is_even_possible
    untouched = SpreadLimits.untouched(["d0", "d1"])
    pinning(found[BY_SEARCH].layout, untouched)  # raises where it cannot be


def test_operators_with_equal_numbers_on_the_same_devices_take_one_group():
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

    def pinned(partitioning):
        stream = Stream("src", "work", partitioning=partitioning)
        return pinnable(Layout(places), StreamGraph.of("job", operators, [stream]), managers)

    assert pinned("rebalance") == Layout({name: ["d0", "d0", "d1"] for name in places})
    assert pinned("forward") is None


CHAINED = StreamGraph.of(
    "chained",
    [Operator("src -> parse", ipt=1e5, rate=1e4), Operator("join", ipt=5e5, parallelism=2)],
    [Stream("src -> parse", "join")],
)


def test_what_a_placement_of_subtasks_carries_is_the_inverse_of_its_largest_load():
    """One device of 2500 MIPS has 6e9 instructions/s to do: 2.4 times what it can."""
    chain = {"src": ["d0"], "parse": ["d0"]}
    two = Cluster.uniform(2)
    assert capacity(CHAINED, two, chain | {"join": ["d0", "d0"]}) == pytest.approx(1 / 2.4)
    assert capacity(CHAINED, two, chain | {"join": ["d1", "d1"]}) == pytest.approx(1 / 2.0)
    for other in ({"join": ["d0"]}, {"join": ["d0", "elsewhere"]}, {}):
        with pytest.raises(FlinkError, match="'join'"):
            capacity(CHAINED, two, chain | other)


@pytest.mark.parametrize(
    ("answer", "modes"),
    [
        ({"flink-version": "2.2.0"}, {"NONE", "SLOTS", "TASKS"}),
        ({"flink-version": "2.1.1"}, {"NONE", "SLOTS"}),
        ({"flink-version": "1.20.5"}, {"NONE", "SLOTS"}),
        ({"flink-version": "1.18.1"}, set()),
        (failure("forbidden", status=403), {"NONE", "SLOTS"}),  # by a gateway
    ],
)
def test_only_modes_that_a_flink_knows_are_recommended(answer, modes):
    """A JobManager with a mode that it does not know does not start."""
    flink = FakeFlink({"GET /config": answer})
    assert set(known_modes(flink.rest)) == modes


DEVICES = ["dev-0", "dev-1", "dev-2"]


def chain(*parallelism, kind="rebalance", groups=""):
    """Operators op0 → op1 → … of these parallelisms; a letter of groups for each."""
    operators = [
        Operator(f"op{i}", rate=float(not i), parallelism=p, slot_sharing_group=groups[i : i + 1])
        for i, p in enumerate(parallelism)
    ]
    streams = [
        Stream(f"op{i}", f"op{i + 1}", partitioning=kind) for i in range(len(parallelism) - 1)
    ]
    return StreamGraph.of("chain", operators, streams)


def numbers(layout):
    """Subtasks on each device that has any, the fewest first."""
    return sorted(Counter(device for devices in layout.values() for device in devices).values())


def test_subtasks_share_a_slot_with_one_that_they_read_from():
    """The others open slots of their own, which later operators enter in order.

    Of four rescaled ones, the first two read from the first of two; groups share nothing.
    """
    assert local_bundles(chain(1, 2, 4)) == [
        [(0, 0), (1, 0), (2, 0)],
        [(1, 1), (2, 1)],
        [(2, 2)],
        [(2, 3)],
    ]
    assert local_bundles(chain(2, 4, kind="rescale")) == [
        [(0, 0), (1, 0)],
        [(0, 1), (1, 2)],
        [(1, 1)],
        [(1, 3)],
    ]
    assert local_bundles(chain(2, 2, groups="ab")) == [[(0, 0)], [(0, 1)], [(1, 0)], [(1, 1)]]


def test_tasks_deals_small_operators_in_turn():
    """Each begins after the last of the one before it; those of full parallelism begin at 0."""
    assert balanced_bundles(chain(1, 2, 4)) == [
        [(0, 0), (2, 0)],
        [(1, 0), (2, 1)],
        [(1, 1), (2, 2)],
        [(2, 3)],
    ]


@pytest.mark.parametrize(
    ("mode", "used"), [("NONE", [3, 9]), ("SLOTS", [3, 3, 6]), ("TASKS", [3, 9])]
)
def test_modes_fill_or_spread(mode, used):
    """Four slots and three operators in each of the bundles, on devices of three slots."""
    found = layouts(chain(4, 4, 4), dict.fromkeys(DEVICES, 3), mode)
    assert {tuple(numbers(one)) for one in found} == {tuple(used)}


def test_slots_takes_the_share_of_slots_and_not_their_number():
    """Of six slots beside two, three are taken before the second of the two."""
    (found,) = {tuple(numbers(one)) for one in layouts(chain(4), {"a": 6, "b": 2}, "SLOTS")}
    assert found == (1, 3)


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
    st.lists(st.integers(0, 4), min_size=1, max_size=4),
    st.sampled_from(MODES),
)
def test_layouts_are_complete_and_keep_to_the_slots(parallelism, slots, mode):
    """No device has more subtasks of one operator than it has slots."""
    free = {f"d{i}": number for i, number in enumerate(slots)}
    found = layouts(chain(*parallelism), free, mode)
    assert bool(found) == (sum(slots) >= max(parallelism))
    for layout in found:
        assert [len(devices) for devices in layout.values()] == parallelism
        for devices in layout.values():
            assert all(number <= free[device] for device, number in Counter(devices).items())


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_a_real_cluster_does_the_same(mode, flink, graph_jar):
    """As many subtasks on the devices, and subtasks in slots together, as in one of the layouts."""
    settings: dict[str, str | int | float] = {
        MODE_SETTING: mode,
        "taskmanager.numberOfTaskSlots": 4,
    }
    with local_cluster(flink, DEVICES, layers=0, settings=settings) as cluster:
        rest = Rest(cluster.url)
        jar = rest.upload(graph_jar)
        for parallelism in [(1, 2, 4), (3, 3, 3), (6, 6), (2, 5, 3)]:
            graph = chain(*parallelism)
            job = rest.run_jar(jar, "GraphJob", [json.dumps(pipeline(*parallelism))])
            rest.wait_running(job)
            ran = [*layout_of(rest, job, rest.running_job(job)).values()]
            together = balanced_bundles(graph) if mode == "TASKS" else local_bundles(graph)
            for bundle in together:
                assert len({ran[v][i] for v, i in bundle}) == 1
            slots = Counter(ran[v][i] for v, i in (bundle[0] for bundle in together))
            expected = layouts(graph, dict.fromkeys(DEVICES, 4), mode)
            assert sorted(slots.values()) in [_slots_of(one, together) for one in expected]
            rest.cancel(job)
            rest.wait_released()


def _slots_of(layout, together):
    rows = [*layout.values()]
    return sorted(Counter(rows[v][i] for v, i in (bundle[0] for bundle in together)).values())


def test_many_subtasks_are_bundled_as_few_are():
    """Each joins the first bundle that lacks its operator, in a time that grows as they do."""
    graph = chain(*[512] * 30)
    began = time.process_time()
    bundles = local_bundles(graph)
    assert time.process_time() - began < 2
    assert bundles == [[(v, i) for v in range(30)] for i in range(512)]


B = frozenset({"readings"})
NOBODY = frozenset({"nobody"})
UNLIKE = Cluster.of([Device(f"d{i}") for i in range(3)] + [Device("slow", mips=500)])
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


def rates(graph=CHAINS, present=PRESENT, held_back=B, cluster=UNLIKE, rate=None, **facts):
    """A job that is held back."""
    sources = {name: SourceFlow(0.0, is_limited=True) for name in held_back}
    flow = facts.pop("flow", replace(LIMITED, sources=sources))
    measured = Measurement(graph, cluster, flow, **facts)
    return JobRates(measured, present, rate)


def test_a_layout_that_doubles_one_source_does_not_double_the_others():
    """Unless a total rate is asked for: then it is up to the first that falls behind."""
    job = rates()
    assert job.of(PRESENT) == pytest.approx(105_000.0)
    assert job.of(APART) == pytest.approx(110_000.0)
    assert rates(rate=1e6).of(APART) == pytest.approx(210_000.0)


def test_sources_that_are_limited_by_different_things_have_factors_of_their_own():
    """Clicks are held back at 40 % of a device, by something that is no CPU, and readings by it."""
    job = rates(held_back=B | {"clicks"})
    assert job.factors[[0, 2]].tolist() == pytest.approx([2.5, 1.0])
    assert job.of(PRESENT) == pytest.approx(105_000.0)
    assert job.of(APART) == pytest.approx(110_000.0)
    unknown = rates(held_back=frozenset())  # all change together
    assert unknown.of(APART) == pytest.approx(210_000.0)


def test_subtasks_of_a_source_without_shares_do_not_wait_for_each_other():
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
    assert rates(graph, Layout(present), rate=1e6).of(Layout(layout)) == pytest.approx(5_000.0)
    assert rates(graph, Layout(present), shares={"readings": [0.8, 0.2]}).of(
        Layout(layout)
    ) == pytest.approx(2_500 / 0.8 * 0.4)


def test_what_draining_subtasks_read_is_what_a_layout_sustains():
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


def test_sources_that_send_into_a_full_device_stop_there_and_others_go_on():
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


@pytest.mark.parametrize(("ipt", "gain"), [(0.0, 8.0), (4e4, 8.0), (4e5, 4.0), (4e6, 4.0)])
def test_a_generator_on_a_slow_device_gives_way_to_what_reads_the_others(ipt, gain):
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


def mixed(random):
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

    def layout():
        names = cluster.devices.name
        return Layout({one.name: random.choice(names, one.parallelism) for one in operators})

    return StreamGraph.of("mixed", operators, streams), cluster, layout(), layout()


@pytest.mark.parametrize("seed", range(6))
def test_what_a_layout_carries_fills_it(seed):
    """By the load equation at the predicted rates."""
    graph, cluster, present, layout = mixed(np.random.default_rng(seed))
    shares = {"join": [0.7, 0.3], "readings": [0.5, 0.5]}
    job = rates(graph, present, cluster=cluster, shares=shares)
    assert job.kept == 1000.0
    assert job.of(present) == pytest.approx(1900.0)
    if (most := job.of(layout)) > 1000.0 + 900.0:
        assert capacity(job.at_rate(most), cluster, layout, shares) == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(6))
def test_flows_are_those_of_the_simulator(seed):
    """Where nothing arrives but what was measured, as the simulator fills several sources."""
    from streamsim import throughput

    graph, cluster, present, layout = mixed(np.random.default_rng(seed))
    shares = {"join": [0.7, 0.3]}
    job = rates(graph, present, NOBODY, cluster, shares=shares)
    flows = placed(graph, cluster, layout, shares)
    (expected,) = throughput(flows.problem.instance, [flows.placement])
    assert job._flows(layout).total == pytest.approx(graph.source_rate * expected)

"""Plans of a watched job: layouts on one, two and more TaskManagers, and what they carry."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Any

import pytest
from fake_flink import FakeFlink
from flink_documents import healthy

from streamplace import Cluster, Device, Operator, Stream, StreamGraph
from streamplace.engines.flink.cpu.task_cpu import UNKNOWN
from streamplace.engines.flink.decide.candidates import Question
from streamplace.engines.flink.decide.layouts import Layout
from streamplace.engines.flink.measure.cluster import ASSUMED_CPU
from streamplace.engines.flink.measure.measurement import Measurement
from streamplace.engines.flink.measure.profile import UNMEASURED_PYTHON
from streamplace.engines.flink.measure.steady import UnsteadyJob
from streamplace.engines.flink.move.saving import CheckpointTotals
from streamplace.engines.flink.watch.judging import stay_words, target_of, wanted_rate
from streamplace.engines.flink.watch.look import JobLook
from streamplace.engines.flink.watch.modelling import JobModeller
from streamplace.engines.flink.watch.plans import JobModel, job_model, limit_of
from streamplace.io.watch_store import WatchRound
from streamplace.model.graph import CPU_OF, PROFILE_DRIFT
from streamplace.placers.registry import Budget

CHAINS = StreamGraph.of(
    "chains",
    [
        Operator("clicks", ipt=1e4, rate=100_000.0),
        Operator("readings", ipt=2.5e5, rate=5_000.0),
        Operator("score", ipt=2.5e5),
    ],
    [Stream("readings", "score")],
)
"""Clicks need 1,000 MIPS. Readings need 2,500, the whole of a device."""
PRESENT = {"clicks": ["d0"], "readings": ["d1"], "score": ["d1"]}
DEVICES = Cluster.of([Device(f"d{i}") for i in range(3)])


@dataclass(frozen=True)
class Measured:
    """An engine whose measurements are known.

    Attributes
    ----------
    asked
        Cards and cluster that were given, measurement by measurement.
    """

    rest: Any
    measurements: Iterator[Measurement]
    cards: Mapping[str, str] = field(default_factory=dict)
    asked: list[tuple[Mapping[str, str], Cluster | None]] = field(default_factory=list)

    def measure(self, job: str, seconds: float, *, cluster: Cluster | None) -> Measurement:
        """Next measurement."""
        self.asked.append((self.cards, cluster))
        return next(self.measurements)


def look(layout: Layout, *managers: str) -> JobLook:
    """A job with a layout, on a cluster of these TaskManagers."""
    counts = CheckpointTotals(0, 0)
    return JobLook("job", 100.0, False, None, layout, {}, counts, frozenset(managers))


def modeller_of(engine: Any, **facts: Any) -> JobModeller:
    """What finds the plans of a job that an engine measures, by few evaluations."""
    few = Budget(evaluations=2000)
    usual: dict[str, Any] = {"tell": print, "confidence": 0.0, "budget": few}
    return JobModeller(engine, **(usual | facts))


def of_chains(*held_back: str) -> JobModel:
    """Model of the job, some or all of whose sources are held back."""
    measured = Measurement(CHAINS, DEVICES, True, held_back=frozenset(held_back))
    rest = FakeFlink(healthy("d0", "d1", "d2")).rest
    return modeller_of(Measured(rest, repeat(measured)))(look(PRESENT, "d0", "d1", "d2"))


def test_only_sources_that_are_held_back_send_more_in_other_plans() -> None:
    """A third device doubles the readings; one device carries the clicks and some readings.

    The clicks keep up, so their rate is no reason to stay: a fifth more of what the readings send
    is wanted, and surely carried by a third device.
    """
    model = of_chains("readings")
    assert model.kept == 100_000
    assert [round(one.carries.value) for one in model.plans] == [103_000, 106_000, 110_000]
    assert model.present.carries == pytest.approx((104_850.0, 105_000.0, 105_150.0))
    seen = WatchRound("", 0.0, "job", 105_000.0, 105_000.0, True, 0.0, 2, kept=model.kept)
    assert wanted_rate(seen) == pytest.approx(106_000)
    assert target_of(model, 2, seen) == model.plans[2]
    together = of_chains()
    assert together.kept == 0
    assert [round(one.carries.value) for one in together.plans] == [75_000, 105_000, 210_000]


def question(devices: list[str], limited: bool = False) -> Question:
    """A measured job of a cheap source and a mapper that takes 0.8 of a core in four subtasks."""
    operators = [Operator("src", rate=100.0, ipt=1e4), Operator("map", ipt=8e6, parallelism=4)]
    graph = StreamGraph.of("shop", operators, [Stream("src", "map")])
    cluster = Cluster.uniform(3, mips=1000.0)
    measured = Measurement(graph, cluster, limited)
    return Question(measured, {"src": ["d0"], "map": devices}, {}, spreads=True)


def test_no_layout_is_chosen_by_the_measurement_of_a_cold_job() -> None:
    """The next round measures it again."""
    asked = question(["d0"] * 4)
    cold = replace(asked.measured.graph, attributes={PROFILE_DRIFT: 0.5})
    measured = replace(asked.measured, graph=cold)
    engine: Any = Measured(None, repeat(measured))
    with pytest.raises(UnsteadyJob, match="job is not warm yet"):
        JobModeller(engine, print)(look(PRESENT))


def test_doubts_about_a_measurement_are_told_when_they_are_new(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Numbers alone make no new doubt."""
    asked = question(["d0"] * 4)
    told: list[str] = []
    notes = iter([("x", "y: 0.1 of 0.41 cores"), ("x", "y: 0.2 of 0.5 cores"), ("z",), ("x",)])
    rest = FakeFlink(healthy("d0", "d1", "d2")).rest
    engine = Measured(rest, (replace(asked.measured, notes=one) for one in notes))
    modeller = modeller_of(engine, tell=told.append, budget=Budget(evaluations=100))
    for _ in range(4):
        modeller(look(asked.present, "d0", "d1", "d2"))
    assert [one for one in told if one.startswith("note: ")] == [
        "note: x",
        "note: y: 0.1 of 0.41 cores",
        "note: z",
        "note: x",
    ]


@pytest.mark.parametrize(
    ("facts", "notes", "why"),
    [
        ({}, (), ""),
        ({f"{CPU_OF}map": UNKNOWN}, (), "the CPU of 'map' is not known"),
        ({}, (UNMEASURED_PYTHON,), "the CPU of the job's Python processes is not measured"),
        (
            {},
            (ASSUMED_CPU,),
            "the CPU of TaskManagers on other machines is assumed (give --cluster)",
        ),
    ],
)
def test_a_job_does_not_leave_task_managers_for_what_was_not_measured(
    facts: dict[str, str], notes: tuple[str, ...], why: str
) -> None:
    asked = question(["d0", "d0", "d1", "d1"])
    graph = replace(asked.measured.graph, attributes=facts)
    measured = replace(asked.measured, graph=graph, notes=notes)
    rest = FakeFlink(healthy("d0", "d1", "d2")).rest
    model = modeller_of(Measured(rest, repeat(measured)))(look(asked.present, "d0", "d1", "d2"))
    seen = WatchRound("", 0.0, "job", 10.0, 10.0, False, 0.0, 2)
    assert model.level == 1
    assert (target_of(model, 0, seen) is None) == bool(why)
    if why:
        words = f"stays; fewer TaskManagers are not chosen, because {why}"
        assert stay_words(model, 0, seen) == words


def test_a_job_is_judged_by_the_devices_and_cards_that_are_given() -> None:
    """Those that are no TaskManagers at the moment do not count."""
    asked = question(["d0"] * 4)
    rest = FakeFlink(healthy("d0", "d1")).rest
    cards = {"": "10 Gbps", "d1": "1 Gbps", "d2": "1 Gbps"}
    engine = Measured(rest, repeat(asked.measured), cards)
    modeller = modeller_of(engine, cluster=asked.measured.cluster)
    model = modeller(look(asked.present, "d0", "d1"))
    assert engine.asked == [({"": "10 Gbps", "d1": "1 Gbps"}, asked.measured.cluster)]
    assert [one.devices for one in model.plans] == [["d0"], ["d0", "d1"]]


def is_improvable(model: JobModel) -> bool:
    """Whether a better layout is known on as many TaskManagers as now."""
    return model.plans[model.level].layout != model.present.layout


def test_plans_use_one_and_more_task_managers_and_carry_no_less_with_more() -> None:
    """The present layout is the plan for its number, if none is better by more than the error."""
    model = job_model("job", question(["d0"] * 4), None)
    assert [one.machines for one in model.plans] == [1, 2, 3]
    carried = [one.carries.value for one in model.plans]
    assert carried[0] == pytest.approx(124, rel=0.01)
    assert carried == sorted(carried)
    assert (model.level, is_improvable(model), model.limit) == (0, False, "the CPU of d0")
    uneven = job_model("job", question(["d0", "d0", "d0", "d1"]), None)
    assert (uneven.level, is_improvable(uneven)) == (1, True)
    few = job_model("job", question(["d0", "d1", "d2", "d0"]), None, at_most=2)
    assert [one.machines for one in few.plans] == [1, 2, 3]
    assert few.plans[2].layout == few.present.layout


@pytest.mark.parametrize(
    ("max_rate", "ipt", "limit"),
    [(40.0, 1e4, "what a subtask of ask reads at most"), (0.0, 6e7, "a core of d0")],
)
def test_a_subtask_that_waits_limits_a_job_and_not_its_core(
    max_rate: float, ipt: float, limit: str
) -> None:
    """It reads no more, however much CPU is left for it."""
    ask = Operator("ask", ipt=ipt, max_rate=max_rate, parallelism=2)
    graph = StreamGraph.of("asking", [Operator("src", rate=100.0), ask], [Stream("src", "ask")])
    measured = Measurement(graph, Cluster.uniform(2, cores=4), is_limited=True)
    assert limit_of(measured, {"src": ["d0"], "ask": ["d0", "d1"]}) == limit

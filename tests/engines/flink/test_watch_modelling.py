"""What layouts of a watched job carry, on one, two and more TaskManagers."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Any

import pytest
from fake_flink import FakeFlink, healthy

from streamplace import Cluster, Device, Operator, Stream, StreamGraph
from streamplace.engines.flink.cpu.threads import UNKNOWN
from streamplace.engines.flink.decide import improving
from streamplace.engines.flink.decide.candidates import (
    Question,
)
from streamplace.engines.flink.decide.improving import JobImprover
from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.measure.cluster import ASSUMED_CPU, Measurement
from streamplace.engines.flink.measure.profile import UNMEASURED_PYTHON
from streamplace.engines.flink.watch.modelling import (
    JobModel,
    JobModeller,
    layouts_by_size,
    limit_of,
)
from streamplace.model.graph import CPU_OF
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
    """An engine whose measurements are known."""

    rest: Any
    measurements: Iterator[Measurement]
    cards: Mapping[str, str] = field(default_factory=dict)
    tell: Callable[[str], None] = print
    # Cards, cluster and earlier windows that were given, measurement by measurement.
    asked: list[Any] = field(default_factory=list)

    def measure(self, job: str, seconds: float, **given: Any) -> Measurement:
        """Next measurement."""
        self.asked.append((self.cards, given["cluster"], given["observed"]))
        return next(self.measurements)


def cluster_of(*devices: str) -> Any:
    """A cluster of these TaskManagers, on which the job runs as it is looked at."""
    answers = healthy(*devices) | {"GET /config": {"flink-version": "2.3.0"}}
    return FakeFlink(answers).rest


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Callable[..., JobModel]:
    """Measure a job that is looked at by an engine, and find layouts by few evaluations."""

    def of(engine: Any, layout: Layout, managers: str, **facts: Any) -> JobModel:
        monkeypatch.setattr(JobImprover, "_present", lambda *_: layout)
        monkeypatch.setattr(improving, "errors_for", lambda graph, by: None)
        given = {"tell": engine.tell, "cluster": facts.pop("cluster", None)}
        improver = JobImprover(engine, None, **given)
        modeller = JobModeller(improver, budget=Budget(evaluations=2000), **facts)
        return modeller("job", {*managers.split()}, ())

    return of


@pytest.mark.parametrize(
    ("held_back", "kept", "carried"),
    [({"readings"}, 100_000, [103_000, 106_000, 110_000]), ((), 0, [75_000, 117_000, 210_000])],
)
def test_only_sources_that_are_held_back_send_more_in_other_layouts(
    measured: Callable[..., JobModel], held_back: set[str], kept: float, carried: list[float]
) -> None:
    """A third device doubles the readings; one device carries the clicks and some readings."""
    found = Measurement(CHAINS, DEVICES, True, held_back=frozenset(held_back))
    engine = Measured(cluster_of("d0", "d1", "d2"), repeat(found))
    model = measured(engine, Layout(PRESENT), "d0 d1 d2")
    here, others = model.here, model.others
    assert here.carries.value == pytest.approx(105_000)
    assert {one.kept for one in (here, *others)} == {kept}
    best = {n: max(o.sure for o in (here, *others) if o.machines <= n) for n in model.sizes}
    assert [round(best[number], -3) for number in (1, 2, 3)] == carried


def question(devices: list[str], limited: bool = False) -> Question:
    """A measured job of a cheap source and a mapper that takes 0.8 of a core in four subtasks."""
    operators = [Operator("src", rate=100.0, ipt=1e4), Operator("map", ipt=8e6, parallelism=4)]
    graph = StreamGraph.of("shop", operators, [Stream("src", "map")])
    cluster = Cluster.uniform(3, mips=1000.0)
    measured = Measurement(graph, cluster, limited)
    return Question(measured, Layout({"src": ["d0"], "map": devices}), {}, spreads=True)


def test_doubts_about_a_measurement_are_told_once(measured: Callable[..., JobModel]) -> None:
    """Numbers alone make no new doubt."""
    asked = question(["d0"] * 4)
    told: list[str] = []
    doubts = iter([("x", "y: 0.1 of 0.41 cores"), ("x", "y: 0.2 of 0.5 cores"), ("z",), ("x",)])
    notes = (replace(asked.measured, notes=one) for one in doubts)
    engine = Measured(cluster_of("d0", "d1", "d2"), notes, tell=told.append)
    improver = JobImprover(engine, None, tell=told.append)  # type: ignore[arg-type]
    modeller = JobModeller(improver, budget=Budget(evaluations=100))
    measured(engine, asked.present, "d0 d1 d2")
    told.clear()
    for _ in range(3):
        modeller("job", {"d0", "d1", "d2"}, ())
    assert [one for one in told if len(one) < 40] == [
        "note: x",
        "note: y: 0.2 of 0.5 cores",
        "note: z",
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
def test_nothing_is_sure_of_fewer_task_managers_if_not_all_was_measured(
    measured: Callable[..., JobModel], facts: dict[str, str], notes: tuple[str, ...], why: str
) -> None:
    asked = question(["d0", "d0", "d1", "d1"])
    graph = replace(asked.measured.graph, attributes=facts)
    found = replace(asked.measured, graph=graph, notes=notes)
    told: list[str] = []
    engine = Measured(cluster_of("d0", "d1", "d2"), repeat(found), tell=told.append)
    model = measured(engine, asked.present, "d0 d1 d2")
    here, others = model.here, model.others
    fewer = [one.sure for one in others if one.machines < here.machines]
    assert fewer
    assert (max(fewer) > 0) == (not why)
    note = f"note: fewer TaskManagers are not chosen, because {why}"
    assert (note in told) == bool(why)


def test_a_job_is_judged_by_the_devices_and_cards_that_are_given(
    measured: Callable[..., JobModel],
) -> None:
    """Those that are no TaskManagers at the moment do not count."""
    asked = question(["d0"] * 4)
    cards = {"": "10 Gbps", "d1": "1 Gbps", "d2": "1 Gbps"}
    engine = Measured(cluster_of("d0", "d1"), repeat(asked.measured), cards)
    given = asked.measured.cluster
    model = measured(engine, asked.present, "d0 d1", cluster=given)
    assert engine.asked == [({"": "10 Gbps", "d1": "1 Gbps"}, given, {})]
    assert model.sizes == (1, 2)
    assert {device for one in model.others for device in one.devices} <= {"d0", "d1"}


def test_layouts_use_one_and_more_task_managers_up_to_a_number() -> None:
    """The first ones, so that a job that needs fewer leaves the same ones free."""
    found = layouts_by_size(question(["d0"] * 4), None, Budget(evaluations=2000))
    used = {tuple(sorted({d for v in one.layout.values() for d in v})) for one in found}
    assert used >= {("d0",), ("d0", "d1"), ("d0", "d1", "d2")}
    few = layouts_by_size(question(["d0", "d1", "d2", "d0"]), 1, Budget(evaluations=2000))
    assert {len({d for v in one.layout.values() for d in v}) for one in few} == {1, 3}


@pytest.mark.parametrize(
    ("max_rate", "ipt", "limit"),
    [(40.0, 1e4, "what a subtask of ask reads at most"), (0.0, 6e7, "one core of d0")],
)
def test_a_subtask_that_waits_limits_a_job_and_not_its_core(
    max_rate: float, ipt: float, limit: str
) -> None:
    """It reads no more, however much CPU is left for it."""
    ask = Operator("ask", ipt=ipt, max_rate=max_rate, parallelism=2)
    graph = StreamGraph.of("asking", [Operator("src", rate=100.0), ask], [Stream("src", "ask")])
    measured = Measurement(graph, Cluster.uniform(2, cores=4), is_limited=True)
    assert limit_of(measured, Layout({"src": ["d0"], "ask": ["d0", "d1"]})) == limit

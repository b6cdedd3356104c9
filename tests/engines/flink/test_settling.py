"""Whether a job that was moved is slower than before, or than was predicted."""

import json
import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_flink import FakeFlink, failed_by, job
from lazy_flink import Clock, LazyFlink, Vertex, rates
from planning_cases import pipeline

import streamplace
from streamplace.engines.flink.cpu import limits
from streamplace.engines.flink.cpu.limits import CpuPool
from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.measure import sources
from streamplace.engines.flink.measure.sources import SourceFlow, source_flow
from streamplace.engines.flink.move import settling
from streamplace.engines.flink.move.move import FlinkMove, MovePlan
from streamplace.engines.flink.move.settling import MoveSettings, settle
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.rest import client
from streamplace.engines.flink.rest.client import FlinkError
from streamplace.engines.flink.watch.rounds import look_at
from streamplace.io.graphs import write_graph
from streamplace.io.ledger import LedgerEntry, user_runs
from streamplace.io.placements import Prediction, read_prediction
from streamplace.model.graph import PROFILE_WINDOWS
from streamplace.model.intervals import RateInterval
from streamplace.planning.offers import Catalogue, Offer

REST = FakeFlink({"GET /jobs/job": job("shop", "RUNNING", {})}).rest
BEFORE = SourceFlow(1000.0, 10.0, is_limited=True)


OFFERED = SourceFlow(1000.0, 10.0)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (BEFORE, SourceFlow(900.0, 10.0, is_limited=True), ""),
        (BEFORE, SourceFlow(790.0, 10.0, is_limited=True), ""),  # within the noise of both
        (BEFORE, SourceFlow(700.0, 10.0, is_limited=True), "reads 700 .*at least 80% required"),
        # less may arrive, if the sources report that nothing waits longer
        (OFFERED, SourceFlow(250.0, keeps_up=True, pending=0.0), ""),
        (OFFERED, SourceFlow(250.0, keeps_up=True), "reads 250 tuples/s, 25% of the 1000"),
        (OFFERED, SourceFlow(250.0, pending=900.0), "reads 250 tuples/s, 25% of the 1000"),
    ],
)
def test_a_job_must_reach_most_of_its_rate(
    monkeypatch: pytest.MonkeyPatch, before: SourceFlow, after: SourceFlow, told: str
) -> None:
    monkeypatch.setattr(settling, "_check_checkpoint", lambda *_: None)
    monkeypatch.setattr(settling, "source_flow", lambda *_: after)
    with pytest.raises(FlinkError, match=told) if told else nullcontext():
        settle(REST, "job", MoveSettings(settle=0.1), before)


def one_source(
    clock: Clock,
    rate: float,
    pending: float | str | None = None,
    **activity: float,
) -> LazyFlink:
    """A job of a source that sends at a rate, and may report what waits."""
    counts = rates(0, rate, 0, 400, **activity) | {"Source__src.numRecordsOut": rate}
    if pending is not None:
        counts["Source__src.pendingRecords"] = pending
    flink = LazyFlink(clock, {"v0": Vertex("Source: src", counts)})
    flink.answers["GET /jobs/job/checkpoints"] = {"counts": {"completed": 1}}
    return flink


@pytest.mark.parametrize(
    ("rate", "activity", "is_behind"),
    [
        (600.0, {}, False),
        (600.0, {"busy": 1.2, "pending": -50.0}, False),
        (600.0, {"blocked": 1.0}, True),
        (600.0, {"busy": 1.99}, True),  # of two subtasks: it may have more to emit
        (600.0, {"busy": math.nan}, True),  # nobody knows
        (600.0, {"busy": math.nan, "pending": -50.0}, False),
        (600.0, {"pending": 100.0}, True),  # more arrives than it emits
        (0.0, {"busy": 0.1}, True),  # from where it was moved to, it may not reach what it reads
    ],
)
def test_a_job_that_has_caught_up_may_read_what_it_is_offered(
    clock: Clock, rate: float, activity: dict[str, float], *, is_behind: bool
) -> None:
    """Its backlog, at which it was held back, is gone; if it is still behind, it has to go back."""
    flink = one_source(clock, rate, **activity)
    refused = pytest.raises(FlinkError, match=f"reads {rate:g} .*{rate / 10:g}% of the 1000")
    with refused if is_behind else nullcontext():
        settle(flink.rest, "job", MoveSettings(settle=0.1), BEFORE)


@pytest.mark.parametrize(
    ("cores", "beside", "is_limited"),
    [(0.18, None, True), (0.5, None, False), (0.5, 0.4, True), (0.5, 0.2, False)],
)
def test_a_source_without_cpu_is_limited(
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    cores: float,
    beside: float | None,
    *,
    is_limited: bool,
) -> None:
    """Its process took all of its quota, or of one that it shares, while the rate was taken."""
    used = {7: iter([3.0, 4.0])} | ({} if beside is None else {8: iter([0.0, 5 * beside])})
    processes = {f"dev-{process - 7}": process for process in used}
    monkeypatch.setattr(sources, "processes_of", lambda rest: processes)
    monkeypatch.setattr(sources, "time", clock)
    monkeypatch.setattr(sources, "cpu_seconds", lambda process: next(used[process]))
    monkeypatch.setattr(limits, "cpu_pool", lambda process: CpuPool("quota", cores))
    flow = source_flow(one_source(clock, 100.0).rest, "job")
    assert flow is not None
    assert flow.rate == pytest.approx(100.0, rel=0.01)
    assert flow.is_limited is is_limited


def test_a_source_may_end_during_a_move(clock: Clock) -> None:
    """What it read cannot be reached, so rates are not compared."""
    held = rates(busy=0.5, blocked=1.5)
    vertices = {
        "v0": Vertex("Source: a", held | {"Source__a.numRecordsOut": 1e5}),
        "v1": Vertex("Source: b", held | {"Source__b.numRecordsOut": 5e4}),
    }
    flink = LazyFlink(clock, vertices)
    flink.answers["GET /jobs/job/checkpoints"] = {"counts": {"completed": 1}}
    before = source_flow(flink.rest, "job")
    vertices["v1"].ends = clock.now
    settle(flink.rest, "job", MoveSettings(settle=0.1), before)


def test_metrics_that_do_not_change_are_no_rate_of_0(clock: Clock) -> None:
    """Flink fetches none for a while after the loss of a TaskManager; a watch passes no round."""
    counts = rates(0, 600, 0, 400, busy=0.5) | {"Source__src.numRecordsOut": 600.0}
    frozen = {name: x if isinstance(x, str) else lambda _: 7.0 for name, x in counts.items()}
    flink = LazyFlink(clock, {"v0": Vertex("Source: src", frozen)})
    assert source_flow(flink.rest, "job") is None
    with pytest.raises(FlinkError, match="Flink reports no rate of the sources of job job"):
        look_at(flink.rest, "job")
    told: list[str] = []
    move = FlinkMove(flink.rest, Flink(Path(), "2.3.0"), Program(Path("a.jar")), told.append)
    assert move.rate(MovePlan("job", Layout.from_json({}), Layout.from_json({}))) is None
    assert "the rates before and after the move are not compared" in told[0]


def test_the_rate_of_a_source_is_found_by_the_name_of_its_operator(clock: Clock) -> None:
    """The name of its task may have a prefix."""
    counts = {"Source__src.numRecordsOut": 600.0, "Source__src.pendingRecords": 7.0}
    vertex = Vertex("[vertex-0]Source: src -> map", rates(0, 600, 0, 400) | counts)
    flink = LazyFlink(clock, {"v0": vertex})
    seen = look_at(flink.rest, "job")
    assert seen.rate == pytest.approx(600.0, rel=0.01)
    assert seen.backlog is not None


def test_a_backlog_that_is_no_number_is_unknown(clock: Clock) -> None:
    """Else nothing would seem to arrive any more, and TaskManagers to be left over."""
    assert look_at(one_source(clock, 600.0, "NaN").rest, "job").backlog is None


MEASURED = replace(pipeline(), attributes={PROFILE_WINDOWS: 4})
SHOULD = Prediction("shop", RateInterval(80.0, 100.0, 125.0), 0.9)


Compared = Callable[..., tuple[list[str], tuple[LedgerEntry, ...]]]


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> Compared:
    """What is told of a job that emits so much, and the entries of the ledger."""

    def run(
        flow: SourceFlow | None, should: Prediction = SHOULD, state: str = "RUNNING"
    ) -> tuple[list[str], tuple[LedgerEntry, ...]]:
        told: list[str] = []
        monkeypatch.setattr(settling, "source_flow", lambda *_: flow)
        answers = {
            "GET /jobs/job": job("shop", state, {}),
            "GET /jobs/job/exceptions": failed_by("a.B: c"),
        }
        settling.compare(FakeFlink(answers).rest, "job", should, told.append)
        return told, user_runs()

    return run


@pytest.mark.parametrize(
    ("flow", "falls_short"),
    [
        (SourceFlow(90.0, is_limited=True), False),
        (SourceFlow(70.0, is_limited=True), True),
        (SourceFlow(70.0, error=11.0, is_limited=True), False),  # it is not known well enough
        (SourceFlow(70.0), False),  # no more is offered
    ],
)
def test_a_moved_job_is_compared_with_its_plan_and_written_to_the_ledger(
    compared: Compared, flow: SourceFlow, *, falls_short: bool
) -> None:
    """A plan that falls short is to be made again."""
    (told, *more), (entry,) = compared(flow)
    assert told == (
        f"there: {flow.rate:g} tuples/s (measured); the placement should carry 100 tuples/s "
        "(80 to 125)"
    )
    assert ["'streamplace flink advise'" in line for line in more] == [True] * falls_short
    assert (entry.job, entry.predicted, entry.by) == ("shop", 100.0, "flink move --placement")
    assert (entry.measured, entry.is_limited) == (flow.rate, flow.is_limited)


def test_a_job_whose_rate_is_not_known_is_not_noted(compared: Compared) -> None:
    for state in ("RUNNING", "FINISHED"):
        assert compared(None, state=state) == ([], ())


def test_a_job_that_fails_after_its_move_is_not_said_to_run(compared: Compared) -> None:
    with pytest.raises(FlinkError, match=r"job job was moved, and is FAILED since: a\.B: c"):
        compared(None, state="FAILED")


def test_placements_of_measured_graphs_say_what_they_carry(run: Callable, tmp_path: Path) -> None:
    """Those of `place` and of `plan`; a drawn graph has no prediction."""
    write_graph(MEASURED, tmp_path / "measured.json")
    write_graph(pipeline(), tmp_path / "drawn.json")
    cluster = ("--devices", "2", "--mips", "1000")
    for name in ("measured", "drawn"):
        assert run("place", f"{name}.json", *cluster, "-o", f"{name}-placed.json").status == 0
    assert read_prediction(tmp_path / "drawn-placed.json") is None
    found = read_prediction(tmp_path / "measured-placed.json")
    assert found is not None
    assert found.graph == MEASURED.name
    assert found.carries.low < found.carries.value < found.carries.high
    offers = Catalogue.of([Offer("small", 0.1, mips=4.0, cores=2)])
    plan = streamplace.plan(MEASURED, rate=500.0, offers=offers)
    plan.write(tmp_path / "plan")
    planned = read_prediction(tmp_path / "plan" / "placement.json")
    assert planned is not None
    assert planned.carries == pytest.approx(plan.interval)
    document = json.loads((tmp_path / "measured-placed.json").read_text())
    assert run("simulate", "measured.json", "measured-placed.json", *cluster).status == 0
    assert 0.5 < document["carries"]["confidence"] < 1


@pytest.mark.parametrize(
    ("state", "outcome"),
    [
        ("FAILED", pytest.raises(FlinkError, match=r"job is FAILED.*reason")),
        ("FINISHED", nullcontext()),
    ],
)
def test_a_job_that_ends_while_its_rate_is_measured_has_settled_only_if_it_has_finished(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, state: str, outcome: AbstractContextManager[Any]
) -> None:
    monkeypatch.setattr(client, "time", clock)
    source = Vertex("Source: src", rates(busy=0.5) | {"Source__src.numRecordsOut": 1e5})
    flink = LazyFlink(clock, {"v0": source})
    flink.states = ["RUNNING"] * 5 + [state]
    with outcome:
        settle(flink.rest, "job", MoveSettings(settle=0.1), SourceFlow(1000.0))
    assert flink.states == [state]

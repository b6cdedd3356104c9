"""What a placement should carry is compared with what the job emits that was moved there."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_flink import FakeFlink
from flink_documents import failed_by, job
from lazy_flink import Clock, LazyFlink, Vertex, rates
from planning_cases import pipeline

import streamplace
from streamplace.engines.flink.measure import sources
from streamplace.engines.flink.measure.sources import SourceFlow
from streamplace.engines.flink.move import settling
from streamplace.engines.flink.move.settings import MoveSettings
from streamplace.engines.flink.move.settling import settle
from streamplace.engines.flink.rest.client import FlinkError
from streamplace.io.graphs import write_graph
from streamplace.io.ledger import LedgerEntry, user_runs
from streamplace.io.placements import Prediction, read_prediction
from streamplace.model.graph import PROFILE_WINDOWS
from streamplace.model.intervals import RateInterval
from streamplace.planning.offers import Catalogue, Offer

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


def test_a_moved_job_is_compared_with_its_plan_and_written_to_the_ledger(
    compared: Compared,
) -> None:
    told, (entry,) = compared(SourceFlow(90.0, is_limited=True))
    assert told == [
        "there: 90 tuples/s (measured); the placement should carry 100 tuples/s (80 to 125)"
    ]
    assert (entry.job, entry.predicted, entry.measured, entry.held) == ("shop", 100.0, 90.0, True)
    assert entry.by == "flink move --placement"


@pytest.mark.parametrize(
    ("flow", "falls_short"),
    [
        (SourceFlow(70.0, is_limited=True), True),
        (SourceFlow(70.0, error=11.0, is_limited=True), False),
        (SourceFlow(70.0), False),
    ],
)
def test_a_plan_that_falls_short_is_to_be_made_again(
    compared: Compared, flow: SourceFlow, falls_short: bool
) -> None:
    """Not where the sources offer no more, or the rate is not known well enough."""
    told, _ = compared(flow)
    assert any("'streamplace flink advise'" in line for line in told) == falls_short


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
    monkeypatch.setattr(sources, "processes_of", lambda rest: {})
    monkeypatch.setattr(settling, "time", clock)
    source = Vertex("Source: src", rates(busy=0.5) | {"Source__src.numRecordsOut": 1e5})
    flink = LazyFlink(clock, {"v0": source})
    flink.states = ["RUNNING"] * 4 + [state]
    with outcome:
        settle(flink.rest, "job", MoveSettings(settle=0.1), SourceFlow(1000.0))
    assert flink.states == [state]

"""A job that is measured, placed, verified and moved on a real cluster."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import streamplace
from streamplace.engines.flink import FlinkEngine, Program
from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.move.settings import MoveSettings
from streamplace.engines.flink.rest.client import Rest
from streamplace.errors import StreamplaceError

OPERATORS = ("src", "parse", "count", "out")
TOGETHER = dict.fromkeys(OPERATORS, "dev-0")
APART = dict(zip(OPERATORS, ("dev-0", "dev-1", "dev-2", "dev-0"), strict=True))
RATE, PAYLOADS, SELECTIVITIES = 200.0, (4000, 2000, 8000), (1.0, 1.0, 0.5)
SECONDS, ALIKE, TRIES = 4.0, 0.25, 5

pytestmark = pytest.mark.xdist_group("flink")


@dataclass(frozen=True, slots=True)
class Case:
    """An engine, a program of the four operators, and the names of the devices."""

    engine: FlinkEngine
    program: Program
    devices: tuple[str, ...]


@pytest.fixture
def case(rest: Rest, flink: Flink, graph_jar: Path, tmp_path: Path) -> Iterator[Case]:
    """The job that runs any graph, on the shared Flink; no job is left on it."""
    rows = [{"name": name, "rounds": 5_000} for name in OPERATORS]
    for row, payload in zip(rows, PAYLOADS, strict=False):
        row["payload"] = payload
    rows[0]["rate"] = RATE
    streams = [
        {"from": a, "to": b, "selectivity": s}
        for a, b, s in zip(OPERATORS, OPERATORS[1:], SELECTIVITIES, strict=False)
    ]
    text = json.dumps({"name": "pipe", "operators": rows, "streams": streams})
    engine = FlinkEngine(
        rest,
        flink.home,
        moves=MoveSettings((tmp_path / "saved").as_uri(), settle=0.0),
        patience=0.0,
    )
    devices = tuple(rest.offered())
    yield Case(engine, Program(graph_jar, "GraphJob", [text]), devices)
    for job in engine.jobs():
        engine.cancel(job)


def test_a_job_runs_where_it_is_placed_until_it_is_moved_or_cancelled(case: Case) -> None:
    """Verification names the operators that are elsewhere.

    A job that is placed nowhere new keeps its id. So does one whose new placement does not fit: it
    has a device that is not there, or places an operator nowhere.
    """
    job = case.engine.apply(case.program, TOGETHER)
    assert case.engine.jobs() == [job]
    assert case.engine.verify(job, TOGETHER).fine
    elsewhere = case.engine.verify(job, APART)
    assert not elsewhere.fine
    assert {check.operator for check in elsewhere.checks if not check.fine} == {"parse", "count"}
    assert case.engine.move(job, case.program, TOGETHER).job == job
    some = {name: APART[name] for name in ("src", "parse", "count")}
    for placement in ({**APART, "count": "nowhere"}, some):
        with pytest.raises(StreamplaceError, match=r"nowhere|out"):
            case.engine.move(job, case.program, placement)
    assert case.engine.jobs() == [job]
    assert case.engine.verify(job, TOGETHER).fine
    case.engine.cancel(job)
    assert case.engine.jobs() == []


def test_a_running_job_is_measured_as_a_problem_that_can_be_placed(case: Case) -> None:
    """Operators, streams, selectivities and payloads are those of the job."""
    job = case.engine.apply(case.program, APART)
    expected = pytest.approx(dict(zip(OPERATORS, SELECTIVITIES, strict=False)), rel=ALIKE)
    for left in reversed(range(TRIES)):
        try:
            measured = case.engine.measure(job, SECONDS)
        except StreamplaceError:  # nothing is known yet of a job that has just started
            if not left:
                raise
            continue
        graph = measured.graph
        sent = {stream.source: stream.selectivity for stream in graph.streams}
        if sent == expected:  # a job that has just started may still drain queues
            break
    assert graph.operators.name == OPERATORS
    assert (graph.charged_ipt > 0).all()
    assert graph.source_rate > 0
    assert sorted(measured.cluster.devices.name) == sorted(case.devices)
    assert sent == expected
    sizes = zip(sent, graph.streams.bytes_per_tuple(), strict=True)
    payloads = dict(zip(OPERATORS, PAYLOADS, strict=False))
    assert dict(sizes) == pytest.approx(payloads, rel=ALIKE)
    assert streamplace.place(graph, measured.cluster).value > 0

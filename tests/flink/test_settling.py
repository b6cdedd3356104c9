"""Whether a job that was moved runs as before, or as was predicted, and how long it was stopped."""

import json
import math
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_flink import (
    ANSWERS,
    JOB,
    KEPT,
    Clock,
    FakeFlink,
    LazyFlink,
    Vertex,
    checkpoints,
    failed_by,
    job,
    source,
)
from planning_cases import pipeline

import streamplace
from streamplace.flink.cpu import limits
from streamplace.flink.cpu.limits import CpuPool
from streamplace.flink.layout import Layout
from streamplace.flink.ledger import append_entries, user_runs
from streamplace.flink.measure import source_lag
from streamplace.flink.measure.source_lag import SourceFlow, source_flow
from streamplace.flink.move import settling
from streamplace.flink.move.interruption import (
    INPUT,
    OUTPUT,
    READ,
    SentReadings,
    draining_seconds,
    expected_interruptions,
    interruption_of,
)
from streamplace.flink.move.journal import MovePlan
from streamplace.flink.move.move import FlinkMove
from streamplace.flink.move.settling import MoveSettings, settle
from streamplace.flink.program.program import Program
from streamplace.flink.rest import client
from streamplace.flink.rest.client import FlinkError
from streamplace.flink.watch.rounds import sample_of
from streamplace.io.graphs import write_graph
from streamplace.io.ledger import LedgerEntry
from streamplace.io.placements import Prediction, read_prediction
from streamplace.model.graph import PROFILE_WINDOWS
from streamplace.model.prediction_intervals import RateInterval
from streamplace.placers.registry import Budget
from streamplace.planning.offers import Catalogue, Offer

BEFORE = SourceFlow(1000.0, 10.0, is_limited=True)


OFFERED = SourceFlow(1000.0, 10.0)


def one_source(clock, rate, **more):
    """A job of a source that sends at a rate, and may report what waits."""
    return LazyFlink(clock, {"v0": source("src", rate, 1, **more)})


@pytest.mark.parametrize(
    ("before", "rate", "activity", "is_behind"),
    [
        (BEFORE, 790.0, {"blocked": 1.0}, False),  # within the noise
        (BEFORE, 780.0, {"blocked": 1.0}, True),
        # its backlog, at which it was held back, is gone; if it is behind, it has to go back
        (BEFORE, 600.0, {}, False),
        (BEFORE, 600.0, {"busy": 1.2, "pending": -50.0}, False),
        (BEFORE, 600.0, {"busy": 1.99}, True),  # of two subtasks: it may have more to emit
        (BEFORE, 600.0, {"busy": math.nan}, True),  # nobody knows
        (BEFORE, 600.0, {"busy": math.nan, "pending": -50.0}, False),
        (BEFORE, 600.0, {"pending": 100.0}, True),  # more arrives than it emits
        (BEFORE, 0.0, {"busy": 0.1}, True),  # where it is now, it may not reach what it reads
        # less may arrive, if the sources report that nothing waits longer
        (OFFERED, 250.0, {"pending": 0.0}, False),
        (OFFERED, 250.0, {}, True),
        (OFFERED, 250.0, {"pending": 100.0}, True),
    ],
)
def test_a_job_must_reach_most_of_its_rate_or_read_all_that_it_is_offered(
    clock, before, rate, activity, *, is_behind
):
    flink = one_source(clock, rate, **activity)
    told = f"reads {rate:g} .*{rate / 10:g}% of the 1000 .*at least 80% required"
    with pytest.raises(FlinkError, match=told) if is_behind else nullcontext():
        settle(flink.rest, "job", MoveSettings(settle=0.1), before)


def test_a_source_that_was_silent_may_stay_so(clock):
    """The other one has no backlog any more, and emits what arrives."""
    vertices = {"v0": source("a", 1000), "v1": source("b", 0, pending=0.0, busy=0.1)}
    flink = LazyFlink(clock, vertices)
    before = replace(BEFORE, sources={"a": SourceFlow(1000.0), "b": SourceFlow(0.0)})
    vertices["v0"] = source("a", 400, pending=0.0, busy=0.5)
    settle(flink.rest, "job", MoveSettings(settle=0.1), before)
    both = replace(before, sources=dict.fromkeys("ab", SourceFlow(500.0)))
    with pytest.raises(FlinkError, match="400 tuples/s, 40% of the 1000 before"):
        settle(flink.rest, "job", MoveSettings(settle=0.1), both)


@pytest.mark.parametrize(
    ("cores", "beside", "rate", "is_limited"),
    [
        (0.18, None, 100.0, True),
        (0.5, None, 100.0, False),
        (0.5, 0.4, 100.0, True),
        (0.5, 0.2, 100.0, False),
        (4.0, None, 100.0, False),  # its threads run all the time, but may poll
        (4.0, None, 5000.0, True),
    ],
)
def test_a_source_without_cpu_is_limited(clock, monkeypatch, cores, beside, rate, *, is_limited):
    """Its process took all of its quota, or of one that it shares, while the rate was taken.

    Where it has several cores, its threads may be full before.
    """
    used = {7: iter([3.0, 4.0])} | ({} if beside is None else {8: iter([0.0, 5 * beside])})
    processes = {f"dev-{process - 7}": process for process in used}
    monkeypatch.setattr(source_lag, "processes_of", lambda rest: processes)
    monkeypatch.setattr(source_lag, "time", clock)
    monkeypatch.setattr(source_lag, "cpu_seconds", lambda process: next(used[process]))
    monkeypatch.setattr(limits, "cpu_pool", lambda process: CpuPool("quota", cores))
    flow = source_flow(one_source(clock, rate, busy=1.99 if cores > 1 else 0.5).rest, "job")
    assert flow.rate == pytest.approx(rate, rel=0.01)
    assert flow.is_limited is is_limited


def test_a_source_may_end_during_a_move(clock):
    """What it read cannot be reached, so rates are not compared."""
    vertices = {
        "v0": source("a", 1e5, busy=0.5, blocked=1.5),
        "v1": source("b", 5e4, busy=0.5, blocked=1.5),
    }
    flink = LazyFlink(clock, vertices)
    before = source_flow(flink.rest, "job")
    vertices["v1"].ends = clock.now
    settle(flink.rest, "job", MoveSettings(settle=0.1), before)


def test_metrics_that_do_not_change_are_no_rate_of_0(clock):
    """Flink fetches none for a while after the loss of a TaskManager; a watch passes no round."""
    counts = source("src", 600, 1, busy=0.5).rates
    frozen = {name: lambda _: 7.0 for name in counts}
    flink = LazyFlink(clock, {"v0": Vertex("Source: src", frozen)})
    assert source_flow(flink.rest, "job") is None
    with pytest.raises(FlinkError, match="Flink reports no rate of the sources of job job"):
        sample_of(flink.rest, "job", 0.0)
    messages: list[str] = []
    move = FlinkMove(flink.rest, Program(Path("a.jar")), messages.append)
    assert move.rate(MovePlan(job="job", before=Layout(), after=Layout())) is None
    assert "the rates before and after the move are not compared" in messages[0]


def test_the_rate_of_a_source_is_found_by_the_name_of_its_operator(clock):
    """The name of its task may have a prefix."""
    flink = one_source(clock, 600.0, pending=7.0)
    flink.vertices["v0"].name = "[vertex-0]Source: src -> map"
    sample = sample_of(flink.rest, "job", 0.0)
    assert sample.rate == pytest.approx(600.0, rel=0.01)
    assert sample.backlog is not None


def test_a_backlog_that_is_no_number_is_unknown(clock):
    """Else nothing would seem to arrive any more, and TaskManagers to be left over."""
    assert sample_of(one_source(clock, 600.0, pending="NaN").rest, "job", 0.0).backlog is None


MEASURED = replace(pipeline(), attributes={PROFILE_WINDOWS: 4})
SHOULD = Prediction("shop", RateInterval(80.0, 100.0, 125.0), 0.9)


@pytest.fixture
def compared(monkeypatch):
    """What is told of a job that emits so much, and the entries of the ledger."""

    def run(flow, should=SHOULD, state="RUNNING"):
        messages: list[str] = []
        monkeypatch.setattr(settling, "source_flow", lambda *_: flow)
        answers = {
            "GET /jobs/job": job("shop", state, {}),
            "GET /jobs/job/exceptions": failed_by("a.B: c"),
        }
        settling.compare(FakeFlink(answers).rest, "job", should, messages.append)
        return messages, user_runs()

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
    compared, flow, *, falls_short
):
    """A plan that falls short is to be made again."""
    (told, *more), (entry,) = compared(flow)
    assert told == (
        f"there: {flow.rate:g} tuples/s (measured); the placement should carry 100 tuples/s "
        "(80 to 125)"
    )
    assert ["'streamplace flink advise'" in line for line in more] == [True] * falls_short
    assert (entry.job, entry.predicted, entry.by) == ("shop", 100.0, "flink move --placement")
    assert (entry.measured, entry.is_limited) == (flow.rate, flow.is_limited)


def test_a_job_whose_rate_is_not_known_is_not_noted(compared):
    for state in ("RUNNING", "FINISHED"):
        assert compared(None, state=state) == ([], ())


def test_a_job_that_fails_after_its_move_is_not_said_to_run(compared):
    with pytest.raises(FlinkError, match=r"job job was moved, and is FAILED since: a\.B: c"):
        compared(None, state="FAILED")


def test_placements_of_measured_graphs_say_what_they_carry(run, tmp_path):
    """Those of `place` and of `plan`; a drawn graph has no prediction."""
    write_graph(MEASURED, tmp_path / "measured.json")
    write_graph(pipeline(), tmp_path / "drawn.json")
    cluster = ("--devices", "2", "--mips", "1000")
    for name in ("measured", "drawn"):
        assert run("place", f"{name}.json", *cluster, "-o", f"{name}-placed.json").status == 0
    assert read_prediction(tmp_path / "drawn-placed.json") is None
    found = read_prediction(tmp_path / "measured-placed.json")
    assert found.graph == MEASURED.name
    assert found.carries.low < found.carries.value < found.carries.high
    offers = Catalogue.of([Offer("small", 0.1, mips=4.0, cores=2)])
    plan = streamplace.plan(MEASURED, rate=500.0, offers=offers)
    plan.write(tmp_path / "plan")
    planned = read_prediction(tmp_path / "plan" / "placement.json")
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
    clock, monkeypatch, state, outcome
):
    monkeypatch.setattr(client, "time", clock)
    flink = one_source(clock, 1e5, busy=0.5)
    flink.states = ["RUNNING"] * 5 + [state]
    with outcome:
        settle(flink.rest, "job", MoveSettings(settle=0.1), SourceFlow(1000.0))
    assert flink.states == [state]


def moments(*times):
    """Times at which states of subtasks began, in ms."""
    return {"subtasks": [{"timestamps": one} for one in times]}


def test_the_interruption_of_a_job_is_told_by_flinks_clock():
    """From its savepoint until its last subtask runs, whenever the command hears of that."""
    saved = checkpoints(1, savepoint={"external_path": "s3://b/sp", "trigger_timestamp": 10_000})
    answers: dict[str, Any] = {
        "GET /jobs/old/checkpoints": saved,
        "GET /jobs/job": job("shop", "RUNNING", {"v0": "RUNNING"}),
        "GET /jobs/job/vertices/v0/subtasktimes": moments({"RUNNING": 12_000}, {"RUNNING": 13_900}),
    }
    assert interruption_of(FakeFlink(answers).rest, "old", "job") == 3.9
    answers["GET /jobs/old/checkpoints"] = checkpoints()
    assert interruption_of(FakeFlink(answers).rest, "old", "job") is None


def test_what_sources_send_is_read_until_they_have_their_rate():
    """From that and their rate follows how long they took to warm up; Flink may not tell it."""
    sent = "GET /jobs/job/vertices/v0/subtasks/metrics?agg=sum&get=v0.numRecordsOut"
    answers: dict[str, Any] = {
        "GET /jobs/job": job("shop", "RUNNING", {"v0": "RUNNING"}) | {"now": 25_000},
        "GET /jobs/job/vertices/v0/subtasktimes": moments({"RUNNING": 9_000}, {"RUNNING": 10_000}),
        sent: [{"id": "out", "sum": 100.0}],
    }
    with SentReadings(FakeFlink(answers).rest, "job") as sums:  # they grow with every look
        while len(sums.readings) < 2:
            time.sleep(0.01)
    assert sums.readings[:2] == [(15.0, 200.0), (15.0, 300.0)]
    for untold in (answers | {sent: []}, {}):
        with SentReadings(FakeFlink(untold).rest, "job") as sums:
            time.sleep(0.6)
        assert sums.readings == []


def queues(task, before, behind, read):
    """Bytes in the fullest queues of a task, and bytes/s that a subtask of it reads."""
    root = f"GET /jobs/{JOB}/vertices/{task}/subtasks/metrics"
    return {
        root: [{"id": name} for name in (INPUT, OUTPUT, READ)],
        f"{root}?agg=max&get={INPUT},{OUTPUT}": [
            {"id": INPUT, "max": before},
            {"id": OUTPUT, "max": behind},
        ],
        f"{root}?agg=avg&get={READ}": [{"id": READ, "avg": read}],
    }


@pytest.mark.parametrize(
    ("senders", "readers", "read", "seconds"),
    [(1, 1, 50.0, 20.0), (8, 2, 50.0, 62.0), (2, 8, 50.0, 9.5), (1, 1, "NaN", 0.0)],
)
def test_a_move_waits_for_the_queues_of_a_job_under_back_pressure(senders, readers, read, seconds):
    """700 bytes of each sender are divided; 300 wait at the fullest reader, which reads 50 bytes/s.

    So each of 2 readers gets what 4 of 8 senders have. Flink may tell nothing.
    """
    flink = FakeFlink(ANSWERS | queues("v0", 0, 700, 0.0) | queues("v1", 300, 0, read))
    document = flink.answers[f"GET /jobs/{JOB}"]
    rows = [
        row | {"parallelism": number}
        for row, number in zip(document["vertices"], (senders, readers), strict=True)
    ]
    flink.answers[f"GET /jobs/{JOB}"] = document | {"vertices": rows}
    flink.answers[f"GET /jobs/{JOB}/checkpoints"] = checkpoints()
    assert draining_seconds(flink.rest, JOB) == pytest.approx(seconds)
    assert expected_interruptions(flink.rest, JOB).on([1.0]).low == pytest.approx(2.0 + seconds)
    flink.answers[f"GET /jobs/{JOB}/vertices/v1/subtasks/metrics"] = []
    assert draining_seconds(flink.rest, JOB) == 0
    assert draining_seconds(FakeFlink({}).rest, JOB) == 0


@pytest.mark.parametrize(
    ("deployed", "expected"),
    [(10_000, "10 s (8 to 17 s)"), (15_800, "5 s (3 to 12 s)"), (0, "5 s (3 to 12 s)")],
)
def test_a_job_that_started_slowly_is_expected_to_start_as_slowly_again(deployed, expected):
    """With its state restored, and to warm up besides; Flink may tell nothing."""
    flink = FakeFlink(ANSWERS | {f"GET /jobs/{JOB}/checkpoints": checkpoints()})
    times = {"DEPLOYING": deployed, "INITIALIZING": 15_900, "RUNNING": 16_000}
    for task in ("v0", "v1"):
        flink.answers[f"GET /jobs/{JOB}/vertices/{task}/subtasktimes"] = moments(times)
    assert str(expected_interruptions(flink.rest, JOB).on([], [1.0])) == expected


def test_a_reader_of_little_does_not_wait_for_what_others_have_queued():
    """What a committer gets is a message per checkpoint; 700 bytes wait for the other reader."""
    flink = FakeFlink(ANSWERS | queues("v0", 0, 700, 0.0) | queues("v1", 300, 0, 50.0))
    path, document = f"GET /jobs/{JOB}", ANSWERS[f"GET /jobs/{JOB}"]
    end = {"id": "end", "name": "end", "parallelism": 1, "status": "RUNNING"}
    node = {"id": "end", "inputs": [{"id": "v0", "ship_strategy": "REBALANCE"}]}
    grown = {
        "vertices": [*document["vertices"], end],
        "plan": {"nodes": [*document["plan"]["nodes"], node]},
    }
    flink.answers |= {path: document | grown} | queues("end", 0, 0, 0.1)
    assert draining_seconds(flink.rest, JOB) == pytest.approx(20.0, rel=0.01)


@pytest.mark.parametrize(
    ("queued", "pause", "is_due"), [(700, 0, False), (50, 0, True), (50, 60_000, False)]
)
def test_full_queues_and_pauses_delay_the_checkpoints_of_a_moved_job(
    monkeypatch, queued, pause, *, is_due
):
    """A second or 14 of what is queued come before a checkpoint, and the least pause."""
    flink = FakeFlink(ANSWERS | queues("v0", 0, queued, 0.0) | queues("v1", 0, 0, 50.0))
    policy = KEPT | {"interval": 10_000, "min_pause": pause}
    flink.answers |= {
        f"GET /jobs/{JOB}/checkpoints": checkpoints(),
        f"GET /jobs/{JOB}/checkpoints/config": policy,
    }
    monkeypatch.setattr(client, "time", Clock())
    refused = pytest.raises(FlinkError, match=r"has completed no checkpoint .* and takes 1 s")
    with refused if is_due else nullcontext():
        settle(flink.rest, JOB, MoveSettings(settle=25.0), None)


OFFERS = Catalogue.of(
    [Offer("small", 0.1, mips=4.0, cores=2), Offer("large", 0.35, mips=4.0, cores=8)]
)


def test_plans_and_placements_are_the_same_on_every_computer():
    """Also where predictions for the same job were far off; both say what their interval is of."""

    def answers():
        plan = streamplace.plan(MEASURED, rate=1000.0, offers=OFFERS, budget=Budget(None, 2_000))
        cluster = streamplace.Cluster.uniform(2, mips=4.0)
        placement = streamplace.place(MEASURED, cluster, budget=Budget(None, 2_000))
        rests_on = plan.to_json()["errors"]["from"]
        assert rests_on.endswith("runs of 13 jobs recorded with streamplace")
        for answer in (plan, placement):
            assert answer.to_json()["errors"]["from"] == rests_on
            assert rests_on in " ".join(str(answer.report()).split())
        return [plan.to_json(), placement.to_json() | {"seconds": 0.0}]

    before = answers()
    append_entries([LedgerEntry(MEASURED.name, 100.0, 20.0) for _ in range(20)])
    assert answers() == before

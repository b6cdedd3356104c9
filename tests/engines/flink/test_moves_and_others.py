"""Moves while others act, with a Flink that answers what it is told to: copies, ends, leftovers."""

import shlex
import zipfile
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from command_lines import settings_file
from fake_flink import ANSWERS, JOB, KEPT, FakeFlink, InTurn, failure, healthy, job, jobs
from lazy_flink import Clock

from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.local.dist import VERSION, Flink
from streamplace.engines.flink.move import move as moving
from streamplace.engines.flink.move.interruption import (
    INPUT,
    OUTPUT,
    READ,
    draining_seconds,
    expected_interruptions,
    interruption_of,
    late_records,
    sent_since,
)
from streamplace.engines.flink.move.move import FlinkMove
from streamplace.engines.flink.move.savepoints import (
    CopyRuns,
    EndedByOthers,
    free_ids,
    refuse_copy,
    refuse_ended,
)
from streamplace.engines.flink.move.settling import MoveSettings, settle
from streamplace.engines.flink.program.program import Program, remember
from streamplace.engines.flink.program.submission import own_name, uploaded
from streamplace.engines.flink.rest import client
from streamplace.engines.flink.rest.client import FlinkError, Rest, chain_of
from streamplace.errors import SettingError

OLD = "0123456789abcdef" * 2
NEW = chain_of(OLD)[1]
OTHER = "f" * 32
SAVEPOINT = "file:/s/savepoint-012345-aaaaaaaaaaaa"
NONE: dict[str, Any] = {"counts": {"completed": 0}, "latest": {}}


def started_from(path: str) -> dict[str, Any]:
    """Checkpoints of a job that was started from a path."""
    return {"counts": {"completed": 1}, "latest": {"restored": {"external_path": path}}}


def cluster(
    states: Mapping[str, str], checkpoints: Mapping[str, Any], **more: Any
) -> dict[str, Any]:
    """Answers on jobs of these states."""
    answers: dict[str, Any] = {"GET /jobs": jobs(states)}
    for one, state in states.items():
        answers[f"GET /jobs/{one}"] = job("shop", state, {})
        answers[f"GET /jobs/{one}/checkpoints"] = checkpoints.get(one, NONE)
    return answers | more


@pytest.fixture
def flink() -> FakeFlink:
    """A cluster whose answers a test gives."""
    return FakeFlink()


CONTINUES = rf"^job {OTHER} \(RUNNING\) continues from .* already"


@pytest.mark.parametrize(
    ("states", "restored", "given", "told"),
    [
        ({OTHER: "RUNNING"}, SAVEPOINT, "file:///s/savepoint-012345-aaaaaaaaaaaa/", CONTINUES),
        ({OTHER: "RUNNING"}, "hdfs://n:8020/s/savepoint-1", "hdfs:///s/savepoint-1", CONTINUES),
        ({OTHER: "RUNNING"}, "hdfs://n:8020/s/savepoint-1", "/s/savepoint-1", CONTINUES),
        ({OLD: "RUNNING"}, "", f"s3://b/{OLD}/chk-7", rf"^job {OLD} .* has taken the checkpoint"),
        ({OLD: "SUSPENDED"}, "", f"s3://b/{OLD}/chk-7", rf"^job {OLD} .* has taken the checkpoint"),
        ({OTHER: "CANCELED"}, SAVEPOINT, SAVEPOINT, ""),
        ({}, SAVEPOINT, SAVEPOINT, ""),
    ],
)
def test_state_from_which_a_job_runs_starts_no_second(
    flink: FakeFlink, states: Mapping[str, str], restored: str, given: str, told: str
) -> None:
    """However the path is written; the job is named. When that has ended, it may be used again.

    One that is suspended goes on once a JobManager leads again.
    """
    flink.answers = cluster(states, {OTHER: started_from(restored)})
    with pytest.raises(CopyRuns, match=told) if told else nullcontext():
        refuse_copy(flink.rest, given)


def test_two_commands_at_once_start_one_job_from_a_savepoint(flink: FakeFlink) -> None:
    """By the same id, which Flink takes once; the next one has another when that has ended."""
    flink.answers = cluster({}, {})
    rest = flink.rest
    first = next(free_ids(rest, SAVEPOINT))
    assert next(free_ids(rest, "/s/savepoint-012345-aaaaaaaaaaaa")) == first
    flink.answers = cluster({first: "RUNNING"}, {})
    assert next(free_ids(rest, SAVEPOINT)) == first
    flink.answers = cluster({first: "FAILED"}, {})
    assert next(free_ids(rest, SAVEPOINT)) not in (
        first,
        next(free_ids(rest, "s3://b/savepoint-012345-a")),
    )


@pytest.mark.parametrize(
    ("restored", "name", "is_copy"),
    [
        (SAVEPOINT, "other", True),
        (f"file:/c/{OLD}/chk-9", "other", True),
        (f"file:/c/{OTHER}/chk-9", "shop", True),
        (f"file:/c/{OTHER}/chk-9", "other", False),
        ("file:/s/savepoint-999999-aaaaaaaaaaaa", "shop", False),
    ],
)
def test_a_job_that_others_have_started_from_the_state_of_a_moved_one_is_its_copy(
    flink: FakeFlink, restored: str, name: str, *, is_copy: bool
) -> None:
    """From the savepoint; from a checkpoint, or of its name, if it began after the other ended."""
    ended = job("shop", "FINISHED", {}) | {"timestamps": {"FINISHED": 2000}}
    began = job("shop", "RUNNING", {}) | {"timestamps": {"CREATED": 3000}}
    flink.answers = cluster(
        {OLD: "FINISHED", OTHER: "RUNNING"}, {OTHER: started_from(restored)}
    ) | {f"GET /jobs/{OLD}": ended, f"GET /jobs/{OTHER}": began}
    asked = (flink.rest, SAVEPOINT, chain_of(OLD), name)
    if is_copy:
        with pytest.raises(CopyRuns, match=f"job {OTHER}.*othing was started"):
            refuse_copy(*asked)
    else:
        refuse_copy(*asked)
    flink.answers[f"GET /jobs/{OTHER}"] = began | {"timestamps": {"CREATED": 1000}}
    if restored != SAVEPOINT:  # started while the moved job ran, such as for a trial of its state
        refuse_copy(*asked)


def test_where_a_job_is_forgotten_one_of_its_name_is_taken_for_a_copy(flink: FakeFlink) -> None:
    """Somebody has submitted it to the JobManager that was restarted."""
    flink.answers = cluster({OTHER: "RUNNING"}, {})
    with pytest.raises(CopyRuns, match=f"job {OTHER} .*has the same name 'shop'"):
        refuse_copy(flink.rest, SAVEPOINT, chain_of(OLD), "shop")


@pytest.mark.parametrize("kind", ["SYNC_SAVEPOINT", "SAVEPOINT"])
def test_a_stop_is_told_from_a_savepoint_of_a_job_that_finished(
    flink: FakeFlink, kind: str
) -> None:
    """Only the first is somebody's doing."""
    row = {"id": 4, "external_path": SAVEPOINT, "checkpoint_type": kind}
    saved = {"counts": {"completed": 4}, "latest": {"savepoint": row}}
    flink.answers = cluster({NEW: "FINISHED"}, {NEW: saved})
    if kind == "SAVEPOINT":
        refuse_ended(flink.rest, NEW)
        return
    with pytest.raises(EndedByOthers, match=f"was stopped by another user.*{SAVEPOINT}"):
        refuse_ended(flink.rest, NEW)


def test_a_jar_that_a_restarted_job_manager_has_lost_is_uploaded_again(
    flink: FakeFlink, tmp_path: Path
) -> None:
    """And the job is submitted; both uploads are removed in the end."""
    file = tmp_path / own_name("placed-job.jar")
    file.write_bytes(b"jar")
    lost = failure("a.RestHandlerException: Jar file /my uploads/jar-1 does not exist")
    flink.answers = {
        "POST /jars/upload": InTurn({"filename": "/tmp/web/jar-1"}, {"filename": "/tmp/web/jar-2"}),
        "POST /jars/jar-1/run": lost,
        "POST /jars/jar-2/run": {"jobid": "new"},
        "DELETE /jars/jar-2": {},
        "DELETE /jars/jar-3": {},
        "GET /jars": {"files": [{"id": "jar-3", "name": file.name, "uploaded": 1}]},
    }
    with uploaded(flink.rest, file) as jar:
        assert jar.run({"entryClass": "Job"}) == {"jobid": "new"}
    assert flink.requests("DELETE") == ["/jars/jar-2", "/jars/jar-3"]


def test_the_interruption_of_a_job_is_told_by_flinks_clock(flink: FakeFlink) -> None:
    """From its savepoint until its last subtask runs, whenever the command hears of that."""
    row = {"external_path": SAVEPOINT, "trigger_timestamp": 10_000}
    moments = [{"timestamps": {"RUNNING": at, "FINISHED": 0}} for at in (12_000, 13_900)]
    flink.answers = cluster(
        {OLD: "FINISHED", NEW: "RUNNING"},
        {OLD: {"counts": {"completed": 1}, "latest": {"savepoint": row}}},
    ) | {
        f"GET /jobs/{NEW}": job("shop", "RUNNING", {"v0": "RUNNING"}),
        f"GET /jobs/{NEW}/vertices/v0/subtasktimes": {"subtasks": moments},
    }
    rest = flink.rest
    assert interruption_of(rest, OLD, NEW) == 3.9
    flink.answers[f"GET /jobs/{OLD}/checkpoints"] = NONE
    assert interruption_of(rest, OLD, NEW) is None


def test_what_sources_have_sent_is_read_when_flink_has_fetched_it_anew(flink: FakeFlink) -> None:
    """From that and their rate follows how long they took to warm up; Flink may not tell it."""
    document = job("shop", "RUNNING", {"v0": "RUNNING"}) | {"now": 25_000}
    sent = f"GET /jobs/{NEW}/vertices/v0/subtasks/metrics?agg=sum&get=v0.numRecordsOut"
    moments = {"subtasks": [{"timestamps": {"RUNNING": at}} for at in (9_000, 10_000)]}
    flink.answers = {
        f"GET /jobs/{NEW}": document,
        f"GET /jobs/{NEW}/vertices/v0/subtasktimes": moments,
        sent: [{"id": "out", "sum": 100.0}],
    }
    assert sent_since(flink.rest, NEW) == (15.0, 200.0)  # counts grow with every look
    flink.answers[sent] = []
    assert sent_since(flink.rest, NEW) is None
    assert sent_since(FakeFlink({}).rest, NEW) is None


def test_records_that_windows_have_dropped_are_counted(flink: FakeFlink) -> None:
    """Of all operators that count them; Flink may tell nothing."""
    path = f"GET /jobs/{JOB}/vertices/v1/subtasks/metrics"
    names = ["a.numLateRecordsDropped", "b.numLateRecordsDropped"]
    flink.answers = ANSWERS | {
        path: [{"id": name} for name in (*names, "numRecordsIn")],
        f"{path}?agg=sum&get={','.join(names)}": [{"id": name, "sum": 3.0} for name in names],
    }
    assert late_records(flink.rest, JOB) == 6.0
    assert late_records(FakeFlink().rest, JOB) == 0.0


def queues(task: str, before: float, behind: float, read: float | str) -> dict[str, Any]:
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
def test_a_move_waits_for_the_queues_of_a_job_under_back_pressure(
    senders: int, readers: int, read: float | str, seconds: float
) -> None:
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
    flink.answers[f"GET /jobs/{JOB}/checkpoints"] = NONE
    assert draining_seconds(flink.rest, JOB) == pytest.approx(seconds)
    assert expected_interruptions(flink.rest, JOB).warm.low == pytest.approx(2.0 + seconds)
    flink.answers[f"GET /jobs/{JOB}/vertices/v1/subtasks/metrics"] = []
    assert draining_seconds(flink.rest, JOB) == 0
    assert draining_seconds(FakeFlink({}).rest, JOB) == 0


@pytest.mark.parametrize(
    ("deployed", "expected"), [(10_000, "7 to 21 s"), (15_800, "2 to 16 s"), (0, "2 to 16 s")]
)
def test_a_job_that_started_slowly_is_expected_to_start_as_slowly_again(
    deployed: int, expected: str
) -> None:
    """With its state restored, and to warm up besides; Flink may tell nothing."""
    flink = FakeFlink({**ANSWERS, f"GET /jobs/{JOB}/checkpoints": NONE})
    times = {"DEPLOYING": deployed, "INITIALIZING": 15_900, "RUNNING": 16_000}
    moments = {"subtasks": [{"timestamps": times}]}
    for task in ("v0", "v1"):
        flink.answers[f"GET /jobs/{JOB}/vertices/{task}/subtasktimes"] = moments
    assert str(expected_interruptions(flink.rest, JOB).cold) == expected


def test_a_reader_of_little_does_not_wait_for_what_others_have_queued() -> None:
    """What a committer gets is a message per checkpoint; 700 bytes wait for the other reader."""
    flink = FakeFlink(ANSWERS | queues("v0", 0, 700, 0.0) | queues("v1", 300, 0, 50.0))
    document, plan = f"GET /jobs/{JOB}", f"GET /jobs/{JOB}/plan"
    end = {"id": "end", "name": "end", "parallelism": 1, "status": "RUNNING"}
    node = {"id": "end", "inputs": [{"id": "v0", "ship_strategy": "REBALANCE"}]}
    answers = flink.answers
    vertices = [*answers[document]["vertices"], end]
    nodes = [*answers[plan]["plan"]["nodes"], node]
    flink.answers = answers | {document: answers[document] | {"vertices": vertices}}
    flink.answers |= {plan: {"plan": {"nodes": nodes}}} | queues("end", 0, 0, 0.1)
    assert draining_seconds(flink.rest, JOB) == pytest.approx(20.0, rel=0.01)


@pytest.mark.parametrize(
    ("queued", "pause", "is_due"), [(700, 0, False), (50, 0, True), (50, 60_000, False)]
)
def test_full_queues_and_pauses_delay_the_checkpoints_of_a_moved_job(
    monkeypatch: pytest.MonkeyPatch, queued: float, pause: int, *, is_due: bool
) -> None:
    """A second or 14 of what is queued come before a checkpoint, and the least pause."""
    flink = FakeFlink(ANSWERS | queues("v0", 0, queued, 0.0) | queues("v1", 0, 0, 50.0))
    policy = KEPT | {"interval": 10_000, "min_pause": pause}
    flink.answers |= {
        f"GET /jobs/{JOB}/checkpoints": NONE,
        f"GET /jobs/{JOB}/checkpoints/config": policy,
    }
    monkeypatch.setattr(client, "time", Clock())
    refused = pytest.raises(FlinkError, match=r"has completed no checkpoint .* and takes 1 s")
    with refused if is_due else nullcontext():
        settle(flink.rest, JOB, MoveSettings(settle=25.0), None)


def test_the_line_that_finishes_a_move_can_be_typed(
    run: Callable, flink: FakeFlink, fetched: Callable[[str], Flink], tmp_path: Path
) -> None:
    """Without the jar, which the store knows; with the file that says how the cluster is reached.

    The first command may be typed with --resume, too.
    """
    flink.answers = healthy("dev-0")
    with zipfile.ZipFile(tmp_path / "a.jar", "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF", "Main-Class: a.Main\n")
    home, program = fetched(VERSION), Program(tmp_path / "a.jar", managed_mb=64)
    own = settings_file(tmp_path, flink_home=str(home.home), managed_memory="64 MiB")
    remember(OLD, program)
    with flink.served():
        move = FlinkMove(Rest(flink.url), home, program, print, options=own)
        line = move.resume_line(OLD)
        assert line == (
            f"streamplace flink move --rest {flink.url} --settings {own[1]} --job {OLD} --resume"
        )
        first = ("flink", "move", str(program.jar), "--rest", flink.url, *own, "--resume")
        for words in (shlex.split(line)[1:], first):
            answer = run(*words)
            assert (answer.status, "no record of an interrupted move" in answer.err) == (2, True)


TASKS = {"src": ("dev-0", "FINISHED"), "map": ("dev-1", "RUNNING")}


def move_of(
    flink: FakeFlink, patch: pytest.MonkeyPatch, planned: Mapping[str, str], **settings: float
) -> FlinkMove:
    """What moves a job of which one task has ended, on a device that is gone."""
    patch.setattr(moving, "check", lambda *_: planned)
    patch.setattr(moving, "running_settings", lambda *_: {})
    states = {task: status for task, (_, status) in TASKS.items()}
    flink.answers = healthy("dev-1", "dev-2") | {f"GET /jobs/{OLD}": job("shop", "RUNNING", states)}
    for task, (device, status) in TASKS.items():
        subtasks = [{"taskmanager-id": device, "status": status}]
        flink.answers[f"GET /jobs/{OLD}/vertices/{task}"] = {"subtasks": subtasks}
    home, program = Flink(Path(), "2.3.0"), Program(Path("a.jar"))
    how = MoveSettings("file:///s", **settings)
    return FlinkMove(flink.rest, home, program, lambda _: None, how)


THERE = Layout.from_json(dict.fromkeys(TASKS, "dev-2"))


def test_a_job_is_moved_though_a_device_whose_subtasks_have_all_ended_is_gone(
    flink: FakeFlink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it had to return, what has ended would be on the devices that it still has."""
    move = move_of(flink, monkeypatch, {})
    plan = move.plan(OLD.upper(), THERE)
    assert plan.before == Layout({"src": ["dev-1"], "map": ["dev-1"]})
    assert move.running_job(OLD.upper()) == plan.job == OLD  # the id of a successor is made from it


def test_a_sink_whose_transactions_may_end_before_the_move_is_refused(
    flink: FakeFlink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the name of its setting, before the job is stopped: Kafka would drop what it wrote."""
    planned = {"transaction.timeout.ms": "60000"}
    told = r"transaction\.timeout\.ms of a sink is 60 s, .* a move may take 720 s"
    with pytest.raises(SettingError, match=told):
        move_of(flink, monkeypatch, planned).plan(OLD, THERE)
    short = move_of(flink, monkeypatch, planned, seconds=20.0, savepoint_seconds=40.0)
    assert short.plan(OLD, THERE).is_needed

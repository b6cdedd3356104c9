"""Watching, with a Flink that answers what it is told to."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_lines import settings_file
from fake_flink import FakeFlink, InTurn, failure, said
from flink_documents import DELETED, KEPT, failed_by, healthy, job, jobs
from watched_jobs import lacking, replacing_of, starts_by, write_program

from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.move.saving import Savepoint, resumable
from streamplace.engines.flink.rest.client import FlinkError, Rest
from streamplace.engines.flink.watch import replacing
from streamplace.engines.flink.watch import watch as watching
from streamplace.engines.flink.watch.log import WatchLog
from streamplace.engines.flink.watch.replacing import PlacedJob
from streamplace.engines.flink.watch.watch import Watch
from streamplace.errors import FormatError, StreamplaceError
from streamplace.io.store import Store
from streamplace.io.watches import read_records

VECTORS: Layout = Layout.from_json({"map": ["dev-0", "dev-1", "dev-1"], "sink": "dev-1"})
LATEST = {
    "completed": {"id": 7, "external_path": "s3://b/chk-7"},
    "savepoint": {"id": 5, "external_path": "s3://b/sp-5"},
    "restored": {"id": 3, "external_path": "s3://b/chk-3"},
}
RESTARTING, FAILED = (job("old", state, {}) for state in ("RESTARTING", "FAILED"))
SAVED = {"counts": {"completed": 7}, "latest": LATEST}


@pytest.fixture
def flink() -> FakeFlink:
    """A cluster of four on which the job "old" runs and takes checkpoints."""
    answers = healthy("dev-0", "dev-1", "dev-2", "dev-3") | {
        "GET /jobs/old": job("old", "RUNNING", {"map": "RUNNING"}),
        "GET /jobs/old/checkpoints/config": KEPT,
        "GET /jobs/old/checkpoints": SAVED,
        "GET /jobs/old/exceptions": failed_by("a.B: c"),
    }
    return FakeFlink(answers)


class Watched:
    """A job that is watched until it ends, and what the watch told and started."""

    def __init__(self, flink: FakeFlink, monkeypatch: pytest.MonkeyPatch) -> None:
        self.flink, self.answers = flink, flink.answers
        self.steps: list[str] = []
        self.runs: list[PlacedJob] = []
        self.paths: list[str | None] = []
        starts_by(monkeypatch, self.apply)

    def apply(self, *_: Any, savepoint: Savepoint | None, seconds: float) -> str:
        """Start a job, as ``apply`` does."""
        self.paths.append(None if savepoint is None else savepoint.path)
        return "new"

    def watch(self, *spares: str, **facts: Any) -> None:
        """Watch the job."""
        tell, moved = self.steps.append, self.runs.append
        log = WatchLog.claimed(Store.usual(), "old", "shop", tell)
        own = replacing_of(self.flink, log, tell, spares, moved, **facts)
        Watch(own).run(PlacedJob("old", VECTORS))


@pytest.fixture
def watched(flink: FakeFlink, monkeypatch: pytest.MonkeyPatch) -> Watched:
    """The job on the cluster, on which whatever is placed fits."""
    monkeypatch.setattr(watching, "FAULT_SECONDS", 0.0)
    monkeypatch.setattr(replacing, "unfit", lambda *_: None)
    return Watched(flink, monkeypatch)


def test_a_spare_stands_in_everywhere_for_what_is_lost(watched: Watched) -> None:
    """From the last checkpoint; and what was lost stands in when it is back."""
    every = watched.answers["GET /taskmanagers"]
    gone, gone_too = lacking(watched.answers, "dev-1"), lacking(watched.answers, "dev-2")
    watched.answers |= {
        "GET /taskmanagers": InTurn(every, *[gone] * 3, *[gone_too] * 3, every),
        "GET /jobs/old": FAILED,
        "GET /jobs/new": InTurn(*[job("new", "FAILED", {})] * 4, job("new", "FINISHED", {})),
        "GET /jobs/new/checkpoints": {"counts": {"completed": 0}, "latest": LATEST},
    }
    watched.watch("dev-2")
    first, second = watched.runs
    assert first.layout == {"map": ["dev-0", "dev-2", "dev-2"], "sink": "dev-2"}
    assert second.layout == VECTORS
    assert watched.paths == ["s3://b/chk-7", "s3://b/chk-3"]
    assert watched.steps[0] == "lost: 'dev-1'; waiting 0 s for it"
    assert watched.steps[-1] == "job new has finished because it has read all of its input"


@pytest.mark.parametrize("fails", ["the end", "the state"])
def test_a_job_whose_end_or_state_flink_fails_to_tell_of_is_started_with_its_state(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    """It must not stay ended; if it seemed to take no checkpoints, its state would be lost."""
    slow = "job old is still CANCELLING after 60 s"
    tries = [FlinkError(slow)] if fails == "the end" else []

    def cancel(*_: Any) -> None:
        if tries:
            raise tries.pop()

    monkeypatch.setattr(Rest, "cancel", cancel)
    every, gone = watched.answers["GET /taskmanagers"], lacking(watched.answers, "dev-1")
    watched.answers |= {
        "GET /taskmanagers": InTurn(every, every, *[gone] * 6, every),
        "GET /jobs/old": RESTARTING,
        "GET /jobs/new": job("new", "FINISHED", {}),
    }
    told = f"{slow}; waiting for its end"
    if fails == "the state":
        answers = InTurn(failure("a.B: out of memory", status=500), SAVED)
        watched.answers["GET /jobs/old/checkpoints"] = answers
        told = "Flink answers 500: a.B: out of memory; trying again"
    watched.watch("dev-2")
    assert told in watched.steps
    assert watched.paths == ["s3://b/chk-7"]


def test_without_a_spare_left_the_job_is_waited_for(watched: Watched) -> None:
    """It is told once, and nothing is ended."""
    every, gone = watched.answers["GET /taskmanagers"], lacking(watched.answers, "dev-0", "dev-1")
    watched.answers |= {
        "GET /taskmanagers": InTurn(every, every, *[gone] * 20, every),
        "GET /jobs/old": InTurn(*[RESTARTING] * 30, job("old", "CANCELED", {})),
    }
    watched.watch("dev-2")
    assert watched.steps == [
        "lost: 'dev-0', 'dev-1'; waiting 0 s for it",
        "no spare is left for 'dev-1'; waiting for it",
        "job old is CANCELED",
    ]
    assert watched.flink.requests("PATCH") == []


def heard(answers: dict[str, Any], **times: int) -> dict[str, Any]:
    """Answer of a cluster that has last heard of each TaskManager, as dev_1, at some time."""
    found = copy.deepcopy(answers["GET /taskmanagers"])
    for row in found["taskmanagers"]:
        row["timeSinceLastHeartbeat"] = times.get(row["id"].replace("-", "_"), 99_000)
    return dict(found)


def ended(name: str, end: int) -> dict[str, Any]:
    """Overview of a job that has failed."""
    times = {"start-time": 0, "end-time": end, "duration": end}
    return {"jobs": [{"jid": name, "state": "FAILED", **times}]}


def test_a_failed_job_is_given_up_only_when_all_devices_were_heard_of_since(
    watched: Watched,
) -> None:
    """Their heartbeats must be later than the failure; until then Flink may not know of a loss."""
    before, after = heard(watched.answers, dev_1=50_500), heard(watched.answers, dev_1=51_000)
    watched.answers |= {
        "GET /taskmanagers": InTurn(*[before] * 5, after),
        "GET /jobs/old": FAILED,
        "GET /jobs/overview": ended("old", 50_000),
    }
    told = "failed although all of its devices are available: a.B: c"
    with pytest.raises(FlinkError, match=told):
        watched.watch("dev-2")
    assert watched.flink.requests("GET").count("/taskmanagers") == 6


def test_a_loss_that_flink_notices_after_the_job_has_failed_is_one(watched: Watched) -> None:
    """A spare stands in, from the last checkpoint."""
    silent, gone = heard(watched.answers, dev_1=10), lacking(watched.answers, "dev-1")
    watched.answers |= {
        "GET /taskmanagers": InTurn(*[silent] * 4, gone),
        "GET /jobs/old": FAILED,
        "GET /jobs/new": job("new", "CANCELED", {}),
        "GET /jobs/overview": ended("old", 50_000),
    }
    watched.watch("dev-2")
    assert watched.steps[:2] == [
        "job old has failed; waiting until Flink knows the state of its TaskManagers",
        "lost: 'dev-1'; waiting 0 s for it",
    ]
    assert [run.stand_ins for run in watched.runs] == [{"dev-1": "dev-2"}]
    assert watched.paths == ["s3://b/chk-7"]


def test_a_job_that_failed_is_started_again_where_a_lost_device_is_back(watched: Watched) -> None:
    """Its TaskManager is another one than when the job was started; no spare is needed."""
    every, back = watched.answers["GET /taskmanagers"], heard(watched.answers)
    back["taskmanagers"][1]["path"] = "pekko.tcp://flink@dev-1:7777/user/rpc/taskmanager_0"
    watched.answers |= {
        "GET /taskmanagers": InTurn(every, every, back),
        "GET /jobs/old": InTurn(job("old", "RUNNING", {}), FAILED),
        "GET /jobs/new": job("new", "CANCELED", {}),
        "GET /jobs/new/checkpoints/config": KEPT,
        "GET /jobs/overview": ended("old", 50_000),
    }
    watched.watch("dev-2")
    assert watched.steps == [
        "job old has failed, and 'dev-1' is back",
        "cancelling job old; it continues from s3://b/chk-7",
        "job new runs",
        "job new is CANCELED",
    ]
    assert [run.layout for run in watched.runs] == [VECTORS]


@pytest.mark.parametrize(
    ("path", "policy"),
    [
        ("<checkpoint-not-externally-addressable>", KEPT),
        ("s3://b/chk-7", {"externalization": {"enabled": False, "delete_on_cancellation": True}}),
    ],
)
def test_a_job_that_failed_is_not_started_without_the_state_that_ended_with_it(
    watched: Watched, path: str, policy: dict[str, Any]
) -> None:
    """A watch that takes what is free instead of named spares has not checked it before."""
    every, back = watched.answers["GET /taskmanagers"], heard(watched.answers)
    back["taskmanagers"][1]["path"] = "pekko.tcp://flink@dev-1:7777/user/rpc/taskmanager_0"
    latest = {"completed": {"id": 7, "external_path": path}}
    watched.answers |= {
        "GET /taskmanagers": InTurn(every, back),
        "GET /jobs/old": InTurn(job("old", "RUNNING", {}), FAILED),
        "GET /jobs/old/checkpoints": {"counts": {"completed": 7}, "latest": latest},
        "GET /jobs/old/checkpoints/config": policy,
        "GET /jobs/new": job("new", "CANCELED", {}),
        "GET /jobs/new/checkpoints/config": KEPT,
        "GET /jobs/overview": ended("old", 50_000),
    }
    with pytest.raises(FlinkError, match=r"job old failed: a\.B: c; none of its state outlives it"):
        watched.watch(takes_free=True)
    assert watched.paths == []


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (failure("a.B: out of memory", status=500), ""),
        (said(b"[]"), ""),
        (said(b"\n<html>maintenance</html>"), "a web page came instead; trying again"),
        (said(b"", 302, "http://login"), "use Flink's own address; trying again"),
        (job("old", "INITIALIZING", {}) | {"plan": {}}, ""),  # Flink 1 has not planned it yet
    ],
)
def test_a_watch_waits_while_flink_answers_in_no_useful_way(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, fault: Any, told: str
) -> None:
    """As a JobManager that is short of memory, or a gateway in its place, which is told once."""
    running, ended = job("old", "RUNNING", {"map": "RUNNING"}), job("old", "FINISHED", {})
    watched.answers["GET /jobs/old"] = InTurn(running, *[fault] * 9, running, ended)
    monkeypatch.setattr(watching, "FAULT_SECONDS", 60.0)
    watched.watch("dev-2")
    *first, last = watched.steps
    assert [step.endswith(told) for step in first] == [True] * bool(told)
    assert last == "job old has finished because it has read all of its input"
    assert watched.runs == []


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (failure("a.B: out of memory", status=500), "Flink answers 500: a.B: out of memory"),
        (said(b"[]"), "its answer is not one of Flink's REST API"),
    ],
)
def test_a_watch_ends_when_flink_answers_errors_for_long(
    watched: Watched, fault: Any, told: str
) -> None:
    watched.answers["GET /jobs/old"] = InTurn(job("old", "RUNNING", {"map": "RUNNING"}), fault)
    with pytest.raises(FlinkError, match=told):
        watched.watch("dev-2")


def test_a_job_that_the_job_manager_has_forgotten_is_refused_by_name(watched: Watched) -> None:
    """It was started anew without high availability."""
    gone = failure("org.apache.flink.x: Could not find Flink job (old)")
    watched.answers["GET /jobs/old"] = InTurn(job("old", "RUNNING", {}), gone)
    told = r"no longer knows job old.*\(high-availability.type\); start the job from"
    with pytest.raises(FlinkError, match=told):
        watched.watch("dev-2")


@pytest.mark.parametrize(
    ("spare", "answers", "told"),
    [
        ("dev-1", {}, "'dev-1' is not a spare: operators are placed on it"),
        ("dev-9", {}, "spare 'dev-9' is not a TaskManager of the cluster"),
        ("dev-2", DELETED, "deletes its checkpoints when it ends.*=RETAIN_ON_CANCELLATION"),
        ("dev-2", KEPT | {"checkpoint_storage": "JobManagerCheckpointStorage"}, "JobManager's mem"),
    ],
)
def test_what_would_hinder_a_spare_is_told_at_once(
    watched: Watched, spare: str, answers: dict[str, Any], told: str
) -> None:
    """While all is well."""
    if answers:
        watched.answers["GET /jobs/old/checkpoints/config"] = answers
    with pytest.raises(StreamplaceError, match=told):
        watched.watch(spare)


@pytest.mark.parametrize(
    ("savepoint", "policy", "last"),
    [
        ({"id": 5, "checkpoint_type": "SYNC_SAVEPOINT"}, KEPT, "s3://b/chk-7"),
        ({"id": 8, "checkpoint_type": "SYNC_SAVEPOINT"}, KEPT, "s3://b/sp"),
        ({"id": 8, "checkpoint_type": "SAVEPOINT"}, KEPT, "s3://b/chk-7"),
        ({"id": 8, "checkpoint_type": "SAVEPOINT"}, DELETED, "s3://b/sp"),
        ({"id": 5, "checkpoint_type": "SAVEPOINT"}, DELETED, None),
    ],
)
def test_a_job_continues_from_the_last_state_that_outlives_it(
    flink: FakeFlink, savepoint: dict[str, Any], policy: dict[str, Any], last: str | None
) -> None:
    """Of a savepoint that did not stop the job, Flink does not tell whether it still exists."""
    latest = LATEST | {"savepoint": {"external_path": "s3://b/sp", **savepoint}}
    flink.answers |= {
        "GET /jobs/old/checkpoints": {"counts": {"completed": 8}, "latest": latest},
        "GET /jobs/old/checkpoints/config": policy,
    }
    assert resumable(flink.rest, "old") == last


def test_a_job_that_has_saved_nothing_continues_from_what_it_began_from(flink: FakeFlink) -> None:
    rest = flink.rest
    flink.answers["GET /jobs/old/checkpoints"] = {"counts": {"completed": 0}, "latest": LATEST}
    assert resumable(rest, "old") == "s3://b/chk-3"
    del flink.answers["GET /jobs/old/checkpoints"]
    assert resumable(rest, "old") is None


def with_a_placement(
    run: Callable,
    flink: FakeFlink,
    folder: Path,
    patch: pytest.MonkeyPatch,
    started: Any,
    more: dict[str, Any] | None = None,
) -> Any:
    """Answer of a watch whose job of a given placement is started elsewhere, and cancelled then.

    ``more`` are other answers of Flink.
    """
    starts_by(patch, started)
    every, gone = flink.answers["GET /taskmanagers"], lacking(flink.answers, "dev-0", "dev-1")
    flink.answers |= {
        "GET /jobs": jobs({"old": "RUNNING"}),
        "GET /taskmanagers": InTurn(*[every] * 2, gone),
        "GET /jobs/old": InTurn(*[job("old", "RUNNING", {})] * 3, FAILED),
        "GET /jobs/new": job("new", "CANCELED", {}),
    } | (more or {})
    carries = {"low": 80, "value": 100, "high": 120, "confidence": 0.9}
    placed = {
        "graph": "g",
        "assignment": dict(zip("abc", ("dev-0", "dev-1", "dev-3"), strict=True)),
    }
    (folder / "p.json").write_text(json.dumps(placed | {"carries": carries}))
    write_program(folder)
    given = ("--placement", "p.json", "--apply")
    given = (*given, *settings_file(folder, patience=0, flink_home="."))
    with flink.served():
        where = ("--rest", flink.url, "-o", "where.json")
        return run("flink", "watch", "job.jar", *given, *where)


def test_where_a_job_runs_is_written_for_verify(
    run: Callable, flink: FakeFlink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without lost devices, and without what another placement was predicted to carry.

    The new id is printed, and why the command ends.
    """
    answer = with_a_placement(run, flink, tmp_path, monkeypatch, lambda *_, **__: "new")
    assert (answer.status, answer.out) == (0, "new\n"), answer.err
    assert "job new runs, dev-2 for dev-0" in answer.err
    assert "job new is CANCELED" in answer.err
    written = json.loads((tmp_path / "where.json").read_text())
    moved = {"a": "dev-2", "b": "dev-2", "c": "dev-3"}
    assert written == {"graph": "g", "assignment": moved}


@pytest.mark.parametrize("lacks", ["the given placement", "room for the new one"])
def test_a_watch_goes_on_where_it_cannot_write_the_placement(
    run: Callable, flink: FakeFlink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lacks: str
) -> None:
    """The job has been started, and nobody else watches it."""

    def apply(*_: Any, **given: Any) -> str:
        if lacks == "the given placement":
            (tmp_path / "p.json").unlink()
        else:
            (tmp_path / "where.json").mkdir()
        return "new"

    answer = with_a_placement(run, flink, tmp_path, monkeypatch, apply)
    assert (answer.status, answer.out) == (0, "new\n"), answer.err
    assert "warning: " in answer.err
    assert ("p.json: cannot be read" in answer.err) == (lacks == "the given placement")
    assert "job new is CANCELED" in answer.err
    (record,) = read_records(Store.usual())
    assert [(one.kind, one.state) for one in record.decisions] == [("replace", "moved")]


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("gone", "job.jar is not the jar any more that the job was submitted with"),
        ("built again", "job.jar is not the jar any more that the job was submitted with"),
        ("no room", "the jar to upload cannot be made"),
    ],
)
def test_a_job_that_could_not_be_started_again_is_not_ended(
    run: Callable,
    flink: FakeFlink,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fault: str,
    told: str,
) -> None:
    """Or would be another job; the lost TaskManager may be back."""
    every, gone = flink.answers["GET /taskmanagers"], lacking(flink.answers, "dev-0", "dev-1")

    def full(*_: Any) -> None:
        raise FormatError(told)

    def lost() -> dict[str, Any]:
        jar = tmp_path / "job.jar"
        if fault == "gone":
            jar.unlink()
        elif fault == "built again":
            jar.write_bytes(b"a later build")
        else:
            monkeypatch.setattr(replacing, "check_made", full)
        return gone

    started = list[str]()

    def apply(*_: Any, **given: Any) -> str:
        started.append("new")
        return "new"

    running, ended = job("old", "RUNNING", {}), job("old", "CANCELED", {})
    more = {
        "GET /taskmanagers": InTurn(*[every] * 2, lost, gone),
        "GET /jobs/old": InTurn(*[running] * 3, *[RESTARTING] * 9, ended),
    }
    answer = with_a_placement(run, flink, tmp_path, monkeypatch, apply, more)
    assert answer.status == 0, answer.err
    assert answer.err.count(told) == 1
    assert "nothing replaces 'dev-0', 'dev-1'" in answer.err
    assert (started, flink.requests("PATCH")) == ([], [])

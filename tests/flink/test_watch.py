"""A watch: what it waits for look by look, starts again, and ends with; and as a command."""

import json
import math
import os
import signal
import socket
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from command_lines import settings_file
from fake_flink import (
    DELETED,
    JOB,
    KEPT,
    UNKNOWN,
    Clock,
    FakeFlink,
    InTurn,
    checkpoints,
    config,
    failed_by,
    failure,
    healthy,
    job,
    jobs,
    layout_option,
    on_devices,
    said,
    stopped,
    write_program,
)

from streamplace.errors import SettingError, StreamplaceError
from streamplace.flink.layout import Layout
from streamplace.flink.move.move import FlinkMove
from streamplace.flink.move.savepoints import CheckpointTotals
from streamplace.flink.move.transaction import FlinkMoved
from streamplace.flink.rest.client import FlinkError, chain_of, successor
from streamplace.flink.store import Store, utc_now
from streamplace.flink.watch import modelling
from streamplace.flink.watch import rounds as passing
from streamplace.flink.watch import watch as watching
from streamplace.flink.watch.acting import Spares, WatchMover
from streamplace.flink.watch.deciding import JobModel, JobSample
from streamplace.flink.watch.log import WatchLog
from streamplace.flink.watch.prometheus import WatchMetrics, served
from streamplace.flink.watch.watch import Watch, finish_earlier, first_job
from streamplace.flink.watches import WatchDecision, WatchRound, read_watches
from streamplace.model.prediction_intervals import RateInterval

OLD, NEW, NEXT = chain_of(JOB, 3)
HEALTHY = healthy("dev-0", "dev-1", "dev-2", "dev-3")


def layout(sink, *devices):
    """Layout of a sink and of the three subtasks of a mapper."""
    return Layout({"map": devices, "sink": [sink]}, ["sink"])


PLACED = layout("dev-1", "dev-0", "dev-1", "dev-1")
STAYING = layout("dev-2", "dev-0", "dev-2", "dev-2")
ALONE = layout("dev-0", "dev-0", "dev-0", "dev-0")


def lost(*devices):
    """What Flink answers from now on of TaskManagers, without some."""
    rows = HEALTHY["GET /taskmanagers"]["taskmanagers"]
    return {"GET /taskmanagers": {"taskmanagers": [r for r in rows if r["id"] not in devices]}}


def now(state, name=OLD):
    """What Flink answers from now on of a job."""
    return {f"GET /jobs/{name}": job("shop", state, {"map": state} if state == "RUNNING" else {})}


WAIT: list[Mapping[str, Any]] = [{}] * 2
"""Looks after a loss, until the job is started again."""
RESTARTING = lost("dev-1") | now("RESTARTING")


def restarted(name, layout):
    """A job that was started again."""
    return FlinkMoved(successor(name), None, "s3://b/chk-7")


class Looks(Clock):
    """A clock of a watch: with each second that passes, the next event changes Flink's answers.

    After the last event, the watch must have ended.
    """

    def __init__(self, answers, events):
        super().__init__(0.0)
        self.answers, self.events = answers, [*events]

    def sleep(self, seconds):
        """Let time pass."""
        assert self.events, "the watch goes on"
        self.answers.update(self.events.pop(0))
        super().sleep(seconds)


@dataclass
class Watched:
    """A job on two of four TaskManagers that takes checkpoints, and watches of it.

    A move of it starts the job again wherever it should.
    """

    monkeypatch: pytest.MonkeyPatch
    flink: FakeFlink = field(init=False)
    messages: list[str] = field(default_factory=list)
    restart: Mock = field(default_factory=lambda: Mock(side_effect=restarted))
    # Jobs that the watch tells to have been started, and their layouts.
    runs: list[tuple[str, Layout]] = field(default_factory=list)

    def __post_init__(self):
        answers: dict[str, Any] = HEALTHY | {"GET /jobs": jobs({OLD: "RUNNING"})}
        for name in (OLD, NEW, NEXT):
            answers |= {
                **now("RUNNING", name),
                f"GET /jobs/{name}/checkpoints/config": KEPT,
                f"GET /jobs/{name}/checkpoints": checkpoints(7, completed="s3://b/chk-7"),
                f"GET /jobs/{name}/exceptions": failed_by("a.B: c"),
            }
        self.flink = FakeFlink(answers)
        self.monkeypatch.setattr(watching, "fitted", lambda *_: None)

    def mover(self, *spares, takes_free=False):
        """What starts the job again."""
        move = Mock(rest=self.flink.rest, restart=self.restart)
        move.unfinished_moves.return_value = []
        taken = Spares(move.rest, [*spares], takes_free=takes_free)
        return WatchMover(move, taken, self.log)

    @property
    def log(self):
        """Log of a new process."""
        return WatchLog.claimed(Store.usual(), OLD, "shop", self.messages.append)

    def watch(self, *events, mover=None, rounds=None, layout=PLACED):
        """Watch the job until it ends, with a patience of two looks; return its last state."""
        self.monkeypatch.setattr(watching, "time", Looks(self.flink.answers, events))
        log = self.log if mover is None else mover.log
        moved = lambda name, where: self.runs.append((name, where))  # noqa: E731
        rounds = rounds or SimpleNamespace(is_due=False)
        rest = self.flink.rest.patient(math.inf, self.messages.append)
        watch = Watch(rest, log, mover, rounds, moved, patience=1.5)
        return watch.run(OLD, layout)


def decided(log, before, after, kind="move", where="dev-1"):
    """Write a start elsewhere that has succeeded."""
    decision = WatchDecision(utc_now(), kind, before, after, {"map": [where]}, (1, 1), "")
    log.end(log.begin(decision), "moved", "", after)


@pytest.fixture
def watched(monkeypatch):
    """A job on two of four TaskManagers, on which whatever is placed fits."""
    return Watched(monkeypatch)


def test_a_spare_takes_over_what_is_lost_and_what_was_lost_is_a_spare_then(watched):
    """The log says why, and where the job is."""
    mover = watched.mover("dev-2")
    events = [RESTARTING, *WAIT, lost("dev-2") | now("RESTARTING", NEW), *WAIT]
    assert watched.watch(*events, now("FINISHED", NEXT), mover=mover) == "FINISHED"
    assert watched.runs == [(NEW, STAYING), (NEXT, PLACED)]
    assert [call.args for call in watched.restart.mock_calls] == [(OLD, PLACED), (NEW, STAYING)]
    first, _ = mover.log.decisions.values()
    assert (first.kind, first.reason) == ("replace", "lost TaskManagers: dev-1")
    assert (first.state, first.layout, first.machines) == ("moved", STAYING.to_json(), (2, 2))
    assert mover.log.placed(NEW) == STAYING


@pytest.mark.parametrize(
    ("events", "takes_free", "runs"),
    [
        # what is back in time is not replaced
        ([RESTARTING, {}, lost() | now("RUNNING"), RESTARTING, {}, now("CANCELED")], False, []),
        # what nobody has named takes over if it may, and else what is left
        (
            [
                *(RESTARTING, *WAIT, lost("dev-1", "dev-2", "dev-3") | now("RESTARTING", NEW)),
                *(*WAIT, now("CANCELED", NEXT)),
            ],
            True,
            [(NEW, STAYING), (NEXT, ALONE)],
        ),
        # Flink notices a loss after the job has failed: a heartbeat may be due for most of a minute
        ([now("FAILED"), *[{}] * 30, lost("dev-1"), now("CANCELED", NEW)], False, [(NEW, STAYING)]),
        # the job has used up its restarts when what was lost is back
        ([RESTARTING, now("FAILED"), lost(), now("CANCELED", NEW)], False, [(NEW, PLACED)]),
    ],
)
def test_only_a_loss_that_lasts_is_replaced(watched, events, takes_free, runs):
    spares = () if takes_free else ("dev-2",)
    watched.watch(*events, mover=watched.mover(*spares, takes_free=takes_free))
    assert watched.runs == runs


def test_without_a_spare_left_the_job_is_waited_for(watched):
    """It is told once, and nothing is ended; a spare that joins is taken."""
    both, one = lost("dev-0", "dev-1", "dev-3"), lost("dev-0", "dev-1")
    watched.watch(
        both | now("RESTARTING"), *WAIT, {}, {}, one, now("CANCELED", NEW),
        mover=watched.mover("dev-2", "dev-3"),
    )  # fmt: skip
    none_left = "no spare is left for 'dev-0', 'dev-1'; waiting for it"
    assert watched.messages.count(none_left) == 1
    assert watched.runs == [(NEW, layout("dev-3", "dev-2", "dev-3", "dev-3"))]


@pytest.mark.parametrize(
    ("events", "told"),
    [
        ([now("FAILED"), *[{}] * 61], "failed although all of its devices are available: a.B: c"),
        (
            [
                {f"GET /jobs/{OLD}/checkpoints": checkpoints()} | RESTARTING,
                *(*WAIT, {}, now("FAILED")),
            ],
            f"job {OLD} failed: a.B: c; it left no checkpoint or savepoint; submit",
        ),
    ],
)
def test_a_job_that_failed_without_a_loss_or_saved_nothing_is_given_up(watched, events, told):
    """It is not started again while it restarts, either."""
    with pytest.raises(FlinkError, match=told):
        watched.watch(*events, mover=watched.mover("dev-2"))
    watched.restart.assert_not_called()
    nothing = f"job {OLD} has no checkpoint or savepoint yet; it is not started elsewhere"
    assert watched.messages.count(nothing) == (len(events) < 60)


def test_a_job_that_could_not_be_started_again_is_not_ended(watched, monkeypatch):
    """Its jar has changed, or it does not fit; the lost TaskManager may be back."""
    faults = [SettingError("another jar"), FlinkError("no room"), None]
    monkeypatch.setattr(watching, "fitted", Mock(side_effect=faults))
    mover = watched.mover("dev-2")
    watched.watch(RESTARTING, *WAIT, {}, {}, now("CANCELED", NEW), mover=mover)
    refused = [line for line in watched.messages if "the job is not started elsewhere" in line]
    assert [line.partition(";")[0] for line in refused] == ["another jar", "no room"]
    watched.restart.assert_called_once()


def test_a_job_whose_program_does_not_fit_is_not_ended(watched):
    """The program is run once to find out, not every second."""
    mover = watched.mover("dev-2")
    mover.move.check.side_effect = FlinkError("operator 'map' is not placed")
    watched.watch(RESTARTING, *WAIT, {}, {}, now("CANCELED"), mover=mover)
    watched.restart.assert_not_called()
    mover.move.check.assert_called_once_with(OLD, STAYING)
    assert watched.messages[-1] == f"job {OLD} is CANCELED"
    assert "operator 'map' is not placed; the job is not started elsewhere" in watched.messages


def test_a_start_that_did_nothing_is_tried_again_after_the_patience(watched):
    """As when the job has recovered at the last moment; it is the same job then."""
    watched.restart.side_effect = FlinkError("not now")
    events = [RESTARTING, *WAIT, *WAIT, {}, now("CANCELED")]
    watched.watch(*events, mover=watched.mover("dev-2"))
    states = [one.state for one in read_watches(Store.usual())[0].decisions]
    assert states == ["not begun"] * 2


@pytest.mark.parametrize(
    "tasks",
    [
        {"map": ("dev-2", "RUNNING")},  # not where it was placed: Flink itself has started it there
        {"map": ("dev-2", "INITIALIZING")},
        {"src": ("dev-0", "FINISHED"), "map": ("dev-1", "RUNNING")},
    ],
)
def test_a_job_that_goes_on_without_a_lost_device_is_left_where_it_is(watched, tasks):
    """Also while it restores its state, and where all subtasks there have ended."""
    states = {task: status for task, (_, status) in tasks.items()}
    running: dict[str, Any] = {f"GET /jobs/{OLD}": job("shop", "RUNNING", states)}
    for task, (device, status) in tasks.items():
        running |= on_devices(OLD, {task: [device]}, status)
    placed = Layout.from_json(dict(zip(tasks, ("dev-0", "dev-1"), strict=False)))
    events = [lost("dev-0") | running, *WAIT, {}, now("FINISHED")]
    assert watched.watch(*events, mover=watched.mover("dev-3"), layout=placed) == "FINISHED"
    assert watched.messages[0] == f"job {OLD} continues without 'dev-0'"
    watched.restart.assert_not_called()


def test_a_job_that_loses_its_device_right_after_a_round_has_moved_it_is_replaced_there(watched):
    """Flink shows no layout of a job that restarts, but the decision to move it does."""
    mover = watched.mover(takes_free=True)

    def pass_round(name):
        if name != OLD:
            return name
        decided(mover.log, OLD, NEW, where="dev-3")
        watched.flink.answers |= lost("dev-3") | now("RESTARTING", NEW)
        return NEW

    rounds = SimpleNamespace(is_due=True, pass_round=pass_round)
    watched.watch(*WAIT, {}, now("CANCELED", NEXT), mover=mover, rounds=rounds)
    there, left = Layout({"map": ["dev-3"]}), Layout({"map": ["dev-0"]})
    assert watched.runs == [(NEW, there), (NEXT, left)]


def test_a_watch_that_only_looks_ends_when_the_job_has_failed(watched):
    """Though a TaskManager is lost: nothing of this watch could replace it."""
    with pytest.raises(FlinkError, match=f"job {OLD} failed: a.B"):
        watched.watch(RESTARTING, *WAIT, {}, now("FAILED"))
    assert "lost: 'dev-1'; to replace it, give --apply or --spare" in watched.messages[0]


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (failure("a.B: out of memory", status=500), ""),
        (said(b"\n<html>maintenance</html>"), "a web page came instead; trying again"),
    ],
)
def test_a_watch_waits_while_flink_answers_in_no_useful_way(watched, fault, told):
    """As a JobManager that is short of memory, or a gateway in its place, which is told once."""
    running, ended = job("shop", "RUNNING", {"map": "RUNNING"}), job("shop", "FINISHED", {})
    watched.flink.answers[f"GET /jobs/{OLD}"] = InTurn(running, *[fault] * 3, running, ended)
    watched.watch(*[{}] * 9)
    *first, last = watched.messages
    assert [line.endswith(told) for line in first] == [True] * bool(told)
    assert last.endswith("has finished because it has read all of its input")


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (failure("a.B: out of memory", status=500), "Flink answers 500: a.B: out of memory"),
        (failure("x: Could not find Flink job (old)"), r"\(high-availability.type\); start the j"),
    ],
)
def test_a_watch_ends_when_flink_answers_errors_for_long(watched, fault, told):
    """Also if it was started anew, and has forgotten the job."""
    with pytest.raises(FlinkError, match=told):
        watched.watch({f"GET /jobs/{OLD}": fault}, *[{}] * 122)


@pytest.mark.parametrize("key", ["$internal.flink.version", "$internal.application.main"])
def test_a_watch_advises_no_copy_of_a_job_that_something_else_starts_again(watched, key):
    """Flink's operator, or the application that the cluster runs."""
    forgotten = {f"GET /jobs/{OLD}": failure("x: Could not find Flink job (old)")}
    answers = forgotten | {"GET /jobmanager/config": config({key: "x"})}
    with pytest.raises(FlinkError, match="starts the job again under another id") as told:
        watched.watch(answers, *[{}] * 122)
    assert "savepoint" not in str(told.value)


@pytest.mark.parametrize(
    ("spare", "config", "told"),
    [
        ("dev-1", KEPT, "'dev-1' is not a spare: operators are placed on it"),
        ("dev-9", KEPT, "spare 'dev-9' is not a TaskManager of the cluster"),
        ("dev-2", DELETED, "deletes its checkpoints when it ends.*=RETAIN_ON_CANCELLATION"),
        ("dev-2", KEPT | {"checkpoint_storage": "JobManagerCheckpointStorage"}, "JobManager's mem"),
        ("dev-2", failure("none", status=404), "takes no checkpoints"),
    ],
)
def test_what_would_hinder_a_spare_is_told_at_once(watched, spare, config, told):
    """While all is well."""
    watched.flink.answers[f"GET /jobs/{OLD}/checkpoints/config"] = config
    with pytest.raises(StreamplaceError, match=told):
        watched.watch(mover=watched.mover(spare))


def test_a_spare_that_a_watch_has_used_is_no_error_when_it_begins_again(watched):
    decided(watched.log, "older", OLD, "replace")
    assert watched.watch(now("CANCELED"), mover=watched.mover("dev-1", "dev-9")) == "CANCELED"


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ({"GET /jobs": jobs({NEW: "RUNNING"})}, f"by another command, and is now job {NEW}"),
        (
            {f"GET /jobs/{OLD}/checkpoints": checkpoints(7, savepoint=stopped("s3://b/sp"))},
            "was stopped with a savepoint; its state is in s3://b/sp",
        ),
    ],
)
def test_what_others_do_to_the_job_ends_the_watch_with_an_error(watched, answers, told):
    with pytest.raises(FlinkError, match=told):
        watched.watch(now("FINISHED") | answers)


@pytest.mark.parametrize("length", [2, 12])
def test_a_job_is_known_by_its_first_id_whatever_it_was_started_as_since(watched, length):
    """The same command finds it after one start elsewhere, and after many."""
    log, chain = watched.log, chain_of(OLD, length)
    for before, after in pairwise(chain):
        decided(log, before, after)
    watched.flink.answers[f"GET /jobs/{OLD}"] = UNKNOWN
    watched.flink.answers["GET /jobs/other"] = job("shop", "RUNNING", {})
    assert first_job(watched.flink.rest, Store.usual(), OLD) == chain[-1]
    assert first_job(watched.flink.rest, Store.usual(), "other") == "other"


def test_a_decision_whose_outcome_is_unknown_starts_nothing_after_a_later_one(watched):
    """The disk was full when its outcome was to be written."""
    mover = watched.mover()
    mover.log.begin(WatchDecision("", "replace", OLD, NEW, {"map": ["dev-1"]}, (1, 1), ""))
    decided(mover.log, NEW, NEXT)
    assert finish_earlier(watched.flink.rest, mover, mover.log, NEXT) == NEXT
    assert [one.state for one in mover.log.decisions.values()] == ["not begun", "moved"]


@pytest.fixture
def commanded(run, watched, tmp_path, monkeypatch):
    """Watch by command a job of a placement that is started elsewhere, and cancelled then."""

    def by(started=lambda: None):
        def restart(move, name, layout):
            started()
            return restarted(name, layout)

        monkeypatch.setattr(FlinkMove, "check", lambda *_: None)
        monkeypatch.setattr(FlinkMove, "restart", restart)
        monkeypatch.setattr(watching, "CHECK_SECONDS", 0.01)
        flink: FakeFlink = watched.flink
        flink.answers |= lost("dev-0", "dev-1") | now("CANCELED", NEW)
        carries = {"low": 80, "value": 100, "high": 120, "confidence": 0.9}
        assignment = {"a": "dev-0", "b": "dev-1", "d": "dev-3"}
        placed = {"graph": "g", "assignment": assignment, "carries": carries}
        (tmp_path / "p.json").write_text(json.dumps(placed))
        write_program(tmp_path)
        given = settings_file(tmp_path, patience=0)
        with flink.served():
            where = ("--rest", flink.url, "--placement", "p.json", "-o", "where.json")
            return run("flink", "watch", "job.jar", "--apply", *given, *where)

    return by


@pytest.mark.parametrize("can_write", [True, False])
def test_where_a_job_runs_is_written_for_verify_if_that_is_possible(
    commanded, tmp_path, *, can_write
):
    """Without lost devices; the new id is printed, and why the command ends.

    A watch goes on where it cannot write: it has started the job, and nobody else watches it.
    """
    file = tmp_path / "where.json"
    answer = commanded() if can_write else commanded(file.mkdir)
    assert (answer.status, answer.out) == (0, f"{NEW}\n"), answer.err
    assert f"job {NEW} is CANCELED" in answer.err
    assert ("warning: " in answer.err) is not can_write
    if can_write:
        moved = {"a": "dev-2", "b": "dev-2", "d": "dev-3"}
        assert json.loads(file.read_text()) == {"assignment": moved}
    (record,) = read_watches(Store.usual())
    assert [(one.kind, one.state) for one in record.decisions] == [("replace", "moved")]


def test_a_job_whose_jar_has_changed_is_not_ended(commanded, watched, tmp_path):
    """It would be another job."""

    def gone():
        (tmp_path / "job.jar").write_bytes(b"a later build")
        return now("RESTARTING")[f"GET /jobs/{OLD}"]

    ended = job("shop", "CANCELED", {})
    running = [job("shop", "RUNNING", {})] * 2
    watched.flink.answers[f"GET /jobs/{OLD}"] = InTurn(*running, *[gone] * 6, ended)
    answer = commanded()
    assert (answer.status, answer.out) == (0, ""), answer.err
    assert "job.jar is not the jar any more that the job was submitted with" in answer.err
    assert "the job is not started elsewhere" in answer.err
    assert watched.flink.requests("PATCH") == []


HERE = layout_option(["dev-0", "dev-0"], 100.0)
MORE = layout_option(["dev-0", "dev-1"], 200.0, moves=1)
MODEL = JobModel(HERE, (MORE,), (1, 2), "the CPU of dev-0")
RUNNING, ENDED = job("shop", "RUNNING", {"map": "RUNNING"}), job("shop", "CANCELED", {})


@pytest.fixture
def flink(monkeypatch):
    """A job on one of two TaskManagers that is held back there, and is cancelled then."""
    counts, managers = CheckpointTotals(1, 0), frozenset(["dev-0", "dev-1"])
    sample = JobSample(0.0, OLD, 104.0, True, None, HERE.layout, counts, managers)
    monkeypatch.setattr(passing, "sample_of", lambda _, __, at: replace(sample, at=at))
    monkeypatch.setattr(modelling.JobModeller, "__call__", lambda *_: MODEL)
    monkeypatch.setattr(watching, "CHECK_SECONDS", 0.01)
    answers: dict[str, Any] = healthy("dev-0", "dev-1") | {
        f"GET /jobs/{OLD}": InTurn(*[RUNNING] * 4, ENDED),
        **on_devices(OLD, {"map": ["dev-0"]}),
        "GET /jobs": jobs({OLD: "RUNNING"}),
    }
    with FakeFlink(answers).served() as answering:
        yield answering


def test_a_watch_without_options_looks_and_changes_nothing(run, flink):
    """It needs neither the jar nor a Flink on this machine."""
    answer = run("flink", "watch", "--rest", flink.url, "--policy", "ds2")
    assert (answer.status, answer.out) == (0, ""), answer.err
    deployed, first, second, last = answer.err.splitlines()
    assert deployed.startswith("deployment: Flink ")
    state = "104 tuples/s on 1 TaskManager, held back"
    assert first.endswith(f"  {state}; it is measured before the next round")
    assert f"  {state}; it carries 104 tuples/s (measured); a move would pay: it falls" in second
    assert second.endswith("at 124.8 tuples/s; dev-0, dev-1 should carry 200 tuples/s (180 to 220)")
    assert last == f"job {OLD} is CANCELED"
    assert {request.partition(" ")[0] for request, _ in flink.asked} == {"GET"}
    (record,) = read_watches(Store.usual())
    assert (record.name, record.job, len(record.rounds)) == ("shop", OLD, 1)
    assert record.rounds[0].capacity == pytest.approx((0.97 * 104.0, 180.0))
    assert record.decisions == ()


def test_options_that_cannot_be_meant_are_refused_before_anything_is_looked_at(refusal, flink):
    """By the name of the option."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for options, told in {
            ("--apply", "--not-between", "8-18"): "--not-between is '8-18'; it must be two times",
            ("--apply", "--not-between", "08:00Z-18:00Z"): "two times of this machine's clock",
            ("--policy", "magic"): "magic",
            ("--metrics", str(port)): f"port {port} cannot be used for metrics",
            ("--apply",): "name its jar and arguments",
        }.items():
            assert told in refusal("flink", "watch", "--rest", flink.url, *options), options
    assert read_watches(Store.usual()) == [] or not read_watches(Store.usual())[0].rounds


def test_a_watch_of_a_job_that_the_adaptive_scheduler_runs_is_refused(refusal, flink):
    """Also if it only looks: no plan could ever be carried out."""
    flink.answers[f"GET /jobs/{OLD}"] = RUNNING | {"schedulerType": "Adaptive"}
    for options in ((), ("--apply",), ("--spare", "dev-1")):
        told = refusal("flink", "watch", "--rest", flink.url, *options)
        assert f"job {OLD} cannot be watched: the scheduler is Adaptive, which ignores" in told
        assert "or leave its parallelism to Flink's autoscaler" in told


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_watch_ends_in_order_however_it_is_asked_to(run, flink, monkeypatch, how):
    """As by systemd or 'docker stop', so that a move that is under way is undone first."""

    def ignored(*_):
        raise AssertionError("the signal interrupts nothing")

    def asked(*_):
        os.kill(os.getpid(), how)
        time.sleep(5)

    before = signal.signal(how, ignored)
    try:
        monkeypatch.setattr(watching.Watch, "run", asked)
        answer = run("flink", "watch", "--rest", flink.url)
        assert signal.getsignal(how) is ignored
    finally:
        signal.signal(how, before)
    assert (answer.status, answer.out) == (0, ""), answer.err
    assert answer.err.endswith("\nstopped watching; the job keeps running\n")


@pytest.mark.parametrize("state", ["RUNNING", "RESTARTING"])
def test_a_job_that_the_watch_has_moved_is_not_where_the_given_placement_says(
    run, flink, monkeypatch, tmp_path, state
):
    """The same command is given again after the watch was killed."""
    seen: list[Any] = []
    monkeypatch.setattr(watching.Watch, "run", lambda _, *placed: seen.append(placed))
    decided(WatchLog.claimed(Store.usual(), OLD, "shop", print), OLD, NEW, where="dev-0")
    flink.answers |= {
        f"GET /jobs/{OLD}": job("shop", "FINISHED", {}),
        f"GET /jobs/{NEW}": job("shop", state, {"map": "RUNNING"}),
        **on_devices(NEW, {"map": ["dev-0"]}),
        "GET /jobs": jobs({OLD: "FINISHED", NEW: state}),
    }
    (tmp_path / "p.json").write_text('{"assignment": {"map": "dev-1"}}')
    for given in (("--job", OLD), ()):
        answer = run("flink", "watch", "--rest", flink.url, "--placement", "p.json", *given)
        assert answer.status == 0, answer.err
    assert seen == [(NEW, Layout({"map": ["dev-0"]}))] * 2


CARRIES = RateInterval(90.0, 100.0, 110.0)
ROUND = WatchRound("2026-05-04T10:00:00", 60.0, "a", 50.0, 55.0, True, 7.0, 2, CARRIES)


def test_metrics_are_served_on_loopback_alone():
    """A job that took the place of another is counted; a name may contain anything."""
    metrics = WatchMetrics('a "b"\n\\')
    with served(metrics, 0) as port:
        with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            assert "streamplace_watch_rounds_total" in (first := answer.read().decode())
        assert "streamplace_watch_rate{" not in first
        with pytest.raises(URLError):  # it would answer here if it listened on all addresses
            urlopen(f"http://127.0.0.2:{port}/metrics")
        metrics.add(ROUND)
        metrics.add(replace(ROUND, job="b", is_limited=False))
        with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=")
            lines = answer.read().decode().splitlines()
    job = r'job="a \"b\"\n\\"'
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert float(values.pop(f"streamplace_watch_last_round_timestamp_seconds{{{job}}}")) > 1e9
    assert values == {
        f"streamplace_watch_rate{{{job}}}": "50.0",
        f"streamplace_watch_arriving{{{job}}}": "55.0",
        f"streamplace_watch_backlog{{{job}}}": "7.0",
        f"streamplace_watch_held_back{{{job}}}": "0.0",
        f"streamplace_watch_taskmanagers{{{job}}}": "2.0",
        f'streamplace_watch_capacity{{end="low",{job}}}': "90.0",
        f'streamplace_watch_capacity{{end="predicted",{job}}}': "100.0",
        f'streamplace_watch_capacity{{end="high",{job}}}': "110.0",
        f"streamplace_watch_rounds_total{{{job}}}": "2.0",
        f"streamplace_watch_started_total{{{job}}}": "1.0",
    }
    assert sum(line.startswith("# TYPE") for line in lines) == 9


def test_a_client_that_breaks_off_is_not_told_of(capfd):
    """On stderr are the rounds; and others are answered."""
    with served(WatchMetrics("shop"), 0) as port:
        client = socket.create_connection(("127.0.0.1", port))
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost:")
        client.close()  # with a reset
        with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            assert answer.status == 200
        time.sleep(0.2)
    assert capfd.readouterr().err == ""

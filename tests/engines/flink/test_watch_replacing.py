"""Replacements of lost TaskManagers are carried out once, whenever the watch is killed."""

from dataclasses import replace
from typing import Any

import pytest
from fake_flink import FakeFlink, InTurn, failure
from flink_documents import KEPT, failed_by, healthy, job, jobs, task_manager
from watched_jobs import (
    CHECKPOINTED,
    OLD,
    RESTORED,
    SAVED,
    Killed,
    lacking,
    outcome,
    replacing_of,
    starts_by,
)

from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.move.saving import Savepoint
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.rest.client import FlinkError, Rest
from streamplace.engines.flink.rest.job_ids import chain_of, successor
from streamplace.engines.flink.watch import replacing
from streamplace.engines.flink.watch import watch as watching
from streamplace.engines.flink.watch.log import WatchLog
from streamplace.engines.flink.watch.replacing import PlacedJob
from streamplace.engines.flink.watch.watch import Watch, first_job, settled
from streamplace.errors import PlacementError
from streamplace.io.store import Store
from streamplace.io.watches import WatchDecision, read_records

NEW = successor(OLD)
RUNNING = job("shop", "RUNNING", {"map": "RUNNING"})
RESTARTING = job("shop", "RESTARTING", {})
FINISHED = job("shop", "FINISHED", {})
REPLACEMENT = WatchDecision("", "replace", OLD, SAVED, {"map": ["dev-1"]}, (1, 1), "")
"""A decision that a watch has begun to carry out."""
PLACED = PlacedJob(OLD, Layout.from_json({"map": "dev-0"}))


@pytest.fixture
def flink(monkeypatch: pytest.MonkeyPatch) -> FakeFlink:
    """A cluster of three on which the job runs, and takes checkpoints; watches look often."""
    for module in (watching, replacing):
        monkeypatch.setattr(module, "LOOK_SECONDS", 0.01)
    return FakeFlink(
        healthy("dev-0", "dev-1", "dev-2")
        | {
            f"GET /jobs/{OLD}": RUNNING,
            f"GET /jobs/{OLD}/checkpoints/config": KEPT,
            f"GET /jobs/{OLD}/checkpoints": CHECKPOINTED,
            "GET /jobs": jobs({OLD: "RUNNING"}),
            "GET /jobs/new/checkpoints": RESTORED,
            "GET /jobs/new/checkpoints/config": KEPT,
        }
    )


def lose_device(flink: FakeFlink, *of_job: Any) -> None:
    """Let the cluster lose dev-0 after a look, and answer of the job, one after the other."""
    present = flink.answers["GET /taskmanagers"]
    flink.answers |= {
        "GET /taskmanagers": InTurn(present, lacking(flink.answers, "dev-0")),
        f"GET /jobs/{OLD}": InTurn(*of_job),
    }


def watch_of(flink: FakeFlink, own: WatchLog | None, told: list[str]) -> Watch:
    """A watch of a job on dev-0, which takes what is free for what is lost."""
    own = own or WatchLog.claimed(Store.usual(), OLD, "shop", told.append)
    facts: dict[str, Any] = {"seconds": 1.0, "takes_free": True}
    return Watch(replacing_of(flink, own, told.append, **facts))


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Layout]:
    """Placements with which the watch has started the job again, as job "new"."""
    seen: list[Layout] = []

    def apply(*given: Any, **_: Any) -> str:
        seen.append(given[3])
        return "new"

    starts_by(monkeypatch, apply)
    monkeypatch.setattr(Rest, "cancel", lambda *_: None)
    return seen


@pytest.mark.parametrize("killed", ["before", "in", "after"])
def test_a_replacement_is_written_first_and_finished_once(
    flink: FakeFlink, store: Store, monkeypatch: pytest.MonkeyPatch, killed: str
) -> None:
    """The watch is killed before it cancels the job, before it starts it, and while it starts."""
    told: list[str] = []
    started: list[Layout] = []

    def apply(*given: Any, **_: Any) -> str:
        if killed == "in" and not started and "again" not in told:
            raise Killed
        started.append(given[3])
        flink.answers["GET /jobs"] = jobs({"new": "RUNNING"})
        if killed == "after" and "again" not in told:
            raise Killed
        return "new"

    starts_by(monkeypatch, apply)
    ended = [] if killed == "before" else [job("shop", "CANCELED", {})]
    lose_device(flink, *[RESTARTING] * 3, *ended)
    if killed == "before":
        monkeypatch.setattr(Rest, "cancel", lambda *_: (_ for _ in ()).throw(Killed()))
    if killed == "after":  # a source that has ended is no fault
        states_of_tasks = {"map": "RUNNING", "file": "FINISHED"}
        flink.answers["GET /jobs/new"] = job("shop", "RUNNING", states_of_tasks)
    own = WatchLog.claimed(store, OLD, "shop", told.append)
    with pytest.raises(Killed):
        watch_of(flink, own, told).run(PLACED)
    assert outcome(store) == ("begun", "")
    if killed == "in":
        flink.answers["GET /jobs"] = jobs({OLD: "CANCELED"})
    told.append("again")
    assert first_job(flink.rest, store, None) == OLD
    again = WatchLog.claimed(store, OLD, "shop", told.append)
    now = settled(watch_of(flink, again, told), None, again, OLD)
    assert (now, outcome(store)) == (
        (OLD, ("not begun", OLD)) if killed == "before" else ("new", ("moved", "new"))
    )
    assert started == ([] if killed == "before" else [{"map": "dev-1"}])
    assert "/jobs/new" not in flink.requests("PATCH")


def test_a_job_keeps_the_settings_that_it_was_submitted_with(
    flink: FakeFlink, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those that the watch was not given: the state of RocksDB fits no other backend."""
    given: list[Program] = []

    def apply(*arguments: Any, **_: Any) -> str:
        given.append(arguments[2])
        return "new"

    starts_by(monkeypatch, apply)
    monkeypatch.setattr(Rest, "cancel", lambda *_: None)
    lose_device(flink, RESTARTING)
    flink.answers |= {
        "GET /jobs/new": FINISHED,
        f"GET /jobs/{OLD}/config": {"execution-config": {"object-reuse-mode": True}},
        f"GET /jobs/{OLD}/checkpoints/config": KEPT
        | {"interval": 5000, "state_backend": "EmbeddedRocksDBStateBackend"},
    }
    own = WatchLog.claimed(store, OLD, "shop", print)
    watch_of(flink, own, []).run(PLACED)
    (program,) = given
    assert program.settings["state.backend.type"] == "rocksdb"
    assert program.settings["execution.checkpointing.interval"] == "5000 ms"
    assert program.settings["pipeline.object-reuse"] == "true"


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_job_continues_from_what_it_has_saved_until_it_ended(
    flink: FakeFlink, store: Store, monkeypatch: pytest.MonkeyPatch, is_killed: bool
) -> None:
    """Flink was silent for a while, and deletes older checkpoints."""
    later = {"completed": {"id": 9, "external_path": "s3://b/chk-9"}}
    saved = {"counts": {"completed": 9}, "latest": later}
    paths: list[str] = []

    def apply(*_: Any, savepoint: Savepoint, **__: Any) -> str:
        paths.append(savepoint.path)
        return "new"

    def cancel(*_: Any) -> str:
        flink.answers |= {
            f"GET /jobs/{OLD}/checkpoints": saved,
            "GET /jobs": jobs({OLD: "CANCELED"}),
        }
        if is_killed:
            raise Killed
        return "CANCELED"

    starts_by(monkeypatch, apply)
    monkeypatch.setattr(Rest, "cancel", cancel)
    lose_device(flink, RESTARTING)
    flink.answers["GET /jobs/new"] = FINISHED
    own = WatchLog.claimed(store, OLD, "shop", print)
    watch, run = watch_of(flink, own, []), PLACED
    if is_killed:
        with pytest.raises(Killed):
            watch.run(run)
        again = WatchLog.claimed(store, OLD, "shop", print)
        assert settled(watch_of(flink, again, []), None, again, OLD) == "new"
    else:
        assert watch.run(run) == "FINISHED"
    assert (paths, outcome(store)) == (["s3://b/chk-9"], ("moved", "new"))


def test_the_other_task_managers_take_over_where_none_is_free(
    flink: FakeFlink, store: Store, monkeypatch: pytest.MonkeyPatch, started: list[Layout]
) -> None:
    """As Flink would use them itself: a job that is pinned must not wait for a lost one."""
    monkeypatch.setattr(replacing, "unfit", lambda *_: None)
    lose_device(flink, RESTARTING)
    flink.answers["GET /jobs/new"] = FINISHED
    told: list[str] = []
    own = WatchLog.claimed(store, OLD, "shop", told.append)
    vectors = {
        "map": ["dev-0", "dev-0", "dev-1", "dev-2"],
        "sink": "dev-0",
        "whole": ["dev-0", "dev-0"],
    }
    watch_of(flink, own, told).run(PlacedJob(OLD, Layout.from_json(vectors)))
    (decision,) = own.decisions.values()
    assert started == [
        {
            "map": ["dev-1", "dev-2", "dev-1", "dev-2"],
            "sink": "dev-1",
            "whole": ["dev-2", "dev-2"],
        }
    ]
    assert decision.reason == "lost TaskManagers: none for dev-0"
    assert decision.machines == (3, 2)


def test_a_job_that_loses_its_device_right_after_a_move_is_replaced_there(
    flink: FakeFlink, store: Store, started: list[Layout]
) -> None:
    """Flink shows no layout of a job that restarts, but the decision to move it does."""
    present = flink.answers["GET /taskmanagers"]
    told: list[str] = []
    own = WatchLog.claimed(store, OLD, "shop", told.append)

    class Moving:
        """Rounds, the first of which moves the job to dev-0, which is lost at once."""

        log, is_due = own, True

        def pass_round(self, job: str) -> str:
            decision = WatchDecision("", "move", job, "moved", {"map": ["dev-0"]}, (3, 1), "")
            own.end(own.begin(decision), decision, "moved", "", "moved")
            flink.answers["GET /taskmanagers"] = lacking(flink.answers, "dev-0")
            return "moved"

    flink.answers |= {
        "GET /taskmanagers": present,
        "GET /jobs/moved": job("shop", "RESTARTING", {"map": "CREATED"}),
        "GET /jobs/moved/checkpoints": flink.answers[f"GET /jobs/{OLD}/checkpoints"],
        "GET /jobs/moved/checkpoints/config": KEPT,
        "GET /jobs/new": FINISHED,
    }
    watch = replace(watch_of(flink, own, told), rounds=Moving())
    watch.run(PlacedJob(OLD, Layout({"map": ["dev-0", "dev-1", "dev-2"]})))
    assert started == [{"map": ["dev-1"]}]


def test_a_replacement_whose_job_still_ends_is_finished(
    flink: FakeFlink, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watch was killed after it had cancelled the job, whose tasks take a while to end."""
    starts_by(monkeypatch, lambda *_, **__: "new")
    cancelled: list[str] = []
    monkeypatch.setattr(Rest, "cancel", lambda _, job: cancelled.append(job))
    own = WatchLog.claimed(store, OLD, "shop", print)
    own.begin(REPLACEMENT)
    flink.answers["GET /jobs"] = jobs({OLD: "CANCELLING"})
    assert settled(watch_of(flink, own, []), None, own, OLD) == "new"
    assert cancelled == [OLD]
    assert outcome(store) == ("moved", "new")


def test_whether_a_suspended_job_was_cancelled_for_its_replacement_is_waited_for(
    flink: FakeFlink, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next leading JobManager tells; a job that goes on is not replaced any more."""
    starts_by(monkeypatch, lambda *_, **__: "new")
    own = WatchLog.claimed(store, OLD, "shop", print)
    own.begin(REPLACEMENT)
    flink.answers |= {
        "GET /jobs": jobs({OLD: "SUSPENDED"}),
        f"GET /jobs/{OLD}": InTurn(*(job("shop", s, {}) for s in ("SUSPENDED", "CANCELED"))),
        "GET /jobs/new/checkpoints/config": KEPT,
    }
    told: list[str] = []
    assert settled(watch_of(flink, own, told), None, own, OLD) == "new"
    assert f"job {OLD} is suspended until a JobManager takes it over; trying again" in told
    assert outcome(store) == ("moved", "new")


def test_a_job_without_state_that_a_killed_watch_has_ended_is_not_said_to_be_cancelled(
    flink: FakeFlink, store: Store
) -> None:
    """The next watch says what to do, and does not end as if a user had ended the job."""
    own = WatchLog.claimed(store, OLD, "shop", print)
    own.begin(WatchDecision("", "replace", OLD, "", {"map": ["dev-1"]}, (1, 1), ""))
    flink.answers["GET /jobs"] = jobs({OLD: "CANCELED"})
    flink.answers[f"GET /jobs/{OLD}/checkpoints"] = {"counts": {"completed": 0}, "latest": {}}
    with pytest.raises(FlinkError, match="saved no state, so start it again as it was first subm"):
        settled(watch_of(flink, own, []), None, own, OLD)
    assert outcome(store) == ("failed", "")


def test_a_decision_whose_outcome_is_unknown_starts_nothing_after_a_later_one(
    flink: FakeFlink, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk was full when the outcome of the replacement was to be written."""
    started: list[Any] = []
    monkeypatch.setattr(replacing, "apply", lambda *given, **_: started.append(given) or "copy")
    own = WatchLog.claimed(store, OLD, "shop", print)
    own.begin(REPLACEMENT)
    later = WatchDecision("", "move", "new", "newer", {"map": ["dev-2"]}, (1, 1), "")
    own.end(own.begin(later), later, "moved", "", "newer")
    flink.answers["GET /jobs"] = jobs({OLD: "CANCELED", "newer": "RUNNING"})
    assert settled(watch_of(flink, own, []), None, own, "newer") == "newer"
    assert started == []
    first, second = read_records(store)[0].decisions
    assert (first.state, second.state) == ("not begun", "moved")


@pytest.mark.parametrize(("state", "looks"), [("CANCELED", 2), ("FINISHED", 3), ("FINISHED", 0)])
def test_a_job_that_ends_before_it_is_ended_for_a_replacement_is_not_started_again(
    flink: FakeFlink, store: Store, monkeypatch: pytest.MonkeyPatch, state: str, looks: int
) -> None:
    """It is looked at right before it is cancelled, and so is what the cancelling has ended.

    Its user has cancelled it, or its last subtasks were on TaskManagers that are there.
    """
    started: list[Any] = []
    starts_by(monkeypatch, lambda *given, **_: started.append(given) or "copy")
    ended, own = job("shop", state, {}), WatchLog.claimed(store, OLD, "shop", print)
    if looks:
        lose_device(flink, *[RESTARTING] * looks, ended)
    else:  # killed after it had decided
        own.begin(REPLACEMENT)
        flink.answers |= {"GET /jobs": jobs({OLD: state}), f"GET /jobs/{OLD}": ended}
        assert settled(watch_of(flink, own, []), None, own, OLD) == OLD
    assert watch_of(flink, own, []).run(PLACED) == state
    assert (started, outcome(store)) == ([], ("not begun", OLD))


@pytest.mark.parametrize("has_moved", [False, True])
def test_a_spare_that_a_watch_has_used_is_no_error_when_it_begins_again(
    flink: FakeFlink, store: Store, has_moved: bool
) -> None:
    told: list[str] = []
    own = WatchLog.claimed(store, OLD, "shop", told.append)
    if has_moved:
        decision = WatchDecision("", "replace", "older", SAVED, {"map": ["dev-1"]}, (1, 1), "")
        own.end(own.begin(decision), decision, "moved", "", OLD)
    one = replace(watch_of(flink, own, told).replacing, spares=("dev-1", "dev-9"))
    run = PlacedJob(OLD, Layout.from_json({"map": "dev-1"}))
    if not has_moved:
        with pytest.raises(PlacementError, match="'dev-1' is not a spare: operators are placed"):
            one.check(run)
        return
    one.check(run)
    assert told == [
        "note: 'dev-1' is not a spare: operators are placed on it now",
        "note: spare 'dev-9' is not a TaskManager of the cluster now",
    ]


@pytest.mark.parametrize(
    "tasks",
    [
        {"map": ("dev-2", "RUNNING")},  # not where it was placed: Flink itself has started it there
        {"map": ("dev-2", "INITIALIZING")},
        {"src": ("dev-0", "FINISHED"), "map": ("dev-1", "RUNNING")},
    ],
)
def test_a_job_that_goes_on_without_a_lost_device_is_left_where_it_is(
    flink: FakeFlink, tasks: dict[str, tuple[str, str]]
) -> None:
    """Also while it restores its state, and where all subtasks there have ended."""
    states = {task: status for task, (_, status) in tasks.items()}
    lose_device(flink, *[job("shop", "RUNNING", states)] * 3, FINISHED)
    for task, (device, status) in tasks.items():
        subtasks = [{"taskmanager-id": device, "status": status}]
        flink.answers[f"GET /jobs/{OLD}/vertices/{task}"] = {"subtasks": subtasks}
    told: list[str] = []
    run = PlacedJob(OLD, Layout.from_json(dict(zip(tasks, ("dev-0", "dev-1"), strict=False))))
    assert watch_of(flink, None, told).run(run) == "FINISHED"
    assert told[1] == f"job {OLD} goes on without 'dev-0'"
    assert flink.requests("PATCH") == []


def test_a_job_that_fits_on_no_free_task_manager_is_not_ended(flink: FakeFlink) -> None:
    """Nobody has named them as spares, so they are tried before anything is stopped."""
    full = task_manager("dev-1", [])
    full["totalResource"] = {"managedMemory": 100}  # it is not configured for placements
    full["freeResource"] = full["totalResource"]
    present = flink.answers["GET /taskmanagers"]
    flink.answers |= {
        "GET /taskmanagers": InTurn(present, {"taskmanagers": [full]}),
        f"GET /jobs/{OLD}": InTurn(*[RESTARTING] * 5, FINISHED),
    }
    told: list[str] = []
    watch_of(flink, None, told).run(PLACED)
    assert sum("nothing replaces 'dev-0'" in line for line in told) == 1, told
    assert flink.requests("PATCH") == []


def test_a_watch_that_only_looks_ends_when_the_job_has_failed(flink: FakeFlink) -> None:
    """Though a TaskManager is lost: nothing of this watch could replace it."""
    lose_device(flink, job("shop", "FAILED", {}))
    flink.answers[f"GET /jobs/{OLD}/exceptions"] = failed_by("a.B")
    looking = Watch(replace(watch_of(flink, None, []).replacing, takes_free=False))
    with pytest.raises(FlinkError, match=f"job {OLD} failed: a.B"):
        looking.run(PLACED)


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        (
            {"GET /jobs": jobs({NEW: "RUNNING"})},
            f"was moved by another command, and is job {NEW} now",
        ),
        (
            {
                f"GET /jobs/{OLD}/checkpoints": {
                    "counts": {"completed": 7},
                    "latest": {
                        "savepoint": {
                            "id": 8,
                            "external_path": "s3://b/sp",
                            "checkpoint_type": "SYNC_SAVEPOINT",
                        }
                    },
                }
            },
            "was stopped with a savepoint; its state is in s3://b/sp",
        ),
    ],
)
def test_what_others_do_to_the_job_ends_the_watch_with_an_error(
    flink: FakeFlink, answers: dict[str, Any], told: str
) -> None:
    flink.answers |= {f"GET /jobs/{OLD}": FINISHED, **answers}
    with pytest.raises(FlinkError, match=told):
        watch_of(flink, None, []).run(PLACED)


@pytest.mark.parametrize("later", [["new"], chain_of(OLD, 12)[1:]])
def test_a_job_is_known_by_its_first_id_whatever_it_was_started_as_since(
    flink: FakeFlink, store: Store, later: list[str]
) -> None:
    """The same command finds it: after a replacement, and after many moves."""
    own, now = WatchLog.claimed(store, OLD, "shop", print), OLD
    for after in later:
        kind = "replace" if after == "new" else "move"
        decision = WatchDecision("", kind, now, after, {"map": ["dev-1"]}, (1, 1), "")
        own.end(own.begin(decision), decision, "moved", "", after)
        now = after
    flink.answers[f"GET /jobs/{OLD}"] = failure("a.B: Could not find Flink job", status=404)
    assert first_job(flink.rest, store, OLD) == now

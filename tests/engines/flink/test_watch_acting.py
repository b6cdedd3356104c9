"""Decisions of a watch are carried out once, whenever the watch is killed."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from fake_flink import FakeFlink, InTurn
from flink_documents import KEPT, failed_by, healthy, job, jobs, task_manager

from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.move.holder import Holder
from streamplace.engines.flink.move.journal import MoveUnderWay
from streamplace.engines.flink.move.move import MovePlan
from streamplace.engines.flink.move.outcomes import FlinkMoved, Undecided
from streamplace.engines.flink.move.settling import SourceFlow
from streamplace.engines.flink.pin.pinning import Vectors
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.rest.client import FlinkError, NoAnswer, Rest
from streamplace.engines.flink.rest.job_ids import successor
from streamplace.engines.flink.watch import acting, log
from streamplace.engines.flink.watch import watch as watching
from streamplace.engines.flink.watch.acting import WatchMover
from streamplace.engines.flink.watch.log import WatchLog
from streamplace.engines.flink.watch.placed_job import PlacedJob
from streamplace.engines.flink.watch.plans import JobModel, WatchPlan
from streamplace.engines.flink.watch.starting import first_job, settled
from streamplace.engines.flink.watch.watch import Watch
from streamplace.engines.live import Verification
from streamplace.errors import PlacementError, SettingError, StreamplaceError
from streamplace.io.ledger import read_ledger
from streamplace.io.watch_store import (
    JobWatched,
    StoreError,
    WatchDecision,
    WatchStore,
    read_records,
)
from streamplace.model.intervals import RateInterval

OLD = "a" * 32
NEW, BACK = successor(OLD), successor(successor(OLD))
CARRIES = RateInterval(90.0, 100.0, 110.0)
NOW, THERE = WatchPlan(1, {"map": ["a"]}, CARRIES), WatchPlan(2, {"map": ["b"]}, CARRIES)
MODEL = JobModel(OLD, "shop", (NOW, THERE), 0, NOW, "")


class Killed(BaseException):
    """The watch is killed: nothing after this happens."""


@dataclass
class Moves:
    """A cluster with a job, and what moves it as ``FlinkMove`` does.

    Attributes
    ----------
    killed
        Step at which the watch is killed: before the move, in it, or after it.
    """

    states: dict[str, str] = field(default_factory=lambda: {OLD: "RUNNING"})
    killed: str = ""
    failure: StreamplaceError | None = None
    starts: int = 0
    journals: list[Any] = field(default_factory=list)
    rest: Any = field(default_factory=lambda: FakeFlink(healthy("a", "b")).rest)

    def plan(self, job: str, vectors: Vectors) -> MovePlan:
        """Whatever is placed fits."""
        return MovePlan(job, {"map": ["a"]}, {"map": [*vectors["map"]]})

    def run(self, plan: MovePlan) -> FlinkMoved:
        """Stop the job and start its successor."""
        if self.failure is not None:
            raise self.failure
        if self.killed == "before":
            raise Killed
        self.journals = [type("Journal", (), {"job": OLD, "successor": NEW})()]
        self.states[OLD] = "FINISHED"
        if self.killed == "in":
            raise Killed
        return self.resume(OLD)

    def resume(self, _: str) -> FlinkMoved:
        """Start the successor."""
        self.starts += 1
        self.states[NEW] = "RUNNING"
        self.journals = []
        if self.killed == "after":
            raise Killed
        return FlinkMoved(NEW, 1.5, "file:///s/1")

    def unfinished_moves(self) -> list[Any]:
        """Moves that were begun."""
        return self.journals


@pytest.fixture
def store(tmp_path: Path) -> WatchStore:
    """A store without watches."""
    return WatchStore(tmp_path / "watch.sqlite")


@pytest.fixture
def mover(
    store: WatchStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Moves], WatchMover]:
    """What a new process moves the job with."""

    def make(moves: Moves) -> WatchMover:
        monkeypatch.setattr(acting, "chain_states", lambda *_: moves.states)
        monkeypatch.setattr(acting, "source_flow", lambda *_: SourceFlow(95.0))
        told: list[str] = []
        own = WatchLog.claimed(store, OLD, "shop", told.append)
        move: Any = moves
        return WatchMover(move, own, told.append, tmp_path / "ledger.jsonl", 0.9)

    return make


def outcome(store: WatchStore) -> tuple[str, str]:
    """State of the only decision, and the id of the job that it left."""
    (decision,) = store.records(9)[0].decisions
    return decision.state, decision.after


def test_a_move_is_written_with_what_it_predicted_and_measured(
    mover: Callable[[Moves], WatchMover], store: WatchStore, tmp_path: Path
) -> None:
    one = mover(Moves())
    told: list[str] = []
    assert replace(one, tell=told.append).carry_out(MODEL, THERE, "the rate grew") == NEW
    assert told[-1] == "no job has a slot on 'a' any more"
    (decision,) = store.records(9)[0].decisions
    assert (decision.transaction, decision.layout) == (NEW, {"map": ["b"]})
    assert (decision.reason, decision.machines) == ("the rate grew", (1, 1))
    assert (decision.state, decision.outcome) == ("moved", "interrupted for 1.5 s")
    assert (decision.value, decision.measured) == (100.0, 95.0)
    assert store.jobs() == [NEW]
    (entry,) = read_ledger(tmp_path / "ledger.jsonl").entries
    assert (entry.job, entry.by, entry.measured) == ("shop", "flink watch", 95.0)


@pytest.mark.parametrize(
    ("killed", "starts", "found"),
    [("before", 0, ("not begun", OLD)), ("in", 1, ("moved", NEW)), ("after", 1, ("moved", NEW))],
)
def test_a_watch_that_was_killed_finds_out_and_starts_no_job_twice(
    mover: Callable[[Moves], WatchMover],
    store: WatchStore,
    killed: str,
    starts: int,
    found: tuple[str, str],
) -> None:
    """Before the move, after the job was stopped, and after its successor was started."""
    moves = Moves(killed=killed)
    with pytest.raises(Killed):
        mover(moves).carry_out(MODEL, THERE, "")
    assert outcome(store) == ("begun", "")
    moves.killed = ""
    again = mover(moves)
    ((number, decision),) = store.decisions(again.log.watch).items()
    assert again.finish(number, decision, "shop") == found[1]
    assert outcome(store) == found
    assert moves.starts == starts


@pytest.mark.parametrize(
    ("states", "found"),
    [
        ({OLD: "RUNNING"}, ("not begun", OLD)),
        ({OLD: "FINISHED", NEW: "CANCELED", BACK: "RUNNING"}, ("returned", BACK)),
        ({OLD: "FINISHED", NEW: "FAILED"}, ("failed", "")),
    ],
)
def test_the_outcome_of_a_move_that_fails_is_looked_up(
    mover: Callable[[Moves], WatchMover],
    store: WatchStore,
    states: dict[str, str],
    found: tuple[str, str],
) -> None:
    moves = Moves(states, failure=FlinkError("it was slower"))
    assert mover(moves).carry_out(MODEL, THERE, "") == (found[1] or OLD)
    assert outcome(store) == found


def test_a_move_that_flink_does_not_answer_about_is_asked_about_until_it_does(
    mover: Callable[[Moves], WatchMover], store: WatchStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watch does not take the stopped job for one that others have stopped."""
    moves = Moves(failure=Undecided("no answer"))
    asked: list[int] = []

    def unfinished_moves() -> list[Any]:
        asked.append(1)
        if len(asked) < 3:
            raise NoAnswer("no Flink answers")
        moves.states = {OLD: "FINISHED"}
        return [type("Journal", (), {"job": OLD, "successor": NEW})()]

    monkeypatch.setattr(acting, "AGAIN_SECONDS", 0.0)
    monkeypatch.setattr(moves, "unfinished_moves", unfinished_moves)
    one = mover(moves)
    assert one.carry_out(MODEL, THERE, "") == NEW
    assert (moves.starts, outcome(store)) == (1, ("moved", NEW))


def test_a_move_that_lacks_a_device_is_finished_when_that_is_back(
    mover: Callable[[Moves], WatchMover], store: WatchStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No job of it runs meanwhile, so it is not given up."""
    moves = Moves(killed="in")
    one = mover(moves)
    with pytest.raises(Killed):
        one.carry_out(MODEL, THERE, "")
    resumed, tries = moves.resume, [FlinkError("'b' has to join the cluster, and did not")] * 2

    def resume(job: str) -> FlinkMoved:
        if tries:
            raise tries.pop()
        return resumed(job)

    monkeypatch.setattr(acting, "AGAIN_SECONDS", 0.0)
    monkeypatch.setattr(moves, "resume", resume)
    moves.failure = Undecided("'b' is lost")
    ((number, decision),) = store.decisions(one.log.watch).items()
    with pytest.raises(Undecided, match="has to join the cluster"):
        one.settle(number, decision, "shop", "")
    assert outcome(store) == ("begun", "")
    assert one.finish(number, decision, "shop", "") == NEW
    assert outcome(store) == ("moved", NEW)


def test_a_move_of_another_command_is_not_touched(
    mover: Callable[[Moves], WatchMover], store: WatchStore
) -> None:
    with pytest.raises(MoveUnderWay):
        mover(Moves(failure=MoveUnderWay("by process 1"))).carry_out(MODEL, THERE, "")
    assert outcome(store) == ("not begun", OLD)


def test_what_cannot_be_written_is_not_done(
    mover: Callable[[Moves], WatchMover], store: WatchStore
) -> None:
    moves = Moves()
    one = mover(moves)
    pages = store._database.execute("PRAGMA page_count").fetchone()[0]
    store._database.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreError, match="database or disk is full"):
        one.carry_out(MODEL, THERE, "x" * 10_000)
    assert moves.starts == 0


def test_two_watches_of_one_job_refuse_each_other_by_name(
    store: WatchStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by the id after a move; and what a dead process holds is taken over."""
    first = WatchLog.claimed(store, OLD, "shop", print)
    monkeypatch.setattr(log, "running_holder", lambda *_: "process 7 of me on host")
    told = r"is watched by process 7 of me on host since \d{4}-\d\d-\d\d \d\d:\d\d UTC already"
    with pytest.raises(JobWatched, match=told):
        WatchLog.claimed(store, NEW, "shop", print)
    assert WatchLog.claimed(store, "b" * 32, "other", print).watch != first.watch
    monkeypatch.undo()
    assert WatchLog.claimed(store, NEW, "shop", print).watch == first.watch


def test_a_holder_runs_where_its_process_does() -> None:
    """One on another machine runs while it gives signs of life."""
    mine = Holder.current()
    other = mine.model_copy(update={"process": os.getppid(), "started": 1})
    assert log.running_holder(other.model_dump_json(), 0.0) == ""
    away = mine.model_copy(update={"host": "elsewhere"})
    assert log.running_holder(away.model_dump_json(), 60.0).endswith("on elsewhere")
    assert log.running_holder(away.model_dump_json(), 3600.0) == ""


def test_a_store_of_another_version_or_another_file_is_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "new.sqlite") as database:
        database.execute("PRAGMA user_version = 99")
    (tmp_path / "text.sqlite").write_text("this is no database, but a text of some length" * 9)
    for name, told in {"new": "another version", "text": "file is not a database"}.items():
        with pytest.raises(StoreError, match=told):
            WatchStore(tmp_path / f"{name}.sqlite")
    assert read_records(tmp_path / "none.sqlite", 9) == []


SAVED = "s3://b/chk-7"
FINISHED = job("shop", "FINISHED", {})


@pytest.fixture
def flink() -> Iterator[FakeFlink]:
    """A cluster of three on which the job runs, and takes checkpoints."""
    answers = healthy("dev-0", "dev-1", "dev-2") | {
        f"GET /jobs/{OLD}": job("shop", "RUNNING", {"map": "RUNNING"}),
        f"GET /jobs/{OLD}/checkpoints/config": KEPT,
        f"GET /jobs/{OLD}/checkpoints": {
            "counts": {"completed": 7},
            "latest": {"completed": {"id": 7, "external_path": SAVED}},
        },
        "GET /jobs": jobs({OLD: "RUNNING"}),
        "GET /jobs/new/checkpoints": {
            "counts": {"completed": 0},
            "latest": {"restored": {"id": 7, "external_path": SAVED}},
        },
    }
    with FakeFlink(answers).served() as answering:
        yield answering


def watch_of(flink: FakeFlink, own: WatchLog | None, told: list[str]) -> Watch:
    """A watch of a job on dev-0, which takes what is free for what is lost."""
    program, home = Program(Path("a.jar")), Flink(Path(), "2.3.0")
    facts: dict[str, Any] = {"log": own, "takes_free": True}
    return Watch(Rest(flink.url), home, program, (), told.append, lambda _: None, 0.0, **facts)


@pytest.mark.parametrize("killed", ["before", "in", "after"])
def test_a_replacement_is_written_first_and_finished_once(
    flink: FakeFlink, store: WatchStore, monkeypatch: pytest.MonkeyPatch, killed: str
) -> None:
    """The watch is killed before it cancels the job, before it starts it, and while it starts."""
    told: list[str] = []
    started: list[Vectors] = []

    def apply(*given: Any, **_: Any) -> str:
        if killed == "in" and not started and "again" not in told:
            raise Killed
        started.append(given[3])
        flink.answers["GET /jobs"] = jobs({"new": "RUNNING"})
        if killed == "after" and "again" not in told:
            raise Killed
        return "new"

    monkeypatch.setattr(watching, "apply", apply)
    monkeypatch.setattr(watching, "verify", lambda *_: Verification((), (), ()))
    monkeypatch.setattr(watching, "LOOK_SECONDS", 0.01)
    present = flink.answers["GET /taskmanagers"]
    lost = {"taskmanagers": present["taskmanagers"][1:]}
    flink.answers["GET /taskmanagers"] = InTurn(present, lost)
    ended = job("shop", "CANCELED", {})
    states = [job("shop", "RESTARTING", {})] * 3
    flink.answers[f"GET /jobs/{OLD}"] = InTurn(
        *(states if killed == "before" else [*states, ended])
    )
    if killed == "before":
        monkeypatch.setattr(Rest, "cancel", lambda *_: (_ for _ in ()).throw(Killed()))
    own = WatchLog.claimed(store, OLD, "shop", told.append)
    with pytest.raises(Killed):
        watch_of(flink, own, told).run(PlacedJob(OLD, {"map": "dev-0"}))
    assert outcome(store) == ("begun", "")
    if killed == "in":
        flink.answers["GET /jobs"] = jobs({OLD: "CANCELED"})
    told.append("again")
    rest = Rest(flink.url)
    assert first_job(rest, store, None) == OLD
    again = WatchLog.claimed(store, OLD, "shop", told.append)
    now = settled(watch_of(flink, again, told), None, again, OLD)
    assert (now, outcome(store)) == (
        (OLD, ("not begun", OLD)) if killed == "before" else ("new", ("moved", "new"))
    )
    assert started == ([] if killed == "before" else [{"map": "dev-1"}])


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Vectors]:
    """Placements with which the watch has started the job again, as job "new"."""
    seen: list[Vectors] = []

    def apply(*given: Any, **_: Any) -> str:
        seen.append(given[3])
        return "new"

    monkeypatch.setattr(watching, "apply", apply)
    monkeypatch.setattr(watching, "verify", lambda *_: Verification((), (), ()))
    monkeypatch.setattr(watching, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(Rest, "cancel", lambda *_: None)
    return seen


def test_the_other_task_managers_take_over_where_none_is_free(
    flink: FakeFlink, store: WatchStore, monkeypatch: pytest.MonkeyPatch, started: list[Vectors]
) -> None:
    """As Flink would use them itself: a job that is pinned must not wait for a lost one."""
    monkeypatch.setattr(watching, "unfit", lambda *_: None)
    present = flink.answers["GET /taskmanagers"]
    flink.answers |= {
        "GET /taskmanagers": InTurn(present, lacking(flink)),
        f"GET /jobs/{OLD}": InTurn(*[job("shop", "RESTARTING", {})] * 5),
        "GET /jobs/new": FINISHED,
        "GET /jobs/new/checkpoints/config": KEPT,
    }
    told: list[str] = []
    own = WatchLog.claimed(store, OLD, "shop", told.append)
    vectors = {
        "map": ["dev-0", "dev-0", "dev-1", "dev-2"],
        "sink": "dev-0",
        "whole": ["dev-0", "dev-0"],
    }
    watch_of(flink, own, told).run(PlacedJob(OLD, vectors))
    (decision,) = store.decisions(own.watch).values()
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
    flink: FakeFlink, store: WatchStore, started: list[Vectors]
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
            flink.answers["GET /taskmanagers"] = lacking(flink)
            return "moved"

    flink.answers |= {
        "GET /taskmanagers": present,
        "GET /jobs/moved": job("shop", "RESTARTING", {"map": "CREATED"}),
        "GET /jobs/moved/checkpoints": flink.answers[f"GET /jobs/{OLD}/checkpoints"],
        "GET /jobs/moved/checkpoints/config": KEPT,
        "GET /jobs/new": FINISHED,
        "GET /jobs/new/checkpoints/config": KEPT,
    }
    watch = replace(watch_of(flink, own, told), rounds=Moving())
    watch.run(PlacedJob(OLD, {"map": ["dev-0", "dev-1", "dev-2"]}))
    assert started == [{"map": ["dev-1"]}]


def test_a_replacement_whose_job_still_ends_is_finished(
    flink: FakeFlink, store: WatchStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watch was killed after it had cancelled the job, whose tasks take a while to end."""
    monkeypatch.setattr(watching, "apply", lambda *_, **__: "new")
    monkeypatch.setattr(watching, "verify", lambda *_: Verification((), (), ()))
    cancelled: list[str] = []
    monkeypatch.setattr(Rest, "cancel", lambda _, job: cancelled.append(job))
    own = WatchLog.claimed(store, OLD, "shop", print)
    decision = WatchDecision("", "replace", OLD, SAVED, {"map": ["dev-1"]}, (1, 1), "")
    own.begin(decision)
    flink.answers |= {
        "GET /jobs": jobs({OLD: "CANCELLING"}),
        "GET /jobs/new/checkpoints/config": KEPT,
    }
    assert settled(watch_of(flink, own, []), None, own, OLD) == "new"
    assert cancelled == [OLD]
    assert outcome(store) == ("moved", "new")


def test_a_decision_whose_outcome_is_unknown_starts_nothing_after_a_later_one(
    flink: FakeFlink, store: WatchStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk was full when the outcome of the replacement was to be written."""
    started: list[Any] = []
    monkeypatch.setattr(watching, "apply", lambda *given, **_: started.append(given) or "copy")
    own = WatchLog.claimed(store, OLD, "shop", print)
    own.begin(WatchDecision("", "replace", OLD, SAVED, {"map": ["dev-1"]}, (1, 1), ""))
    later = WatchDecision("", "move", "new", "newer", {"map": ["dev-2"]}, (1, 1), "")
    own.end(own.begin(later), later, "moved", "", "newer")
    flink.answers["GET /jobs"] = jobs({OLD: "CANCELED", "newer": "RUNNING"})
    assert settled(watch_of(flink, own, []), None, own, "newer") == "newer"
    assert started == []
    first, second = store.records(9)[0].decisions
    assert (first.state, second.state) == ("not begun", "moved")


@pytest.mark.parametrize("has_moved", [False, True])
def test_a_spare_that_a_watch_has_used_is_no_error_when_it_begins_again(
    flink: FakeFlink, store: WatchStore, has_moved: bool
) -> None:
    told: list[str] = []
    own = WatchLog.claimed(store, OLD, "shop", told.append)
    if has_moved:
        decision = WatchDecision("", "replace", "older", SAVED, {"map": ["dev-1"]}, (1, 1), "")
        own.end(own.begin(decision), decision, "moved", "", OLD)
    one = replace(watch_of(flink, own, told), spares=("dev-1", "dev-9"))
    run = PlacedJob(OLD, {"map": "dev-1"})
    if not has_moved:
        with pytest.raises(PlacementError, match="'dev-1' is not a spare: operators are placed"):
            one.check(run)
        return
    one.check(run)
    assert told == [
        "note: 'dev-1' is not a spare: operators are placed on it now",
        "note: spare 'dev-9' is not a TaskManager of the cluster now",
    ]


def lacking(flink: FakeFlink) -> dict[str, Any]:
    """Answer of the cluster after the loss of dev-0."""
    return {"taskmanagers": flink.answers["GET /taskmanagers"]["taskmanagers"][1:]}


def test_a_job_that_flink_itself_starts_elsewhere_is_left_there(flink: FakeFlink) -> None:
    """It is not placed; the watch goes on, and starts nothing."""
    present = flink.answers["GET /taskmanagers"]
    flink.answers |= {
        "GET /taskmanagers": InTurn(present, lacking(flink)),
        f"GET /jobs/{OLD}": InTurn(*[job("shop", "RUNNING", {"map": "RUNNING"})] * 3, FINISHED),
        f"GET /jobs/{OLD}/vertices/map": {"subtasks": [{"taskmanager-id": "dev-2"}]},
    }
    told: list[str] = []
    assert watch_of(flink, None, told).run(PlacedJob(OLD, {"map": "dev-0"})) == "FINISHED"
    assert told[1] == f"Flink has started job {OLD} again without 'dev-0'"
    assert flink.requests("PATCH") == []


def test_a_job_that_fits_on_no_free_task_manager_is_not_ended(
    flink: FakeFlink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody has named them as spares, so they are tried before anything is stopped."""
    monkeypatch.setattr(watching, "LOOK_SECONDS", 0.01)
    full = task_manager("dev-1", [])
    full["totalResource"] = {"managedMemory": 100}  # it is not configured for placements
    full["freeResource"] = full["totalResource"]
    present = flink.answers["GET /taskmanagers"]
    flink.answers |= {
        "GET /taskmanagers": InTurn(present, {"taskmanagers": [full]}),
        f"GET /jobs/{OLD}": InTurn(*[job("shop", "RESTARTING", {})] * 5, FINISHED),
    }
    told: list[str] = []
    watch_of(flink, None, told).run(PlacedJob(OLD, {"map": "dev-0"}))
    assert sum("nothing replaces 'dev-0'" in line for line in told) == 1, told
    assert flink.requests("PATCH") == []


def test_a_watch_that_only_looks_ends_when_the_job_has_failed(flink: FakeFlink) -> None:
    """Though a TaskManager is lost: nothing of this watch could replace it."""
    present = flink.answers["GET /taskmanagers"]
    flink.answers |= {
        "GET /taskmanagers": InTurn(present, lacking(flink)),
        f"GET /jobs/{OLD}": job("shop", "FAILED", {}),
        f"GET /jobs/{OLD}/exceptions": failed_by("a.B"),
    }
    looking = replace(watch_of(flink, None, []), takes_free=False)
    with pytest.raises(FlinkError, match=f"job {OLD} failed: a.B"):
        looking.run(PlacedJob(OLD, {"map": "dev-0"}))


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
                    "latest": {"savepoint": {"id": 8, "external_path": "s3://b/sp"}},
                }
            },
            "was stopped with a savepoint; its state is in s3://b/sp",
        ),
    ],
)
def test_what_others_do_to_the_job_ends_the_watch_with_an_error(
    flink: FakeFlink, answers: dict[str, Any], told: str
) -> None:
    flink.answers |= {f"GET /jobs/{OLD}": job("shop", "FINISHED", {}), **answers}
    with pytest.raises(FlinkError, match=told):
        watch_of(flink, None, []).run(PlacedJob(OLD, {"map": "dev-0"}))


def test_what_was_begun_is_finished_by_those_who_may(
    flink: FakeFlink, mover: Callable[[Moves], WatchMover], store: WatchStore
) -> None:
    """A watch that only looks says what is needed, if the job does not run."""
    moves = Moves(killed="in")
    with pytest.raises(Killed):
        mover(moves).carry_out(MODEL, THERE, "")
    flink.answers[f"GET /jobs/{OLD}"] = job("shop", "FINISHED", {})
    own = WatchLog.claimed(store, OLD, "shop", print)
    with pytest.raises(SettingError, match="give --apply, so that this is finished"):
        settled(watch_of(flink, own, []), None, own, OLD)

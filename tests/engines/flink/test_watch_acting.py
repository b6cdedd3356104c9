"""Decisions of a watch are carried out once, whenever the watch is killed."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest
from fake_flink import FakeFlink, healthy, job
from stores import fill_disk
from watched_jobs import OLD, Killed, outcome

from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.measure.sources import SourceFlow
from streamplace.engines.flink.move.journal import MoveUnderWay
from streamplace.engines.flink.move.move import MovePlan
from streamplace.engines.flink.move.transaction import (
    FlinkMoved,
    NotSaved,
    StoppedByOthers,
    Undecided,
)
from streamplace.engines.flink.rest.client import FlinkError, NoAnswer, successor
from streamplace.engines.flink.watch import acting
from streamplace.engines.flink.watch.acting import Spares, WatchMover
from streamplace.engines.flink.watch.deciding import LayoutOption, WatchChoice
from streamplace.engines.flink.watch.log import WatchLog
from streamplace.engines.flink.watch.watch import settled
from streamplace.errors import SettingError, StreamplaceError
from streamplace.io.ledger import user_runs
from streamplace.io.store import Store, StoreError
from streamplace.io.watches import read_records
from streamplace.model.intervals import RateInterval

NEW, BACK = successor(OLD), successor(successor(OLD))
CARRIES = RateInterval(90.0, 100.0, 110.0)
NOW, THERE = (
    LayoutOption(Layout({"map": ["a"]}), CARRIES),
    LayoutOption(Layout({"map": ["b"]}), CARRIES),
)
GO = WatchChoice("the rate grew", THERE)
JOURNAL = SimpleNamespace(job=OLD, successor=NEW)


@dataclass
class Moves:
    """A cluster with a job, and what moves it as ``FlinkMove`` does."""

    states: dict[str, str] = field(default_factory=lambda: {OLD: "RUNNING"})
    is_killed: bool = False  # whether the watch is killed when the job is stopped
    failure: StreamplaceError | None = None
    starts: int = 0
    journals: list[Any] = field(default_factory=list)
    rest: Any = field(default_factory=lambda: FakeFlink(healthy("a", "b")).rest)

    def plan(self, job: str, vectors: Layout) -> MovePlan:
        """Whatever is placed fits."""
        return MovePlan(job, Layout({"map": ["a"]}), Layout({"map": [*vectors["map"]]}))

    def run(self, plan: MovePlan) -> FlinkMoved:
        """Stop the job and start its successor."""
        if self.failure is not None:
            raise self.failure
        self.journals = [JOURNAL]
        self.states[OLD] = "FINISHED"
        if self.is_killed:
            raise Killed
        return self.resume(OLD)

    def resume(self, _: str) -> FlinkMoved:
        """Start the successor."""
        self.starts += 1
        self.states[NEW] = "RUNNING"
        self.journals = []
        return FlinkMoved(NEW, 1.5, "file:///s/1")

    def unfinished_moves(self) -> list[Any]:
        """Moves that were begun."""
        return self.journals


MakeMover = Callable[..., WatchMover]


@pytest.fixture
def mover(store: Store, monkeypatch: pytest.MonkeyPatch) -> MakeMover:
    """What a new process moves the job with, and tells."""

    def make(moves: Moves, tell: Callable[[str], None] = print) -> WatchMover:
        monkeypatch.setattr(acting, "chain_states", lambda *_: moves.states)
        monkeypatch.setattr(acting, "LOOK_SECONDS", 0.0)
        move: Any = moves
        own = WatchLog.claimed(store, OLD, "shop", tell)
        return WatchMover(move, Spares(moves.rest, []), own)

    return make


def test_a_move_is_written_with_what_it_predicted_and_measured(
    mover: MakeMover, store: Store
) -> None:
    """What was measured is written by the next round."""
    told: list[str] = []
    flink = FakeFlink(healthy("a", "b") | {f"GET /jobs/{NEW}": job("shop", "RUNNING", {})})
    one = mover(Moves(rest=flink.rest), told.append)
    assert one.carry_out(OLD, NOW, GO) == NEW
    assert told == [f"job {NEW} runs on its new devices, interrupted for 1.5 s"]
    (decision,) = one.log.decisions.values()
    assert (decision.transaction, decision.layout) == (NEW, {"map": ["b"]})
    assert (decision.reason, decision.machines) == ("the rate grew", (1, 1))
    assert (decision.state, decision.outcome) == ("moved", "interrupted for 1.5 s")
    assert (decision.value, decision.measured) == (100.0, None)
    assert read_records(store)[0].job == NEW
    one.note_rate(decision, SourceFlow(95.0))
    assert [one.measured for one in one.log.decisions.values()] == [95.0]
    (entry,) = user_runs()
    assert (entry.job, entry.by, entry.measured) == ("shop", "flink watch", 95.0)


@pytest.mark.parametrize(
    ("states", "found"),
    [
        ({OLD: "RUNNING"}, ("not begun", OLD)),
        ({OLD: "FINISHED", NEW: "CANCELED", BACK: "RUNNING"}, ("returned", BACK)),
        ({OLD: "FINISHED", NEW: "FAILED"}, ("failed", "")),
    ],
)
def test_the_outcome_of_a_move_that_fails_is_looked_up(
    mover: MakeMover, store: Store, states: dict[str, str], found: tuple[str, str]
) -> None:
    moves = Moves(states, failure=FlinkError("it was slower"))
    assert mover(moves).carry_out(OLD, NOW, GO) == (found[1] or OLD)
    assert outcome(store) == found


@pytest.mark.parametrize("is_resumed", [False, True])
@pytest.mark.parametrize(
    ("error", "state"),
    [(NotSaved("no disk"), "not saved"), (StoppedByOthers("by somebody else"), "not begun")],
)
def test_a_job_that_cannot_be_saved_or_that_others_have_stopped_is_left(
    mover: MakeMover,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    error: FlinkError,
    state: str,
    is_resumed: bool,
) -> None:
    """By the watch that would have moved it, and by one that finishes its move.

    Flink may have restarted a job that it was asked to save, so this is told apart.
    """

    def resume(job: str) -> FlinkMoved:
        raise error

    moves = Moves(failure=Undecided("no answer") if is_resumed else error, journals=[JOURNAL])
    monkeypatch.setattr(moves, "resume", resume)
    one = mover(moves)
    assert one.carry_out(OLD, NOW, GO) == OLD
    assert (moves.starts, outcome(store)) == (0, (state, OLD))
    assert not one.log.has_started


@pytest.mark.parametrize("silence", [NoAnswer("no Flink answers"), FlinkError("no such folder")])
def test_a_move_that_flink_does_not_answer_about_is_asked_about_until_it_does(
    mover: MakeMover,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    silence: StreamplaceError,
) -> None:
    """The watch does not take the stopped job for one that others have stopped.

    It finishes the move by itself, so it advises no command.
    """
    moves = Moves(failure=Undecided("no answer", "; finish the move by: move --resume"))
    asked, told = list[int](), list[str]()

    def unfinished_moves() -> list[Any]:
        asked.append(1)
        if len(asked) < 3:
            raise silence
        moves.states = {OLD: "FINISHED"}
        return [JOURNAL]

    monkeypatch.setattr(moves, "unfinished_moves", unfinished_moves)
    one = mover(moves, told.append)
    assert one.carry_out(OLD, NOW, GO) == NEW
    assert (moves.starts, outcome(store)) == (1, ("moved", NEW))
    assert told[0] == "no answer"
    assert not any("--resume" in line for line in told)


def test_a_move_that_lacks_a_device_is_finished_when_that_is_back(
    mover: MakeMover, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No job of it runs meanwhile, so it is not given up."""
    moves = Moves(is_killed=True)
    one = mover(moves)
    with pytest.raises(Killed):
        one.carry_out(OLD, NOW, GO)
    resumed, tries = moves.resume, [FlinkError("'b' has to join the cluster, and did not")] * 2

    def resume(job: str) -> FlinkMoved:
        if tries:
            raise tries.pop()
        return resumed(job)

    monkeypatch.setattr(moves, "resume", resume)
    moves.failure = Undecided("'b' is lost")
    (number,) = one.log.decisions
    assert one.finish(number) == NEW
    assert (tries, outcome(store)) == ([], ("moved", NEW))


def test_a_move_of_another_command_is_not_touched(mover: MakeMover, store: Store) -> None:
    with pytest.raises(MoveUnderWay):
        mover(Moves(failure=MoveUnderWay("by process 1"))).carry_out(OLD, NOW, GO)
    assert outcome(store) == ("not begun", OLD)


def test_a_job_whose_program_has_changed_is_not_moved(mover: MakeMover, store: Store) -> None:
    """Nothing is begun; the watch says why."""

    def changed() -> None:
        raise SettingError("job.jar is not the jar any more")

    moves = Moves()
    with pytest.raises(SettingError, match="not the jar any more"):
        replace(mover(moves), check_program=changed).carry_out(OLD, NOW, GO)
    assert (moves.starts, read_records(store)[0].decisions) == (0, ())


def test_what_cannot_be_written_is_not_done(
    mover: MakeMover, monkeypatch: pytest.MonkeyPatch
) -> None:
    moves = Moves()
    one = mover(moves)
    fill_disk(monkeypatch)
    with pytest.raises(StoreError, match="database or disk is full"):
        one.carry_out(OLD, NOW, replace(GO, words="x" * 10_000))
    assert moves.starts == 0


def test_what_was_begun_is_finished_by_those_who_may(mover: MakeMover, store: Store) -> None:
    """A watch that only looks says what is needed, if the job does not run."""
    moves = Moves(is_killed=True)
    with pytest.raises(Killed):
        mover(moves).carry_out(OLD, NOW, GO)
    rest = FakeFlink({f"GET /jobs/{OLD}": job("shop", "FINISHED", {})}).rest
    own = WatchLog.claimed(store, OLD, "shop", print)
    with pytest.raises(SettingError, match="give --apply or --spare, so that this is finished"):
        settled(rest, None, own, OLD)

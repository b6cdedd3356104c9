"""Moves of a watch: a decision is carried out once, whenever it is killed or what is lost.

A TaskManager is lost before a watch moves its job or meanwhile: the job goes on without it.
"""

import time
from collections.abc import Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import count
from threading import get_ident
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from fake_flink import JOB, Clock, FakeFlink, checkpoints, healthy, job, layout_option
from moving_flink import FakeJob, Killed, MovingFlink, after, kills, kills_then, loses_device
from stores import fill_disk

from streamplace.errors import SettingError
from streamplace.flink.layout import Layout
from streamplace.flink.ledger import user_runs
from streamplace.flink.move import move as moving
from streamplace.flink.move import transaction
from streamplace.flink.move.journal import MovePlan, MoveUnderWay, unfinished
from streamplace.flink.move.move import FlinkMove
from streamplace.flink.move.settling import MoveSettings
from streamplace.flink.move.transaction import FlinkMoved, NotSaved, StoppedByOthers, Undecided
from streamplace.flink.program.program import Program
from streamplace.flink.rest.client import ENDED, FlinkError, NoAnswer, chain_of
from streamplace.flink.store import Holder, Store, StoreError
from streamplace.flink.watch import acting
from streamplace.flink.watch.acting import Spares, WatchMover
from streamplace.flink.watch.deciding import WatchChoice
from streamplace.flink.watch.log import WatchLog
from streamplace.flink.watch.watch import finish_earlier
from streamplace.flink.watches import read_watches

OLD, NEW, BACK = chain_of(JOB, 3)
OUTCOMES = {OLD: "not begun", NEW: "moved", BACK: "returned"}


def outcome():
    """State of the only decision, and the id of the job that it left."""
    (decision,) = read_watches(Store.usual())[0].decisions
    return decision.state, decision.after


HERE, THERE = (layout_option(device, 100.0) for device in "ab")
GO = WatchChoice("the rate grew", THERE)
JOURNAL = SimpleNamespace(job=OLD, successor=NEW)
MOVED = FlinkMoved(NEW, 1.5, "file:///s/1")


@pytest.fixture
def mover(monkeypatch):
    """What a new process moves a job with, whose moves go as told; Flink lists these jobs."""

    def make(run, resume=(), unfinished=None, state="RUNNING", tell=print):
        live = {} if state in ENDED else {OLD: state}
        monkeypatch.setattr(acting, "live_states", lambda *_: live)
        monkeypatch.setattr(acting, "CHECK_SECONDS", 0.0)
        answers = healthy("a", "b") | {f"GET /jobs/{NEW}": job("shop", "RUNNING", {})}
        move = Mock(rest=FakeFlink(answers).rest)
        move.plan = lambda job, layout: MovePlan(job=job, before=HERE.layout, after=layout)
        move.run.side_effect, move.resume.side_effect = run, resume
        move.unfinished_moves.side_effect = unfinished or (lambda: [JOURNAL])
        log = WatchLog.claimed(Store.usual(), OLD, "shop", tell)
        return WatchMover(move, Spares(move.rest, []), log)

    return make


def test_a_move_is_written_with_what_it_predicted_and_measured(mover):
    """What was measured is written by the next round."""
    messages: list[str] = []
    one = mover([MOVED], tell=messages.append)
    assert one.carry_out(OLD, HERE, GO) == NEW
    assert messages == [f"job {NEW} runs on its new devices, interrupted for 1.5 s"]
    (decision,) = one.log.decisions.values()
    assert (decision.transaction, decision.layout) == (NEW, {"map": ["b"]})
    assert (decision.reason, decision.machines) == ("the rate grew", (1, 1))
    assert (decision.state, decision.outcome) == ("moved", "interrupted for 1.5 s")
    assert (decision.carries, decision.measured) == (THERE.carries, None)
    assert read_watches(Store.usual())[0].job == NEW
    one.note_rate(decision, 95.0, is_limited=False)
    assert [one.measured for one in one.log.decisions.values()] == [95.0]
    (entry,) = user_runs()
    assert (entry.job, entry.by, entry.measured) == ("shop", "flink watch", 95.0)


@pytest.mark.parametrize("is_resumed", [False, True])
@pytest.mark.parametrize(
    ("error", "state"),
    [(NotSaved("no disk"), "not saved"), (StoppedByOthers("by somebody else"), "not begun")],
)
def test_a_job_that_cannot_be_saved_or_that_others_have_stopped_is_left(
    mover, error, state, is_resumed
):
    """By the watch that would have moved it, and by one that finishes its move.

    Flink may have restarted a job that it was asked to save, so this is told apart.
    """
    one = mover(Undecided("no answer") if is_resumed else error, error)
    assert one.carry_out(OLD, HERE, GO) == OLD
    assert outcome() == (state, OLD)
    assert not one.log.has_started


@pytest.mark.parametrize("silence", [NoAnswer("no Flink answers"), FlinkError("no such folder")])
def test_a_move_that_flink_does_not_answer_about_is_asked_about_until_it_does(mover, silence):
    """The watch does not take the stopped job for one that others have stopped.

    It finishes the move by itself, so it advises no command.
    """
    messages = list[str]()
    undecided = Undecided("no answer", "; finish the move by: move --resume")
    answers = [silence, silence, [JOURNAL]]
    one = mover(undecided, [MOVED], answers, "FINISHED", messages.append)
    assert one.carry_out(OLD, HERE, GO) == NEW
    assert outcome() == ("moved", NEW)
    assert messages[0] == "no answer"
    assert not any("--resume" in line for line in messages)


def test_a_move_that_lacks_a_device_is_finished_when_that_is_back(mover):
    """No job of it runs meanwhile, so it is not given up."""
    lacks = FlinkError("'b' has to join the cluster, and did not")
    one = mover(Killed, [lacks, lacks, MOVED], state="FINISHED")
    with pytest.raises(Killed):
        one.carry_out(OLD, HERE, GO)
    (number,) = one.log.decisions
    assert one.finish(number) == NEW
    assert outcome() == ("moved", NEW)


def test_a_move_of_another_command_is_not_touched(mover):
    with pytest.raises(MoveUnderWay):
        mover(MoveUnderWay("by process 1")).carry_out(OLD, HERE, GO)
    assert outcome() == ("not begun", OLD)


def test_a_job_whose_program_has_changed_is_not_moved(mover):
    """Nothing is begun; the watch says why."""
    changed = Mock(side_effect=SettingError("job.jar is not the jar any more"))
    with pytest.raises(SettingError, match="not the jar any more"):
        replace(mover([]), check_program=changed).carry_out(OLD, HERE, GO)
    assert read_watches(Store.usual())[0].decisions == ()


def test_what_cannot_be_written_is_not_done(mover, monkeypatch):
    one = mover([])
    fill_disk(monkeypatch)
    with pytest.raises(StoreError, match="database or disk is full"):
        one.carry_out(OLD, HERE, replace(GO, words="x" * 10_000))


def test_what_was_begun_is_finished_by_those_who_may(mover):
    """A watch that only looks says what is needed, if the job does not run."""
    with pytest.raises(Killed):
        mover(Killed).carry_out(OLD, HERE, GO)
    rest = FakeFlink({f"GET /jobs/{OLD}": job("shop", "FINISHED", {})}).rest
    log = WatchLog.claimed(Store.usual(), OLD, "shop", print)
    with pytest.raises(SettingError, match="give --apply or --spare to finish the start"):
        finish_earlier(rest, None, log, OLD)


BOTH, FEWER, OTHER = ({"map": [*names]} for names in ("ab", "aa", "cc"))
PATH = "file:/s/savepoint-1"
CHECKPOINT, LATER = f"file:///c/{OLD}/chk-7", f"file:///c/{OLD}/chk-9"
FEWEST_STEPS = 4
"""A move writes at least so many: begun, saved, asked, ended."""


class Scene:
    """A job on a and b that a watch moves, and the processes of the watch."""

    def __init__(self, folder, managers, monkeypatch):
        self.flink = MovingFlink(OLD, FakeJob("RUNNING", ["a", "b"]), managers, PATH)
        self.messages: list[str] = []
        self.settings: Mapping[str, str] = {}  # with which the last jar was uploaded
        self.program = Program(folder / "a.jar", "my.Main")
        self.program.jar.touch()
        self.clock = Clock(least=2.0)
        Store.usual().path.unlink(missing_ok=True)
        monkeypatch.setattr(time, "sleep", self.clock.sleep)
        monkeypatch.setattr(time, "monotonic", self.clock.monotonic)
        monkeypatch.setattr(moving, "placed_upload", self.upload)
        monkeypatch.setattr(moving, "fitted", lambda _, places, *__: places)
        plan = lambda _, job, layout: MovePlan(job=job, before=Layout(BOTH), after=layout)  # noqa: E731
        monkeypatch.setattr(FlinkMove, "plan", plan)

    def upload(self, _, program, places):
        """Upload the job's jar, and keep the settings that come with it."""
        self.settings = program.settings
        return self.flink.upload(places)

    @property
    def spares(self):
        """Whatever is there."""
        return Spares(self.flink.rest, [], takes_free=True)

    @property
    def move(self):
        """What a new process moves the job with."""
        rest = self.flink.rest
        return FlinkMove(
            rest,
            self.program,
            self.messages.append,
            MoveSettings("file:///s", settle=0.0),
            without_lost=self.spares.of_move,
        )

    @property
    def mover(self):
        """What a new process of the watch moves the job with."""
        log = WatchLog.claimed(Store.usual(), OLD, "shop", self.messages.append)
        return WatchMover(self.move, self.spares, log)

    def moves(self, places):
        """Move the job; return the id of the one that runs afterwards."""
        choice = WatchChoice("", layout_option(places["map"], 100.0))
        return self.mover.carry_out(OLD, layout_option(BOTH["map"], 100.0), choice)

    def starts_again(self):
        """Start the job without what was lost; return the id of the one that runs afterwards."""
        return self.mover.start_again(OLD, Layout(BOTH), Layout(FEWER))

    def begins_again(self):
        """Start the watch again after it was killed; return the id of the job that runs."""
        self.flink.is_dead = False
        mover = self.mover
        return finish_earlier(self.flink.rest, mover, mover.log, OLD)


def moments(whole):
    """Requests at which a process may be killed, and whether that is after they are carried out."""
    asked = [request for request, _ in whole.flink.asked]
    found = [(n, late) for n, one in enumerate(asked) for late in (False, one[:4] != "GET ")]
    return [*dict.fromkeys(found)]


@pytest.fixture
def scene(tmp_path, monkeypatch):
    """Make a scene with some TaskManagers."""
    return lambda managers: Scene(tmp_path, managers, monkeypatch)


@pytest.mark.parametrize("when", ["stop", "start"])
@pytest.mark.parametrize(
    ("managers", "lost", "target", "found"),
    [
        ("abc", "c", OTHER, "ab"),  # where it was before
        ("abc", "a", FEWER, "cb"),  # a spare stands in
        ("ab", "a", FEWER, "bb"),  # what is left takes over
    ],
)
def test_a_task_manager_that_is_lost_in_a_move_is_not_waited_for(
    scene, when, managers, lost, target, found
):
    """Neither after the job was stopped, nor while it starts; it continues from its savepoint."""
    site = scene(managers)
    site.flink.acts[when] = [loses_device(lost)]
    assert site.moves(target) == BACK
    assert site.flink.alive == {BACK: True}
    assert site.flink.jobs[BACK].devices == [*found]
    assert outcome() == ("returned", BACK)
    assert {path for _, _, path in site.flink.starts} == {PATH}
    assert len(site.flink.starts) == (1 if when == "stop" else 2)
    assert site.clock.now < 110


@pytest.fixture
def losing(scene):
    """Make a scene in which the job has lost `a`, and has a checkpoint."""

    def made(managers="bcd"):
        site = scene(managers)
        site.flink.jobs[OLD].checkpoints = checkpoints(1, completed=CHECKPOINT)
        return site

    return made


@pytest.mark.parametrize(("managers", "found"), [("bc", "cb"), ("b", "bb")])
def test_a_job_that_has_lost_a_task_manager_goes_on_from_its_last_checkpoint(
    losing, managers, found
):
    """As its successor, with the settings that it had: a spare takes over, or what is left."""
    site = losing(managers)
    assert site.starts_again() == NEW
    assert site.flink.alive == {NEW: True}
    assert site.flink.starts == [(NEW, ".".join(found), CHECKPOINT)]
    assert site.settings["pipeline.object-reuse"] == "true"
    assert outcome() == ("moved", NEW)
    assert unfinished() == []


def test_a_job_goes_on_from_what_it_has_saved_until_it_ended(losing):
    """Flink may delete older checkpoints."""
    site = losing()
    later = checkpoints(2, completed=LATER)
    site.flink.acts["cancel"] = [after(lambda f: setattr(f.jobs[OLD], "checkpoints", later))]
    assert site.starts_again() == NEW
    assert [path for _, _, path in site.flink.starts] == [LATER]


@pytest.mark.parametrize("state", ["CANCELED", "FINISHED"])
def test_a_job_that_its_user_has_cancelled_or_that_has_finished_is_not_started_again(losing, state):
    """Its state is read right before it is cancelled, and after."""
    site = losing()
    if state == "FINISHED":
        site.flink.acts["cancel"] = [lambda flink, _: flink.jobs[OLD].end("FINISHED") or {}]
    else:
        site.flink.jobs[OLD].end(state)
    assert site.starts_again() == OLD
    assert (site.flink.alive, site.flink.starts) == ({}, [])
    assert outcome()[0] == "failed"


def test_the_end_of_a_job_is_waited_for_however_long_its_tasks_take(losing, monkeypatch):
    site = losing()
    site.flink.acts["cancel"] = [lambda flink, _: flink.jobs[OLD].end("CANCELLING") or {}] * 9
    wait = site.clock.sleep

    def sleep(seconds):
        wait(seconds)
        if site.clock.now > 300 and site.flink.jobs[OLD].state == "CANCELLING":
            site.flink.jobs[OLD].end("CANCELED")

    monkeypatch.setattr(time, "sleep", sleep)
    assert site.starts_again() == NEW
    assert any(f"job {OLD} is still CANCELLING" in message for message in site.messages)
    assert outcome() == ("moved", NEW)


@pytest.mark.parametrize(
    ("act", "lost", "step"),
    [
        *(("starts_again", "", 1), ("starts_again", "c", 7), ("moves", "a", 7)),
        pytest.param("starts_again", "c", 1, marks=pytest.mark.slow),
        pytest.param("moves", "a", 1, marks=pytest.mark.slow),
    ],
)
def test_one_copy_runs_whenever_a_watch_is_killed(scene, losing, act, lost, step):
    """Before each of its requests, and after each that changes something, or at some of them.

    It starts a job again that has lost a TaskManager, or moves one; another one is lost meanwhile.
    """

    def begun():
        site = scene("abc") if act == "moves" else losing()
        site.flink.acts = {"start": [loses_device(lost)]} if lost else {}
        return site

    def acts(site):
        return site.moves(FEWER) if act == "moves" else site.starts_again()

    whole = begun()
    acts(whole)
    for at, late in moments(whole)[::step]:
        site = begun()
        site.flink.at[at] = kills_then if late else kills
        with pytest.raises(Killed):
            acts(site)
        job = site.begins_again()
        assert outcome() == (OUTCOMES[job], job)
        if act == "starts_again":
            job = site.starts_again() if job == OLD else job  # it was not begun
            assert {path for _, _, path in site.flink.starts} == {CHECKPOINT}
        assert site.flink.alive == {job: True}, whole.flink.asked[at]


@pytest.mark.parametrize(("lost", "job"), [("", NEW), ("c", BACK)])
def test_a_jar_that_goes_after_the_job_was_stopped_is_not_needed_any_more(
    scene, monkeypatch, lost, job
):
    """As while it is built again: it is on the cluster, for the way back, too."""
    site, stop = scene("abc"), transaction.begin_stop

    def built_again(*given, **facts):
        stop(*given, **facts)
        site.program.jar.unlink(missing_ok=True)

    monkeypatch.setattr(transaction, "begin_stop", built_again)
    if lost:
        site.flink.acts["start"] = [loses_device(lost)]
    assert site.moves(OTHER) == job
    assert site.flink.alive == {job: True}


class CrashingStore:
    """The journal of a process that is killed at one of its steps, and then does nothing more.

    Other threads, which renew claims, take no steps.
    """

    def __init__(self, flink, at, monkeypatch):
        self.flink, self.at, self.steps = flink, at, 0
        self._step = Store.transaction
        dead = Holder.current()
        dead = dead.model_copy(update={"started": dead.started + 1})
        monkeypatch.setattr(Holder, "current", lambda: dead)
        own = get_ident()
        monkeypatch.setattr(
            Store,
            "transaction",
            lambda store: self.step(store) if get_ident() == own else self._step(store),
        )

    @contextmanager
    def step(self, store):
        """Carry out a step; even numbers stand for before it, odd ones for right after."""
        number, self.steps = self.steps, self.steps + 2
        self._live(number)
        with self._step(store) as rows:
            yield rows
        self._live(number + 1)

    def _live(self, number):
        self.flink.is_dead |= number == self.at
        if self.flink.is_dead:
            raise Killed


@pytest.mark.parametrize("lost", ["", pytest.param("a", marks=pytest.mark.slow), "before"])
def test_a_move_may_be_killed_at_any_step_of_its_journal(scene, losing, monkeypatch, lost):
    """Whoever resumes it finds one copy, or starts one, at the new devices or at the old ones."""
    for at in count():
        site = losing() if lost == "before" else scene("abc")
        if lost == "a":
            site.flink.acts["start"] = [loses_device(lost)]

        def act(site=site):
            if lost == "before":
                site.move.restart(OLD, Layout(BOTH))
            else:
                site.move.run(site.move.plan(OLD, Layout(FEWER)))

        with monkeypatch.context() as patch:
            store = CrashingStore(site.flink, at, patch)
            with suppress(Killed, FlinkError):
                act()
        if not site.flink.is_dead:
            break
        site.flink.is_dead = False
        for _ in range(2):  # the second finds nothing to do
            with suppress(FlinkError, SettingError):
                site.move.resume()
        if lost == "before" and OLD in site.flink.alive:  # it was not cancelled
            act()
        (job,) = site.flink.alive
        assert site.flink.alive == {job: True}, at
        assert unfinished() == []
    assert at == store.steps >= 2 * FEWEST_STEPS

"""A watch starts and stops TaskManagers by a command of the user."""

import json
import os
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest
from fake_flink import FakeFlink, InTurn
from flink_documents import healthy, job

from streamplace import Cluster, Device, Operator, Stream, StreamGraph
from streamplace.control.policy import POLICIES
from streamplace.engines.flink.move.move import MovePlan
from streamplace.engines.flink.move.outcomes import FlinkMoved
from streamplace.engines.flink.move.state import CheckpointTotals
from streamplace.engines.flink.pin.pinning import Vectors
from streamplace.engines.flink.rest.client import NoAnswer
from streamplace.engines.flink.rest.job_ids import successor
from streamplace.engines.flink.watch import acting, modelling
from streamplace.engines.flink.watch import rounds as passing
from streamplace.engines.flink.watch import watch as watching
from streamplace.engines.flink.watch.acting import WatchMover
from streamplace.engines.flink.watch.judging import Guards, QuietHours, RateJudge
from streamplace.engines.flink.watch.log import WatchLog
from streamplace.engines.flink.watch.look import JobLook
from streamplace.engines.flink.watch.machines import MachineCommand, Machines
from streamplace.engines.flink.watch.modelling import JobModeller
from streamplace.engines.flink.watch.plans import JobModel, NewDevices, WatchPlan
from streamplace.engines.flink.watch.rounds import JobRounds
from streamplace.engines.flink.watch.starting import first_job, settled
from streamplace.engines.live import Measurement
from streamplace.errors import SettingError
from streamplace.io.watch_store import (
    WatchDecision,
    WatchStore,
    read_records,
    usual_store,
    utc_now,
)
from streamplace.model.intervals import RateInterval

FIRST = "a" * 32
CALLS = 'echo "$@" >> "$0.calls"\n'


class Killed(BaseException):
    """The watch is killed: nothing after this happens."""


def plan(*devices: str) -> WatchPlan:
    """A layout that carries 100 tuples/s per TaskManager, or a tenth less."""
    rate = 100.0 * len(devices)
    carries = RateInterval(0.9 * rate, rate, 1.1 * rate)
    return WatchPlan(len(devices), {"map": [*devices]}, carries)


@dataclass
class Site:
    """A job on TaskManagers, and a command that writes down its arguments.

    Attributes
    ----------
    slots
        TaskManager → jobs with slots on it.
    used
        TaskManagers that the job runs on.
    """

    script: Path
    store: WatchStore
    slots: dict[str, list[str]]
    used: list[str]
    told: list[str] = field(default_factory=list)
    now: float = 10_000.0
    job: str = FIRST
    rate: float = 50.0
    facts: dict[str, Any] = field(default_factory=dict)
    at_most: int = 3

    def does(self, body: str) -> None:
        """Give the command another end."""
        self.script.write_text(f"#!/bin/sh\n{CALLS}{body}")
        self.script.chmod(0o755)

    @property
    def calls(self) -> list[str]:
        """Arguments with which the command was run."""
        file = Path(f"{self.script}.calls")
        return file.read_text().splitlines() if file.exists() else []

    @property
    def decisions(self) -> list[tuple[str, str]]:
        """Kinds and states of all decisions."""
        return [(one.kind, one.state) for one in self.store.records(9)[0].decisions]

    def task_managers(self) -> list[dict[str, str]]:
        """TaskManagers of the cluster, as Flink answers."""
        return [{"id": name} for name in self.slots]

    def holders(self, device: str) -> list[str]:
        """Jobs with slots on a TaskManager."""
        return self.slots[device]

    def look_at(self, *_: Any) -> JobLook:
        """The job as it is now."""
        usual: dict[str, Any] = {
            "is_limited": False,
            "backlog": None,
            "layout": {"map": self.used},
            "shape": {"map": 3},
            "checkpoints": CheckpointTotals(5, 0),
            "managers": frozenset(self.slots),
        }
        return JobLook(self.job, self.rate, **(usual | self.facts))

    def model(self, seen: JobLook) -> JobModel:
        """Plans on one, two and three TaskManagers, of which some may have to be started."""
        there = sorted(self.slots)
        new = NewDevices("dev-0", ("dev-0 (new)", "dev-0 (new 2)")[: self.at_most - len(there)])
        order = [*there, *new.names]
        plans = tuple(plan(*order[:number]) for number in range(1, len(order) + 1))
        level = seen.machines - 1
        return JobModel(seen.job, "shop", plans, level, plan(*self.used), "the CPU", new)

    def plan(self, job: str, vectors: Vectors) -> MovePlan:
        """Whatever is placed fits."""
        return MovePlan(job, {"map": [*self.used]}, {"map": [*vectors["map"]]})

    def run(self, moved: MovePlan) -> FlinkMoved:
        """Start the job elsewhere."""
        self.used, self.job = moved.after["map"], successor(moved.job)
        assert set(self.used) <= self.slots.keys()
        for device, jobs in self.slots.items():
            own = [self.job] if device in self.used else []
            self.slots[device] = [one for one in jobs if one != moved.job] + own
        return FlinkMoved(self.job, 1.5, "file:///s/1")

    def rounds(self, seconds: float = 90.0, spares: tuple[str, ...] = (), **guards: Any) -> Any:
        """Rounds of one process."""
        rest: Any = self
        move: Any = SimpleNamespace(plan=self.plan, run=self.run, rest=self)
        log = WatchLog.claimed(self.store, self.job, "shop", self.told.append)
        command = MachineCommand.of(str(self.script), seconds)
        machines = Machines(rest, log, command, self.told.append, spares, lambda: self.now)
        mover = WatchMover(move, log, self.told.append, left=machines.leave)
        made = JobRounds(
            rest,
            log,
            RateJudge(POLICIES["ds2"].make, 60.0),
            Guards(**guards),
            self.model,
            mover,
            self.told.append,
            60.0,
            lambda: self.now,
            lambda: datetime(2026, 5, 4, 12, 30),
            machines=machines,
        )
        made.recall()
        return made

    def passes(self, rounds: JobRounds, number: int = 1) -> list[str]:
        """Pass rounds a minute apart; return what they told."""
        before = len(self.told)
        for _ in range(number):
            while rounds.is_due:
                self.job = rounds.pass_round(self.job)
            self.now += 60
        return self.told[before:]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A job on the only TaskManager."""
    store = WatchStore(tmp_path / "watch.sqlite")
    made = Site(tmp_path / "machines", store, {"dev-0": [FIRST]}, ["dev-0"])
    made.does("")
    monkeypatch.setattr(passing, "look_at", made.look_at)
    monkeypatch.setattr(acting, "chain_states", lambda *_: {})
    monkeypatch.setattr(acting, "source_flow", lambda *_: None)
    return made


def on_three(site: Site) -> None:
    """The job runs on three TaskManagers."""
    site.used = ["dev-0", "dev-1", "dev-2"]
    site.slots = {name: [site.job] for name in site.used}


def test_a_task_manager_that_is_missing_is_started_awaited_and_used(site: Site) -> None:
    rounds = site.rounds()
    site.rate = 95
    told = site.passes(rounds)
    assert "1 TaskManager like dev-0 is started: the present layout may carry only 90" in told[0]
    assert "dev-0, dev-0 (new) should carry 200 tuples/s" in told[0]
    assert (site.calls, site.decisions) == (["start dev-0"], [("start", "begun")])
    assert site.passes(rounds)[0].endswith("; waits for the TaskManagers that were started")
    site.slots["dev-1"] = []
    assert site.passes(rounds)[0] == "'dev-1' joined"
    assert (site.used, site.calls) == (["dev-0", "dev-1"], ["start dev-0"])
    assert site.decisions == [("start", "done"), ("move", "moved")]
    (start, _) = site.store.records(9)[0].decisions
    assert (start.machines, start.outcome, start.layout) == ((1, 2), "'dev-1' joined", {})


def test_the_command_is_run_once_per_task_manager_until_it_fails(site: Site) -> None:
    """Two that join one after the other are awaited; a failure ends the row."""
    rounds = site.rounds()
    site.rate = 195
    site.passes(rounds)
    assert site.calls == ["start dev-0"] * 2
    site.slots["dev-1"] = []
    assert "waits" in site.passes(rounds)[0]
    site.slots["dev-2"] = []
    site.passes(rounds)
    assert site.used == ["dev-0", "dev-1", "dev-2"]
    site.used, site.slots = ["dev-0"], {"dev-0": []}
    site.does("exit 1")
    site.passes(site.rounds(least_seconds=0))
    assert site.calls == ["start dev-0"] * 3


def test_what_does_not_join_in_time_is_told_once_and_not_tried_again_for_ten_minutes(
    site: Site,
) -> None:
    rounds = site.rounds(seconds=90)
    site.rate = 95
    told = site.passes(rounds, 11)
    failed = [line for line in told if line.startswith("the start of 1 TaskManager failed: ")]
    assert len(failed) == 1
    assert (
        "only 0 of 1 joined within 90 s after the command; nothing is started for 10 min"
        in failed[0]
    )
    assert (site.calls, site.decisions) == (["start dev-0"], [("start", "failed")])
    assert "1 more TaskManager would pay, but none is started for 9 min, because that" in told[4]
    site.passes(rounds, 3)
    assert site.calls == ["start dev-0"] * 2
    assert site.used == ["dev-0"]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (
            "echo early >&2; echo no quota left >&2; exit 3",
            "exit code 3: no quota left; nothing is",
        ),
        ("exit 4", "ended with exit code 4; nothing is started for 10 min"),
        (None, "cannot be run: No such file or directory; nothing is"),
    ],
)
def test_a_command_that_fails_leaves_the_job_where_it_runs(
    site: Site, body: str | None, told: str
) -> None:
    """Another watch that begins within ten minutes does not run it, either."""
    rounds = site.rounds()
    site.rate = 95
    site.does(body or "")
    if body is None:
        site.script.unlink()
    assert told in site.passes(rounds)[-1]
    calls = site.calls
    again = site.passes(rounds, 5)
    assert not any("the start of" in line for line in again)
    assert site.used == ["dev-0"]
    site.does("")
    site.passes(site.rounds(), 5)
    assert site.calls == calls
    assert site.decisions == [("start", "failed")]


def test_where_a_start_fails_the_job_takes_what_is_there(site: Site) -> None:
    """Two of the three TaskManagers that it should have."""
    site.slots["dev-1"] = []
    site.does("exit 1")
    site.rate = 195
    rounds = site.rounds()
    site.passes(rounds)
    assert site.decisions == [("start", "failed")]
    site.passes(rounds)
    assert site.used == ["dev-0", "dev-1"]


def test_a_command_that_hangs_is_killed_with_what_it_has_started(site: Site) -> None:
    site.does('sleep 60 &\necho $! > "$0.pid"\nwait\n')
    rounds = site.rounds(seconds=0.5)
    site.rate = 95
    began = time.monotonic()
    assert "did not end within 0.5 s, and was killed" in site.passes(rounds)[-1]
    assert time.monotonic() - began < 30
    child = Path(f"/proc/{Path(f'{site.script}.pid').read_text().strip()}/stat")
    for _ in range(100):
        if not child.exists() or ") Z " in child.read_text():
            break
        time.sleep(0.1)
    else:
        raise AssertionError("the process that the command has started runs")


def test_what_the_command_leaves_behind_is_not_waited_for(site: Site) -> None:
    """A TaskManager that runs on this machine keeps the files of the command open."""
    site.does('sleep 60 &\necho $! > "$0.pid"\n')
    site.rate = 95
    site.passes(site.rounds(seconds=30))
    child = int(Path(f"{site.script}.pid").read_text())
    os.kill(child, 9)  # it is there
    assert site.decisions == [("start", "begun")]


@pytest.mark.parametrize(("joins", "state"), [(True, "done"), (False, "failed")])
def test_a_watch_that_was_killed_while_it_started_starts_nothing_twice(
    site: Site, monkeypatch: pytest.MonkeyPatch, joins: bool, state: str
) -> None:
    site.rate = 95
    rounds = site.rounds()
    monkeypatch.setattr(MachineCommand, "run", lambda *_: (_ for _ in ()).throw(Killed()))
    with pytest.raises(Killed):
        site.passes(rounds)
    monkeypatch.undo()
    monkeypatch.setattr(passing, "look_at", site.look_at)
    monkeypatch.setattr(acting, "source_flow", lambda *_: None)
    assert site.decisions == [("start", "begun")]
    if joins:
        site.slots["dev-1"] = []
    again = site.rounds(seconds=90)
    site.passes(again, 1 if joins else 9)
    assert site.calls == []
    assert site.decisions[0] == ("start", state)
    assert site.used == (["dev-0", "dev-1"] if joins else ["dev-0"])


@pytest.mark.parametrize(
    ("guards", "facts", "told"),
    [
        ({"quiet": (QuietHours.of("08:00-18:00"),)}, {}, "nothing is moved between 08:00 and 18"),
        ({}, {"checkpoints": CheckpointTotals(5, 2)}, "its checkpoints fail"),
        ({}, {"shape": {"map": 4}}, "the parallelism of 'map' is 4 now, not 3"),
    ],
)
def test_guards_hold_for_starts(
    site: Site, guards: dict[str, Any], facts: dict[str, Any], told: str
) -> None:
    rounds = site.rounds(**guards)
    site.passes(rounds)
    site.rate, site.facts = 95, facts
    words = site.passes(rounds)
    assert "to start 1 TaskManager would pay" in words[-1]
    assert told in words[-1]
    assert (site.calls, site.decisions) == ([], [])


def test_a_start_keeps_the_least_time_after_a_move_and_is_no_move_itself(site: Site) -> None:
    """The job moves as soon as what was started has joined, though the time is long."""
    site.slots["dev-1"] = []
    rounds = site.rounds(least_seconds=1000)
    site.rate = 95
    site.passes(rounds)
    site.rate = 195
    assert "but the last move is too recent" in site.passes(rounds)[-1]
    assert site.calls == []
    site.now += 1000
    site.passes(rounds)
    assert site.calls == ["start dev-0"]
    site.slots["dev-2"] = []
    site.passes(rounds)
    assert site.used == ["dev-0", "dev-1", "dev-2"]


def test_nothing_is_started_or_stopped_without_a_record(site: Site) -> None:
    rounds = site.rounds(least_seconds=0)
    begin = rounds.log.store.begin
    rounds.log.store._database.execute("PRAGMA query_only = ON")
    site.rate = 95
    assert "nothing is started without a record" in site.passes(rounds)[-1]
    assert site.calls == []
    rounds.log.store._database.execute("PRAGMA query_only = OFF")
    on_three(site)
    site.rate = 50

    def only_moves(watch: int, decision: WatchDecision) -> int:
        if decision.kind == "stop":
            rounds.log.store._database.execute("PRAGMA query_only = ON")
        return begin(watch, decision)

    rounds.log.store.begin = only_moves
    assert "nothing is stopped without a record" in " ".join(site.passes(rounds))
    assert (site.used, site.calls) == (["dev-0"], [])


def test_task_managers_that_a_move_has_left_are_stopped(site: Site) -> None:
    """Nothing is moved until they are gone."""
    on_three(site)
    rounds = site.rounds(least_seconds=0)
    site.passes(rounds)
    assert site.used == ["dev-0"]
    assert site.calls == ["stop dev-1", "stop dev-2"]
    assert site.decisions == [("move", "moved"), ("stop", "begun"), ("stop", "begun")]
    site.rate = 95
    assert site.passes(rounds)[0].endswith("; waits until stopped TaskManagers are gone")
    site.slots = {"dev-0": [site.job]}
    told = site.passes(rounds)
    assert told[:2] == ["'dev-1' is stopped", "'dev-2' is stopped"]
    assert site.decisions[1:3] == [("stop", "done"), ("stop", "done")]
    assert site.calls[2:] == ["start dev-0"]


def test_only_what_a_move_has_left_and_nobody_needs_is_stopped(site: Site) -> None:
    """Neither spares, nor what other jobs use, nor what the job has never used."""
    on_three(site)
    site.slots["dev-1"] += ["b" * 32]
    site.slots["dev-9"] = []
    site.passes(site.rounds(spares=("dev-2",), least_seconds=0), 20)
    assert site.used == ["dev-0"]
    assert site.calls == []


def test_it_is_asked_right_before_whether_a_task_manager_is_in_use(site: Site) -> None:
    """Another job takes a slot after it was told that none has one."""
    on_three(site)
    site.rate = 150
    asked: list[str] = []

    def holders(device: str) -> list[str]:
        asked.append(device)
        return site.slots[device] if len(asked) == 1 else ["b" * 32]

    site.holders = holders  # type: ignore[method-assign]
    site.passes(site.rounds(least_seconds=0))
    assert (site.used, asked) == (["dev-0", "dev-1"], ["dev-2", "dev-2"])
    assert "no job has a slot on 'dev-2' any more" in site.told
    assert site.calls == []


def test_a_move_to_as_many_task_managers_stops_none(site: Site) -> None:
    site.used, site.slots = ["dev-1"], {"dev-0": [], "dev-1": [FIRST]}
    rounds = site.rounds()
    rounds.mover.carry_out(site.model(site.look_at()), plan("dev-0"), "")
    assert (site.used, site.calls) == (["dev-0"], [])


@pytest.mark.parametrize(("then", "calls"), [("stays", 2), ("is used", 1), ("has gone", 1)])
def test_a_stop_that_fails_is_told_once_and_tried_again_while_it_is_unused(
    site: Site, then: str, calls: int
) -> None:
    """The job may be back there, and restart at that moment, so that it has no slot."""
    site.used = ["dev-0", "dev-1"]
    site.slots = {name: [FIRST] for name in site.used}
    site.does("echo no such machine >&2; exit 5")
    rounds = site.rounds(least_seconds=0)
    told = site.passes(rounds, 9)
    failed = [line for line in told if "'dev-1' is not stopped" in line]
    assert len(failed) == 1
    assert "exit code 5: no such machine; tried again after 10 min, if it is unused" in failed[0]
    if then == "has gone":
        del site.slots["dev-1"]
    if then == "is used":
        site.rate = 95
        site.passes(rounds)
        assert site.used == ["dev-0", "dev-1"]
        site.slots["dev-1"] = []
    site.passes(rounds, 3)
    assert site.calls == ["stop dev-1"] * calls


def test_a_task_manager_that_does_not_go_is_told_and_keeps_nothing_from_being_moved(
    site: Site,
) -> None:
    site.used = ["dev-0", "dev-1"]
    site.slots = {name: [FIRST] for name in site.used}
    rounds = site.rounds(seconds=90, least_seconds=0)
    told = site.passes(rounds, 4)
    assert sum("it did not go within 90 s after the command" in line for line in told) == 1
    assert site.decisions == [("move", "moved"), ("stop", "failed")]
    site.rate = 95
    site.passes(rounds)
    assert site.used == ["dev-0", "dev-1"]


def test_a_flink_that_does_not_answer_about_slots_keeps_a_task_manager_running(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.used = ["dev-0", "dev-1"]
    site.slots = {name: [FIRST] for name in site.used}
    rounds = site.rounds(least_seconds=0)
    silent = lambda: (_ for _ in ()).throw(NoAnswer("no Flink answers"))  # noqa: E731
    monkeypatch.setattr(site, "task_managers", silent)
    site.passes(rounds, 9)
    assert (site.used, site.calls) == (["dev-0"], [])
    monkeypatch.undo()
    monkeypatch.setattr(passing, "look_at", site.look_at)
    site.passes(rounds, 3)
    assert site.calls == ["stop dev-1"]


def test_where_another_controller_acts_nothing_is_stopped_any_more(site: Site) -> None:
    site.used = ["dev-0", "dev-1"]
    site.slots = {name: [FIRST] for name in site.used}
    site.does("exit 1")
    rounds = site.rounds(least_seconds=0)
    site.passes(rounds)
    site.facts = {"shape": {"map": 4}}
    site.passes(rounds, 20)
    assert site.calls == ["stop dev-1"]


@pytest.mark.parametrize(("gone", "state"), [(True, "done"), (False, "not begun")])
def test_a_watch_that_was_killed_while_it_stopped_stops_nothing_twice(
    site: Site, gone: bool, state: str
) -> None:
    site.slots["dev-1"] = []
    log = WatchLog.claimed(site.store, FIRST, "shop", print)
    log.begin(WatchDecision(utc_now(), "stop", FIRST, "dev-1", {}, (2, 1), ""))
    if gone:
        del site.slots["dev-1"]
    site.passes(site.rounds(), 20)
    assert (site.calls, site.decisions) == ([], [("stop", state)])


def test_a_start_without_an_outcome_is_no_job_that_was_interrupted() -> None:
    """A later watch of a job that has ended says so, and does not ask for options."""
    store = WatchStore(usual_store())
    log = WatchLog.claimed(store, FIRST, "shop", print)
    log.begin(WatchDecision(utc_now(), "start", FIRST, json.dumps(["dev-0"]), {}, (1, 2), ""))
    answers = {
        f"GET /jobs/{FIRST}": job("shop", "FINISHED", {}),
        "GET /jobs": {"jobs": [{"id": FIRST, "status": "FINISHED"}]},
    }
    rest = FakeFlink(answers).rest
    with pytest.raises(SettingError, match="job"):
        first_job(rest, store, None)
    watch: Any = SimpleNamespace(rest=rest, replaces=False)
    assert settled(watch, None, log, FIRST) == FIRST


def modelled(cluster: Cluster, present: list[str], at_most: int | None) -> JobModel:
    """Model of a job of a cheap source and a mapper that takes 0.8 of a core in subtasks."""
    operators = [Operator("src", rate=100.0, ipt=1e4), Operator("map", ipt=8e6, parallelism=3)]
    graph = StreamGraph.of("shop", operators, [Stream("src", "map")])
    measured = Measurement(graph, cluster, is_limited=False)
    names = cluster.devices.name
    flink = FakeFlink(healthy(*names, *map(quote, names)))
    rows = flink.answers["GET /taskmanagers"]["taskmanagers"][: len(names)]
    flink.answers["GET /taskmanagers"] = {"taskmanagers": rows}
    engine: Any = SimpleNamespace(rest=flink.rest, measure=lambda *_: measured)
    layout = {"src": present[:1], "map": present}
    seen = JobLook(FIRST, 100.0, False, None, layout, {}, CheckpointTotals(0, 0), frozenset(names))
    return JobModeller(engine, print, at_most=at_most, confidence=0.0, may_start=True)(seen)


def test_plans_for_more_task_managers_use_copies_of_the_fastest_one() -> None:
    """They come last, are named like no other, and no job has use for more than its subtasks."""
    slow = Device("dev-1", mips=500.0)
    cluster = Cluster.of([slow, Device("dev-0"), Device("dev-0 (new)", mips=500.0)])
    model = modelled(cluster, ["dev-0"] * 3, at_most=9)
    assert (model.new.like, model.new.names) == ("dev-0", ("dev-0 (new 2)",))
    assert [one.machines for one in model.plans] == [1, 2, 3, 4]
    assert [model.missing(one) for one in model.plans[:3]] == [0, 0, 0]
    assert modelled(cluster, ["dev-0"] * 3, at_most=3).new.names == ()
    assert modelled(cluster, ["dev-0"] * 3, at_most=None).new.names == ()
    alone = modelled(Cluster.of([Device("dev-0", mips=1000.0)]), ["dev-0"] * 3, at_most=3)
    assert alone.new.names == ("dev-0 (new)", "dev-0 (new 2)")
    assert [alone.missing(one) for one in alone.plans] == [0, 1, 2]
    assert [round(one.carries.value) for one in alone.plans] == [125, 188, 374]


@pytest.fixture
def flink(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeFlink]:
    """A job on the only TaskManager that may not carry its rate, and is cancelled then."""
    here, more = plan("dev-0"), plan("dev-0", "dev-0 (new)")
    new = NewDevices("dev-0", ("dev-0 (new)",))
    model = JobModel(FIRST, "shop", (here, more), 0, here, "the CPU", new)
    seen = JobLook(
        FIRST, 104.0, False, None, here.layout, {}, CheckpointTotals(1, 0), frozenset(["dev-0"])
    )
    monkeypatch.setattr(passing, "look_at", lambda *_: seen)
    less = JobModel(FIRST, "shop", (here,), 0, here, "the CPU")
    monkeypatch.setattr(
        modelling.JobModeller, "__call__", lambda own, _: model if own.may_start else less
    )
    monkeypatch.setattr(watching, "LOOK_SECONDS", 0.01)
    running = job("shop", "RUNNING", {"map": "RUNNING"})
    answers: dict[str, Any] = healthy("dev-0") | {
        f"GET /jobs/{FIRST}": InTurn(*[running] * 4, job("shop", "CANCELED", {})),
        f"GET /jobs/{FIRST}/vertices/map": {"subtasks": [{"taskmanager-id": "dev-0"}]},
        "GET /jobs": {"jobs": [{"id": FIRST, "status": "RUNNING"}]},
    }
    with FakeFlink(answers).served() as answering:
        yield answering


def acting_options(flink: FakeFlink, folder: Path) -> list[str]:
    """Options of a watch that may move the job, and has a command with arguments."""
    script = folder / "two words"
    script.write_text(f"#!/bin/sh\n{CALLS}")
    script.chmod(0o755)
    with zipfile.ZipFile(folder / "job.jar", "w") as made:
        made.writestr("META-INF/MANIFEST.MF", "Main-Class: Job\n")
    (folder / "lib").mkdir()
    (folder / "lib" / "flink-dist-2.3.0.jar").touch()
    command = ["--machines", f"'{script}' --zone 'north east'", "--at-most", "2"]
    where = ["--rest", flink.url, "--savepoints", folder.as_uri(), "--flink-home", str(folder)]
    return ["--apply", "--policy", "ds2", *command, *where, str(folder / "job.jar")]


def test_the_option_is_a_command_with_its_own_arguments(
    run: Callable, flink: FakeFlink, tmp_path: Path
) -> None:
    answer = run("flink", "watch", *acting_options(flink, tmp_path))
    assert answer.status == 0, answer.err
    assert "1 TaskManager like dev-0 is started" in answer.err
    calls = (tmp_path / "two words.calls").read_text()
    assert calls == "--zone north east start dev-0\n"
    (record,) = read_records(usual_store(), 9)
    assert [(one.kind, one.state) for one in record.decisions] == [("start", "begun")]
    shown = run("flink", "history")
    assert "start, 1 → 2" in shown.out


def test_the_command_stops_what_is_no_spare(
    run: Callable, flink: FakeFlink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job leaves two TaskManagers, of which one is named as a spare."""

    def carry_out(mover: WatchMover, model: JobModel, *_: Any) -> str:
        mover.left(model.job, ["dev-1", "dev-2"])
        return model.job

    flink.answers |= healthy("dev-0", "dev-1", "dev-2") | {"GET /jobs": flink.answers["GET /jobs"]}
    monkeypatch.setattr(WatchMover, "carry_out", carry_out)
    more = WatchPlan(2, {"map": ["dev-0", "dev-1"]}, plan("dev-0", "dev-1").carries)
    model = JobModel(FIRST, "shop", (plan("dev-0"), more), 0, plan("dev-0"), "the CPU")
    monkeypatch.setattr(modelling.JobModeller, "__call__", lambda *_: model)
    answer = run("flink", "watch", "--spare", "dev-2", *acting_options(flink, tmp_path))
    assert answer.status == 0, answer.err
    assert (tmp_path / "two words.calls").read_text() == "--zone north east stop dev-1\n"


def test_options_that_cannot_be_meant_are_refused(run: Callable, flink: FakeFlink) -> None:
    for options, told in {
        ("--machines", "true"): "give --apply, too",
        ("--apply", "--machines", "no-such-program x"): "'no-such-program' is no program that can",
        ("--apply", "--machines", "'true"): "not a command: No closing quotation",
        ("--apply", "--machines", " "): "is no program that can be run",
    }.items():
        answer = run("flink", "watch", "--rest", flink.url, *options)
        assert answer.status == 2, options
        assert told in answer.err
        assert len(answer.err.splitlines()) == 1

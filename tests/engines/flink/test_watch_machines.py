"""A watch starts TaskManagers by a command of the user, and stops those that the job has left."""

import json
import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fake_flink import FakeFlink
from flink_documents import job
from watch_site import FIRST, Site
from watched_jobs import Killed, plan

from streamplace.engines.flink.rest.client import NoAnswer
from streamplace.engines.flink.watch import acting, machines
from streamplace.engines.flink.watch import rounds as passing
from streamplace.engines.flink.watch.judging import QuietHours
from streamplace.engines.flink.watch.log import WatchLog
from streamplace.engines.flink.watch.machines import MachineCommand
from streamplace.engines.flink.watch.watch import first_job, settled
from streamplace.errors import SettingError
from streamplace.io.watch_store import WatchDecision, WatchStore, usual_store, utc_now


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
    told_last = "1 more TaskManager would pay, but none is started for 9 min, because the last"
    assert told_last in told[4]
    site.passes(rounds, 3)
    assert site.calls == ["start dev-0"] * 2
    assert site.used == ["dev-0"]


def test_starts_in_vain_are_tried_less_and_less_often_until_one_joins(site: Site) -> None:
    """Each may have left a machine that costs money: after 10, 20, 40 min and so on."""
    rounds = site.rounds(seconds=90, least_seconds=0)
    site.rate = 95
    site.passes(rounds, 60)
    assert site.calls == ["start dev-0"] * 3
    site.slots["dev-1"] = []
    site.passes(rounds)
    assert site.used == ["dev-0", "dev-1"]
    site.rate = 195
    site.passes(rounds, 60)
    assert site.calls == ["start dev-0"] * 6


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


def test_a_command_that_cannot_be_killed_ends_no_watch(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that sudo has started as another user."""

    def refused(*_: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "killpg", refused)
    monkeypatch.setattr(machines, "KILL_SECONDS", 0.1)
    site.does("sleep 5")
    rounds = site.rounds(seconds=0.3)
    site.rate = 95
    assert "did not end within 0.3 s, and cannot be killed" in site.passes(rounds)[-1]
    assert site.decisions == [("start", "failed")]


def test_a_command_that_finds_no_room_for_its_errors_ends_no_watch(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where all folders of temporary files are full."""

    def full() -> None:
        raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr(machines, "TemporaryFile", full)
    site.rate = 95
    assert "cannot be run: No usable temporary directory found" in site.passes(site.rounds())[-1]
    assert (site.calls, site.decisions) == ([], [("start", "failed")])


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


def test_guards_hold_for_starts(site: Site) -> None:
    rounds = site.rounds(quiet=(QuietHours.of("08:00-18:00"),))
    site.rate = 95
    words = site.passes(rounds)[-1]
    assert "to start 1 TaskManager would pay" in words
    assert "nothing is moved between 08:00 and 18" in words
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
    site.runs_on(3)
    site.rate = 50

    def only_moves(watch: int, decision: WatchDecision) -> int:
        if decision.kind == "stop":
            rounds.log.store._database.execute("PRAGMA query_only = ON")
        return begin(watch, decision)

    rounds.log.store.begin = only_moves
    assert "nothing is stopped without a record" in " ".join(site.passes(rounds))
    assert (site.used, site.calls) == (["dev-0"], [])


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


def test_task_managers_that_a_move_has_left_are_stopped(site: Site) -> None:
    """Nothing is moved until they are gone."""
    site.runs_on(3)
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
    site.runs_on(3)
    site.slots["dev-1"] += ["b" * 32]
    site.slots["dev-9"] = []
    site.passes(site.rounds(spares=("dev-2",), least_seconds=0), 20)
    assert site.used == ["dev-0"]
    assert site.calls == []


def test_it_is_asked_right_before_whether_a_task_manager_is_in_use(site: Site) -> None:
    """Another job takes a slot after it was told that none has one."""
    site.runs_on(3)
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
    site.runs_on(2)
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
    site.runs_on(2)
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
    site.runs_on(2)
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
    site.runs_on(2)
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

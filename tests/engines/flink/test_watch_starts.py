"""A watch starts TaskManagers by a command of the user."""

import json
import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fake_flink import FakeFlink
from flink_documents import job
from watch_site import FIRST, Site, on_three
from watched_jobs import Killed

from streamplace.engines.flink.move.state import CheckpointTotals
from streamplace.engines.flink.watch import acting
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

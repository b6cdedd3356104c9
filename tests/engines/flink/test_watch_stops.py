"""A watch stops TaskManagers that the job has left, by a command of the user."""

import pytest
from watch_site import FIRST, Site, on_three
from watched_jobs import plan

from streamplace.engines.flink.rest.client import NoAnswer
from streamplace.engines.flink.watch import rounds as passing
from streamplace.engines.flink.watch.log import WatchLog
from streamplace.io.watch_store import WatchDecision, utc_now


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

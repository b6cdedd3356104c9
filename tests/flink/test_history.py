"""``streamplace flink history``: runs of a ledger, and how often their intervals held."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from streamplace.flink.ledger import append_entries
from streamplace.flink.store import Store
from streamplace.flink.watch.log import WatchLog
from streamplace.flink.watches import WatchDecision, WatchRound
from streamplace.io.ledger import LedgerEntry
from streamplace.model.prediction_intervals import RateInterval

RUNS = [
    LedgerEntry("clicks", 100.0, 95.0, True, 80.0, 125.0, 0.9, "flink move", "2026-01-02T10:00:00"),
    LedgerEntry("clicks", 100.0, 70.0, True, 80.0, 125.0, 0.9, "flink move", "2026-01-03T10:00:00"),
    LedgerEntry("orders", 50.0, 20.0, False, 40.0, 62.0, 0.9, "flink move", "2026-01-04T10:00:00"),
]


@pytest.fixture
def ledger():
    """The user's ledger, with runs of two jobs."""
    append_entries(RUNS)


def test_history_shows_predicted_and_measured_rates_and_coverage(run, ledger):
    answer = run("flink", "history")
    assert answer.status == 0
    lines = (" ".join(line.split()) for line in answer.out.splitlines())
    rows = [line for line in lines if line.startswith("clicks")]
    assert rows[0] == "clicks 2026-01-02 10:00 100 80 to 125 95 95.0 % yes"
    assert rows[1].endswith(" no")
    assert "1 of 2 intervals" in answer.out
    assert answer.err == ""
    answer = run("flink", "history", "--job", "orders", "--json")
    document = json.loads(answer.out)
    assert [row["job"] for row in document["runs"]] == ["orders"]
    assert (document["judged"], document["coverage"]) == (0, None)
    assert document["runs"][0]["held"] is None


def test_no_ledger_is_no_error(run):
    answer = run("flink", "history")
    assert (answer.status, answer.err) == (0, "")
    answer = run("flink", "history", "-o", "history.svg")
    assert (answer.status, Path("history.svg").exists()) == (2, False)


@pytest.fixture
def watched():
    """A watch of one job with two rounds, and one of another without any."""
    log = WatchLog.claimed(Store.usual(), "b" * 32, "clicks", print)
    WatchLog.claimed(Store.usual(), "c" * 32, "orders", print)
    for minute, machines in ((0, 1), (1, 2)):
        at = f"2026-01-02T10:0{minute}:00+00:00"
        record = WatchRound(at, 60.0 * minute, "a" * 32, 95.0, 95.0, False, 0.0, machines)
        carries = RateInterval(90.0 * machines, 100.0 * machines, 110.0 * machines)
        log.add(replace(record, carries=carries, words=f"{machines} carry it"))
    decision = WatchDecision(
        "2026-01-02T10:00:30+00:00", "move", "a" * 32, "b" * 32, {"map": "d"}, (1, 2), "it grew",
        RateInterval(180.0, 200.0, 220.0), "moved", "interrupted for 1.5 s", "b" * 32, 96.0,
    )  # fmt: skip
    log.begin(decision)


def test_history_shows_rounds_and_decisions_of_watches(run, watched):
    answer = run("flink", "history", "--job", "clicks", "-o", "history.svg")
    assert answer.status == 0, answer.err
    out = " ".join(answer.out.split())
    assert f"clicks (job {'b' * 32}), watched since" in out
    assert "2 rounds, 1 move" in out
    assert "2026-01-02 10:01:00 2 carry it" in out
    assert "move, 1 → 2 200 (180 to 220) 96" in out
    assert "it grew" in out
    assert "orders" not in out
    svg = Path("history.svg").read_text()
    for words in ("rate and capacity", "TaskManagers", "its interval", "decision"):
        assert words in svg
    document = json.loads(run("flink", "history", "--json").out)
    assert [watch["name"] for watch in document["watches"]] == ["clicks", "orders"]
    assert [entry["machines"] for entry in document["watches"][0]["rounds"]] == [1, 2]
    assert document["watches"][0]["decisions"][0]["state"] == "moved"

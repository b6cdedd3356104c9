"""The user's store: killed writers, two processes, unreadable files, and its history in words."""

import json
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from flink_clusters import awaited
from stores import fill_disk

from streamplace.flink.ledger import append_entries, user_runs
from streamplace.flink.move.journal import MOVES, Journal, MoveClaim, MoveUnderWay
from streamplace.flink.rest.client import FlinkError, successor
from streamplace.flink.store import TABLES, VERSION, Holder, Store, StoreError, TakenOver
from streamplace.flink.watch.log import JobWatched, WatchLog, unfinished
from streamplace.flink.watches import WatchDecision, WatchRound
from streamplace.io.ledger import LedgerEntry
from streamplace.model.prediction_intervals import RateInterval

HERE = Path(__file__).parent
JOB = "a" * 32
RUN = LedgerEntry("clicks", 100.0, 90.0)


def journal(job=JOB):
    """A move that this process carries out."""
    return Journal(
        url="http://here",
        job=job,
        trigger="t",
        before={},
        after={},
        folder="/s",
        resume_by="move --resume",
        began=datetime(2026, 1, 1, tzinfo=UTC),
    )


@contextmanager
def process(*lines):
    """A process of these lines that has come to their end, and waits."""
    folders = [str(HERE), str(HERE.parent / "support")]
    found = f"import sys; sys.path += {folders}; from test_store import *"
    code = "\n".join((found, *lines, "print('there', flush=True)", "sys.stdin.read()"))
    command = [sys.executable, "-c", code]
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **streams) as begun:  # type: ignore[call-overload]
        try:
            assert begun.stdout.readline() == "there\n"
            yield begun
        finally:
            begun.kill()


def test_rows_are_read_as_written_from_a_file_of_the_user_alone():
    """Programs have arguments, which may be secret."""
    assert (user_runs(), Store.usual().path.exists()) == ((), False)
    append_entries([RUN, LedgerEntry("orders", 1.0, 1.1, high=float("inf"), when="2026")])
    first, second = user_runs()
    assert (first.job, first.measured, first.when[:2]) == ("clicks", 90.0, "20")
    assert (second.high, second.when) == (float("inf"), "2026")
    assert Store.usual().path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("is_inside", [True, False])
def test_a_killed_process_leaves_the_step_before_or_after(is_inside):
    append_entries([RUN])
    step = [
        "from streamplace.flink.ledger import RATES",
        "with Store.usual().transaction() as rows:",
        "    rows.add(RATES, 'a', RUN)",
    ]
    wait = ["    print('there', flush=True)", "    sys.stdin.read()"] if is_inside else []
    with process(*step, *wait) as killed:
        killed.send_signal(signal.SIGKILL)
        killed.wait()
    assert len(user_runs()) == (1 if is_inside else 2)
    append_entries([RUN])


def test_two_processes_move_and_watch_a_job_one_after_the_other():
    """The claim of a process that was killed is void: the move is resumed, the watch goes on."""
    store = Store.usual()
    claims = ("MoveClaim.begin(journal())", "WatchLog.claimed(Store.usual(), JOB, '', print)")
    with process(*claims) as other:
        for claim in (lambda: MoveClaim.begin(journal()), lambda: MoveClaim.take(JOB)):
            with pytest.raises(MoveUnderWay, match=f"process {other.pid}"):
                claim()
        with pytest.raises(JobWatched, match=f"process {other.pid}"):
            WatchLog.claimed(store, successor(JOB), "", print)
        assert WatchLog.claimed(store, "d" * 32, "", print).watch == 2
    with pytest.raises(FlinkError, match="move --resume"):
        MoveClaim.begin(journal())
    assert MoveClaim.take(JOB).journal.holder == Holder.current()
    with pytest.raises(MoveUnderWay):
        MoveClaim.take(JOB)
    assert WatchLog.claimed(store, JOB, "", print).watch == 1


def test_a_process_is_identified_by_machine_id_and_start():
    """Another one may have got its id since."""
    here = Holder.current()
    changes = ({"started": here.started + 1}, {"process": 2**22 + 1}, {"host": "elsewhere"})
    for change in (*changes, {"boot": "another machine of that name"}):
        assert not here.model_copy(update=change).runs
    assert here.runs


def test_a_holder_on_another_machine_counts_as_running_until_its_lease_ends(monkeypatch):
    """Its rows are renewed there; one that was taken over writes nothing more."""
    claim = MoveClaim.begin(journal())
    elsewhere = Holder.current().model_copy(update={"host": "elsewhere"})
    with monkeypatch.context() as there:
        there.setattr(Holder, "current", lambda: elsewhere)
        there.setattr(Holder, "runs", False)
        MoveClaim.take(JOB)
    with pytest.raises(MoveUnderWay, match="of elsewhere"):
        MoveClaim.take(JOB)
    with pytest.raises(TakenOver, match="of elsewhere"):
        claim.save(returns=True)
    claim.end()
    monkeypatch.setattr("streamplace.flink.store.LEASE_SECONDS", 0.0)
    assert MoveClaim.take(JOB).journal.holder == Holder.current()


def test_a_claim_is_renewed_while_it_exists(monkeypatch):
    monkeypatch.setattr("streamplace.flink.store.RENEWAL_SECONDS", 0.01)
    claim = MoveClaim.begin(journal())

    def renewed():
        (row,) = Store.usual().rows(MOVES).values()
        return row.renewed

    with Store.usual().transaction() as rows:
        rows.put(MOVES, 1, claim.journal.model_copy(update={"renewed": "1999-01-01T00:00:00"}))
    awaited(lambda: renewed() > "2000", 5.0)


@pytest.mark.parametrize("version", [4, 5])
def test_a_file_with_an_unfinished_change_of_an_older_version_is_refused(version):
    """These versions had changes of specifications in the file; without one, it is read."""
    path = Store.usual().path
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as database, database:
        for name in (*TABLES, "patches"):
            database.execute(
                f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, owner TEXT NOT NULL, "
                "document TEXT NOT NULL)"
            )
        database.execute("INSERT INTO patches (owner, document) VALUES ('flink/count', '{}')")
        database.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(StoreError, match="begun a change of flink/count; finish it with that"):
        user_runs()
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("DELETE FROM patches")
    assert user_runs() == ()


def test_processes_that_write_at_once_lose_nothing():
    more = "for _ in range(20): append_entries([RUN])"
    with process(more), process(more):
        append_entries([RUN])
    assert len(user_runs()) == 41


@pytest.mark.parametrize("table", ["moves", "watches", "decisions", "rates"])
def test_a_damaged_row_is_refused_and_nothing_begins(table):
    """Without it, a job could be started twice."""
    store = Store.usual()
    MoveClaim.begin(journal())
    WatchLog.claimed(store, JOB, "", print).begin(
        WatchDecision("", "move", JOB, "", {}, (1, 1), "")
    )
    append_entries([RUN])
    with closing(sqlite3.connect(Store.usual().path)) as database, database:
        later = json.dumps({"job": "later", "a field of a later version": 1})
        database.execute(f"UPDATE {table} SET document = ?", (later,))
    readers = {
        "moves": lambda: MoveClaim.begin(journal("e" * 32)),
        "watches": lambda: WatchLog.claimed(store, "e" * 32, "", print),
        "decisions": lambda: unfinished(store),
        "rates": user_runs,
    }
    with pytest.raises(StoreError, match=rf"store\.sqlite .*table {table}"):
        readers[table]()


def test_a_damaged_file_or_one_of_another_version_is_refused_and_kept():
    path = Store.usual().path
    path.parent.mkdir(parents=True)
    for content, place in {
        "this is no database, but a text of some length": path.name,
        "PRAGMA user_version = 99": f"format 99, not {VERSION}",
        "CREATE TABLE a (b TEXT)": f"format 0, not {VERSION}",
    }.items():
        path.unlink(missing_ok=True)
        if content.startswith("this"):
            path.write_text(content * 9)
        else:
            with closing(sqlite3.connect(path)) as database:
                database.execute(content)
        before = path.read_bytes()
        for use in (user_runs, lambda: append_entries([RUN])):
            with pytest.raises(StoreError, match=place):
                use()
        assert path.read_bytes() == before


def test_a_watch_whose_file_was_moved_away_begins_nothing():
    messages: list[str] = []
    log = WatchLog.claimed(Store.usual(), JOB, "", messages.append)
    Store.usual().path.unlink()
    with pytest.raises(StoreError, match="row 1 of table watches"):
        log.begin(WatchDecision("", "move", JOB, "", {}, (1, 1), ""))
    log.add(WatchRound("", 1.0, JOB, 1.0, 1.0, False, 0.0, 1))
    assert len(messages) == 1


def test_a_full_disk_does_not_damage_the_file(monkeypatch):
    append_entries([RUN])
    fill_disk(monkeypatch)
    with pytest.raises(StoreError, match=r"disk is full$"):
        append_entries([RUN] * 100)
    monkeypatch.undo()
    assert len(user_runs()) == 1


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

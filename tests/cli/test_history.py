"""``streamplace flink history``: runs of a ledger, and how often their intervals held."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from streamplace.io.ledger import LedgerEntry, append_entries, usual_ledger

RUNS = [
    LedgerEntry("clicks", 100.0, 95.0, True, 80.0, 125.0, 0.9, "flink move", "2026-01-02T10:00:00"),
    LedgerEntry("clicks", 100.0, 70.0, True, 80.0, 125.0, 0.9, "flink move", "2026-01-03T10:00:00"),
    LedgerEntry("orders", 50.0, 20.0, False, 40.0, 62.0, 0.9, "flink move", "2026-01-04T10:00:00"),
]


@pytest.fixture
def ledger() -> Path:
    """The user's ledger, with runs of two jobs and a line of another version."""
    append_entries(usual_ledger(), RUNS)
    with usual_ledger().open("a") as file:
        file.write('{"ledger": 99}\n')
    return usual_ledger()


def test_history_shows_predicted_and_measured_and_what_held(run: Callable, ledger: Path) -> None:
    answer = run("flink", "history")
    assert answer.status == 0
    rows = [line.split() for line in answer.out.splitlines() if line.strip().startswith("clicks")]
    assert rows[0] == [
        "clicks",
        "2026-01-02",
        "10:00",
        "100",
        "80",
        "to",
        "125",
        "95",
        "95.0",
        "%",
        "yes",
    ]
    assert rows[1][-1] == "no"
    assert "20 or more" in answer.out
    assert "1 of 2 intervals held, which were told with 90.0 % in the median." in answer.out
    assert answer.err.count("warning: ") == 1
    assert "1 line skipped (1 of another version)" in answer.err


def test_history_of_one_job_as_json_and_as_a_page(run: Callable, ledger: Path) -> None:
    answer = run("flink", "history", "--job", "orders", "--json", "-o", "history.html")
    document = json.loads(answer.out)
    assert [row["job"] for row in document["runs"]] == ["orders"]
    assert (document["judged"], document["coverage"]) == (0, None)
    assert document["runs"][0]["held"] is None
    assert "orders" in Path("history.html").read_text()


def test_no_ledger_is_no_error(run: Callable, tmp_path: Path) -> None:
    answer = run("flink", "history", "--ledger", str(tmp_path / "none.jsonl"))
    assert (answer.status, answer.err) == (0, "")
    assert "No run has been recorded yet." in answer.out

"""Tables of the commands at several widths of the terminal: no value is lost or broken."""

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from planning_cases import pipeline

from streamplace.display import console
from streamplace.display.report import LEAST_TEXT, Sheet
from streamplace.io.graphs import write_graph
from streamplace.io.ledger import LedgerEntry, append_entries
from streamplace.library import open_library

OFFERS = '[[offers]]\nname = "small"\nprice = 0.1\nmips = 4\ncores = 2\n'
RUN = {
    "instance": "branched-00", "objective": "throughput", "digest": "", "method": "metis",
    "limit": 1, "seed": 0, "status": "answered", "value": 0.7, "seconds": 0.5, "elapsed": 0.5,
    "memory": 1000,
}  # fmt: skip
COMMANDS = {
    "placers": "placers",
    "objectives": "objectives",
    "library list": "library list --class branched",
    "library table": "library table runs.jsonl",
    "describe": "describe graph.json",
    "compare": "compare graph.json --placers round-robin,metis,single --jobs 1",
    "compare by two": "compare graph.json --placers metis,single --objective throughput "
    "--objective makespan --jobs 1",
    "place": "place graph.json --placer metis",
    "simulate": "simulate graph.json placement.json",
    "simulate one pass": "simulate tasks.json present.json",
    "place from": "place tasks.json --evaluations 200 --devices 2 --settings move.toml",
    "plan": "plan jobs.json --rate 2000 --offers offers.toml --evaluations 1000",
    "plan frontier": "plan jobs.json --rate 500..2000 --offers offers.toml --evaluations 200",
    "history": "flink history",
}


@pytest.fixture
def sheets(monkeypatch: pytest.MonkeyPatch) -> list[Sheet]:
    """Sheets that the commands of a test print."""
    printed: list[Sheet] = []
    make = console.tables_of
    monkeypatch.setattr(
        console, "tables_of", lambda sheet, width: (printed.append(sheet), make(sheet, width))[1]
    )
    return printed


@pytest.mark.usefixtures("graph", "placement", "tasks")
@pytest.mark.parametrize("command", COMMANDS)
def test_every_value_is_found_at_every_width(
    command: str, run: Callable, sheets: list[Sheet], tmp_path: Path
) -> None:
    """Short cells stay on one line, words of longer ones too."""
    write_graph(pipeline(), tmp_path / "jobs.json")
    Path("offers.toml").write_text(OFFERS)
    Path("move.toml").write_text("from = 'present.json'\npasses = 9\n")
    entry = LedgerEntry("clicks", 100.0, 95.0, True, 80.0, 125.0, 0.9, "move", "2026-01-02T10:00")
    append_entries([entry])
    run_of_now = RUN | {"digest": open_library().digest(RUN["instance"])}
    Path("runs.jsonl").write_text(json.dumps(run_of_now) + "\n")
    answer = run(*COMMANDS[command].split())
    assert answer.status == 0, answer.err
    assert sheets
    check_printed(answer.out, sheets, 100)
    for width in (60, 80, 200):
        check_printed(shown(sheets, width), sheets, width)


def shown(sheets: list[Sheet], width: int) -> str:
    """Text of sheets on a terminal."""
    file = StringIO()
    terminal = console.DataConsole(file=file, width=width, color_system=None)
    console.print_parts(terminal, tuple(sheets))
    return file.getvalue()


def check_printed(text: str, sheets: list[Sheet], width: int) -> None:
    """Find every cell of the sheets in a text, in lines of at most this width."""
    assert all(len(line.rstrip()) <= width for line in text.splitlines())
    for sheet in sheets:
        for cell in (cell for row in sheet.rows for cell in row if isinstance(cell, str)):
            whole = len(cell) <= LEAST_TEXT
            words = [cell.strip()] if whole else cell.split()
            missing = [w for w in words if w not in text and len(w) <= console.MOST_WORD]
            assert not missing, f"{width} columns: {missing}"

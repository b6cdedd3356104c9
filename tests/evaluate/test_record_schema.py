import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from streamplace.errors import FormatError
from streamplace.evaluate.record_file import RecordFile
from streamplace.evaluate.records import Record

RECORD = Record("p", "g", 1e4, "metis", "1 s", 0.8, None, 0.1, (0, 1))


@pytest.mark.parametrize(
    "change",
    [
        {"devices": [0, -1]},
        {"devices": [0, 2**40]},
        {"devices": [0, 0.5]},
        {"devices": "01"},
        {"devices": [[0]]},
        {"value": "0.8"},
        {"value": True},
        {"rate": "fast"},
        {"problem": None},
        {"error": 5},
        {"surprise": 1},
    ],
    ids=str,
)
def test_a_forged_result_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    """Whatever is wrong with it; none of it reaches a table, or a simulator."""
    path = tmp_path / "results.jsonl"
    path.write_text(json.dumps({**asdict(RECORD), **change}) + "\n")
    with pytest.raises(
        FormatError, match=r"results.jsonl: contains a line that is not a result; remove"
    ):
        list(RecordFile(path))


@pytest.mark.parametrize("text", ['{"value": NaN}', "[" * 100_000, "3", '{"problem": "p"}', "\xff"])
def test_other_lines_are_no_results(text: str, tmp_path: Path) -> None:
    """However deep, and whatever encoding."""
    path = tmp_path / "results.jsonl"
    path.write_bytes(text.encode("latin-1") + b"\n")
    with pytest.raises(FormatError, match="contains a line that is not a result"):
        list(RecordFile(path))


def test_a_value_that_is_no_number_is_refused(tmp_path: Path) -> None:
    """Python's own reader takes NaN and numbers without end."""
    path = tmp_path / "results.jsonl"
    for number in ("NaN", "Infinity", "1e999"):
        path.write_text(json.dumps(asdict(RECORD)).replace("0.8", number) + "\n")
        with pytest.raises(FormatError, match="contains a line that is not a result"):
            list(RecordFile(path))

"""Files of results: damaged lines are refused."""

import json
from dataclasses import asdict
from math import nan
from pathlib import Path
from typing import Any

import pytest

from streamplace.errors import FormatError
from streamplace.evaluate.records import Record, read_records

RECORD = Record("p", "g", 1e4, "metis", "1 s", 0.8, None, 0.1, (0, 1))
LINE = json.dumps(asdict(RECORD))


def changed(**fields: Any) -> str:
    """The line of a record with other fields."""
    return json.dumps({**asdict(RECORD), **fields})


@pytest.mark.parametrize(
    "line",
    [
        changed(devices=[0, -1]),
        changed(devices=[0, 2**40]),
        changed(value="0.8"),
        changed(value=nan),
        LINE.replace("0.8", "1e999"),
        changed(surprise=1),
        "[" * 100_000,
        '{"problem": "p"}',
        "\xff",
    ],
    ids=lambda line: line[:200] if line.isascii() else "bytes",
)
def test_a_damaged_line_is_named(line: str, tmp_path: Path) -> None:
    """Whatever is wrong with it; none of it reaches a table, or a simulator."""
    path = tmp_path / "results.jsonl"
    path.write_bytes(f"{LINE}\n".encode() + line.encode("latin-1") + b"\n")
    records = read_records(path)
    assert next(records) == RECORD
    with pytest.raises(FormatError, match=r"results\.jsonl:2: ") as error:
        next(records)
    assert "\n" not in str(error.value)

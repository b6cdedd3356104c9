"""Files of results: damaged lines are refused, and a torn last one costs one record."""

import json
from dataclasses import asdict
from math import nan
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamplace.errors import FormatError
from streamplace.evaluate.records import Record, claim_records, read_records

RECORD = Record("p", "g", 1e4, "metis", "1 s", 0.8, None, 0.1, (0, 1))
LINE = json.dumps(asdict(RECORD))


def changed(**fields):
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
def test_a_damaged_line_is_named(line, tmp_path):
    """Whatever is wrong with it; none of it reaches a table, or a simulator."""
    path = tmp_path / "results.jsonl"
    path.write_bytes(f"{LINE}\n".encode() + line.encode("latin-1") + b"\n")
    records = read_records(path)
    assert next(records) == RECORD
    with pytest.raises(FormatError, match=r"results\.jsonl:2: ") as error:
        next(records)
    assert "\n" not in str(error.value)


def record(number):
    """A made-up record of a problem of a number."""
    return Record(f"p{number}", "g", 1e4, "metis", "b", number % 7 / 7, None, 2.0, (0, 1, 1))


@given(st.integers(1, 200))
def test_a_torn_last_line_costs_one_record(lost):
    with TemporaryDirectory() as folder:
        path = Path(folder) / "results.jsonl"
        rows = [record(number) for number in range(4)]
        with claim_records(path) as save:
            save(rows)
        path.write_bytes(path.read_bytes()[:-lost])
        with claim_records(path) as save:
            assert list(read_records(path)) == rows[:-1]
            save([rows[-1]])
        assert list(read_records(path)) == rows


def test_a_file_of_something_else_is_not_changed(tmp_path):
    path = tmp_path / "results.jsonl"
    path.write_text("my notes\nunfinished")
    with pytest.raises(FormatError, match=path.name), claim_records(path):
        pass
    assert path.read_text() == "my notes\nunfinished"


def test_a_new_file_without_records_does_not_stay(tmp_path):
    """An empty one that was there already does."""
    new, old = tmp_path / "new.jsonl", tmp_path / "old.jsonl"
    old.touch()
    for path in (new, old):
        with pytest.raises(KeyError), claim_records(path):
            raise KeyError
    assert [*tmp_path.iterdir()] == [old]

"""Files of results: lines that are none are refused, and shards are read as one file."""

import json
from dataclasses import asdict
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamplace.errors import FormatError
from streamplace.evaluate import results
from streamplace.evaluate.record_file import RecordFile, RecordIndex
from streamplace.evaluate.records import Record
from streamplace.evaluate.results import BestValues, ResultsTable

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
        changed(devices=[0, 0.5]),
        changed(devices="01"),
        changed(devices=[[0]]),
        changed(value="0.8"),
        changed(value=True),
        changed(value=nan),
        changed(value=inf),
        LINE.replace("0.8", "1e999"),
        changed(rate="fast"),
        changed(problem=None),
        changed(error=5),
        changed(surprise=1),
        '{"value": NaN}',
        "[" * 100_000,
        "3",
        '{"problem": "p"}',
        "\xff",
    ],
    ids=lambda line: line[:200] if line.isascii() else "bytes",
)
def test_a_line_that_is_no_result_is_refused(line: str, tmp_path: Path) -> None:
    """Whatever is wrong with it; none of it reaches a table, or a simulator."""
    path = tmp_path / "results.jsonl"
    path.write_bytes(line.encode("latin-1") + b"\n")
    with pytest.raises(
        FormatError, match=r"results.jsonl: contains a line that is not a result; remove"
    ):
        list(RecordFile(path))


def record(number: int, placer: str = "metis", bound: float | None = None) -> Record:
    """A made-up record of a problem of a number."""
    value = number % 7 / 7
    return Record(f"p{number}", "g", 1e4, placer, "b", value, bound, 2.0, (0, 1, 1))


def test_what_does_not_fit_goes_on_in_another_file(tmp_path: Path) -> None:
    """In order, found by position, and a line that a kill cut short costs one record."""
    path = tmp_path / "results.jsonl"
    rows = [record(number) for number in range(40)]
    for row in rows:
        RecordFile(path, shard=1000).append([row])
    file = RecordFile(path, shard=1000)
    assert [one.name for one in file.shards][:2] == ["results.jsonl", "results-00001.jsonl"]
    assert list(file) == rows
    assert [file.at(byte) for byte, _ in file.located()] == rows
    known = RecordIndex.of(file)
    assert [known.find(row.key) for row in rows] == rows
    last = file.shards[-1]
    last.write_bytes(last.read_bytes()[:-5])
    assert list(file) == rows[:-1]
    with file.claim() as add:
        add([rows[-1]])
    assert list(file) == rows


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans(), st.booleans()), max_size=60))
def test_optima_merged_block_by_block_are_those_of_all_at_once(
    told: list[tuple[int, bool, bool]],
) -> None:
    rows = [
        record(number, "exact" if exact else "metis", number % 7 / 7 if proves else None)
        for number, exact, proves in told
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(results, "MOST_WAITING", 7)
        best = BestValues("max")
        for row in rows:
            best.add_record(row)
        blockwise = best.optima()
    whole = ResultsTable(rows).optima()
    np.testing.assert_array_equal(blockwise.problem, whole.problem)
    np.testing.assert_array_equal(blockwise.value, whole.value)

"""Results in shards are read, found and gone on with as if they were in one file."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamplace.evaluate import results
from streamplace.evaluate.record_file import RecordFile, RecordIndex
from streamplace.evaluate.records import Record
from streamplace.evaluate.results import BestValues, ResultsTable


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

"""Files of records: a JSON line each, appended one after the other, in shards if many; indexed."""

import json
import os
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import accumulate, count, takewhile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from streamplace.errors import FormatError
from streamplace.evaluate.records import Key, Record, key_number
from streamplace.io.appending import append_lines, claim, open_to_append, repair, unwritable
from streamplace.io.files import make_folder, reading, spot, wait_for_lock
from streamplace.io.parsing import parse_as

SHARD = 64 * 2**20
"""Bytes of a full shard."""
START = b'{"problem":'
"""Beginning of every line."""


class RecordFile:
    """Records in JSONL files that survive truncation at any byte.

    When ``results.jsonl`` is full, ``results-00001.jsonl`` and so on follow, which are read as one
    file. A lock on the first file holds for all of them.

    Examples
    --------
    >>> import tempfile
    >>> file = RecordFile(Path(tempfile.mkdtemp()) / "results.jsonl")
    >>> file.append([Record("p", "g", 1e4, "metis", "1 s", 0.8, None, 0.1, (0, 1))])
    >>> [record.value for record in file]
    [0.8]
    """

    def __init__(self, path: Path, shard: int = SHARD) -> None:
        self.path, self.shard = path, shard

    def __iter__(self) -> Iterator[Record]:
        return (record for _, record in self.located())

    @property
    def shards(self) -> list[Path]:
        """Files that exist."""
        return list(takewhile(Path.exists, map(self._named, count())))

    def located(self) -> Iterator[tuple[int, Record]]:
        """Records with the position of each; an incomplete last line is ignored."""
        at = 0
        for path in self.shards:
            with reading(path), path.open("rb") as file:
                for line in file:
                    if line.endswith(b"\n"):
                        yield at, _parsed(line, path)
                    at += len(line)

    def at(self, byte: int) -> Record:
        """Record at a position."""
        shards = self.shards
        starts = list(accumulate((path.stat().st_size for path in shards), initial=0))
        number = min(bisect_right(starts, byte), max(1, len(shards))) - 1
        path = self._named(number)
        with reading(path), path.open("rb") as file:
            file.seek(byte - starts[number])
            return _parsed(file.readline(), path)

    def append(self, records: Iterable[Record]) -> None:
        """Append records, once no other process does."""
        with open_to_append(self.path) as first:
            wait_for_lock(first)
            with self._adding() as add:
                add(records)

    def drop_damaged(self) -> None:
        """Remove lines that are not records, once no other process appends any."""
        for path in self.shards or [self.path]:
            try:
                with path.open("r+b") as file, path.open("rb") as lines:
                    wait_for_lock(file)
                    for line in lines:
                        if _holds_record(line, path):
                            file.write(line)
                    file.truncate()
            except OSError as error:
                raise unwritable(path, error) from None

    @contextmanager
    def claim(self) -> Iterator[Callable[[Iterable[Record]], None]]:
        """Yield a function that appends records, under a lock within the block."""
        with claim(self.path), self._adding() as add:
            yield add

    def _named(self, number: int) -> Path:
        path = self.path
        return path.with_name(f"{path.stem}-{number:05d}{path.suffix}") if number else path

    @contextmanager
    def _adding(self) -> Iterator[Callable[[Iterable[Record]], None]]:
        """Append records to the last shard, or to a new one if it is full."""
        last = max(1, len(self.shards)) - 1
        path = self._named(last)
        file = open_to_append(path)
        try:
            repair(file, path, START, lambda line: _holds_record(line, path))

            def add(records: Iterable[Record]) -> None:
                nonlocal last, file
                if file.seek(0, os.SEEK_END) >= self.shard:
                    file.close()
                    last += 1
                    file = open_to_append(self._named(last))
                append_lines(file, _rows(records), self._named(last))

            yield add
        finally:
            file.close()


def results_file(folder: Path) -> RecordFile:
    """File of the results of a comparison in a folder, which is created if it is missing."""
    make_folder(folder)
    return RecordFile(folder / "results.jsonl")


def _rows(records: Iterable[Record]) -> bytes:
    rows = [json.dumps(asdict(r), ensure_ascii=False, separators=(",", ":")) for r in records]
    return "".join(f"{row}\n" for row in rows).encode()


def _holds_record(line: bytes, path: Path) -> bool:
    try:
        _parsed(line, path)
    except FormatError:
        return False
    return line.endswith(b"\n")


def _parsed(line: bytes, path: Path) -> Record:
    try:
        return parse_as(Record, line, spot(path))
    except FormatError:
        raise FormatError(
            f"{spot(path)}: contains a line that is not a result; remove the file to start over"
        ) from None


@dataclass(frozen=True, slots=True)
class RecordIndex:
    """Records of a file by key; records with equal keys are repetitions of one result."""

    file: RecordFile
    # Number of every record's key, ascending, and position of the record in the file.
    numbers: NDArray[np.uint64]
    starts: NDArray[np.uint64]

    @classmethod
    def of(
        cls, file: RecordFile, on_record: Callable[[Record], None] | None = None
    ) -> "RecordIndex":
        """Index the present records of a file; ``on_record`` is called with each."""
        numbers, starts = array("Q"), array("Q")
        for start, record in file.located():
            numbers.append(key_number(*record.key))
            starts.append(start)
            if on_record is not None:
                on_record(record)
        columns = np.array(numbers, np.uint64), np.array(starts, np.uint64)
        order = np.argsort(columns[0], kind="stable")
        return cls(file, columns[0][order], columns[1][order])

    @classmethod
    def empty(cls, file: RecordFile) -> "RecordIndex":
        """Index of an unreadable file."""
        return cls(file, np.empty(0, np.uint64), np.empty(0, np.uint64))

    def __len__(self) -> int:
        return len(self.numbers)

    def find(self, key: Key) -> Record | None:
        """Last record of a key; None if there is none."""
        number = np.uint64(key_number(*key))
        at = int(np.searchsorted(self.numbers, number, "right")) - 1
        if at < 0 or self.numbers[at] != number:
            return None
        try:
            record = self.file.at(int(self.starts[at]))
        except FormatError:  # the file was replaced meanwhile
            return None
        return record if record.key == key else None

"""Files of records: a JSON line each, read whole at the start, then appended to."""

import json
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from io import FileIO
from pathlib import Path

from streamplace.errors import FormatError
from streamplace.evaluate.records import Record
from streamplace.io.appending import append_lines, claim, open_to_append, repair
from streamplace.io.files import make_folder, reading, spot, wait_for_lock
from streamplace.io.parsing import parse_as
from streamplace.model.messages import counted

LOG = logging.getLogger(__name__)
START = b'{"problem":'
"""Beginning of every line."""


def results_file(folder: Path) -> Path:
    """File of the results of a comparison in a folder, which is created if it is missing."""
    make_folder(folder)
    return folder / "results.jsonl"


def read_records(path: Path) -> Iterator[Record]:
    """Records of a file; damaged lines are left out with a warning, a torn last one without.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "results.jsonl"
    >>> append_records(path, [Record("p", "g", 1e4, "metis", "1 s", 0.8, None, 0.1, (0, 1))])
    >>> [record.value for record in read_records(path)]
    [0.8]
    """
    records = damaged = foreign = 0
    with reading(path), path.open("rb") as lines:
        for line in lines:
            record = _parsed(line)
            if record is not None:
                records += 1
                yield record
            elif line.endswith(b"\n"):
                damaged += 1
                foreign += not line.startswith(START)
    if foreign and not records:
        raise FormatError(f"{spot(path)}: does not contain such results; name another file")
    if damaged:
        LOG.warning("%s: %s left out", spot(path), counted(damaged, "damaged line"))


@contextmanager
def claim_records(path: Path) -> Iterator[Callable[[Iterable[Record]], None]]:
    """Lock a file against other processes, and yield a function that appends records to it."""
    with claim(path) as file:
        repair(file, path, START, lambda line: _parsed(line) is not None)
        yield lambda records: _append(file, records, path)


def append_records(path: Path, records: Iterable[Record]) -> None:
    """Append records, once no other process does."""
    with open_to_append(path) as file:
        wait_for_lock(file)
        repair(file, path, START, lambda line: _parsed(line) is not None)
        _append(file, records, path)


def _append(file: FileIO, records: Iterable[Record], path: Path) -> None:
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
    append_lines(file, "".join(f"{encode(asdict(r))}\n" for r in records).encode(), path)


def _parsed(line: bytes) -> Record | None:
    """Record of a line; None if it is damaged or incomplete."""
    try:
        return parse_as(Record, line, "") if line.endswith(b"\n") else None
    except FormatError:
        return None

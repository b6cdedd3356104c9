"""Files of strangers for the library: the checker's three, and the table of entries."""

import io
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from streamplace.library.folder import LibraryEntry, checker_file, open_library

sys.path.insert(0, str(checker_file().parent))
import check

PARTS = ("instance", "solution", "certificate")
NODES = 100
"""Nodes of a search; what needs more is refused as well."""
LONGEST = 400

Reader = Callable[[bytes, Path], Any]
Seeds = Callable[[], Sequence[bytes]]


def library_readers():
    """Reader and valid contents of every kind of file, for each kind of proof."""
    readers: dict[str, tuple[Reader, Seeds]] = {}
    for entry in _smallest():
        for part in PARTS:
            name = f"library {part} {entry.objective} {entry.proof}"
            readers[name] = partial(_check, entry, part), partial(_content, entry, part)
    readers["library table"] = (
        _read_library,
        lambda: [(_library().folder / "best.jsonl").read_bytes()],
    )
    return readers


@cache
def _library():
    return open_library()


@cache
def _smallest():
    """Entry of the smallest files for each objective and kind of proof."""
    library, kinds = _library(), dict[tuple[str, str], tuple[int, LibraryEntry]]()
    for entry in library.entries:
        size = sum(path.stat().st_size for path in library.files(entry))
        kind = entry.objective, entry.proof
        if kind not in kinds or size < kinds[kind][0]:
            kinds[kind] = size, entry
    return tuple(entry for _, entry in kinds.values())


def _content(entry, part):
    return [_library().files(entry)[PARTS.index(part)].read_bytes()]


def _check(entry, part, content, folder):
    """Have the checker read a content beside the two valid files."""
    paths = _library().files(entry)
    paths[PARTS.index(part)] = file = folder / f"{part}.json"
    file.write_bytes(content)
    with redirect_stdout(io.StringIO()) as out, patch.object(check, "NODES", NODES):
        status = check.main([str(path) for path in paths])
    (line,) = out.getvalue().splitlines()
    assert status == (0 if line.startswith("accepted: ") else 1), line
    assert line.isascii(), line
    assert line.isprintable(), line
    assert len(line) <= LONGEST, line


def _read_library(content, folder):
    (folder / "best.jsonl").write_bytes(content)
    (folder / "manifest.json").write_bytes((_library().folder / "manifest.json").read_bytes())
    library = open_library(folder)
    for entry in library.entries:
        library.files(entry)

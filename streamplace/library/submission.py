"""Submission of better solutions and bounds: checked, and stored so that a kill does no harm.

The file is written first, then the checksums, and its line in ``best.jsonl`` last. After a kill in
between, the line states less than the file proves, and repeating the submission completes it.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import isfinite
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NotRequired

from typing_extensions import TypedDict

from streamplace.errors import FormatError, SettingError
from streamplace.io.files import claim_folder, read_bytes, spot, write_bytes
from streamplace.io.parsing import parse_as, utf8
from streamplace.library.documents import ObjectiveName
from streamplace.library.folder import (
    BEST,
    Library,
    LibraryEntry,
    best_lines,
    open_library,
    write_checksums,
)
from streamplace.library.run_checker import CLOSED, check_files
from streamplace.model.arrays import ROUNDING
from streamplace.model.message_text import quoted, shown

LARGEST = 64 * 2**20
"""Bytes of a submitted file, up to which it is read into memory; the checker takes larger ones."""


class SubmittedJson(TypedDict):
    """Fields that are read from a solution or a certificate; the checker reads the others."""

    objective: NotRequired[ObjectiveName]
    graph: NotRequired[str]
    proof: NotRequired[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Submission:
    """Result of submitting a file.

    Attributes
    ----------
    entry
        Entry after the submission.
    before
        Entry before the submission.
    improved
        Whether the file is better than the library's, and is stored in it.
    """

    entry: LibraryEntry
    before: LibraryEntry
    improved: bool


def submit(
    file: str | PathLike[str],
    *,
    instance: str | None = None,
    by: str = "not stated",
    seconds: float | None = None,
    library: str | PathLike[str] | None = None,
) -> Submission:
    """Check a solution or a certificate, and store it in the library if it is better.

    Parameters
    ----------
    file
        Path of a solution or certificate file.
    instance
        Name of the instance; by default the file's ``graph``.
    by
        Author or program that made it.
    seconds
        Processor time of the search, on one core.
    library
        Folder of the library.

    Raises
    ------
    FormatError
        If the checker refuses the file; the message has the reason.
    """
    if seconds is not None and not (isfinite(seconds) and seconds >= 0):
        raise SettingError(f"the time of the search is {seconds} s; it must be a number from 0 on")
    path = Path(file)
    content = utf8(read_bytes(path, LARGEST), spot(path))
    document = parse_as(SubmittedJson, content, spot(path), extra="ignore")
    opened = open_library(library)
    with claim_folder(opened.folder, "submitting to it; try again"):
        entry = _entry_of(opened, document, instance)
        with TemporaryDirectory() as folder:
            copy = Path(folder) / "submitted.json"
            copy.write_bytes(content)
            better = _better(opened, entry, document, copy, spot(path))
        if better is None:
            return Submission(entry, entry, False)
        target = opened.certificate_file(entry)
        if "proof" not in document:
            target = opened.solution_file(entry)
            today = datetime.now(UTC).date().isoformat()
            better = replace(better, by=shown(by, 200), seconds=seconds, date=today)
        best = best_lines(better if line.name == entry.name else line for line in opened.entries)
        write_bytes(target, content)
        write_checksums(opened.folder, {target: content, opened.folder / BEST: best})
        write_bytes(opened.folder / BEST, best)
    return Submission(better, entry, True)


def _entry_of(library: Library, document: SubmittedJson, name: str | None) -> LibraryEntry:
    """Entry that a file is for."""
    instance = document.get("graph") if name is None else name
    if instance is None:
        raise SettingError("the file names no graph; name the instance with --instance")
    if name is None and instance not in library.manifest.instances:
        raise SettingError(
            f"the library has no instance {quoted(instance)}, which is the graph of the file; name "
            "the instance with --instance"
        )
    if "objective" in document:
        return library.entry(instance, document["objective"])
    entries = library.select([instance])
    if len(entries) > 1:
        raise SettingError("the file states no objective; add it")
    return entries[0]


def _better(
    library: Library, entry: LibraryEntry, document: SubmittedJson, copy: Path, where: str
) -> LibraryEntry | None:
    """Entry with the submitted file; None if that is not better."""
    instance = library.instance_file(entry.instance)
    is_proof = "proof" in document
    files = (library.solution_file(entry), copy) if is_proof else (copy,)
    result = check_files(instance, *files)
    if not result.accepted or result.objective != entry.objective:
        raise FormatError(f"{where}: the checker refuses it: {result.text}")
    assert result.value is not None
    if is_proof:
        assert result.bound is not None
        kind = shown(str(document["proof"].get("kind", "search")), 40)
        changed = replace(entry, bound=result.bound, proof=kind, proof_seconds=result.seconds)
        gain = entry.sense * (entry.bound - changed.bound) / (abs(entry.bound) or 1.0)
    else:
        changed = replace(entry, value=result.value)
        gain = entry.sense * (result.value - entry.value) / (abs(entry.value) or 1.0)
        if entry.sense * (result.value - entry.bound) > ROUNDING * abs(entry.bound):
            raise FormatError(
                f"{where}: the value {result.value:.12g} is better than the proven bound "
                f"{entry.bound:.12g}; please report both"
            )
    if gain <= ROUNDING:
        return None
    if changed.gap > CLOSED:
        return replace(changed, closed=False, proof_seconds=None)
    seconds = changed.proof_seconds
    if seconds is None:
        seconds = check_files(instance, copy, library.certificate_file(entry)).seconds
    return replace(changed, closed=True, proof_seconds=seconds)

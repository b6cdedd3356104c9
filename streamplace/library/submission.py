"""Submission of better solutions and bounds: checked, and stored so that a kill does no harm.

A submission that the checker has accepted is written to one file first, `JOURNAL`. From then on it
is valid: the next submission completes it, so that solution, line and checksum agree again.
"""

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import isfinite
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Literal, NotRequired

from pydantic import ConfigDict
from typing_extensions import TypedDict

from streamplace.errors import FormatError, SettingError
from streamplace.io.appending import claim_folder
from streamplace.io.fields import STRICT
from streamplace.io.files import encoded, is_file, read_bytes, spot, write_text, writing
from streamplace.io.parsing import parse_as, utf8
from streamplace.library.checking import CLOSED, check_files
from streamplace.library.entries import LibraryEntry, ObjectiveName
from streamplace.library.folder import BEST, Library, open_library, write_checksums
from streamplace.model.messages import quoted, shown

JOURNAL = "pending.json"
LARGEST = 64 * 2**20
"""Most bytes of a submitted file, which the journal contains; the checker takes larger ones."""
LEAST_GAIN = 1e-9
"""Least relative improvement of a value; values are stated with at least ten digits."""


class SubmittedJson(TypedDict):
    """Fields that are read from a solution or a certificate; the checker reads the others."""

    objective: NotRequired[ObjectiveName]
    graph: NotRequired[str]
    proof: NotRequired[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class PendingSubmission:
    """A submission that the checker has accepted: the new line, and the content of one file."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["solution", "certificate"]
    content: str
    line: LibraryEntry


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
        Author or program that found it.
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
    content = read_bytes(path, LARGEST)
    document = parse_as(SubmittedJson, content, spot(path), extra="ignore")
    opened = open_library(library)
    with claim_folder(opened.folder, "submitting to it; try again"):
        complete_pending(opened.folder)
        opened = Library(opened.folder)
        entry = _entry_of(opened, document, instance)
        with TemporaryDirectory() as folder:
            copy = Path(folder) / "submitted.json"
            copy.write_bytes(content)
            better = _better(opened, entry, document, copy, spot(path))
        if better is None:
            return Submission(entry, entry, False)
        if "proof" not in document:
            today = datetime.now(UTC).date().isoformat()
            better = replace(better, by=shown(by, 200), seconds=seconds, date=today)
        kind = "certificate" if "proof" in document else "solution"
        text = utf8(content, spot(path)).decode()
        pending = {"kind": kind, "content": text, "line": better.document()}
        write_text(opened.folder / JOURNAL, json.dumps(pending, allow_nan=False))
        complete_pending(opened.folder)
    return Submission(better, entry, True)


def complete_pending(folder: Path) -> None:
    """Complete the submission of a killed process, if there is one."""
    journal = folder / JOURNAL
    if not is_file(journal):
        return
    pending = parse_as(PendingSubmission, read_bytes(journal), spot(journal))
    library, line = Library(folder), pending.line
    entry = library.entry(line.instance, line.objective)
    if not _is_worse(line, entry):
        names = {"solution": library.solution_file, "certificate": library.certificate_file}
        target = names[pending.kind](line)
        with writing(target) as file:
            file.write(encoded(pending.content, spot(target)))
        _write_best(library, line)
        write_checksums(folder, [target, folder / BEST])
    journal.unlink(missing_ok=True)


def _entry_of(library: Library, document: SubmittedJson, name: str | None) -> LibraryEntry:
    """Entry that a file is for."""
    instance = _instance_of(library, document, name)
    entries = library.select([instance])
    if "objective" in document:
        return library.entry(instance, document["objective"])
    if len(entries) > 1:
        raise SettingError("the file states no objective; add it")
    return entries[0]


def _instance_of(library: Library, document: SubmittedJson, name: str | None) -> str:
    chosen = document.get("graph") if name is None else name
    if chosen is None:
        raise SettingError("the file names no graph; name the instance with --instance")
    if name is None and chosen not in library.manifest.instances:
        raise SettingError(
            f"the library has no instance {quoted(chosen)}, which is the graph of the file; name "
            "the instance with --instance"
        )
    library.instance(chosen)
    return str(chosen)


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
        if entry.sense * (result.value - entry.bound) > LEAST_GAIN * abs(entry.bound):
            raise FormatError(
                f"{where}: the value {result.value:.12g} is better than the proven bound "
                f"{entry.bound:.12g}; please report both"
            )
    if gain <= LEAST_GAIN:
        return None
    if changed.gap > CLOSED:
        return replace(changed, closed=False, proof_seconds=None)
    seconds = changed.proof_seconds
    if seconds is None:
        seconds = check_files(instance, copy, library.certificate_file(entry)).seconds
    return replace(changed, closed=True, proof_seconds=seconds)


def _is_worse(line: LibraryEntry, entry: LibraryEntry) -> bool:
    """Whether a line has a worse value or bound than an entry."""
    return (
        entry.sense * (line.value - entry.value) < 0 or entry.sense * (entry.bound - line.bound) < 0
    )


def _write_best(library: Library, line: LibraryEntry) -> None:
    """Replace one line of ``best.jsonl``."""
    lines = [line if entry.name == line.name else entry for entry in library.entries]
    text = "".join(json.dumps(entry.document(), allow_nan=False) + "\n" for entry in lines)
    write_text(library.folder / BEST, text)

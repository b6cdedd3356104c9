"""The checker, run on entries of the library and on untrusted files."""

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from streamplace.errors import FormatError, SettingError
from streamplace.io.files import is_file, spot
from streamplace.library.confined import MAX_PRINTED, MEMORY, ResourceUsage, RunLimits, confined
from streamplace.library.folder import Library, LibraryEntry, checker_file
from streamplace.model.message_text import shown

LIMITS = RunLimits(seconds=3600.0, memory=MEMORY)
"""Default limits of a check."""
ACCEPTED = "accepted: "
ROLES = "instance", "solution", "certificate"
"""Files of a check, in order; a refusal begins with the one in which the fault is."""
SAME = 2e-10
"""Relative difference allowed for a stated value, which has at least ten digits."""
CLOSED = 1e-8
"""Gap up to which a solution is optimal except for rounding."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Result of the checker.

    Attributes
    ----------
    text
        Line that it prints: value, bound and gap, or the reason why it refuses the files.
    value, bound
        Exact results of the checker, as floats of twelve digits; None if it refuses the files, and
        for the bound without a certificate.
    seconds
        Processor time of the check.
    """

    accepted: bool
    text: str
    objective: str | None = None
    value: float | None = None
    bound: float | None = None
    seconds: float | None = None


def check_files(
    instance: str | PathLike[str],
    solution: str | PathLike[str],
    certificate: str | PathLike[str] | None = None,
    *,
    limits: RunLimits = LIMITS,
) -> CheckResult:
    """Check a solution, and optionally a proven bound, by the checker.

    The checker runs in a separate process, which may use an hour and 4 GiB by default. The result
    describes any fault of the files in one line.

    Parameters
    ----------
    instance, solution, certificate
        Paths of the three files; without a certificate, only the solution is checked.
    limits
        Processor time and memory that the check may use.

    Examples
    --------
    >>> from streamplace.library import check_files, open_library
    >>> library = open_library()
    >>> entry = library.entry("random-00", "throughput")
    >>> check_files(*library.files(entry)).text.partition(" bound ")[0]
    'throughput 0.838991968475 = 250000000000000/297976630758987'
    """
    paths = [Path(path) for path in (instance, solution, certificate) if path is not None]
    for path in paths:
        if not is_file(path):
            raise FormatError(f"{spot(path)}: is not a file; correct the path")
    files = [str(path.resolve()) for path in (checker_file(), *paths)]
    command = [sys.executable, "-E", "-s", *files]
    with tempfile.TemporaryFile() as output, tempfile.TemporaryDirectory() as folder:
        usage = confined(command, limits, folder=Path(folder), stdout=output, stderr=output)
        output.seek(0)
        printed = output.read(MAX_PRINTED).decode(errors="replace")
    return result_of(printed.strip(), usage)


def check_entry(library: Library, entry: LibraryEntry) -> CheckResult:
    """Check the files of an entry, and compare them with ``best.jsonl`` and their checksums."""
    if changed := library.changed_file(entry):
        return CheckResult(False, f"{changed} does not have the checksum that manifest.json states")
    result = check_files(*library.files(entry))
    if not result.accepted:
        return result
    for name, derived in (("value", result.value), ("bound", result.bound)):
        stated = getattr(entry, name)
        if derived is None or abs(derived - stated) > SAME * abs(stated):
            return CheckResult(False, f"best.jsonl states the {name} {stated!r}, not {derived!r}")
    if entry.closed and entry.gap > CLOSED:
        return CheckResult(False, f"best.jsonl calls it closed, but the gap is {entry.gap:.3%}")
    if result.objective != entry.objective:
        return CheckResult(False, f"the files are for {result.objective}")
    return result


def is_list_of_files(words: Sequence[str]) -> bool:
    """Whether the arguments of ``check`` are paths rather than names of instances."""
    paths = [word for word in words if word.endswith(".json") or "/" in word]
    if paths and not 2 <= len(words) <= 3:
        raise SettingError(
            "check takes INSTANCE SOLUTION [CERTIFICATE] as files, or names of instances"
        )
    return bool(paths)


def result_of(printed: str, usage: ResourceUsage) -> CheckResult:
    """Result of the checker by its output and its exit."""
    if usage.timed_out:
        return CheckResult(False, "the check takes too long")
    line = printed.splitlines()[-1] if printed else "the checker printed nothing"
    if usage.status or not line.startswith(ACCEPTED):
        return CheckResult(False, shown(line.removeprefix("refused: "), 400))
    text = line.removeprefix(ACCEPTED)
    words = text.split()
    bound = float(words[words.index("bound") + 1]) if "bound" in words else None
    return CheckResult(True, text, words[0], float(words[1]), bound, round(usage.seconds, 3))

"""The checker, run on entries of the library and on untrusted files."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from streamplace.errors import FormatError, SettingError
from streamplace.io.files import is_file, spot
from streamplace.library.folder import Library, LibraryEntry, checker_file
from streamplace.model.message_text import shown

SECONDS = 3600.0
"""Default time limit of a check."""
MEMORY = 4 * 2**30
"""Default memory limit of a check, in bytes."""
ACCEPTED = "accepted: "
ROLES = "instance", "solution", "certificate"
"""Files of a check, in order; a refusal begins with the faulty one."""
SAME = 2e-10
"""Relative difference allowed for a stated value, which has at least ten digits."""
CLOSED = 1e-8
"""Gap up to which a solution is optimal except for rounding."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Result of the checker."""

    accepted: bool
    text: str  # line that the checker prints: value, bound and gap, or the reason of a refusal
    objective: str | None = None
    # Exact results of the checker, as floats of twelve digits; None after a refusal, and a bound of
    # None without a certificate.
    value: float | None = None
    bound: float | None = None


def check_files(
    instance: str | PathLike[str],
    solution: str | PathLike[str],
    certificate: str | PathLike[str] | None = None,
    *,
    seconds: float = SECONDS,
    memory: int = MEMORY,
) -> CheckResult:
    """Check a solution, and optionally a proven bound, by the checker.

    The checker runs in a separate process. The result describes any fault of the files in one line.

    Parameters
    ----------
    instance, solution, certificate
        Paths of the three files; without a certificate, only the solution is checked.
    seconds
        Time after which the check is ended.
    memory
        Bytes that the check may use; no limit outside Linux.

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
    command = [sys.executable, "-E", "-s", *map(str, (checker_file(), *paths))]
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        try:
            _limit_memory(process, memory)
            printed, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            return CheckResult(False, "the check takes too long")
        finally:
            process.kill()
    return _result_of(printed.strip(), process.returncode)


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


def _limit_memory(process: subprocess.Popen[str], memory: int) -> None:
    """Limit the address space of a process, where the system can do so from outside."""
    if sys.platform == "linux":
        import resource

        _, allowed = resource.prlimit(process.pid, resource.RLIMIT_AS)
        limit = memory if allowed == resource.RLIM_INFINITY else min(memory, allowed)
        resource.prlimit(process.pid, resource.RLIMIT_AS, (limit, limit))


def _result_of(printed: str, status: int) -> CheckResult:
    """Result of the checker by its output and its exit status."""
    line = printed.splitlines()[-1] if printed else "the checker printed nothing"
    if status or not line.startswith(ACCEPTED):
        return CheckResult(False, shown(line.removeprefix("refused: "), 400))
    text = line.removeprefix(ACCEPTED)
    words = text.split()
    bound = float(words[words.index("bound") + 1]) if "bound" in words else None
    return CheckResult(True, text, words[0], float(words[1]), bound)

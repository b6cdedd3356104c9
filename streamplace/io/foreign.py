"""Shared parts of readers of foreign formats: files of a folder, checked JSON, names, warnings."""

import logging
import subprocess
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from streamplace.errors import FormatError
from streamplace.io.files import is_folder, read_bytes, spot
from streamplace.io.parsing import parse_as
from streamplace.model.defaults import BPS, MIPS
from streamplace.model.message_text import shown

LOG = logging.getLogger(__name__)
T = TypeVar("T")

INSTRUCTIONS_PER_SECOND = 1e6 * MIPS
"""Speed of an unknown device; work in seconds takes as long there."""
BYTES_PER_SECOND = BPS / 8
"""Bandwidth of an unknown link; transfers in seconds take as long there."""


def files_with(path: Path, suffix: str) -> Iterator[Path]:
    """Return the file itself, or the files of a folder with this suffix."""
    if not is_folder(path):
        yield path
        return
    files = sorted(path.glob(f"*{suffix}"))
    if not files:
        raise FormatError(
            f"{spot(path)}: the folder holds no {suffix} file; name the folder that does"
        )
    yield from files


def read_foreign(kind: type[T], path: Path) -> T:
    """Read a JSON file that a typed dictionary describes; other fields are ignored."""
    return parse_as(kind, read_bytes(path), spot(path), extra="ignore")


def distinct(
    names: Sequence[str], suffixes: Sequence[str], used: Collection[str] = ()
) -> list[str]:
    """Append its suffix to each name that occurs twice or is in use, until all names differ.

    >>> distinct(["a", "b", "a", "a-2"], ["-0", "-1", "-2", "-3"])
    ['a-0', 'b', 'a-2-2', 'a-2-3']
    """
    unique = list(names)
    while True:
        count = Counter(unique)
        repeats = [count[name] > 1 or name in used for name in unique]
        if not any(repeats):
            return unique
        unique = [
            name + suffix if is_repeat else name
            for name, suffix, is_repeat in zip(unique, suffixes, repeats, strict=True)
        ]


def warn_of_some(some: Sequence[str], total: int, fault: str, reading: str, of: str = "") -> None:
    """Log the number of faulty items, the first of them, and how they are read."""
    if some:
        place = f"{shown(of)}: " if of else ""
        LOG.warning(
            "%s%d of %d %s, %s first; %s", place, len(some), total, fault, shown(some[0]), reading
        )


def isolated(code: str, content: bytes, *words: str) -> bytes:
    """Run Python code in a process, which it may crash; return its output for an input.

    >>> isolated("import sys; sys.stdout.write(sys.stdin.read().upper())", b"text")
    b'TEXT'
    """
    # -P: no modules from the working folder, which may be untrusted
    command = [sys.executable, "-P", "-c", code, *words]
    done = subprocess.run(command, input=content, capture_output=True)
    if done.returncode:
        errors = done.stderr.decode(errors="replace").strip().splitlines() or ["it crashes"]
        raise FormatError(shown(errors[-1], 300))
    return done.stdout

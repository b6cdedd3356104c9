"""Jars: compiled classes of this package, which pin a job, added to the jar of an unchanged job.

``make jars`` compiles them (benchmarks/flink_jars.py); the same bytes run on Flink 1.20 and later.
"""

import re
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.resources import files
from itertools import takewhile
from lzma import LZMAError
from pathlib import Path

from streamplace.engines.text import quoted_java
from streamplace.errors import FormatError
from streamplace.flink.pin.pinning import Pinning
from streamplace.io.files import spot

MANIFEST = "META-INF/MANIFEST.MF"
DAMAGED = (OSError, RuntimeError, ValueError, EOFError, zipfile.BadZipFile, zlib.error, LZMAError)
"""Errors of reading a jar whose entries are encrypted, truncated or of an unknown kind."""
_CONTINUED = re.compile(rb"(?:\r\n|\n|\r) ")
"""Line break within an entry of a manifest."""
MAIN = "Placed"
IDS = "PlacedIds"
SPENT = "SpentId"
TABLES = "placed/"
"""Folder in a jar with the tables of a pinning."""
CELL = "\x1f"
ESCAPE = "\x1e"


def placed_java(pinning: Pinning) -> dict[str, str]:
    """Sources of the classes that put operators into the groups of a pinning, by file."""
    source = _java(MAIN)
    for name, lines in _tables(pinning).items():
        literals = "".join(f"        {quoted_java(line)},\n" for line in lines)
        source = source.replace(f"        // {name}\n", literals)
    return {f"{MAIN}.java": source, f"{IDS}.java": _java(IDS)}


def _java(name: str) -> str:
    return files(__package__).joinpath("java", f"{name}.java").read_text("utf-8")


def _tables(pinning: Pinning) -> dict[str, list[str]]:
    """Tables of the pinning class, as lines of cells."""
    operators = (
        (name, group, str(pinning.parallelism.get(name, 0)))
        for name, group in pinning.operators.items()
    )
    return {
        "operators": _lines(operators),
        "groups": _lines(_flat(pinning.groups)),
        "spread": _lines(_flat(pinning.spread)),
        "managed": _lines((device, str(memory)) for device, memory in pinning.managed.items()),
    }


def check_jar(path: Path) -> None:
    """Raise FormatError if a file does not exist or is not a jar."""
    with _opened(path):
        return


def is_placed(path: Path) -> bool:
    """Whether a file is a jar that `placed_jar` made."""
    try:
        with _opened(path) as opened:
            return f"{TABLES}operators" in opened.namelist()
    except FormatError:
        return False


def main_class(jar: Path) -> str | None:
    """Main class in the manifest of a jar, by Flink's rules; None if there is none."""
    with _opened(jar) as opened:
        if MANIFEST not in opened.namelist():
            return None
        manifest = opened.read(MANIFEST)
    text = _CONTINUED.sub(b"", manifest).decode(errors="replace")
    lines = takewhile(bool, text.splitlines())  # the entries of the jar end with an empty line
    pairs = (line.partition(": ") for line in lines)
    entries = {key.lower(): value.strip() for key, _, value in pairs}
    return entries.get("program-class", entries.get("main-class"))


@contextmanager
def _opened(jar: Path) -> Iterator[zipfile.ZipFile]:
    """Open a jar for reading; any damage raises a FormatError."""
    if not jar.exists():
        raise FormatError(f"{spot(jar)}: no such file; name the jar of a Flink job")
    if not zipfile.is_zipfile(jar):
        raise FormatError(f"{spot(jar)}: is not a jar; name the jar of a Flink job")
    try:
        with zipfile.ZipFile(jar) as opened:
            yield opened
    except DAMAGED:
        raise FormatError(f"{spot(jar)}: is damaged; rebuild it") from None


@contextmanager
def placed_jar(
    jar: Path, libraries: Sequence[Path], pinning: Pinning, name: str | None = None
) -> Iterator[Path]:
    """Provide a copy of a job's jar with libraries and the pinning class, while the block runs."""
    with jar_copy(jar, libraries, name or f"placed-{jar.name}") as copy:
        with _writing(), zipfile.ZipFile(copy, "a", zipfile.ZIP_DEFLATED) as opened:
            with (
                files(__package__).joinpath(f"{MAIN}.jar").open("rb") as file,
                zipfile.ZipFile(file) as classes,
            ):
                for entry in classes.namelist():
                    opened.writestr(entry, classes.read(entry))
            for table, lines in _tables(pinning).items():
                opened.writestr(f"{TABLES}{table}", "\n".join(lines))
        yield copy


@contextmanager
def jar_copy(jar: Path, libraries: Sequence[Path], name: str) -> Iterator[Path]:
    """Provide a copy of a jar with libraries in it, while the block runs.

    Flink also loads the jars in the folder ``lib`` of a jar.
    """
    with ExitStack() as stack:
        with _writing():
            copy = Path(stack.enter_context(tempfile.TemporaryDirectory())) / name
            shutil.copyfile(jar, copy)
            with zipfile.ZipFile(copy, "a", zipfile.ZIP_DEFLATED) as opened:
                for i, library in enumerate(libraries):
                    opened.write(library, f"lib/{i}-{library.name}")
        yield copy


@contextmanager
def _writing() -> Iterator[None]:
    """Raise FormatError if the block cannot write a jar, as on a full disk."""
    try:
        yield
    except OSError as error:
        raise FormatError(f"the jar to upload cannot be made: {error.strerror}") from None


def _flat(table: Mapping[str, Mapping[str, int]]) -> Iterator[tuple[str, ...]]:
    """Rows of a table: a key, then alternating names and numbers."""
    for key, row in table.items():
        yield (key, *(str(word) for entry in row.items() for word in entry))


def _lines(rows: Iterable[Sequence[str]]) -> list[str]:
    """Rows as lines; separators of cells and line breaks within cells are escaped."""
    return [CELL.join(map(_cell, row)) for row in rows]


def _cell(text: str) -> str:
    return (
        text.replace(ESCAPE, f"{ESCAPE}0").replace(CELL, f"{ESCAPE}1").replace("\n", f"{ESCAPE}2")
    )

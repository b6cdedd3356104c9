"""Jars: the class that pins a job, compiled and put beside an unchanged job."""

import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

from streamplace.engines.flink.dist import Flink, find_java
from streamplace.engines.flink.pinning import Pinning
from streamplace.engines.text import quoted_java
from streamplace.errors import FormatError
from streamplace.io.files import spot
from streamplace.model.messages import quoted, shown

MAIN = "Placed"
CELL = "\x1f"
ESCAPE = "\x1e"


def placed_java(pinning: Pinning, managed: Mapping[str, int] | None = None) -> str:
    """Source of the class that puts a job's operators into the groups of a pinning.

    Parameters
    ----------
    managed
        Managed memory of TaskManagers in MB, where it is known.
    """
    source = files("streamplace.engines.flink").joinpath("java/Placed.java").read_text("utf-8")
    operators = (
        (name, group, str(pinning.parallelism.get(name, 0)))
        for name, group in pinning.operators.items()
    )
    tables = {
        "operators": operators,
        "groups": _flat(pinning.groups),
        "spread": _flat(pinning.spread),
        "managed": ((device, str(memory)) for device, memory in (managed or {}).items()),
    }
    for name, rows in tables.items():
        source = source.replace(f"        // {name}\n", _lines(rows))
    return source


def main_class(jar: Path) -> str | None:
    """Main class that a jar's manifest names."""
    try:
        with zipfile.ZipFile(jar) as opened:
            manifest = opened.read("META-INF/MANIFEST.MF").decode(errors="replace")
    except KeyError:
        return None
    except (OSError, zipfile.BadZipFile):
        raise FormatError(f"{spot(jar)}: is no jar; name the jar of a Flink job") from None
    for line in manifest.replace("\r\n ", "").splitlines():
        key, _, value = line.partition(": ")
        if key in ("Main-Class", "program-class"):
            return value.strip()
    return None


def compile_java(flink: Flink, sources: Sequence[Path], folder: Path) -> None:
    """Compile Java files against Flink, classes into a folder."""
    options = ["-nowarn", "-encoding", "UTF-8", "-d", str(folder)]
    classes = ["-cp", ":".join(map(str, flink.jars))]
    command = [find_java("javac"), *options, *classes, *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        first = (done.stderr.strip().splitlines() or ["no reason given"])[0]
        raise FormatError(f"javac refuses {quoted(sources[0].name)}: {shown(first, 300)}")


def build_jar(flink: Flink, sources: Sequence[Path], jar: Path) -> None:
    """Compile Java files into a jar."""
    with tempfile.TemporaryDirectory() as classes:
        compile_java(flink, sources, Path(classes))
        with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as made:
            _add_classes(made, Path(classes))


@contextmanager
def placed_jar(flink: Flink, jar: Path, source_code: str) -> Iterator[Path]:
    """Return a copy of a job's jar with the pinning class in it, while the block runs."""
    with tempfile.TemporaryDirectory() as folder:
        source, classes = Path(folder) / f"{MAIN}.java", Path(folder) / "classes"
        source.write_text(source_code, encoding="utf-8")
        classes.mkdir()
        compile_java(flink, [source], classes)
        copy = Path(folder) / f"placed-{jar.name}"
        shutil.copyfile(jar, copy)
        with zipfile.ZipFile(copy, "a", zipfile.ZIP_DEFLATED) as opened:
            _add_classes(opened, classes)
        yield copy


def _add_classes(jar: zipfile.ZipFile, folder: Path) -> None:
    for path in sorted(folder.rglob("*.class")):
        jar.write(path, path.relative_to(folder).as_posix())


def _flat(table: Mapping[str, Mapping[str, int]]) -> Iterator[tuple[str, ...]]:
    """Rows of a key and then, in turn, names and numbers."""
    for key, row in table.items():
        yield (key, *(str(word) for entry in row.items() for word in entry))


def _lines(rows: Iterable[Sequence[str]]) -> str:
    """Rows as Java string literals, cells joined by a sign that is escaped inside them."""
    lines = (CELL.join(map(_cell, row)) for row in rows)
    return "".join(f"        {quoted_java(line)},\n" for line in lines)


def _cell(text: str) -> str:
    return text.replace(ESCAPE, f"{ESCAPE}0").replace(CELL, f"{ESCAPE}1")

"""Unparsed documents of files: one per file, one per line, or in shards.

A data set in *shards* has its lines in files ``name-00000-of-00016.jsonl.gz``, …. It is named like
one file (``name.jsonl.gz``), by a pattern (``name-*-of-00016.jsonl.gz``), or by a folder that
has no other files. If a file has a manifest, it is compared with it after the last line.
"""

import os
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from streamplace.errors import FormatError
from streamplace.io.files import file_path, is_folder, read_bytes, read_lines, reading, spot
from streamplace.io.suffixes import LINES

if TYPE_CHECKING:
    from streamplace.io.manifests import Manifest, Shard

_SHARD = re.compile(r"(?P<name>.*)-(?P<number>\d{5})-of-(?P<count>\d{5})(?P<suffix>\.jsonl(\.gz)?)")


class Line(NamedTuple):
    """A document before validation."""

    content: bytes
    where: str  # place of the document, for error messages
    default_name: str  # name for a graph without one


def lines_of(name: str | Path) -> Iterator[Line]:
    """Documents of a file, of the files of a folder, or of shards, one after the other."""
    manifests: dict[Path, dict[str, Manifest | Shard]] = {}
    for path in files_of(file_path(name)):
        if path.name.endswith(LINES):
            for number, line in _checked_lines(path, manifests):
                yield Line(line, f"{spot(path)}:{number}", f"{_unicode(path.name)}:{number}")
        else:
            yield Line(_native(read_bytes(path), spot(path)), spot(path), name_of(path))


def _checked_lines(
    path: Path, manifests: "dict[Path, dict[str, Manifest | Shard]]"
) -> Iterator[tuple[int, bytes]]:
    """Lines of a file, checked against its manifest; ``manifests`` caches the ones read."""
    from streamplace.io.manifests import described_files, fitting, manifest_path

    shard = _SHARD.fullmatch(path.name)
    manifest = manifest_path(path if shard is None else path.with_name(shard["name"]))
    if manifest not in manifests:
        manifests[manifest] = described_files(manifest)
    described = manifests[manifest].get("" if shard is None else path.name)
    lines = read_lines(path)
    return lines if described is None else fitting(lines, path, described, manifest)


def _native(content: bytes, where: str) -> bytes:
    """Content of a file as a native document; graphs of other tools are converted."""
    if content.startswith(b"{") and b'"nodes"' not in content:
        return content
    from streamplace.io.interchange import native

    return native(content, where)


def name_of(path: Path) -> str:
    """Default name for the only graph of a file: the name of the file up to its last dot.

    >>> name_of(Path("graphs/layered-0.25.json.gz"))
    'layered-0.25'
    """
    return Path(_unicode(path.name).removesuffix(".gz")).stem


def files_of(path: Path) -> list[Path]:
    """Files of a data set, in order of its documents."""
    if is_folder(path):
        return _of_folder(path)
    exists = os.path.exists(path)  # noqa: PTH110 - False for names that are too long
    files = [] if exists else shards_of(path)
    return files or [path]


def shards_of(path: Path) -> list[Path]:
    """Shards of a data set by its name or by a pattern; empty if there are none."""
    base, suffix = _split(path.name)
    if not (suffix and is_folder(path.parent)):
        return []
    pattern = path.name if "*" in path.name else f"{escape(base)}-?????-of-?????{suffix}"
    with reading(path.parent):
        files = [file for file in path.parent.iterdir() if _SHARD.fullmatch(file.name)]
    return whole(file for file in files if fnmatchcase(file.name, pattern))


def shards_of_any_number(path: Path) -> list[Path]:
    """Shards of a data set of this name, whatever their number and suffix."""
    base, _ = _split(path.name)
    pairs = ((file, _SHARD.fullmatch(file.name)) for file in path.parent.glob("*-of-*"))
    return [file for file, match in pairs if match and match["name"] == base]


def shard_path(path: Path, number: int, count: int) -> Path:
    """Path of a shard of a data set.

    >>> shard_path(Path("sets/b.jsonl.gz"), 3, 16).as_posix()
    'sets/b-00003-of-00016.jsonl.gz'
    """
    base, suffix = _split(path.name)
    return path.with_name(f"{base}-{number:05d}-of-{count:05d}{suffix}")


def whole(shards: Iterable[Path]) -> list[Path]:
    """Sort the shards of one set; raise FormatError if shards are missing or of several sets."""
    files = sorted(shards)
    facts = [match for file in files if (match := _SHARD.fullmatch(file.name))]
    sets = {(match["name"], match["count"], match["suffix"]) for match in facts}
    if len(sets) > 1:
        raise FormatError(
            f"{spot(files[0])} and {spot(files[-1])} belong to different data sets; name one of "
            "them"
        )
    present = {int(match["number"]) for match in facts}
    for _, count, _ in sets:
        missing = next((k for k in range(int(count)) if k not in present), None)
        if missing is not None:
            base = files[0].with_name("{name}{suffix}".format(**facts[0].groupdict()))
            raise FormatError(
                f"{spot(shard_path(base, missing, int(count)))}: is missing; download or generate "
                "it again"
            )
    return files


def _of_folder(path: Path) -> list[Path]:
    """The ``.json`` files of a folder, or else its data set."""
    with reading(path):
        contents = sorted(path.iterdir())
    single = [
        file
        for file in contents
        if file.name.endswith(".json") and not file.name.endswith(".manifest.json")
    ]
    if single:
        return single
    several = [file for file in contents if file.name.endswith(LINES)]
    if not several:
        raise FormatError(
            f"{spot(path)}: the folder holds no .json file and no data set; name another"
        )
    return whole(several) if all(_SHARD.fullmatch(file.name) for file in several) else several


def _split(name: str) -> tuple[str, str]:
    """Split the name of a data set from its suffix, which is empty for other names."""
    suffix = next((end for end in reversed(LINES) if name.endswith(end)), "")
    return name.removesuffix(suffix), suffix


def _unicode(name: str) -> str:
    """Name of a file as valid Unicode, so that it may be the name of a graph."""
    return name.encode(errors="replace").decode()

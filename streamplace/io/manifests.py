"""Manifests of generated data sets, and checks of files against them."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field

from streamplace.errors import FormatError
from streamplace.io.fields import STRICT
from streamplace.io.files import is_file, json_text, read_bytes, spot, write_text
from streamplace.io.parsing import parse_as
from streamplace.model.message_text import shown


@dataclass(frozen=True, slots=True)
class Shard:
    """One file of a data set of several."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    name: str
    graphs: Annotated[int, Field(ge=0)]
    packed_sha256: str
    content_sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """Manifest of a generated data set: its parameters and checksums."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    family: str
    parameters: dict[str, Any]  # all that have a value, including defaults
    seed: int
    streamplace: str  # version that made the data set
    graphs: int
    splits: dict[str, int]  # number of graphs of each split; empty where the family has none
    # Checksum of the file itself, which differs if machines pack in different ways.
    packed_sha256: str
    content_sha256: str  # checksum of the unpacked content, which is the same on every machine
    # The files of a data set in several files. The checksums above are then of all files, one after
    # the other.
    shards: tuple[Shard, ...] = ()


def manifest_path(path: Path) -> Path:
    """Path of the manifest of a data set.

    >>> manifest_path(Path("datasets/branched.jsonl.gz")).as_posix()
    'datasets/branched.manifest.json'
    """
    stem = path.name.removesuffix(".gz").removesuffix(".jsonl").removesuffix(".json")
    return path.with_name(f"{stem}.manifest.json")


def write_manifest(manifest: Manifest, path: Path) -> None:
    """Write a manifest, completely or not at all."""
    document = asdict(manifest)
    if not manifest.shards:
        del document["shards"]
    write_text(path, json_text(document))


def read_manifest(path: Path) -> Manifest:
    """Manifest from its file."""
    return parse_as(Manifest, read_bytes(path), spot(path))


def described_files(manifest: Path) -> dict[str, Manifest | Shard]:
    """Shards that a manifest describes, by name; under "", the data set in a single file.

    Empty if there is no such manifest.
    """
    if not is_file(manifest):
        return {}
    try:
        content = read_manifest(manifest)
    except FormatError:
        raise FormatError(
            f"{spot(manifest)}: is not the manifest of a data set; remove it, or generate or "
            "download the data set again"
        ) from None
    return {"": content} | {shard.name: shard for shard in content.shards}


def fitting(
    lines: Iterable[tuple[int, bytes]], path: Path, described: Manifest | Shard, manifest: Path
) -> Iterator[tuple[int, bytes]]:
    """Pass on the lines of a file; raise FormatError at its end if they do not fit its manifest."""
    digest, graphs = hashlib.sha256(), 0
    for number, line in lines:
        digest.update(line)
        graphs += 1
        yield number, line
    if digest.hexdigest() == described.content_sha256:
        return
    is_complete = graphs == described.graphs
    fault = "other content" if is_complete else f"{graphs} graphs, not {described.graphs}"
    raise FormatError(
        f"{spot(path)}: does not fit its manifest {shown(manifest.name)} ({fault}); generate or "
        "download it again, or remove the manifest if you changed the file"
    )

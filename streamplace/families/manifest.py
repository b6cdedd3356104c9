"""Manifests: the recipe and the version of a data set, and checksums that verify its files."""

import hashlib
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field

from streamplace.io.fields import STRICT
from streamplace.io.files import CHUNK, json_text, read_bytes, read_lines, reading, spot, write_text
from streamplace.io.lines import files_of
from streamplace.io.parsing import parse_as

LARGEST_MANIFEST = 2**20
_Count = Annotated[int, Field(ge=0)]


@dataclass(frozen=True, slots=True)
class Shard:
    """One file of a data set that is in several."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    name: str
    graphs: _Count
    packed_sha256: str
    content_sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """Manifest of a generated data set: its parameters and checksums.

    Attributes
    ----------
    parameters
        All parameters that have a value, defaults too.
    streamplace
        Version that made the data set.
    splits
        Number of graphs of each split; empty where the family has none.
    packed_sha256
        Checksum of the file itself, which differs if machines pack in different ways.
    content_sha256
        Checksum of the unpacked content, which is the same on every machine.
    shards
        The files of a data set in several files. The checksums above are then those of all files,
        one after the other.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    family: str
    parameters: dict[str, Any]
    seed: _Count
    streamplace: str
    graphs: _Count
    splits: dict[str, _Count]
    packed_sha256: str
    content_sha256: str
    shards: tuple[Shard, ...] = ()


def manifest_path(path: Path) -> Path:
    """Path of the manifest of a data set.

    >>> manifest_path(Path("datasets/branched.jsonl.gz")).as_posix()
    'datasets/branched.manifest.json'
    """
    stem = path.name.removesuffix(".gz").removesuffix(".jsonl").removesuffix(".json")
    return path.with_name(f"{stem}.manifest.json")


def read_manifest(path: Path) -> Manifest:
    """Manifest from its JSON file."""
    return parse_as(Manifest, read_bytes(path, LARGEST_MANIFEST), spot(path))


def write_manifest(manifest: Manifest, path: Path) -> None:
    """Write a manifest whole or not at all."""
    document = asdict(manifest)
    if not manifest.shards:
        del document["shards"]
    write_text(path, json_text(document))


def packed_sha256(path: Path) -> str:
    """SHA-256 of a file as it is, or of all shards, one after the other."""
    digest = hashlib.sha256()
    for part in files_of(path):
        with reading(part), part.open("rb") as file:
            while chunk := file.read(CHUNK):
                digest.update(chunk)
    return digest.hexdigest()


def content_sha256(path: Path) -> str:
    """SHA-256 of the unpacked content of a data set, line by line; empty lines do not count."""
    digest = hashlib.sha256()
    for part in files_of(path):
        for _, line in read_lines(part):
            digest.update(line)
    return digest.hexdigest()


def running_version() -> str:
    """Version of the streamplace that runs."""
    return version("streamplace")

"""Manifests: what a data set was made from, and the checksums that tell whether it still is."""

import hashlib
import json
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field

from streamplace.errors import FormatError
from streamplace.io.files import read_bytes, read_lines, reading, spot, write_text
from streamplace.io.schema import STRICT, parse_as

LARGEST_MANIFEST = 2**20
_Count = Annotated[int, Field(ge=0)]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What stands beside a generated data set.

    Attributes
    ----------
    parameters
        All parameters that have a value, defaults too.
    streamplace
        Version that made the data set.
    splits
        Number of graphs of each split; empty where the family has none.
    packed_sha256
        Of the file as it is; packers of different machines may differ.
    content_sha256
        Of the unpacked content: equal content is what reproducible means.
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


def manifest_path(path: Path) -> Path:
    """Where the manifest of a data set stands.

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
    write_text(path, json.dumps(asdict(manifest), indent=1, ensure_ascii=False) + "\n")


def verify(path: Path) -> Manifest:
    """Manifest of a data set whose content is what the manifest says.

    Raises
    ------
    FormatError
        If the content has another checksum. A file that was only packed anew passes.
    """
    manifest = read_manifest(manifest_path(path))
    if packed_sha256(path) == manifest.packed_sha256:
        return manifest
    found = content_sha256(path)
    if found != manifest.content_sha256:
        raise FormatError(
            f"{spot(path)}: its content has the SHA-256 {found}, but its manifest says "
            f"{manifest.content_sha256}; generate it again or restore the file"
        )
    return manifest


def packed_sha256(path: Path) -> str:
    """SHA-256 of a file as it is."""
    with reading(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def content_sha256(path: Path) -> str:
    """SHA-256 of the unpacked content of a data set, line by line; empty lines do not count."""
    digest = hashlib.sha256()
    for _, line in read_lines(path):
        digest.update(line)
    return digest.hexdigest()


def running_version() -> str:
    """Version of the streamplace that runs."""
    return version("streamplace")

"""Whether the files of a data set are what their manifest says."""

from pathlib import Path

from streamplace.errors import FormatError
from streamplace.families.manifest import (
    Manifest,
    content_sha256,
    manifest_path,
    packed_sha256,
    read_manifest,
)


def verify(path: Path) -> Manifest:
    """Manifest of a data set; FormatError for other content, but not if it is only packed anew."""
    manifest = read_manifest(manifest_path(path))
    if packed_sha256(path) == manifest.packed_sha256:
        return manifest
    for shard in manifest.shards:
        _check_content(path.with_name(shard.name), shard.content_sha256)
    _check_content(path, manifest.content_sha256)
    return manifest


def _check_content(path: Path, expected: str) -> None:
    if content_sha256(path) != expected:
        raise FormatError(f"{path}: its manifest says that its content is other")

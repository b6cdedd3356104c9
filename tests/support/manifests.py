"""Whether the files of a data set are what their manifest says."""

from pathlib import Path

from streamplace.families.manifest import (
    Manifest,
    content_sha256,
    manifest_path,
    packed_sha256,
    read_manifest,
)


def verify(path: Path) -> Manifest:
    """Manifest of a data set, whose files it describes."""
    manifest = read_manifest(manifest_path(path))
    for file, told in ((path, manifest), *((path.with_name(s.name), s) for s in manifest.shards)):
        found = packed_sha256(file), content_sha256(file)
        assert found == (told.packed_sha256, told.content_sha256)
    return manifest

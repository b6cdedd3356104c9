"""Whether the files of a data set are what its manifest says."""

from streamplace.families.dataset import content_sha256, packed_sha256
from streamplace.io.manifests import manifest_path, read_manifest


def verify(path):
    """Manifest of a data set, whose files it describes."""
    manifest = read_manifest(manifest_path(path))
    for file, told in ((path, manifest), *((path.with_name(s.name), s) for s in manifest.shards)):
        found = packed_sha256(file), content_sha256(file)
        assert found == (told.packed_sha256, told.content_sha256)
    return manifest

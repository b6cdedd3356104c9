"""Manifests as they are read, and whether the files of a data set are what they say."""

import json

from streamplace.families.dataset import (
    Manifest,
    Shard,
    content_sha256,
    manifest_path,
    packed_sha256,
)


def read_manifest(path):
    """Manifest from its file."""
    facts = json.loads(path.read_text())
    shards = tuple(Shard(**one) for one in facts.pop("shards", ()))
    return Manifest(**facts, shards=shards)


def verify(path):
    """Manifest of a data set, whose files it describes."""
    manifest = read_manifest(manifest_path(path))
    for file, told in ((path, manifest), *((path.with_name(s.name), s) for s in manifest.shards)):
        found = packed_sha256(file), content_sha256(file)
        assert found == (told.packed_sha256, told.content_sha256)
    return manifest

"""Data sets that do not fit their manifests are refused when they are read."""

import gzip

import pytest
from refusals import refusal_of

from streamplace.errors import FormatError
from streamplace.families.branched import Branched
from streamplace.families.dataset import write_dataset
from streamplace.families.shards import write_shards
from streamplace.io.graphs import read_graphs

SMALL = Branched(branches=1, depth=2, devices=2, copies=10)


def read(path):
    """All graphs of a data set."""
    return list(read_graphs(path))


@pytest.fixture
def file(tmp_path):
    """A generated data set of ten graphs."""
    write_dataset("branched", SMALL, 0, tmp_path / "b.jsonl")
    return tmp_path / "b.jsonl"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda lines: lines[:-1], "9 graphs, not 10"),
        (lambda lines: [*lines, lines[0]], "11 graphs, not 10"),
        (lambda lines: lines[::-1], "other content"),
    ],
    ids=["fewer", "more", "order"],
)
def test_a_file_that_does_not_fit_its_manifest_is_refused(file, change, words):
    """In one line that says how to go on; without the manifest, it is read."""
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(change(lines)))
    message = refusal_of(file, read, file, kind=FormatError)
    assert message.startswith(f"does not fit its manifest b.manifest.json ({words}); generate")
    (file.parent / "b.manifest.json").unlink()
    assert read(file)


def test_a_file_is_packed_and_spaced_as_one_likes(file):
    lines = file.read_bytes()
    packed = file.with_name("b.jsonl.gz")
    packed.write_bytes(gzip.compress(lines.replace(b"\n", b"\n\n")))
    assert len(read(packed)) == 10


def test_a_shard_that_does_not_fit_is_named(tmp_path):
    """And all of them in a single file are the same data set."""
    path = tmp_path / "s.jsonl"
    write_shards("branched", SMALL, 0, path, 2)
    first, second = (tmp_path / f"s-0000{i}-of-00002.jsonl" for i in range(2))
    joined = first.read_bytes() + second.read_bytes()
    second.write_bytes(first.read_bytes())
    refusal_of(second, read, path, kind=FormatError)
    path.write_bytes(joined)
    assert len(read(path)) == 10


@pytest.mark.parametrize("content", ["{", "[]", '{"name": "of another tool"}'])
def test_a_file_in_place_of_the_manifest_is_refused(file, content):
    manifest = file.with_name("b.manifest.json")
    manifest.write_text(content)
    assert "is not the manifest" in refusal_of(manifest, read, file, kind=FormatError)

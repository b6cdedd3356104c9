"""Data sets in shards are those in one file, whoever makes them, however often they are stopped."""

from dataclasses import asdict

import pytest
from manifests import verify

from streamplace.errors import FormatError, SettingError
from streamplace.families.branched import Branched
from streamplace.families.dataset import write_dataset
from streamplace.families.registry import FAMILIES
from streamplace.families.shards import write_shards
from streamplace.io.graphs import read_graphs
from streamplace.io.manifests import manifest_path, read_manifest
from streamplace.io.problems import problem_line

SMALL = Branched(branches=1, depth=2, devices=2, copies=10)


def test_shards_hold_what_one_file_holds(tmp_path):
    """Byte for byte, by the checksum of the content; counted by split."""
    whole = write_dataset("branched", SMALL, 7, tmp_path / "one.jsonl.gz")
    path = tmp_path / "s.jsonl.gz"
    manifest = write_shards("branched", SMALL, 7, path, 3)
    assert verify(path) == manifest
    assert manifest.content_sha256 == whole.content_sha256
    assert (manifest.graphs, manifest.splits) == (whole.graphs, whole.splits)
    assert [shard.graphs for shard in manifest.shards] == [3, 3, 4]
    assert list(read_graphs(path)) == list(read_graphs(tmp_path / "one.jsonl.gz"))


@pytest.mark.parametrize("family", list(FAMILIES))
def test_every_family_can_begin_anywhere(family):
    every = FAMILIES[family].generate(seed=3)
    first = [next(every, None) for _ in range(3)][-1]
    again = next(FAMILIES[family].generate(seed=3, start=2), None)
    assert (again and problem_line(again)) == (first and problem_line(first))


def test_a_run_that_was_stopped_makes_only_what_is_missing(tmp_path):
    path, made = tmp_path / "s.jsonl.gz", list[int]()

    def stopped(function, numbers):
        for number in numbers:
            if number == 3:
                raise KeyboardInterrupt
            yield function(number)

    def noted(function, numbers):
        made.extend(numbers)
        return map(function, numbers)

    with pytest.raises(KeyboardInterrupt):
        write_shards("branched", SMALL, 7, path, 5, stopped)
    assert not manifest_path(path).exists()
    (tmp_path / "s-00001-of-00005.jsonl.gz").write_bytes(b"spoiled")
    write_shards("branched", SMALL, 7, path, 5, noted)
    assert made == [1, 3, 4]
    assert verify(path).graphs == 10


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b'{"name":"s-00001-of-00003.jsonl","graphs":"4","packed_sha256":"","content_sha256":"",'
        b'"number":1,"splits":{}}',
        b'{"name":"s-00001-of-00003.jsonl","graphs":4,"packed_sha256":"","content_sha256":"",'
        b'"number":7,"splits":{}}',
    ],
)
def test_what_a_damaged_log_does_not_tell_is_made_again(tmp_path, line):
    def stopped(function, numbers):
        yield function(0)
        raise KeyboardInterrupt

    path = tmp_path / "s.jsonl"
    with pytest.raises(KeyboardInterrupt):
        write_shards("branched", SMALL, 7, path, 3, stopped)
    log = manifest_path(path).with_suffix(".jsonl")
    plan = log.read_bytes().splitlines()[0]
    log.write_bytes(plan + b"\n" + line + b"\n")
    manifest = write_shards("branched", SMALL, 7, path, 3)
    assert verify(path) == manifest
    assert [shard.graphs for shard in manifest.shards] == [3, 3, 4]


@pytest.mark.parametrize("content", ['{"mine": 1}', '{"mine": 1}\n'])
def test_a_file_of_others_in_place_of_the_log_is_refused(tmp_path, content):
    log = manifest_path(tmp_path / "s.jsonl").with_suffix(".jsonl")
    log.write_text(content)
    with pytest.raises(FormatError, match=r"s\.manifest\.jsonl: "):
        write_shards("branched", SMALL, 7, tmp_path / "s.jsonl", 2)
    assert log.read_text() == content


def test_shards_beside_those_of_a_longer_name_are_written(tmp_path):
    write_shards("branched", SMALL, 7, tmp_path / "s-large.jsonl", 2)
    write_shards("branched", SMALL, 7, tmp_path / "s.jsonl", 3)
    assert verify(tmp_path / "s-large.jsonl").graphs == verify(tmp_path / "s.jsonl").graphs == 10


def test_shards_of_another_number_are_not_left_lying_beside(tmp_path):
    """Else nobody could tell which of them are the data set."""
    write_shards("branched", SMALL, 7, tmp_path / "s.jsonl", 2)
    with pytest.raises(SettingError, match=r"s-00000-of-00002\.jsonl: "):
        write_shards("branched", SMALL, 7, tmp_path / "s.jsonl", 3)


def test_generate_makes_shards(run, tmp_path):
    size = ("--branches", "1", "--depth", "2", "--devices", "2", "--copies", "10", "--seed", "7")
    answer = run("generate", "branched", *size, "--files", "2", "--jobs", "1", "-o", "s.jsonl.gz")
    assert answer.status == 0, answer.err
    here = write_shards("branched", SMALL, 7, tmp_path / "h.jsonl.gz", 2)
    found = asdict(read_manifest(tmp_path / "s.manifest.json"))
    assert found["content_sha256"] == here.content_sha256
    assert found["packed_sha256"] == here.packed_sha256
    assert "without --files" in run("generate", "branched", "--jobs", "2", "-o", "x.jsonl").err

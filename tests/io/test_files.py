"""Files: clear errors on reading and parsing, all or nothing on writing."""

import gzip
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from fuzz.trial import refused_in_little
from problems import parse_graph
from refusals import refusal_of
from stores import small_files

from streamplace.errors import FormatError
from streamplace.io.files import (
    MAX_EMPTY_LINES,
    read_bytes,
    read_lines,
    read_toml,
    write_text,
    writing,
)
from streamplace.io.parsing import parse_as, parse_toml_text

MANY, LITTLE = 50_000, 2**25


def refused(read, path):
    """The message of a refusal, which must be one line that names the path first."""
    return refusal_of(path, read, path, kind=FormatError)


def names(folder):
    """Names of the files in a folder, hidden ones too."""
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("name", ["plain.txt", "packed.gz"])
def test_what_was_written_is_read(tmp_path, name):
    write_text(tmp_path / name, "größer\n")
    assert read_bytes(tmp_path / name).decode() == "größer\n"
    assert names(tmp_path) == [name]
    (tmp_path / name).rename(tmp_path / f"first-{name}")
    write_text(tmp_path / name, "größer\n")
    assert (tmp_path / name).read_bytes() == (tmp_path / f"first-{name}").read_bytes()


def test_lines_are_numbered_and_empty_ones_skipped(tmp_path):
    path = tmp_path / "lines"
    path.write_bytes(b"a\n\n  \nb")
    assert list(read_lines(path)) == [(1, b"a\n"), (4, b"b")]


@pytest.mark.parametrize("read", [read_bytes, read_toml, lambda path: list(read_lines(path))])
def test_what_cannot_be_read_is_refused(tmp_path, read):
    """Missing, a directory, too long a name, a loop of links, a file as a folder, odd names."""
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "file").write_text("x")
    for name in ("missing", "", "x" * 300, "loop", "file/below"):
        refused(read, tmp_path / name)
    for name, shown in (("a\0b", r"a\\x00b"), ("a\nb\udcff", r"a\\nb\\udcff")):
        with pytest.raises(FormatError, match=shown):
            read(tmp_path / name)


PACKED = gzip.compress(b"hello, world\n" * 100, mtime=0)


@pytest.mark.parametrize(
    "content", [*(PACKED[:cut] for cut in (1, 5, 15, -4, -1)), b"hello"], ids=len
)
def test_what_is_no_whole_packed_file_is_refused(tmp_path, content):
    path = tmp_path / "cut.gz"
    path.write_bytes(content)
    for read in (read_bytes, lambda path: list(read_lines(path))):
        refused(read, path)


def test_a_small_packed_file_may_not_unpack_without_end(tmp_path):
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(bytes(64 * 2**20), 1))
    assert "16 MiB" in refused(read_toml, path)


def test_empty_lines_without_end_are_refused(tmp_path):
    file = tmp_path / "empty.jsonl.gz"
    file.write_bytes(gzip.compress(b"\n" * (MAX_EMPTY_LINES + 1)))
    with pytest.raises(FormatError, match=f":{MAX_EMPTY_LINES + 1}:"):
        list(read_lines(file))


def test_an_endless_line_is_refused(tmp_path):
    path = tmp_path / "line.jsonl"
    path.write_bytes(b"[" * 100_000_000)
    assert "64 MiB" in refused(lambda p: list(read_lines(p)), path)


@pytest.mark.parametrize(
    "content", [b"a = ", b"a = \xff", b"a = " + b"9" * 10_000, b"a = 2020-02-31"], ids=range(4)
)
def test_what_is_no_toml_is_refused(tmp_path, content):
    path = tmp_path / "bad.toml"
    path.write_bytes(content)
    refused(read_toml, path)


def test_a_byte_order_mark_is_ignored(tmp_path):
    path = tmp_path / "bom.toml"
    path.write_bytes(b"\xef\xbb\xbfa = 1")
    assert read_toml(path) == {"a": 1}


def test_what_cannot_be_written_is_refused(tmp_path):
    """No folder, a directory, a full device, no file name, a loop of links, a NUL."""

    def write(path):
        write_text(path, "x")

    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in ("missing/file", "", "/dev/full", "x" * 300, "loop"):
        refused(write, tmp_path / name)
    with pytest.raises(FormatError, match=r"a\\x00b"):
        write(tmp_path / "a\0b")
    assert names(tmp_path) == ["loop"]


def test_a_file_that_cannot_be_written_to_its_end_leaves_the_old_one(tmp_path):
    path = tmp_path / "kept"
    path.write_text("old")
    with small_files():
        refused(lambda p: write_text(p, "new" * 10), path)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["kept"]


@pytest.mark.parametrize(("name", "error"), [("kept", ValueError), ("kept.gz", KeyboardInterrupt)])
def test_an_interrupted_write_leaves_the_old_file(tmp_path, name, error):
    path = tmp_path / name
    path.write_bytes(b"old")

    def interrupted():
        with writing(path) as file:
            file.write(b"half")
            raise error

    with pytest.raises(error):
        interrupted()
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == [name]


def test_a_written_file_keeps_its_mode(tmp_path):
    path = tmp_path / "file"
    write_text(path, "a")
    path.chmod(0o600)
    write_text(path, "b")
    assert path.stat().st_mode & 0o777 == 0o600


def test_writing_through_a_link_keeps_the_link(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_text(tmp_path / "link", "x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "x"


def test_a_device_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_text(pipe, "x")
    assert os.read(reader, 10) == b"x"
    os.close(reader)
    assert pipe.is_fifo()


def test_stdout_keeps_what_its_file_has(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_text("before\n")
    with path.open("a") as file:
        monkeypatch.setattr(sys, "stdout", file)
        print("printed", flush=False)
        usual = os.dup(1)
        os.dup2(file.fileno(), 1)
        try:
            write_text(Path("/dev/stdout"), "written\n")
        finally:
            os.dup2(usual, 1)
            os.close(usual)
        print("afterwards")
    assert path.read_text().split() == ["before", "printed", "written", "afterwards"]


def test_text_that_is_no_unicode_is_refused(tmp_path):
    assert r"\ud800" in refused(lambda path: write_text(path, "\ud800"), tmp_path / "file")
    assert names(tmp_path) == []


@dataclass
class Entry:
    """A line of a file."""

    name: str
    size: int = 0


def test_an_unknown_field_is_refused_with_one_that_may_be_meant():
    for key, meant in (("Size", "size"), ("nam", "name")):
        content = json.dumps({"name": "a", key: 1}).encode()
        told = refusal_of("here", parse_as, Entry, content, "here", kind=FormatError)
        assert told.startswith(key)
        assert f"'{meant}'" in told
        assert parse_as(Entry, content, "here", extra="ignore") == Entry("a")


@pytest.mark.parametrize("depth", [1000, 100_000])
def test_documents_that_are_nested_too_deep_are_refused_in_one_line(depth):
    deep = b"[" * depth
    for parse, text in ((parse_graph, b'{"operators": '), (parse_toml_text, b"a = ")):
        refusal_of("here", parse, text + deep, "here", kind=FormatError)


def test_of_a_flood_of_wrong_attributes_the_first_is_told():
    flood = {f"x{i}": [] for i in range(MANY)}
    content = json.dumps({"operators": [], "attributes": flood}).encode()
    told = refused_in_little(lambda: parse_graph(content, "here"), LITTLE)
    assert told.startswith("FormatError: here: attributes.x0 is []")

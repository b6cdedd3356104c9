"""Files: clear errors on reading and parsing, all or nothing on writing."""

import errno
import gzip
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fuzz.trial import refused_in_little
from problems import parse_graph
from refusals import refusal_of

from streamplace.errors import FormatError
from streamplace.io.files import read_bytes, read_lines, read_toml, write_text, writing
from streamplace.io.parsing import parse_as, parse_toml_text

MANY, LITTLE = 50_000, 2**25


def refused(read: Callable[..., Any], path: Path) -> str:
    """The message of a refusal, which must be one line that names the path first."""
    return refusal_of(path, read, path, kind=FormatError)


def names(folder: Path) -> list[str]:
    """Names of the files in a folder, hidden ones too."""
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("name", ["plain.txt", "packed.gz"])
def test_what_was_written_is_read(tmp_path: Path, name: str) -> None:
    """Equal texts are equal files, also packed ones."""
    write_text(tmp_path / name, "größer\n")
    assert read_bytes(tmp_path / name).decode() == "größer\n"
    assert names(tmp_path) == [name]
    (tmp_path / name).rename(tmp_path / f"first-{name}")
    write_text(tmp_path / name, "größer\n")
    assert (tmp_path / name).read_bytes() == (tmp_path / f"first-{name}").read_bytes()


def test_lines_are_numbered_and_empty_ones_skipped(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"a\n\n  \nb")
    assert list(read_lines(path)) == [(1, b"a\n"), (4, b"b")]


@pytest.mark.parametrize("read", [read_bytes, read_toml, lambda path: list(read_lines(path))])
def test_what_cannot_be_read_is_refused(tmp_path: Path, read: Callable[..., Any]) -> None:
    """Missing, a directory, too long a name, a loop of links, a NUL, a file as a folder."""
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "file").write_text("x")
    assert "no such file" in refused(read, tmp_path / "missing")
    assert "it is a directory; name a file" in refused(read, tmp_path)
    assert "File name too long" in refused(read, tmp_path / ("x" * 300))
    assert "symbolic links" in refused(read, tmp_path / "loop")
    assert "Not a directory" in refused(read, tmp_path / "file" / "below")
    with pytest.raises(FormatError, match="null byte"):
        read(tmp_path / "a\0b")


def test_an_odd_path_is_shown_on_one_line(tmp_path: Path) -> None:
    """Newlines and bytes that are no text are escaped."""
    with pytest.raises(FormatError, match=r"a\\nb\\udcff: cannot be read"):
        read_bytes(tmp_path / "a\nb\udcff")


PACKED = gzip.compress(b"hello, world\n" * 100, mtime=0)


@pytest.mark.parametrize(
    "content", [*(PACKED[:cut] for cut in (1, 5, 15, -4, -1)), b"hello"], ids=len
)
def test_what_is_no_whole_packed_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "cut.gz"
    path.write_bytes(content)
    assert "not a complete gzip file" in refused(read_bytes, path)
    assert "not a complete gzip file" in refused(lambda p: list(read_lines(p)), path)


def test_a_small_packed_file_may_not_unpack_without_end(tmp_path: Path) -> None:
    """Zeros pack a thousand to one."""
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(bytes(64 * 2**20), 1))
    assert "is larger than 16 MiB; split it" in refused(read_toml, path)


def test_an_endless_line_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "line.jsonl"
    path.write_bytes(b"[" * 100_000_000)
    assert "the line is longer than 64 MiB" in refused(lambda p: list(read_lines(p)), path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a = ", "is not valid TOML: Invalid value"),
        (b"a = \xff", r"is not UTF-8 text \(byte 4\)"),
        (b"a = " + b"9" * 10_000, "is not valid TOML: Exceeds the limit"),
        (b"a = 2020-02-31", "is not valid TOML: Invalid date"),
    ],
)
def test_what_is_no_toml_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=f"bad.toml: {message}"):
        read_toml(path)


def test_a_byte_order_mark_is_ignored(tmp_path: Any) -> None:
    path = tmp_path / "bom.toml"
    path.write_bytes(b"\xef\xbb\xbfa = 1")
    assert read_toml(path) == {"a": 1}


def test_what_cannot_be_written_is_refused(tmp_path: Any) -> None:
    """No folder, a directory, a full device, no file name, a NUL, a loop of links."""

    def write(path: Any) -> None:
        write_text(path, "x")

    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert "no such file or directory" in refused(write, tmp_path / "missing" / "file")
    assert "it is a directory; name a file" in refused(write, tmp_path)
    assert "No space left on device" in refused(write, Path("/dev/full"))
    assert "too long" in refused(write, tmp_path / ("x" * 300))
    assert "symbolic links" in refused(write, tmp_path / "loop")
    with pytest.raises(FormatError, match="null byte"):
        write(tmp_path / "a\0b")
    assert names(tmp_path) == ["loop"]


def test_a_full_disk_leaves_the_old_file(tmp_path: Any, monkeypatch: Any) -> None:

    def full(_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "kept"
    path.write_text("old")
    monkeypatch.setattr(os, "fsync", full)
    assert "cannot be written: No space left" in refused(lambda p: write_text(p, "new"), path)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["kept"]


@pytest.mark.parametrize(("name", "error"), [("kept", ValueError), ("kept.gz", KeyboardInterrupt)])
def test_an_interrupted_write_leaves_the_old_file(tmp_path: Any, name: Any, error: Any) -> None:
    path = tmp_path / name
    path.write_bytes(b"old")

    def interrupted() -> None:
        with writing(path) as file:
            file.write(b"half")
            raise error

    with pytest.raises(error):
        interrupted()
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == [name]


def test_a_written_file_keeps_its_mode(tmp_path: Any) -> None:
    path = tmp_path / "file"
    write_text(path, "a")
    path.chmod(0o600)
    write_text(path, "b")
    assert path.stat().st_mode & 0o777 == 0o600


def test_writing_through_a_link_keeps_the_link(tmp_path: Any) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_text(tmp_path / "link", "x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "x"


def test_a_device_is_written_to_and_not_replaced(tmp_path: Any) -> None:
    """As with -o /dev/stdout."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_text(pipe, "x")
    assert os.read(reader, 10) == b"x"
    os.close(reader)
    assert pipe.is_fifo()


def test_standard_output_keeps_what_its_file_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with -o - >> FILE."""
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


def test_text_that_is_no_unicode_is_refused(tmp_path: Any) -> None:
    assert r"\ud800 is not valid Unicode" in refused(
        lambda path: write_text(path, "\ud800"), tmp_path / "file"
    )
    assert names(tmp_path) == []


@dataclass
class Entry:
    """A line of a file."""

    name: str
    size: int = 0


def test_an_unknown_field_is_refused_with_one_that_may_be_meant() -> None:
    assert parse_as(Entry, b'{"name": "a"}', "here") == Entry("a")
    with pytest.raises(FormatError, match=r"^here: Size is not a known field; did you mean 'size'"):
        parse_as(Entry, b'{"name": "a", "Size": 1}', "here")
    with pytest.raises(FormatError, match=r"^here: nam is not a known field; did you mean 'name'"):
        parse_as(Entry, b'{"nam": "a"}', "here")
    assert parse_as(Entry, b'{"name": "a", "Size": 1}', "here", extra="ignore") == Entry("a")


@pytest.mark.parametrize("depth", [1000, 100_000])
def test_documents_that_are_nested_too_deep_are_refused_in_one_line(depth: int) -> None:
    deep = b"[" * depth
    with pytest.raises(FormatError, match=r"^here: is not valid JSON: recursion limit exceeded"):
        parse_graph(b'{"operators": ' + deep, "here")
    with pytest.raises(FormatError, match=r"^here: is nested too deep; flatten it$"):
        parse_toml_text(b"a = " + deep, "here")


def test_of_a_flood_of_wrong_attributes_the_first_is_told() -> None:
    """Collecting them all took a gigabyte for a megabyte."""
    flood = {f"x{i}": [] for i in range(MANY)}
    content = json.dumps({"operators": [], "attributes": flood}).encode()
    told = refused_in_little(lambda: parse_graph(content, "here"), LITTLE)
    assert told.startswith("FormatError: here: attributes.x0 is []")

"""Jars from strangers: what is wrong with one is told in one line."""

import errno
import shutil
import struct
import tempfile
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from streamplace.engines.flink.program.jars import (
    LONGEST_MANIFEST,
    MANIFEST,
    check_jar,
    jar_copy,
    main_class,
)
from streamplace.errors import FormatError

TEXT = "Manifest-Version: 1.0\r\nMain-Class: my.Main\r\n"


def jar(path: Path, manifest: str = TEXT) -> Path:
    """Jar with a manifest alone."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr(MANIFEST, manifest)
    return path


def patched(path: Path, local: int, central: int, value: int) -> None:
    """Overwrite two bytes of the header of the first entry, and of its copy at the end."""
    content = bytearray(path.read_bytes())
    struct.pack_into("<H", content, local, value)
    struct.pack_into("<H", content, content.index(b"PK\x01\x02") + central, value)
    path.write_bytes(content)


def corrupt(path: Path) -> None:
    """Spoil what is packed."""
    content = bytearray(path.read_bytes())
    start = 30 + len(MANIFEST)
    content[start : start + 12] = b"\xff" * 12
    path.write_bytes(content)


def cut(path: Path) -> None:
    """Move the directory to where there is none."""
    content = bytearray(path.read_bytes())
    struct.pack_into("<I", content, content.index(b"PK\x05\x06") + 16, 2**31)
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("manifest", "found"),
    [
        (TEXT, "my.Main"),
        ("Manifest-Version: 1.0\r\n", None),
        (f"{TEXT}program-class: my.Job\r\n", "my.Job"),  # Flink prefers it
        ("Manifest-Version: 1.0\nMain-Class: my.lo\n ng.Main\n", "my.long.Main"),
        ("Manifest-Version: 1.0\rmain-class: my.Main\r", "my.Main"),
        ("Manifest-Version: 1.0\n\nName: a/B.class\nMain-Class: of.AnEntry\n", None),
    ],
)
def test_the_main_class_is_the_manifests(tmp_path: Path, manifest: str, found: str | None) -> None:
    assert main_class(jar(tmp_path / "job.jar", manifest)) == found


ENCRYPTED = partial(patched, local=6, central=8, value=1)
DAMAGES = {
    "encrypted": ENCRYPTED,
    "packed in an unknown way": partial(patched, local=8, central=10, value=77),
    "packed otherwise": partial(patched, local=8, central=10, value=zipfile.ZIP_LZMA),
    "corrupt": corrupt,
    "cut": cut,
}


@pytest.mark.parametrize("damage", [*DAMAGES.values()], ids=[*DAMAGES])
def test_a_damaged_jar_is_refused(damage: Callable[[Path], None], tmp_path: Path) -> None:
    path = jar(tmp_path / "job.jar")
    damage(path)
    with pytest.raises(FormatError, match=r"job\.jar: is damaged; rebuild it$"):
        main_class(path)


def test_a_directory_that_cannot_be_read_is_noticed_without_the_manifest(tmp_path: Path) -> None:
    """As for libraries, and for jobs whose main class is given."""
    path = jar(tmp_path / "job.jar")
    path.write_bytes(path.read_bytes().replace(b"PK\x01\x02", b"PK\x07\x07"))
    with pytest.raises(FormatError, match="is damaged"):
        check_jar(path)


def full(*_: Any, **__: Any) -> None:
    """Write on a full disk."""
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("module", "name"), [(tempfile, "TemporaryDirectory"), (shutil, "copyfile")]
)
def test_a_jar_that_cannot_be_copied_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: Any, name: str
) -> None:
    """A watch goes on then; what fails while the copy is used is no such error."""
    path = jar(tmp_path / "job.jar")
    with pytest.raises(OSError, match="of the block"), jar_copy(path, [path], "copy.jar"):
        raise OSError("of the block")
    monkeypatch.setattr(module, name, full)
    told = "the jar to upload cannot be made: No space left on device"
    with pytest.raises(FormatError, match=told), jar_copy(path, [], "copy.jar"):
        pass


def test_a_huge_manifest_is_not_read_whole(tmp_path: Path) -> None:
    """A few kilobytes can be packed gigabytes."""
    path = jar(tmp_path / "job.jar", "a" * (LONGEST_MANIFEST + 1))
    assert path.stat().st_size < LONGEST_MANIFEST / 100
    with pytest.raises(FormatError, match="has a manifest of more than 16 MiB"):
        main_class(path)


@pytest.mark.parametrize("command", ["jar", "apply", "move"])
def test_every_command_that_takes_a_jar_refuses_a_damaged_one(
    refusal: Callable, tmp_path: Path, command: str
) -> None:
    """Before it asks a cluster for anything."""
    ENCRYPTED(jar(tmp_path / "job.jar"))
    (tmp_path / "placement.json").write_text('{"assignment": {"a": "d0"}}')
    words = {
        "jar": ["job.jar", "--placement", "placement.json", "-o", "placed.jar"],
        "apply": ["job.jar", "--placement", "placement.json"],
        "move": ["job.jar", "--placement", "placement.json", "--job", "0" * 32],
    }[command]
    assert "job.jar: is damaged" in refusal("flink", command, *words)


def test_a_jar_for_spread_subtasks_needs_to_know_all_devices(
    refusal: Callable, tmp_path: Path
) -> None:
    """An idle one might take what belongs elsewhere."""
    (tmp_path / "p.json").write_text('{"assignment": {"a#0": "dev-0", "a#1": "dev-1"}}')
    told = refusal("flink", "jar", "job.jar", "--placement", "p.json", "-o", "placed.jar")
    assert "Flink must know all devices of the cluster" in told

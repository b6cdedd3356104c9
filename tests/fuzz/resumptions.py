"""Spoiled files that a stopped run goes on from: shards of a data set, and its placements."""

import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from fuzz.documents import to_json

from streamplace.evaluate.placing import Placing, place_all
from streamplace.families.branched import Branched
from streamplace.families.shards import write_shards
from streamplace.io.datasets import DataSet
from streamplace.placers.request import PlacementRequest

SHARDS = 3
GRAPHS = Branched(branches=1, depth=1, devices=1, copies=6)
GRAPH = {"operators": [{"name": "a", "rate": 1}, {"name": "b", "rate": 1}]}
PLACING = Placing(PlacementRequest("single"))

Read = Callable[[bytes, Path], Any]
Seeds = Callable[[], Sequence[bytes]]


def resumption_readers() -> dict[str, tuple[Read, Seeds]]:
    """Readers by name, each with valid contents."""
    return {
        "log of shards": (_in_empty_folder(_resume_shards), _shard_logs),
        "placed data set": (_in_empty_folder(_resume_placing), _placed),
    }


def _in_empty_folder(read: Read) -> Read:
    def read_there(content: bytes, folder: Path) -> None:
        empty = folder / "empty"
        empty.mkdir()
        try:
            read(content, empty)
        finally:
            shutil.rmtree(empty)

    return read_there


class _Stopped(Exception):
    """A run is stopped."""


@cache
def _shards() -> dict[str, bytes]:
    """Files of a run that was stopped after its last shard."""
    left = SHARDS

    def stop() -> None:
        nonlocal left
        left -= 1
        if not left:
            raise _Stopped

    with tempfile.TemporaryDirectory() as folder:
        with suppress(_Stopped):
            write_shards("branched", GRAPHS, 0, Path(folder) / "s.jsonl", SHARDS, on_shard=stop)
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def _shard_logs() -> Sequence[bytes]:
    return [_shards()["s.manifest.jsonl"]]


def _resume_shards(content: bytes, folder: Path) -> None:
    for name, shard in {**_shards(), "s.manifest.jsonl": content}.items():
        (folder / name).write_bytes(shard)
    write_shards("branched", GRAPHS, 0, folder / "s.jsonl", SHARDS)


@cache
def _placed() -> Sequence[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "p.jsonl"
        _place(path)
        return [path.read_bytes()]


def _resume_placing(content: bytes, folder: Path) -> None:
    path = folder / "p.jsonl"
    path.write_bytes(content)
    _place(path)


def _place(path: Path) -> None:
    data = path.with_name("g.jsonl")
    data.write_bytes(b"".join(to_json({**GRAPH, "name": name}) + b"\n" for name in "abc"))
    for _ in place_all(PLACING, DataSet(data), path, jobs=1):
        pass

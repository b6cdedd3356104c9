"""A file system that is full, before or in the middle: one line, and nothing half-written."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from streamplace.evaluate.record_file import read_records
from streamplace.io.files import TEMPORARY
from streamplace.io.weights import read_tensors

SIZE = 4 * 2**20
LATE = 1_400_000
"""Bytes that are left where a command writes its first files and not its last."""
SLOW = pytest.mark.slow
COPIES = 40


class Disk(NamedTuple):
    """A small file system of its own."""

    folder: Path

    def fill(self, left: int) -> None:
        """Take all of its space but so many bytes."""
        free = SIZE - sum(-(-f.stat().st_size // 4096) * 4096 for f in self.folder.rglob("*"))
        (self.folder / "filler").write_bytes(bytes(max(0, free - left)))

    @property
    def names(self) -> set[str]:
        """Files on it, without what fills it."""
        return {path.name for path in self.folder.rglob("*") if path.is_file()} - {"filler"}


@pytest.fixture
def disk(mounted: Callable[[str, int], Path]) -> Disk:
    return Disk(mounted("disk", SIZE))


GENERATE = "generate branched --branches 2 --depth 2 --devices 2 --copies"
COMMANDS = {
    "generate": f"{GENERATE} 400 -o disk/c.jsonl",
    "generate packed": f"{GENERATE} 4000 -o disk/c.jsonl.gz",
    "generate shards": f"{GENERATE} 200 -o disk/c.jsonl --files 4",
    "place": "place g.json --placer metis -o disk/p.json",
    "place all": "place b.jsonl --placer metis -o disk/p.jsonl --jobs 1",
    "compare": "compare b.jsonl --placers metis,single -o disk/r --jobs 1",
    "simulate": "simulate g.json p.json -o disk/t.json",
    "draw": "draw g.json p.json -o disk/d.png",
    "export": "export p.json --graph g.json --to flink -o disk/f.json",
    "export folder": "export p.json --graph g.json --to flink-kubernetes -o disk/k",
    "train": "train hdp --data b.jsonl --limit 6 --epochs 3 --out disk/h",
}


RESUMED = {
    "generate shards": (COMMANDS["generate shards"], "c-00003-of-00004.jsonl"),
    "place all": (COMMANDS["place all"], "p.jsonl"),
    "compare": (COMMANDS["compare"], "r/results.jsonl"),
    "train": (f"{COMMANDS['train']} --resume", "h/last.safetensors"),
}
"""Commands that go on when there is space again, and a file that they write."""
QUICK = dict.fromkeys(RESUMED, (0, LATE)) | {"generate shards": (0,)}
"""Bytes that are left in the quick tests."""


@pytest.mark.parametrize("left", [0, pytest.param(8192, marks=SLOW)])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_ends_in_one_line(
    run: Callable, data: None, disk: Disk, name: str, left: int
) -> None:
    """Exit code 2; a command that does not go on later leaves nothing."""
    disk.fill(left)
    answer = run(*COMMANDS[name].split())
    if left and answer.status == 0:
        return
    (line,) = (line for line in answer.err.splitlines() if line.startswith("error: "))
    assert answer.status == 2
    assert line.endswith("cannot be written: No space left on device")
    assert "Traceback" not in answer.err
    assert not disk.names or name in RESUMED
    assert not any(name.startswith(TEMPORARY) for name in disk.names)


@pytest.mark.parametrize(
    ("name", "left"),
    [
        pytest.param(name, left, marks=() if left in QUICK[name] else SLOW)
        for name in RESUMED
        for left in (0, 8192, 10**6, LATE)
    ],
)
def test_what_a_full_disk_stopped_goes_on(
    run: Callable, data: None, disk: Disk, tmp_path: Path, name: str, left: int
) -> None:
    """To the bytes that it would have written at once, whatever it took."""
    (again, file), whole = RESUMED[name], tmp_path / "whole"
    disk.fill(left)
    stopped = run(*COMMANDS[name].split())
    (disk.folder / "filler").unlink()
    if stopped.status:
        is_begun = (disk.folder / file).exists() or "--resume" not in again
        answer = run(*(again if is_begun else COMMANDS[name]).split())
        assert answer.status == 0, answer.err
    whole.mkdir()
    assert run(*COMMANDS[name].replace("disk/", "whole/").split()).status == 0
    assert content(disk.folder / file) == content(whole / file)


def content(path: Path) -> object:
    """What a file holds, without the times that it took."""
    if path.suffix == ".safetensors":
        return {name: array.tobytes() for name, array in read_tensors(path)[1].items()}
    if path.name == "results.jsonl":
        return [replace(record, milliseconds=0) for record in read_records(path)]
    return path.read_bytes()

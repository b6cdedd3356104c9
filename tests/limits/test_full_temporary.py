"""A full temporary file system: commands that write their files elsewhere do not need it."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("processes")

SIZE = 64 * 2**10
COPIES = 12
GENERATE = "generate branched --branches 2 --depth 2 --devices 2 --copies"
COMMANDS = {
    "generate": f"{GENERATE} 40 -o c.jsonl.gz",
    "generate shards": f"{GENERATE} 40 -o c.jsonl --files 4 --jobs 2",
    "place": "place g.json --placer auto --budget 0.1 -o q.json",
    "place all": "place b.jsonl --placer metis -o q.jsonl --jobs 2",
    "compare": "compare b.jsonl --placers metis,anneal --budget 0.01 -o r --jobs 2",
    "simulate": "simulate g.json p.json -o t.json",
    "draw": "draw g.json p.json -o d.png",
    "export": "export p.json --graph g.json --to flink-kubernetes -o k",
    "train": "train hdp --data b.jsonl --limit 6 --epochs 1 --out h",
}
STARTING = ("generate shards", "place all")
"""Commands that start processes; one more that does is among the quick tests."""


@pytest.fixture
def full(mounted: Callable[[str, int], Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file system without space, where this process and those that it starts keep their files."""
    folder = mounted("full", SIZE)
    (folder / "filler").write_bytes(bytes(SIZE))
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name in STARTING else ()) for name in COMMANDS],
)
def test_a_full_temporary_file_system_stops_nothing(
    data: None, full: Path, run: Callable, name: str
) -> None:
    """Neither in this process nor in those that it starts."""
    answer = run(*COMMANDS[name].split())
    assert answer.status == 0, answer.err
    assert "Traceback" not in answer.err
    assert [path.name for path in full.iterdir()] == ["filler"]


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_begins_without_temporary_space_runs(
    data: None, full: Path, tmp_path: Path, name: str
) -> None:
    """In a process of its own, which looks for a temporary folder anew."""
    run = subprocess.run(
        [sys.executable, "-m", "streamplace", *COMMANDS[name].split()],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert "Traceback" not in run.stderr
    assert [path.name for path in full.iterdir()] == ["filler"]

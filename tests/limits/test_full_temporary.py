"""A full temporary file system: commands that write their files elsewhere do not need it."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("processes")

SIZE = 64 * 2**10
DATA = ("--branches", "2", "--depth", "2", "--devices", "2", "--copies", "12")
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


@pytest.fixture
def full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file system without space, where this process and those that it starts keep their files."""
    folder = tmp_path / "full"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(mount, capture_output=True).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("only root may mount a file system")
    try:
        (folder / "filler").write_bytes(bytes(SIZE))
        monkeypatch.setenv("TMPDIR", str(folder))
        monkeypatch.setattr(tempfile, "tempdir", str(folder))
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def data(run: Callable) -> None:
    """Twelve graphs, and one in g.json with its placement in p.json."""
    assert run("generate", "branched", *DATA, "-o", "b.jsonl").status == 0
    assert run("generate", "branched", *DATA[:-1], "1", "-o", "g.json").status == 0
    assert run("place", "g.json", "--placer", "metis", "-o", "p.json").status == 0


@pytest.mark.parametrize("name", COMMANDS)
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

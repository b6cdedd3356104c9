"""Files and folders that an ordinary user may not read or write: one line each."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

NOBODY = 65534
DATA = (
    "generate",
    "branched",
    "--branches",
    "2",
    "--depth",
    "2",
    "--devices",
    "2",
    "--copies",
    "3",
)

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")


@pytest.fixture
def folder(run: Callable, tmp_path: Path) -> Path:
    """A folder of root's that others may only read, with a file that they may not."""
    for parent in (tmp_path, *list(tmp_path.parents)[:2]):
        parent.chmod(0o755)
    assert run(*DATA, "-o", "b.jsonl").status == 0
    assert run(*DATA[:-1], "1", "-o", "g.json").status == 0
    assert run("place", "g.json", "--placer", "metis", "-o", "p.json").status == 0
    secret = tmp_path / "secret.json"
    secret.write_bytes((tmp_path / "g.json").read_bytes())
    secret.chmod(0o600)
    (tmp_path / "closed").mkdir(mode=0o700)
    return tmp_path


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("describe secret.json", "secret.json"),
        ("place secret.json --placer metis", "secret.json"),
        ("place closed/g.json --placer metis", "closed/g.json"),
        ("place g.json --placer metis -o q.json", "q.json"),
        ("place g.json --placer metis -o p.json", "p.json"),
        ("place b.jsonl --placer metis -o q.jsonl --jobs 1", "q.jsonl"),
        ("compare b.jsonl --placers metis,single -o r --jobs 1", "r"),
        ("compare b.jsonl --placers metis,single -o closed --jobs 1", "closed/results.jsonl"),
        ("generate branched -o c.jsonl", "c.jsonl"),
        ("export p.json --graph g.json --to flink -o f", "f"),
        ("export p.json --graph g.json --to csv -o closed/x.csv", "closed/x.csv"),
        ("train hdp --data b.jsonl --epochs 1 --out h", "h"),
        ("train hdp --data b.jsonl --epochs 1 --out closed", "closed"),
    ],
)
def test_what_is_not_permitted_is_told_in_one_line(folder: Path, command: str, path: str) -> None:
    """Exit code 2, the path, and nothing changed."""
    before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    answer = as_nobody(folder, *command.split())
    assert answer.returncode == 2, answer.stderr
    (line,) = (line for line in answer.stderr.splitlines() if line.startswith("error: "))
    assert line.startswith(f"error: {path}")
    assert "permission denied" in line.lower()
    assert "Traceback" not in answer.stderr
    assert before == {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def as_nobody(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a user without rights and without a home."""
    tests = [path for path in sys.path if path]
    return subprocess.run(
        [sys.executable, "-m", "streamplace", *words],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "PYTHONPATH": ":".join(tests)},
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        capture_output=True,
        text=True,
    )

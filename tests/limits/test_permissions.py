"""Files and folders that an ordinary user may not read or write: one line each."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

COPIES = 3
RIGHTS = "-dac_override,-dac_read_search"
AS_USER = (
    ("setpriv", f"--bounding-set={RIGHTS}", f"--inh-caps={RIGHTS}") if os.getuid() == 0 else ()
)
"""What takes from root the rights that an ordinary user does not have."""
SLOW = pytest.mark.slow
"""Of commands that write in the same way, one is among the quick tests."""

pytestmark = pytest.mark.skipif(
    bool(AS_USER) and shutil.which("setpriv") is None, reason="root cannot give up rights here"
)


@pytest.fixture
def folder(data: None, tmp_path: Path) -> Iterator[Path]:
    """A folder that may only be read, with a file and a folder that may not."""
    shutil.copy(tmp_path / "g.json", tmp_path / "secret.json")
    (tmp_path / "secret.json").chmod(0)
    (tmp_path / "closed").mkdir(mode=0)
    tmp_path.chmod(0o555)
    yield tmp_path
    tmp_path.chmod(0o755)
    (tmp_path / "closed").chmod(0o755)


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("describe secret.json", "secret.json"),
        pytest.param("place secret.json --placer metis", "secret.json", marks=SLOW),
        pytest.param("place closed/g.json --placer metis", "closed/g.json", marks=SLOW),
        ("place g.json --placer metis -o q.json", "q.json"),
        pytest.param("place g.json --placer metis -o p.json", "p.json", marks=SLOW),
        pytest.param("place b.jsonl --placer metis -o q.jsonl --jobs 1", "q.jsonl", marks=SLOW),
        ("compare b.jsonl --placers metis,single -o r --jobs 1", "r"),
        pytest.param(
            "compare b.jsonl --placers metis,single -o closed --jobs 1", "closed", marks=SLOW
        ),
        pytest.param("generate branched -o c.jsonl", "c.jsonl", marks=SLOW),
        pytest.param("export p.json --graph g.json --to flink -o f", "f", marks=SLOW),
        ("export p.json --graph g.json --to csv -o closed/x.csv", "closed/x.csv"),
        pytest.param("train hdp --data b.jsonl --epochs 1 --out h", "h", marks=SLOW),
        pytest.param("train hdp --data b.jsonl --epochs 1 --out closed", "closed", marks=SLOW),
    ],
)
def test_what_is_not_permitted_is_told_in_one_line(folder: Path, command: str, path: str) -> None:
    """Exit code 2, the path, and nothing changed."""
    names = sorted(folder.iterdir())
    answer = as_user(folder, *command.split())
    assert answer.returncode == 2, answer.stderr
    (line,) = (line for line in answer.stderr.splitlines() if line.startswith("error: "))
    assert path in line
    assert "permission denied" in line.lower() or "is not readable" in line
    assert "Traceback" not in answer.stderr
    assert sorted(folder.iterdir()) == names


def as_user(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command without the rights of root."""
    return subprocess.run(
        [*AS_USER, sys.executable, "-m", "streamplace", *words],
        cwd=folder,
        capture_output=True,
        text=True,
    )

"""Every example runs as a user runs it, in an empty folder."""

import subprocess
import sys
from math import ceil
from pathlib import Path

import pytest

EXAMPLES = sorted(
    path
    for path in (Path(__file__).parents[1] / "examples").glob("*.py")
    if not path.name.startswith("flink_")  # they have tests of their own, in tests/flink
)
ARGUMENTS = {"demo.py": ["demo"]}
QUICK = {"own_application.py", "own_placer.py"}
"""Two of those that others extend streamplace by; `make demo` runs demo.py."""


def marks(example):
    """Each in whatever process is free."""
    group = pytest.mark.xdist_group(example.name)
    return [group] if example.name in QUICK else [group, pytest.mark.slow]


@pytest.mark.parametrize(
    "example", [pytest.param(path, id=path.name, marks=marks(path)) for path in EXAMPLES]
)
def test_an_example_runs_and_says_something(example, tmp_path):
    run = subprocess.run(
        [sys.executable, str(example), *ARGUMENTS.get(example.name, [])],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        timeout=600,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip()
    assert "Traceback" not in run.stderr
    assert "error" not in run.stderr
    if example.name == "demo.py":
        lines = [*run.stdout.splitlines(), *run.stderr.splitlines()]
        assert sum(max(1, ceil(len(line) / 80)) for line in lines) <= 60, run.stdout + run.stderr

"""The program of the how-to on Ray actors, run as it stands there."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "ray.md"


@pytest.mark.slow
@pytest.mark.xdist_group("ray")
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")
def test_the_program_of_the_page_moves_a_pipeline(tmp_path: Path) -> None:
    """One device holds the sources back; the placement is verified."""
    match = re.search(r'```py title="pipeline.py"\n(.*?)```', PAGE.read_text(), re.DOTALL)
    assert match is not None
    (tmp_path / "pipeline.py").write_text(match[1])
    command = [sys.executable, "pipeline.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    first, second, _ = done.stdout.splitlines()[-3:]
    assert first.endswith("held back: True")
    assert second.endswith("placed: True")

"""Ctrl-C at every moment: exit code 130 and one line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SITE = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["INTERRUPTING"]:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
"""
EARLY = ["streamplace.cli.main", "click", "streamplace.errors", "numpy"]
LATER = ["numba", "pydantic", "rich.table"]


def interrupted(module: str, folder: Path, *prefix: str) -> subprocess.CompletedProcess[str]:
    """Place a graph, with a Ctrl-C when a module is imported."""
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text(SITE)
    paths = [str(folder / "site"), *filter(None, os.environ.get("PYTHONPATH", "").split(":"))]
    environment = {**os.environ, "PYTHONPATH": ":".join(paths), "INTERRUPTING": module}
    command = [*prefix, sys.executable, "-m", "streamplace", "place", "graph.json"]
    return subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=folder, timeout=120
    )


@pytest.mark.parametrize("module", [*EARLY, *LATER])
def test_ctrl_c_during_an_import_exits_130_in_one_line(
    module: str, graph: str, tmp_path: Path
) -> None:
    """Libraries may catch it, or wrap it in an error of their own."""
    done = interrupted(module, tmp_path)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr.splitlines()[-1] == "error: interrupted"
    assert "Traceback" not in done.stderr


def test_a_process_that_ignores_ctrl_c_goes_on_ignoring_it(graph: str, tmp_path: Path) -> None:
    """As shells start what runs in the background."""
    done = interrupted("click", tmp_path, "sh", "-c", 'trap "" INT; exec "$@"', "sh")
    assert (done.returncode, done.stderr) == (0, "")

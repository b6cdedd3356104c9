"""The first use of a learned placer compiles, and says so."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import streamsim

import streamplace
from streamplace.cli.demo import write_files

COMPILES = "compiling kernels that were not needed before"


@pytest.mark.slow
def test_first_use_compiles_once_and_says_so_once(tmp_path):
    """A first one that is killed while it compiles blocks nobody."""
    write_files(tmp_path)
    for package in (streamplace, streamsim):  # a copy has no kernels yet
        code = Path(package.__path__[0])
        shutil.copytree(code, tmp_path / code.name, ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "streamplace", "place", "tasks.json", "--devices", "2"]
    command += ["--placer", "hsdag", "--json"]

    def place():
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        return done.stderr, json.loads(done.stdout)["makespan"]

    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as killed:
        assert killed.stderr.readline().startswith(COMPILES)
        killed.kill()
    said, value = place()
    assert said.startswith(COMPILES)
    assert said.count(COMPILES) == 1
    assert place() == ("", value)

import json
import logging
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import streamsim

import streamplace
from streamplace import kernels
from streamplace.cli.demo import write_files
from streamplace.kernels import REHEARSALS, compile_kernels

COMPILES = "compiling kernels that were not needed before"


@pytest.mark.slow
def test_first_use_compiles_once_and_says_so_once(tmp_path):
    """A first one that is killed while it compiles blocks nobody."""
    write_files(tmp_path)
    for package in (streamplace, streamsim):  # a copy has no kernels yet
        code = Path(package.__path__[0])
        shutil.copytree(code, tmp_path / code.name, ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "streamplace", "place", "tasks.json", "--devices", "2"]
    command += ["--placer", "heft", "--json"]

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


@pytest.mark.parametrize("name", REHEARSALS)
def test_every_rehearsal_runs(name):
    REHEARSALS[name]()


def test_a_rehearsal_that_fails_ends_nothing(caplog, monkeypatch):
    monkeypatch.setattr(kernels, "available_cores", lambda: 1)
    monkeypatch.setattr(kernels, "REHEARSALS", {"a": lambda: 1 / 0, "b": print})
    with caplog.at_level(logging.WARNING):
        compile_kernels()
    assert caplog.messages[0] == "compiling kernels on 1 core …"
    assert caplog.messages[1:] == ["kernels of a are compiled when they are needed"]


@pytest.mark.filterwarnings("ignore:.*found in sys.modules")
def test_kernels_that_can_be_kept_nowhere_are_refused(monkeypatch):
    monkeypatch.setattr("streamsim.kernel_cache.folder_of", lambda module: None)
    with pytest.raises(SystemExit, match="error: kernels can be kept nowhere"):
        runpy.run_module("streamplace.kernels", run_name="__main__")

import json
import logging
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import streamsim

import streamplace
from streamplace import kernels
from streamplace.cli.demo import write_files
from streamplace.kernels import REHEARSALS, prepare_kernels

COMPILES = "compiling kernels (once per installation) on "
ONE = """
from streamplace.kernels import REHEARSALS
for name in set(REHEARSALS) - {"heft"}:
    del REHEARSALS[name]
from streamplace.cli.main import main
main()
"""
"""The command line, whose first use compiles the kernels of one rehearsal only."""


@pytest.mark.slow
def test_first_use_compiles_once_and_says_so_once(tmp_path: Path) -> None:
    """A first one that is killed while it compiles blocks nobody; what it compiled is kept."""
    write_files(tmp_path)
    for package in (streamplace, streamsim):  # a copy has no kernels yet
        code = Path(package.__path__[0])
        shutil.copytree(code, tmp_path / code.name, ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-c", ONE, "place", "tasks.json", "--devices", "2"]
    command += ["--placer", "heft", "--json"]

    def place() -> tuple[str, float]:
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        return done.stderr, json.loads(done.stdout)["makespan"]

    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as killed:
        assert killed.stderr is not None
        assert killed.stderr.readline().startswith(COMPILES)
        killed.kill()
    said, value = place()
    assert said.startswith(COMPILES)
    assert said.count(COMPILES) == 1
    assert place() == ("", value)


@pytest.mark.parametrize("name", REHEARSALS)
def test_every_rehearsal_runs(name: str) -> None:
    REHEARSALS[name]()


def test_a_rehearsal_that_fails_ends_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "folder_of", lambda module: tmp_path)
    monkeypatch.setattr(kernels, "available_cores", lambda: 1)
    monkeypatch.setattr(kernels, "REHEARSALS", {"a": lambda: 1 / 0, "b": print})
    with caplog.at_level(logging.WARNING):
        assert prepare_kernels()
        assert prepare_kernels()
    assert caplog.messages[1:] == ["kernels of a are compiled when they are needed"]
    assert caplog.messages[0].startswith(COMPILES)


@pytest.mark.filterwarnings("ignore:.*found in sys.modules")
def test_kernels_that_can_be_kept_nowhere_are_not_prepared(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "folder_of", lambda module: None)
    assert not prepare_kernels()
    assert not caplog.messages
    with pytest.raises(SystemExit, match="error: kernels can be kept nowhere"):
        runpy.run_module("streamplace.kernels", run_name="__main__")


def test_what_another_process_prepares_is_only_waited_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def turn(*_: object) -> Iterator[None]:
        note = kernels._note()
        assert note is not None
        note.touch()
        yield

    monkeypatch.setattr(kernels, "folder_of", lambda module: tmp_path)
    monkeypatch.setattr(kernels, "turn", turn)
    with caplog.at_level(logging.WARNING):
        assert prepare_kernels()
    assert not caplog.messages

import json
import logging
import os
import runpy
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from streamplace.cli.demo import write_files
from streamplace.kernels import preparing
from streamplace.kernels.rehearsals import DONE, REHEARSALS

FIRST = """
from streamplace.kernels.rehearsals import REHEARSALS
for name in set(REHEARSALS) - {"heft"}:
    del REHEARSALS[name]
from streamplace.cli.main import main
main()
"""
"""The command line, whose first use compiles the kernels of one rehearsal only."""
COMPILES = "compiling kernels (once per installation; about "


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """What is announced."""
    caplog.set_level(logging.WARNING)
    return caplog


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names that are kept beside the kernels: none at first."""
    names: set[str] = set()
    monkeypatch.setattr(preparing, "is_noted", names.__contains__)
    monkeypatch.setattr(preparing, "note", names.add)
    return names


@pytest.mark.slow
def test_first_use_compiles_once_and_says_so_once(tmp_path: Path) -> None:
    """A first one that is killed while it compiles blocks nobody; what it compiled is kept."""
    write_files(tmp_path)
    command = [sys.executable, "-c", FIRST, "place", "tasks.json", "--devices", "2"]
    command += ["--placer", "heft", "--json"]
    another = {"NUMBA_CPU_NAME": "generic", "NUMBA_CACHE_DIR": str(tmp_path / "kernels")}
    environment = {**os.environ, **another}

    def place() -> tuple[str, float]:
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, cwd=tmp_path
        )
        return done.stderr, json.loads(done.stdout)["makespan"]

    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=environment, cwd=tmp_path
    ) as killed:
        assert killed.stderr is not None
        assert killed.stderr.readline().startswith(COMPILES)
        killed.kill()
    said, value = place()
    assert said.startswith(COMPILES)
    assert said.count("\n") == 1
    assert place() == ("", value)


@pytest.mark.parametrize("name", REHEARSALS)
def test_every_rehearsal_runs(name: str) -> None:
    """A child that fails leaves its kernels to the commands, which nobody would notice."""
    REHEARSALS[name].call()


def test_kernels_that_can_be_kept_nowhere_are_not_prepared(
    noted: set[str], log: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparing, "turn_among_processes", lambda *_: None)
    assert not preparing.prepare_kernels()
    assert not noted
    assert not log.messages
    with pytest.raises(SystemExit, match="error: kernels can be kept nowhere"):
        runpy.run_module("streamplace.kernels", run_name="__main__")


def test_what_another_process_prepares_is_only_waited_for(
    noted: set[str], log: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def turn(name: str, *_: object) -> Iterator[None]:
        noted.add(name)
        yield

    monkeypatch.setattr(preparing, "turn_among_processes", turn)
    assert preparing.prepare_kernels()
    assert not log.messages


def test_kernels_are_counted_and_a_child_that_dies_ends_nothing(
    log: pytest.LogCaptureFixture,
) -> None:
    """It leaves the other rehearsals to the other children."""
    works = f"input(); print(); print(); print({DONE!r})"
    to_do, count = deque(["a", "b", "c"]), MagicMock()
    command, pipe = [sys.executable, "-c", works], subprocess.PIPE
    child = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
    preparing._feed(child, to_do, count)
    child.communicate()
    assert count.call_count == 2
    assert to_do == deque(["c"])
    assert log.messages == ["kernels of b are compiled when they are needed"]

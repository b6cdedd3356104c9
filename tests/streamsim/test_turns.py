"""Turns of processes: who has one, who waits, and what a killed process leaves."""

import subprocess
import sys
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from streamsim import kernel_cache
from streamsim.kernel_cache import turn

HOLDS = """
import sys
from pathlib import Path
from streamsim.kernel_cache import turn
with turn(Path(sys.argv[1]), "a"):
    print("holds", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path: Path) -> subprocess.Popen[bytes]:
    """Another process, whose turn it is until its stdin is closed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"holds\n"
    return process


@pytest.mark.skipif(sys.platform == "win32", reason="files have no such locks")
@pytest.mark.parametrize("end", ["kill", "communicate"])
def test_the_turn_of_another_process_is_waited_for_until_it_ends_or_for_a_time(
    holder: subprocess.Popen[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """However it ends; turns of other names are free."""
    with turn(tmp_path, "b", MagicMock(side_effect=AssertionError)):
        pass
    with monkeypatch.context() as patch:
        patch.setattr(kernel_cache, "LONGEST", 0.1)
        with turn(tmp_path, "a"):
            assert holder.poll() is None
    tell = MagicMock(side_effect=getattr(holder, end))
    with turn(tmp_path, "a", tell):
        pass
    assert tell.call_count == 1
    holder.communicate()

"""Turns of processes, what a killed process leaves, and in which folders turns and notes are."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from streamsim import kernel_cache
from streamsim.kernel_cache import turn

OTHER = 12345
"""Number of a group that is nobody's here."""
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


@pytest.mark.skipif(sys.platform == "win32" or os.getuid() != 0, reason="only root gives away")
@pytest.mark.parametrize("member", ["none", "listed", "by account"])
def test_a_group_of_the_users_name_is_trusted_only_without_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, member: str
) -> None:
    """Groups list their members, but not the accounts whose first group they are."""
    import grp
    import pwd

    me = pwd.getpwuid(os.geteuid())
    listed = ["stranger"] if member == "listed" else []
    group = SimpleNamespace(gr_name=me.pw_name, gr_mem=listed)
    stranger = SimpleNamespace(pw_name="stranger", pw_gid=OTHER)
    monkeypatch.setattr(grp, "getgrgid", lambda _: group)
    monkeypatch.setattr(pwd, "getpwall", lambda: [me, stranger] if member == "by account" else [me])
    os.chown(tmp_path, -1, OTHER)
    tmp_path.chmod(0o770)
    monkeypatch.setattr(kernel_cache, "_folders", lambda _: iter((tmp_path,)))
    found = kernel_cache.turn_among_processes("a", tmp_path)
    assert (found is not None) == (member == "none")


@pytest.mark.skipif(sys.platform == "win32", reason="files have no such modes")
def test_a_note_is_kept_where_nobody_else_could_have_written_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise it is not believed, and what it notes is done again and again."""
    shared, own = tmp_path / "shared", tmp_path / "own"
    shared.mkdir()
    shared.chmod(0o777)
    monkeypatch.setattr(kernel_cache, "_folders", lambda _: iter((shared, own)))
    assert not kernel_cache.is_noted("prepared")
    kernel_cache.note("prepared")
    assert kernel_cache.is_noted("prepared")

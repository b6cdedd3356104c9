"""What a machine may lack before a command has done anything."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from streamplace.cli._process import lacks_memory

COMMAND = f"{sys.executable} -m streamplace placers"


def refusal(line: str, folder: Path) -> str:
    """The one line that a line of shell is refused with in a folder."""
    where = {"PYTHONPATH": os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)}
    done = subprocess.run(
        ["sh", "-c", line], capture_output=True, text=True, cwd=folder, env={**os.environ, **where}
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_a_deleted_working_folder_is_told_in_one_line(tmp_path: Path) -> None:
    """Libraries look for it while they are imported."""
    (tmp_path / "gone").mkdir()
    told = refusal(f"cd gone && rmdir ../gone && {COMMAND}", tmp_path)
    assert told.startswith("error: cannot use the working folder: No such file")


@pytest.mark.skipif(sys.platform == "win32", reason="has no ulimit")
@pytest.mark.parametrize("kilobytes", [150_000, pytest.param(350_000, marks=pytest.mark.slow)])
def test_too_little_address_space_is_told_in_one_line(kilobytes: int, tmp_path: Path) -> None:
    """Numpy and LLVM end in tracebacks and aborts of many kinds."""
    told = refusal(f"ulimit -v {kilobytes}; {COMMAND}", tmp_path)
    assert told.startswith("error: memory is limited to ")


def test_a_library_that_cannot_be_mapped_lacks_memory() -> None:
    """The words are those of the dynamic linker."""
    assert lacks_memory(ImportError("x.so: failed to map segment from shared object"))
    assert lacks_memory(OSError(12, "Cannot allocate memory"))
    assert not lacks_memory(ImportError("No module named 'torch'"))

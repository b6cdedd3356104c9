"""Logs of TaskManagers, wherever they write them."""

import subprocess
import sys
from pathlib import Path

import pytest

from streamplace.engines.flink.cpu.threads import received_tasks

VERTEX, RUN, SLOT = (32 * letter for letter in "abc")
LINE = f"Received task Map (1/2)#0 ({RUN}_{VERTEX}_0_0), deploy into slot with allocation id {SLOT}"


@pytest.mark.parametrize(
    ("option", "written"),
    [
        ("-Dlog.file={folder}/tm.log", "tm.log"),
        ("-Dlog.file=tm.log", "tm.log"),
        ("", "out"),
        ("-Dlog.file={folder}/nothing.log", "out"),
    ],
    ids=["by its path", "in its folder", "printed", "printed although a file is named"],
)
def test_the_log_of_a_task_manager_is_found(tmp_path: Path, option: str, written: str) -> None:
    """The file on its command line, or where that is not written, what it prints to."""
    (tmp_path / written).write_text(f"INFO {LINE}.\n")
    code = "import os; os.write(2, b'up'); os.read(0, 1)"
    command = [sys.executable, "-c", code, option.format(folder=tmp_path)]
    pipe = subprocess.PIPE
    with (
        (tmp_path / "out").open("ab") as out,
        subprocess.Popen(command, cwd=tmp_path, stdin=pipe, stdout=out, stderr=pipe) as process,
    ):
        assert process.stderr is not None
        assert process.stderr.read(2) == b"up"  # its command line is empty before it runs
        assert [one.vertex for one in received_tasks(process.pid)] == [VERTEX]
        process.communicate(b"\n")

"""What a placement leaves behind in the temporary folder."""

import os
import subprocess
import sys
from pathlib import Path

from problems import fork_join

from streamplace.io.graphs import write_graph


def test_placing_leaves_nothing_in_the_temporary_folder(tmp_path: Path) -> None:
    """Torch makes a folder as soon as it is imported."""
    write_graph(fork_join(), tmp_path / "graph.json")
    (tmp_path / "temporary").mkdir()
    paths = os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)
    subprocess.run(
        [sys.executable, "-m", "streamplace", "place", "graph.json", "--placer", "dream"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path / "temporary"), "PYTHONPATH": paths},
        capture_output=True,
        check=True,
    )
    assert list((tmp_path / "temporary").iterdir()) == []

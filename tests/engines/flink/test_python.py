"""Flink from Python: the lines of the how-to, and PyFlink and SQL pinned by the exported module."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from flink_clusters import await_flow, submitted

from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.local.session import LocalCluster
from streamplace.engines.flink.pin.export import placed_py
from streamplace.engines.flink.pin.pinning import SpreadLimits, pinning
from streamplace.engines.flink.pin.verify import verify
from streamplace.engines.flink.program.jars import build_jar
from streamplace.engines.flink.rest.client import Rest

pytestmark = pytest.mark.xdist_group("flink")
ROOT = Path(__file__).parents[3]
PROGRAMS = Path(__file__).parent / "python"
PYTHON = Path(sys.prefix) / "pyflink" / "bin" / "python"
"""PyFlink and OR-tools cannot share an environment: they ask for different protobufs."""
PYTHON_JARS = [*PYTHON.parents[1].glob("lib/python3*/site-packages/pyflink/opt/flink-python-*")]
"""The part of PyFlink that runs inside TaskManagers."""


@pytest.mark.slow
def test_the_lines_of_the_page_measure_place_and_move_a_job(
    rest: Rest,
    flink: Flink,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The job of the page, on a cluster of the tests."""
    page = (ROOT / "docs" / "how-to" / "flink-moves.md").read_text()
    match = re.search(r'```py title="move.py"\n(.*?)```', page, re.DOTALL)
    assert match is not None
    imports, lines = match[1].rsplit("\n\n", 1)
    lines = lines.replace("http://localhost:8081", rest.url)
    lines = lines.replace("file:///var/flink/savepoints", (tmp_path / "saved").as_uri())
    build_jar(flink, [ROOT / "examples" / "flink" / "LogJob.java"], tmp_path / "job.jar")
    with zipfile.ZipFile(tmp_path / "job.jar", "a") as jar:
        jar.writestr("META-INF/MANIFEST.MF", "Main-Class: LogJob\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FLINK_HOME", str(flink.home))
    settings = {"pipeline.operator-chaining.enabled": "false"}
    job = submitted(rest, Path("job.jar"), "LogJob", "200", settings=settings)
    await_flow(rest, job)
    names: dict[str, Any] = {}
    exec(f"{imports}\n\n{lines}", names)
    moved, placement = names["moved"], names["placement"]
    assert rest.live_jobs() == [moved.job]
    assert moved.job != names["job"]
    assert verify(rest, moved.job, Layout.of(placement)).fine
    assert capsys.readouterr().out.startswith(moved.job)


@pytest.mark.skipif(not PYTHON_JARS, reason="there is no PyFlink; run: make pyflink")
@pytest.mark.parametrize(
    ("program", "placement"),
    [
        (
            "sql_job",
            {"bids": "dev-4", "Calc": "dev-0", "GroupAggregate": "dev-1", "totals": "dev-4"},
        ),
        # the last on the cluster: TaskManagers may end a while after a Python job was cancelled
        (
            "numbers_job",
            {
                "numbers": "dev-2",
                "Map": "dev-0",
                "Map (2)": "dev-1",
                "pick": "dev-1",
                "show": "dev-2",
            },
        ),
    ],
)
def test_a_program_runs_where_it_was_placed(
    program: str,
    placement: dict[str, str],
    rest: Rest,
    cluster: LocalCluster,
    tmp_path: Path,
) -> None:
    """One line of the program is changed, and nothing of streamplace is needed to run it."""
    vectors = {operator: [device] for operator, device in placement.items()}
    code = placed_py(pinning(Layout(vectors), SpreadLimits.untouched(cluster.devices)))
    (tmp_path / "placed.py").write_text(code, encoding="utf-8")
    shutil.copy(PROGRAMS / f"{program}.py", tmp_path)
    address = cluster.url.removeprefix("http://").split(":")
    done = subprocess.run(
        [str(PYTHON), f"{program}.py", *address, str(PYTHON_JARS[0])],
        cwd=tmp_path,
        env={**os.environ, "_python_worker_execution_mode": "process"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    job = done.stdout.split()[-1]
    rest.wait_running(job, 120)
    found = verify(rest, job, Layout(vectors))
    assert found.fine, found

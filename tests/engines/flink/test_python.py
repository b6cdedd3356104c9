"""Flink from Python: the lines of the how-to, run as they stand there."""

import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from flink_clusters import await_flow

from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.pin.pinning import vectors_of
from streamplace.engines.flink.pin.verify import verify
from streamplace.engines.flink.program.jars import build_jar
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.rest.client import Rest

pytestmark = pytest.mark.xdist_group("flink")
ROOT = Path(__file__).parents[3]
LINES = 6


@pytest.mark.slow
def test_six_lines_measure_place_and_move_a_job(
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
    assert len(lines.splitlines()) == LINES
    lines = lines.replace("http://localhost:8081", rest.url)
    lines = lines.replace("file:///var/flink/savepoints", (tmp_path / "saved").as_uri())
    build_jar(flink, [ROOT / "examples" / "flink" / "LogJob.java"], tmp_path / "job.jar")
    with zipfile.ZipFile(tmp_path / "job.jar", "a") as jar:
        jar.writestr("META-INF/MANIFEST.MF", "Main-Class: LogJob\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FLINK_HOME", str(flink.home))
    settings = {"pipeline.operator-chaining.enabled": "false"}
    request = Program(Path("job.jar"), arguments=["200"], settings=settings).run_request()
    request |= {"entryClass": "LogJob", "programArgsList": ["200"]}
    uploaded = rest.upload(tmp_path / "job.jar")
    job = rest.post(f"/jars/{uploaded}/run", request)["jobid"]
    rest.wait_running(job)
    await_flow(rest, job)
    names: dict[str, Any] = {}
    exec(f"{imports}\n\n{lines}", names)
    moved, placement = names["moved"], names["placement"]
    assert rest.live_jobs() == [moved.job]
    assert moved.job != names["job"]
    assert verify(rest, moved.job, vectors_of(placement)).fine
    assert capsys.readouterr().out.startswith(moved.job)

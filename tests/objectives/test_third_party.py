"""An objective of somebody else's package works in every command, from its one file."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest
from problems import diamond

from streamplace.io.graphs import write_graph

PACKAGE = Path(__file__).parents[2] / "examples" / "own_objective"


class Answer(NamedTuple):
    """What a command printed, and its exit status."""

    status: int
    out: str
    err: str


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages in which the example is installed, as its own pyproject.toml says."""
    folder = tmp_path_factory.mktemp("site")
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    about = folder / "network_bytes-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 1\n")
    groups = [
        f"[{group}]\n" + "".join(f"{name} = {module}\n" for name, module in points.items())
        for group, points in project["entry-points"].items()
    ]
    (about / "entry_points.txt").write_text("\n".join(groups))
    (folder / "network_bytes.py").write_text((PACKAGE / "network_bytes.py").read_text())
    return folder


def run(site: Path, folder: Path, *arguments: str) -> Answer:
    """Run a command where the package is installed."""
    found = subprocess.run(
        [sys.executable, "-m", "streamplace", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        encoding="utf-8",
        timeout=600,
    )
    return Answer(found.returncode, found.stdout, found.stderr)


def test_every_command_knows_it(site: Path, tmp_path: Path) -> None:
    """Placed (the best is to send nothing), simulated, drawn, compared, and asked for besides."""
    write_graph(diamond(), tmp_path / "g.json")
    asked = ("--objective", "network-bytes")
    placed = run(site, tmp_path, "place", "g.json", *asked, "--evaluations", "500", "-o", "p.json")
    assert "diamond by auto: the network carries 0 B/s" in placed.out, placed.err
    assert "the best possible, proven" in placed.out

    apart = {"src": "d0", "left": "d1", "right": "d0", "sink": "d0"}
    (tmp_path / "apart.json").write_text(json.dumps({"assignment": apart}))
    told = json.loads(run(site, tmp_path, "simulate", "g.json", "apart.json", *asked, "--json").out)
    assert told["network-bytes"] == pytest.approx(1.5e8 + 5e7)  # 5,000 tuples/s of 30 and 10 kB
    assert list(told["streams"]) == ["src→left", "left→sink"]

    drawn = run(site, tmp_path, "draw", "g.json", "apart.json", *asked, "-o", "drawn.svg")
    assert (drawn.status, "2e+08 B/s" in (tmp_path / "drawn.svg").read_text()) == (0, True)

    table = run(
        site, tmp_path, "compare", "g.json", *asked, "--placers", "single,anneal,round-robin",
        "--evaluations", "200", "--jobs", "1", "--json", "-o", "out",
    )  # fmt: skip
    rows = json.loads(table.out)["rates"]["10000"]["placers"]
    assert rows["anneal"]["mean"] == rows["single"]["mean"] == 0 < rows["round-robin"]["mean"]
    records = [json.loads(row) for row in (tmp_path / "out/results.jsonl").read_text().splitlines()]
    assert {record["objective"] for record in records} == {"network-bytes"}

    both = run(
        site, tmp_path, "place", "g.json", "--require", "network-bytes<=1.6e8", "--json",
        "--evaluations", "2000",
    )  # fmt: skip
    assert json.loads(both.out)["relative_throughput"] > 0.5, both.err


def test_without_the_package_it_is_unknown(tmp_path: Path) -> None:
    write_graph(diamond(), tmp_path / "g.json")
    answer = run(tmp_path, tmp_path, "place", "g.json", "--objective", "network-bytes")
    assert answer.status == 2
    assert "there is no objective 'network-bytes'" in answer.err

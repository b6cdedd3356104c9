"""``streamplace plan``: tables, files for other commands, and refusals."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from planning_cases import pipeline

from streamplace.io.graphs import write_graph

OFFERS = """
overhead = "1 us"
[[offers]]
name = "small"
price = 0.1
mips = 4
cores = 2
[[offers]]
name = "large"
price = 0.35
mips = 4
cores = 8
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder with a graph and offers."""
    monkeypatch.chdir(tmp_path)
    write_graph(pipeline(), tmp_path / "graph.json")
    (tmp_path / "offers.toml").write_text(OFFERS)
    return tmp_path


def test_a_plan_is_written_for_the_other_commands(folder: Path, run: Callable) -> None:
    """What is planned carries the rate when it is simulated from the files."""
    arguments = ("plan", "graph.json", "--rate", "2000", "--offers", "offers.toml", "-o", "out")
    document = json.loads(run(*arguments, "--evaluations", "100000", "--json").out)
    assert document["cost"] >= document["bound"] > 0
    assert json.loads((folder / "out/plan.json").read_text()) == document
    files = ("out/graph.json", "out/placement.json", "--cluster", "out/cluster.toml")
    simulated = json.loads(run("simulate", *files, "--json").out)
    assert simulated["relative_throughput"] == pytest.approx(1.0)


def test_a_range_of_rates_is_a_frontier(folder: Path, run: Callable) -> None:
    """Costs and bounds grow with the rate."""
    rates = ("--rate", "500..2500", "--offers", "offers.toml", "--evaluations", "20000")
    documents = json.loads(run("plan", "graph.json", *rates, "--json").out)
    bounds = [document["bound"] for document in documents]
    assert len(documents) == 9
    assert bounds == sorted(bounds)


def test_given_machines_are_used_sparingly(folder: Path, run: Callable) -> None:
    """The plan names the machines of the cluster file."""
    (folder / "mine.toml").write_text(
        'bandwidth = "1 Gbps"\n[[devices]]\nname = "box"\ncount = 4\nmips = 4\ncores = 4\n'
    )
    asked = ("--rate", "1500", "--cluster", "mine.toml", "--json")
    document = json.loads(run("plan", "graph.json", *asked).out)
    assert document["cost"] == document["bound"] == 1
    assert document["limit"]["machine"] == "box0"
    assert document["machines"] == {"box0": 1}
    assert "need 1 machine. No plan costs less." in run("plan", "graph.json", *asked[:-1]).out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rate", "5"], "needs either offers or a cluster"),
        (["--rate", "0", "--offers", "offers.toml"], "--rate is 0"),
        (["--rate", "9..3", "--offers", "offers.toml"], "from a lower rate to a higher one"),
        (["--rate", "1..3", "--offers", "offers.toml", "-o", "out"], "-o is for one rate"),
        (["--rate", "50 kB", "--offers", "offers.toml"], "rate '50 kB'"),
        (["--rate", "40 k/s", "--offers", "offers.toml"], "'source' needs at least 10 MIPS"),
    ],
)
def test_bad_requests_are_refused(
    folder: Path, run: Callable, arguments: list[str], message: str
) -> None:
    """In one line, with exit code 2, and nothing is written."""
    answer = run("plan", "graph.json", *arguments)
    assert answer.status == 2
    assert message in answer.err
    assert not (folder / "out").exists()

"""``streamplace plan``: tables, files for other commands, and refusals."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from planning_cases import pipeline

from streamplace.io.graphs import write_graph
from streamplace.planning.result import FILES

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
QUICK = ("--offers", "offers.toml", "--evaluations", "2000", "--settings", "one.toml")


@pytest.fixture
def folder(tmp_path: Path, run: Callable) -> Path:
    """Folder with a graph and offers."""
    write_graph(pipeline(), tmp_path / "graph.json")
    (tmp_path / "offers.toml").write_text(OFFERS)
    (tmp_path / "one.toml").write_text("jobs = 1\n")
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


def test_a_range_of_rates_is_a_frontier_and_is_plotted(folder: Path, run: Callable) -> None:
    rates = ("--rate", "500..2500", *QUICK, "-o", "cost.svg")
    documents = json.loads(run("plan", "graph.json", *rates, "--json").out)
    bounds = [document["bound"] for document in documents]
    assert len(documents) == 9
    assert bounds == sorted(bounds)
    assert ">Cost against rate<" in svg_words(folder / "cost.svg")


def test_given_machines_are_used_sparingly(folder: Path, run: Callable) -> None:
    (folder / "mine.toml").write_text(
        'bandwidth = "1 Gbps"\n[[devices]]\nname = "box"\ncount = 4\nmips = 4\ncores = 4\n'
    )
    options = ("--rate", "1500", "--cluster", "mine.toml", "--evaluations", "20000", "--json")
    document = json.loads(run("plan", "graph.json", *options).out)
    assert document["cost"] == document["bound"] == 1
    assert document["limit"]["machine"] == "box0"
    assert document["machines"] == {"box0": 1}
    assert "need 1 machine. No plan costs less." in run("plan", "graph.json", *options[:-1]).out


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("constraints", {"constraints": {"exlocate": [["a", "b"]]}}),
        ("seconds", {"cluster": {"devices": [{"name": "d"}]}, "seconds": [[1e-6]] * 3}),
    ],
)
def test_parts_of_a_problem_that_plans_do_not_use_are_refused(
    folder: Path, refusal: Callable, name: str, parts: dict[str, Any]
) -> None:
    """The cheapest plan of the graph alone is not that of the problem."""
    graph = json.loads((folder / "graph.json").read_text())
    (folder / "problem.json").write_text(json.dumps({"graph": graph, **parts}))
    assert name in refusal("plan", "problem.json", "--rate", "2000", "--offers", "offers.toml")


def test_the_cluster_of_a_problem_does_not_matter(folder: Path, run: Callable) -> None:
    """A plan has machines of its own."""
    graph = json.loads((folder / "graph.json").read_text())
    problem = {"graph": graph, "cluster": {"devices": [{"name": "d"}]}}
    (folder / "problem.json").write_text(json.dumps(problem))
    options = ("--rate", "2000", "--offers", "offers.toml", "--evaluations", "20000")
    assert run("plan", "problem.json", *options).out == run("plan", "graph.json", *options).out


def test_a_trace_is_planned_for_its_peak_and_hour_by_hour(folder: Path, run: Callable) -> None:
    (folder / "rates.csv").write_text("time,rate\n0,500\n1800,900\n3600,2000\n7200,500\n")
    options = ("--trace", "rates.csv", "--offers", "offers.toml", "--evaluations", "20000")
    document = json.loads(run("plan", "graph.json", *options, "-o", "out", "--json").out)
    assert [hour["rate"] for hour in document["hours"]] == [900, 2000, 500]
    assert document["rate"] == 2000
    assert document["cost"] == document["hours"][1]["cost"] > document["hours"][2]["cost"]
    assert all(hour["carried"] for hour in document["hours"])
    assert ">each hour alone<" in svg_words(folder / "out/plan.svg")
    text = run("plan", "graph.json", *options, "--quantile", "0.5").out
    assert "The plan does not carry the largest rates of" in text


def svg_words(path: Path) -> str:
    """Comments of a figure, which hold its texts as they are written."""
    return re.sub(r"<!-- (.*?) -->", r">\1<", path.read_text())


def test_a_plan_is_written_whole_or_not_at_all(folder: Path, refusal: Callable) -> None:
    """A folder is in the way of the last of its files."""
    (folder / "out" / FILES[-1]).mkdir(parents=True)
    options = ("plan", "graph.json", "--rate", "500", *QUICK, "-o", "out")
    assert f"{FILES[-1]}: " in refusal(*options)


@pytest.mark.usefixtures("folder")
def test_without_a_rate_the_plan_is_for_that_of_the_graph(run: Callable) -> None:
    """Also for one that --set changes, as in Python."""
    graph = pipeline()
    source = graph.operators.name[0]
    for words, rate in (((), graph.source_rate), (("--set", f"{source}.rate=777"), 777)):
        answer = json.loads(run("plan", "graph.json", *QUICK, *words, "--json").out)
        assert answer["rate"] == pytest.approx(rate)

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SIZE = ("--branches", "2", "--depth", "2", "--devices", "2")


@pytest.fixture
def data(run):
    """Six small graphs in b.jsonl."""
    run("generate", "branched", *SIZE, "--copies", "6", "-o", "b.jsonl")
    return "b.jsonl"


def test_json_has_the_table_of_every_placer_at_every_rate(run, data):
    rates = ("--rate", "10000", "--rate", "20000")
    answer = run("compare", data, "--placers", "metis,random", *rates, "--json")
    table = json.loads(answer.out)["rates"]
    assert set(table) == {"10000", "20000"}
    metis, random = (table["10000"]["placers"][name] for name in ("metis", "random"))
    for key in ("mean", "q1", "median", "min", "share_of_optimum", "proven", "ms_per_graph"):
        assert key in metis
    assert sum(random["paired"]["metis"][name] for name in ("better", "equal", "worse")) == 6
    assert metis["graphs"] == 6


def test_graphs_with_rates_of_their_own_share_a_table(run, tmp_path):
    """Unless --rate asks for others, applications are compared at the rates they come with."""
    (tmp_path / "graphs").mkdir()
    for rate in ("5000", "8000"):
        words = (*SIZE, "--copies", "1", "--rate", rate)
        run("generate", "branched", *words, "-o", f"graphs/{rate}.json")
    answer = run("compare", "graphs", "--placers", "metis,random", "--json")
    table = json.loads(answer.out)["rates"]
    assert set(table) == {"own"}
    assert table["own"]["placers"]["metis"]["graphs"] == 2
    assert "own rates, 2 graphs" in run("compare", "graphs", "--placers", "metis").out


def test_equal_results_give_equal_files(run, data):
    """Of a process with other hashes; only search times differ from search to search."""
    words = ["compare", data, "--placers", "metis,random,auto", "--evaluations", "50", "-o", "out"]
    assert run(*words).status == 0
    before = {file.name: file.read_bytes() for file in Path("out").iterdir()}
    assert {
        "results.jsonl",
        "table.tex",
        "report.html",
        "distribution.png",
        "devices.png",
    } <= before.keys()
    assert len(before["results.jsonl"].splitlines()) == 18
    subprocess.run(
        [sys.executable, "-m", "streamplace", *words],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        check=True,
        capture_output=True,
    )
    assert {file.name: file.read_bytes() for file in Path("out").iterdir()} == before


@pytest.mark.parametrize("name", ["f.pdf", "f.svg", "f.png"])
def test_a_figure_alone_is_of_all_objectives_and_rates(run, data, name):
    """Nothing else is written; a file of another kind is refused."""
    rates = ("--rate", "10000", "--rate", "20000", "--objective", "throughput")
    words = ("compare", data, "--placers", "metis,random", *rates, "--objective", "latency")
    before = set(Path().iterdir())
    answer = run(*words, "-o", name)
    assert answer.status == 0
    assert answer.err.endswith(f"figure → {name}\n")
    assert {path.name for path in set(Path().iterdir()) - before} == {name}
    content = Path(name).read_bytes()
    assert run(*words, "-o", name).status == 0
    assert Path(name).read_bytes() == content
    assert run(*words, "-o", "f.csv").status == 2


@pytest.mark.parametrize(
    ("words", "budget"),
    [
        ((), "1 s, any evaluations"),
        (("--evaluations", "300"), "no time limit, 300 evaluations"),
        (("--evaluations", "300", "--budget", "2"), "2 s, 300 evaluations"),
    ],
)
def test_where_evaluations_are_counted_the_clock_is_not_unless_asked(run, data, words, budget):
    """So that results do not depend on the machine; every result says what it was allowed."""
    Path("one.toml").write_text("limit = 1\n")
    run("compare", data, "--settings", "one.toml", "--placers", "random", *words, "-o", "out")
    (file,) = Path("out").glob("results*.jsonl")
    for line in file.read_text().splitlines():
        assert json.loads(line)["budget"].startswith(budget)


def proven(answer):
    """How many optima METIS is judged by."""
    return json.loads(answer.out)["rates"]["10000"]["placers"]["metis"]["proven"]


def test_what_a_table_calls_proven_was_proven_in_its_own_folder(run, data):
    """Whatever the user has compared elsewhere, the same command gives the same table."""
    metis = ("compare", data, "--placers", "metis", "--json")
    assert proven(run("compare", data, "--placers", "metis,exact", "-o", "out", "--json")) == 6
    assert proven(run(*metis)) == proven(run(*metis, "-o", "other")) == 0
    assert proven(run(*metis, "-o", "out")) == 6


def test_a_placer_that_refuses_every_graph_fails_on_all_of_them(run, data):
    """It cannot be compared; a refusal of some graphs is a result."""
    answer = run("compare", data, "--placers", "metis,metis:k=9")
    names = {json.loads(line)["name"] for line in Path(data).read_text().splitlines()}
    failed = [line for line in answer.err.splitlines() if line.startswith("failed: ")]
    assert answer.status == 1
    assert {line.split(": ")[1] for line in failed} == names
    assert all("k is 9" in line for line in failed)

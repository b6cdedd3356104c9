import json
import os
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest


def test_the_placement_file_can_be_simulated(run: Callable, graph: str) -> None:
    """What place writes, simulate reads, and both say the same throughput."""
    placed = json.loads(run("place", graph, "-o", "p.json", "--json").out)
    simulated = json.loads(run("simulate", graph, "p.json", "--json").out)
    assert simulated["relative_throughput"] == placed["relative_throughput"]
    assert simulated["bottleneck"]["name"] == placed["bottleneck"]["name"]


def test_a_data_set_may_come_from_a_pipe(run: Callable, graph: str, tmp_path: Path) -> None:
    """Which can be read only once."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = Thread(target=lambda: pipe.write_bytes(Path(graph).read_bytes()), daemon=True)
    writer.start()
    answer = run("place", str(pipe), "--placer", "round-robin", "-o", "out.jsonl")
    writer.join(10)
    assert answer.status == 0, answer.err
    assert len(Path("out.jsonl").read_text().splitlines()) == 1


def test_people_read_the_mapping_by_device_and_a_verdict(run: Callable, graph: str) -> None:
    """Devices with their operators, the throughput, the bottleneck, one sentence."""
    out = run("place", graph, "--placer", "round-robin").out
    assert "b0s1" in out
    assert "Bottleneck: " in out
    assert "Verdict: " in out


def test_a_proven_placement_has_a_bound_and_no_gap(run: Callable, graph: str) -> None:
    """The verdict says that it is proven; others say how far they are from the bound."""
    best = run("place", graph, "--placer", "exact").out
    assert "Verdict: the best possible, proven" in best
    assert "Bound: no placement is better than 100.0 %\n" in best
    hard = run("place", graph, "--placer", "exact", "--rate", "1 M/s", "--evaluations", "1").out
    assert "(gap " in hard


@pytest.mark.parametrize("budget", ["0.05", "50ms", "50 ms"])
def test_a_budget_may_have_a_unit(run: Callable, graph: str, budget: str) -> None:
    assert run("place", graph, "--budget", budget).status == 0
    answer = run("place", graph, "--budget", "soon")
    assert (answer.status, answer.err.count("\n")) == (2, 1)


def test_what_names_do_not_say_is_printed(run: Callable, tmp_path: Path) -> None:
    """By place and by simulate, where the graph tells it."""
    rows = [{"name": "in", "rate": 1}, {"name": "Calc", "about": "Calc(where=[price > 9])"}]
    document = {"operators": rows, "streams": [{"from": "in", "to": "Calc"}]}
    (tmp_path / "sql.json").write_text(json.dumps(document))
    assert "Calc(where=[price > 9])" in run("place", "sql.json", "-o", "p.json").out
    assert "Calc(where=[price > 9])" in run("simulate", "sql.json", "p.json").out


def test_cpu_that_was_not_measured_is_told(run: Callable, tmp_path: Path) -> None:
    """As the graph says it, beside the result."""
    document = {
        "operators": [{"name": "in", "rate": 1}, {"name": "Map"}],
        "streams": [{"from": "in", "to": "Map"}],
        "attributes": {"cpu of Map": "from busy time", "mips": 1000},
    }
    (tmp_path / "g.json").write_text(json.dumps(document))
    answer = run("place", "g.json", "--json")
    assert answer.err.splitlines() == ["note: cpu of Map: from busy time"]
    json.loads(answer.out)


def test_constraints_are_respected(run: Callable, graph: str, tmp_path: Path) -> None:
    """A pin in a TOML file holds for whoever places."""
    (tmp_path / "c.toml").write_text('exlocate = [["src", "sink"]]\n[pin]\nsrc = "d3"\n')
    document = json.loads(run("place", graph, "--constraints", "c.toml", "--json").out)
    assert document["assignment"]["src"] == "d3"
    assert document["assignment"]["sink"] != "d3"


def test_the_cluster_comes_from_a_file(run: Callable, graph: str, tmp_path: Path) -> None:
    """Devices of a TOML file appear under their names."""
    (tmp_path / "c.toml").write_text('[[devices]]\nname = "node"\ncount = 2\n')
    document = json.loads(run("place", graph, "--cluster", "c.toml", "--json").out)
    assert set(document["assignment"].values()) <= {"node0", "node1"}


def test_subtasks_are_placed_one_by_one(run: Callable, tmp_path: Path) -> None:
    """What no device carries alone is spread, under the names of the subtasks."""
    dealt = ("--placer", "round-robin")
    join = {"name": "join", "ipt": 1_000_000, "parallelism": 4}
    source = {"name": "src", "ipt": 1, "rate": 10_000}
    streams = [{"from": "src", "to": "join"}]
    (tmp_path / "g.json").write_text(json.dumps({"operators": [source, join], "streams": streams}))
    document = json.loads(run("place", "g.json", *dealt, "--subtasks", "--json").out)
    assert list(document["assignment"]) == ["src", "join#0", "join#1", "join#2", "join#3"]
    assert len(set(document["assignment"].values())) == 5
    whole = json.loads(run("place", "g.json", *dealt, "--json").out)
    assert document["relative_throughput"] > whole["relative_throughput"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--placer", "magic"], "there is no placer 'magic'"),
        (["--placer", "randm"], "did you mean 'random'?"),
        (["--placer", "metis:k"], "must be written NAME:OPTION=VALUE"),
        (["--placer", "random:k=3"], "has no option 'k'"),
        (["--budget", "-1"], "the budget is -1.0 s"),
        (["--bandwidth", "1000 Mbpz"], "unknown unit 'Mbpz'"),
        (["--devices", "-3"], "the cluster has -3 devices"),
        (["--cluster", "c.toml", "--devices", "3"], "exclude each other"),
        (["--rate", "fast"], "rate 'fast'"),
    ],
)
def test_bad_options_are_named(run: Callable, graph: str, words: list[str], complaint: str) -> None:
    """One line, exit code 2."""
    answer = run("place", graph, *words)
    assert answer.status == 2
    assert answer.err.count("\n") == 1
    assert complaint in answer.err


def test_verbose_tells_on_stderr_what_happens_on_the_way(run: Callable, graph: str) -> None:
    """The members of the portfolio with their values; stdout stays one JSON document."""
    answer = run("place", graph, "-v", "--json")
    assert "10 operators, 12 streams, 5 devices" in answer.err
    assert "metis" in answer.err
    assert json.loads(answer.out)["placer"] == "auto"
    assert "metis" not in run("place", graph, "--json").err


def test_a_placement_of_subtasks_can_be_simulated(run: Callable, tmp_path: Path) -> None:
    """As the one of their operators can; subtasks that are missing are named."""
    join = {"name": "join", "ipt": 1_000_000, "parallelism": 4}
    source = {"name": "src", "ipt": 1, "rate": 10_000}
    streams = [{"from": "src", "to": "join"}]
    (tmp_path / "g.json").write_text(json.dumps({"operators": [source, join], "streams": streams}))
    given = ("g.json", "--devices", "3", "--json")
    placed = json.loads(run("place", *given, "--subtasks", "-o", "p.json").out)
    simulated = json.loads(run("simulate", "g.json", "p.json", *given[1:]).out)
    assert simulated["relative_throughput"] == placed["relative_throughput"]
    document = json.loads((tmp_path / "p.json").read_text())
    del document["assignment"]["join#2"]
    (tmp_path / "p.json").write_text(json.dumps(document))
    answer = run("simulate", "g.json", "p.json", *given[1:])
    assert answer.status == 2
    assert "'join#2'" in answer.err

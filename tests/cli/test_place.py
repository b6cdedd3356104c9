"""place, simulate, draw and describe, on a graph in a file."""

import json
import os
from pathlib import Path
from threading import Thread

import pytest

from streamplace import read_graph, what_if, write_graph

CHANGES = ["--set", "b0s1.ipt=2x", "--set", "src.rate=3k"]
ASKED = {"scale": {"b0s1": 2}, "change": {"src.rate": "3k"}}
COMMANDS = {
    "place": ["graph.json", "--placer", "metis"],
    "simulate": ["graph.json", "placement.json"],
    "plan": ["graph.json", "--offers", "offers.toml", "--evaluations", "9"],
}


def document_of(run, *words):
    """What a command answers in JSON."""
    return json.loads(run(*words, "--json").out)


def write_pair(operator, **fields):
    """Write a graph of a source and an operator behind it; returns its file."""
    source = {"name": "src", "ipt": 1, "rate": 10_000}
    streams = [{"from": "src", "to": operator["name"]}]
    Path("g.json").write_text(
        json.dumps({"operators": [source, operator], "streams": streams, **fields})
    )
    return "g.json"


@pytest.mark.parametrize(
    ("line", "results"),
    [
        ("place pipe --placer round-robin -o out.jsonl", "out.jsonl"),
        ("compare pipe.jsonl --placers metis -o out", "out/results.jsonl"),
    ],
)
def test_a_pipe_may_hold_a_data_set(run, graph, line, results):
    words, content = line.split(), Path(graph).read_bytes()
    os.mkfifo(words[1])
    writer = Thread(target=lambda: Path(words[1]).write_bytes(content), daemon=True)
    writer.start()
    answer = run(*words)
    writer.join(10)
    assert answer.status == 0, answer.err
    assert len(Path(results).read_text().splitlines()) == 1


def test_what_names_do_not_say_is_printed(run):
    graph = write_pair({"name": "Calc", "about": "Calc(where=[price > 9])"})
    assert "Calc(where=[price > 9])" in run("place", graph, "-o", "p.json", "-v").out
    assert "Calc(where=[price > 9])" in run("simulate", graph, "p.json", "-v").out
    assert "Calc(" not in run("simulate", graph, "p.json").out


def test_subtasks_are_placed_one_by_one_and_simulated(run, refusal):
    """What no device carries alone is spread, under the names of the subtasks; none may miss."""
    graph = write_pair({"name": "join", "ipt": 1_000_000, "parallelism": 4})
    dealt = ("place", graph, "--placer", "round-robin")
    document = document_of(run, *dealt, "--subtasks")
    assert list(document["assignment"]) == ["src", "join#0", "join#1", "join#2", "join#3"]
    assert len(set(document["assignment"].values())) == 5
    assert document["relative_throughput"] > document_of(run, *dealt)["relative_throughput"]
    few = ("--devices", "3")
    placed = document_of(run, "place", graph, *few, "--subtasks", "-o", "p.json")
    simulated = document_of(run, "simulate", graph, "p.json", *few)
    assert simulated["relative_throughput"] == placed["relative_throughput"]
    written = json.loads(Path("p.json").read_text())
    del written["assignment"]["join#2"]
    Path("p.json").write_text(json.dumps(written))
    assert "'join#2'" in refusal("simulate", graph, "p.json", *few)


def test_verbose_tells_on_stderr_what_happens_on_the_way(run, graph):
    """The members of the portfolio with their values; stdout stays one JSON document."""
    answer = run("place", graph, "-v", "--json")
    assert "10 operators, 12 streams, 5 devices" in answer.err
    assert "metis" in answer.err
    assert json.loads(answer.out)["placer"] == "auto"
    assert "metis" not in run("place", graph, "--json").err


@pytest.mark.parametrize("command", COMMANDS)
def test_a_what_if_edits_its_file(run, graph, placement, command):
    Path("offers.toml").write_text('[[offers]]\nname = "s"\nmips = 25e3\ncores = 9\nprice = 1\n')
    plain = run(command, *COMMANDS[command], "--json").out
    before = Path(graph).read_bytes()
    changed = run(command, *COMMANDS[command], *CHANGES, "--json")
    assert Path(graph).read_bytes() == before
    write_graph(what_if(read_graph(graph), **ASKED), graph)
    edited = run(command, *COMMANDS[command], "--json")
    assert timeless(changed.out) == timeless(edited.out) != timeless(plain)


def timeless(text):
    return {key: value for key, value in json.loads(text).items() if key != "seconds"}


def test_a_graph_can_be_drawn_alone_at_a_rate(run, graph):
    """Without a placement and without devices; CPU follows the rate."""
    assert run("draw", graph, "-o", "x.svg").status == 0
    assert "10 operators, 12 streams" in Path("x.svg").read_text()
    assert run("draw", graph, "--rate", "20 k/s", "-o", "x.svg").status == 0
    assert "CPU 2,000 MIPS" in Path("x.svg").read_text()


def test_a_figure_is_drawn_in_its_format(run, refusal, graph):
    assert run("describe", graph, "-o", "figure.png").status == 0
    assert Path("figure.png").read_bytes().startswith(b"\x89PNG")
    assert ".png or .svg or .pdf" in refusal("describe", graph, "-o", "figure.bmp")


def test_cpu_is_measured_in_devices_of_the_cluster(run, graph):
    """Devices of twice the mean speed halve the number; the units are printed."""
    rows = '{name = "slow", mips = 4000}, {name = "fast", mips = 3000, cores = 2}'
    Path("c.toml").write_text(f"devices = [{rows}]\nbandwidth = '500 Mbps'\n")
    usual = json.loads(run("describe", graph, "--json").out)
    own = json.loads(run("describe", graph, "--json", "--cluster", "c.toml").out)
    assert own["cpu"]["mean"] == pytest.approx(usual["cpu"]["mean"] / 2)
    assert own["saturation"]["max"] == pytest.approx(usual["saturation"]["max"] * 2)
    out = run("describe", graph, "--cluster", "c.toml").out
    assert "CPU in devices of 5000 MIPS, traffic in links of 500 Mbps" in " ".join(out.split())
    Path("one.toml").write_text("devices = [{name = 'alone'}]\n")
    alone = run("describe", graph, "--cluster", "one.toml").out
    assert "traffic in links without a limit" in " ".join(alone.split())

"""Mistakes that people make: each is answered in one line that says what to do instead."""

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

TABLES = {
    "two.json": '{"operators": []}\n{"operators": []}\n',
    "edges.json": '{"name": "e", "operators": [{"name": "a", "rate": 1}, {"name": "b"}], '
    '"streams": [{"source": "a", "to": "b"}]}',
    "other.json": '{"graph": "shop", "assignment": {"kafka": "d0"}}',
    "two.toml": 'devices = [{name = "d0"}, {name = "d1"}]\n',
    "p.txt": "",
    "never.toml": 'from = "present.json"\npasses = 0\n',
    "typo.toml": "pases = 5\n",
    "no-slot.toml": "slot = '0 s'\n",
    "early.toml": "lag = '-1 s'\n",
    "day.csv": "time,rate\n0,5\n3600,9\n",
    "offers.toml": "offers = [{name = 'small', price = 0.1}]\n",
    "never-ends.toml": 'from = "present.json"\n',
    "rules.toml": 'pin = {src = "d3"}\n',
}
COMMANDS = [
    ("frobnicate", "No such command 'frobnicate'"),
    ("plce graph.json", "No such command 'plce'; did you mean 'place'?"),
    ("schema grpah", "there is no schema 'grpah'; did you mean 'graph'?"),
    ("place", "Missing argument 'GRAPH'"),
    ("place --frob", "No such option '--frob'"),
    ("draw graph.json placement.json", "-o FILE.svg"),
    ("place --dry-run", "--dry-run is gone: put dry-run = true into a file for --settings"),
    ("place --from", "--from is gone: put from = 'FILE' into a file for --settings"),
    ("flink move --settle", "--settle is gone: put settle = 'TIME' into a file for --settings"),
]
FILES = [
    ("place none.json", "none.json: cannot be read: no such file"),
    ("place 'no\nsuch\nfile.json'", "cannot be read: no such file"),
    ("place http://host/g.json", "http://host/g.json is an address, and streamplace rea"),
    ("simulate placement.json graph.json", "is a placement, not a graph; give the gr"),
    ("simulate graph.json graph.json", "graph.json: is a graph, not a placement"),
    ("place two.json", "holds several JSON documents; write each on one line of a .jsonl"),
    (
        "place graph.json --cluster graph.json",
        "graph.json: is JSON, but a TOML file is expected here; correct the path",
    ),
    ("place edges.json", "streams[0].source is not a known field; correct or remove it"),
    ("export placement.json --to storm -o graph.json", "graph.json: cannot create the folder"),
    ("export placement.json --to csv -o .", "it is a directory; name a file"),
    ("place graph.json -o out.txt", "the name must end in .json for a placement"),
    ("export p.txt --to csv", "p.txt: is not a placement file that can be read"),
    (
        "simulate graph.json other.json",
        "other.json: is a placement of graph 'shop', not of 'fork-join': operator 'src' is",
    ),
    (
        "describe graph.json --split test",
        "graph.json holds no graph of split 'test'; its graphs have no split, so drop --split",
    ),
    (
        "simulate graph.json placement.json --constraints rules.toml",
        "the constraints forbid 'src' on 'd0'",
    ),
    ("describe set.jsonl --split tset", "set.jsonl holds no graph of split 'tset'; did you mean"),
]
VALUES = [
    ("place . --devices 0", "--devices is '0'; it must be a whole number, 1 or more"),
    ("place graph.json --placer metis:k", "must be written NAME:OPTION=VALUE"),
    ("place graph.json --budget -1", "--budget: time '-1' must be between 0"),
    ("place graph.json --rate -5", "rate '-5' must be above 0"),
    ("plan graph.json --rate 5.. --offers o.toml", "or a range from a lower to a higher rate"),
    ("plan graph.json --rate 5 --headroom x", "a percentage: 0.2 or 20%"),
    ("place graph.json --scale sink", "--scale is 'sink'; write it as in --scale enrich=2"),
    ("place graph.json --scale sink=x", "--scale sink=x: 'x' is not a number; write sink=2"),
    ("place tasks.json --objective latency --placer exact", "places for throughput"),
    ("place tasks.json --require 'throughput>1'", "cannot be read"),
    ("place tasks.json --require 'throughput>=2'", "100.0 % at best"),
    (
        "place tasks.json --settings never.toml",
        "passes in never.toml is 0; it must be a number abo",
    ),
    (
        "place tasks.json --settings typo.toml",
        "'pases' is not a known setting; did you mean 'passes'",
    ),
]
COMBINATIONS = [
    (
        "simulate graph.json placement.json --preset giph --objective energy",
        "--objective energy simulates none",
    ),
    ("place graph.json --cluster two.toml --devices 3", "exclude each other"),
    ("place graph.json --scale sink=2 -o x.jsonl", "--scale is for a single graph; drop it"),
    ("draw graph.json --devices 3 -o x.svg", "add a placement"),
    (
        "simulate graph.json placement.json --duration 1",
        "--duration has no effect without --engine; add it, or drop --duration",
    ),
    (
        "plan graph.json --rate 5 --offers offers.toml --settings no-slot.toml",
        "slot in no-slot.toml has no effect without --schedule; add it, or drop slot in no-slot",
    ),
    (
        "plan graph.json --trace day.csv --schedule --offers offers.toml --settings no-slot.toml",
        "the slot is 0 s; it must be above 0",
    ),
    (
        "plan graph.json --trace day.csv --schedule --offers offers.toml --settings early.toml",
        "lag in early.toml: time '-1 s' must be between 0 and",
    ),
    (
        "flink move --placement placement.json --tries 2",
        "--tries is for a job that is measured; drop it or --placement",
    ),
    (
        "place tasks.json --settings never-ends.toml",
        "from in never-ends.toml has no effect without 'passes' in a file for --settings; add it",
    ),
    ("place graph.json --rate 10k --rate 20k", "--rate is given twice; drop one"),
    ("place graph.json --scale src.rate=2 --scale src.rate=3", "--scale is given twice for 'src"),
    ("place graph.json --set src.rate=2 --set src.rate=3", "--set is given twice for 'src.rate'"),
    ("plan graph.json --rate 5", "a plan needs machines; give --offers or --cluster"),
    ("plan graph.json --rate 1..3 --offers offers.toml -o out", "name must end in .png"),
    ("plan graph.json --rate 5 --offers offers.toml -o out.svg", "name a folder, or a report"),
    ("plan graph.json --rate 5 --offers offers.toml --budget '0 s'", "the budget is 0.0 s"),
    (
        "plan graph.json --trace day.csv --schedule --policy ds3 --offers offers.toml",
        "there is no policy 'ds3'; did you mean 'ds2'?",
    ),
    ("flink advise --rate fast --offers offers.toml", "rate 'fast'"),
    ("flink advise --rate 2x --offers offers.toml --cluster two.toml", "exclude each other"),
]


@pytest.mark.usefixtures("graph", "placement", "tasks")
@pytest.mark.parametrize(("line", "answer"), [*COMMANDS, *FILES, *VALUES, *COMBINATIONS])
def test_a_mistake_is_answered_with_a_remedy(refusal: Callable, line: str, answer: str) -> None:
    for name, text in TABLES.items():
        Path(name).write_text(text)
    document = json.loads(Path("graph.json").read_text())
    lines = [json.dumps({**document, "attributes": {"split": s}}) for s in ("train", "test")]
    Path("set.jsonl").write_text("\n".join(lines) + "\n")
    assert answer in refusal(*shlex.split(line))


@pytest.mark.parametrize("objective", ["throughput", "makespan", "devices", "latency"])
def test_what_place_prints_for_machines_is_a_placement(
    run: Callable, graph: str, objective: str
) -> None:
    """For simulate, which answers as for the file that -o writes."""
    asked = ("place", graph, "--objective", objective, "--evaluations", "50", "-o", "p.json")
    Path("printed.json").write_text(run(*asked, "--json").out)
    answers = [
        run("simulate", graph, name, "--objective", objective).out
        for name in ("p.json", "printed.json")
    ]
    assert answers[0] == answers[1] != ""


def test_a_wrong_model_is_told_before_missing_packages(
    refusal: Callable, graph: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Installing torch would not help."""
    monkeypatch.setitem(sys.modules, "streamplace.learn.checkpoint", None)
    told = refusal("train", "pilott", "--data", graph, "--out", "x")
    assert "did you mean 'pilot'?" in told

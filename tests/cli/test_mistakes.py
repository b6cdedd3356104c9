"""Mistakes that people make: each is answered in one line that says what to do instead."""

import json
import shlex
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
    "twice.toml": "trust-profile = true\ntrust_profile = false\n",
    "policy.toml": "policy = 5\n",
    "large.toml": f"limit = {10**20}\n",
    "deep.toml": f"{'.'.join(['a'] * 50_000)} = 1\n",
    "rules.toml": 'pin = {src = "d3"}\n',
}


TRACE = "plan graph.json --trace day.csv --schedule --offers offers.toml"
PLAN = "plan graph.json --rate 5 --offers offers.toml --evaluations 9"
MISTAKES = [
    ("frobnicate", "'frobnicate'"),
    ("place", "'GRAPH'"),
    ("place --frob", "'--frob'"),
    ("place --passes", "--passes --settings"),
    ("train pilott --data graph.json --out x", "'pilott' 'pilot'"),
    ("place none.json", "none.json:"),
    ("place 'no\nsuch\nfile.json'", r"no\nsuch\nfile.json:"),
    ("place http://host/g.json", "http://host/g.json"),
    ("place two.json", "two.json: .jsonl"),
    ("place graph.json --cluster graph.json", "graph.json: TOML"),
    ("place edges.json", "edges.json: streams[0].source"),
    ("import dream graph.json --chains -o x.json", "dream --chains onnx"),
    ("export placement.json --to csv -o .", "directory"),
    ("export p.txt --to csv", "p.txt:"),
    ("simulate graph.json other.json", "other.json: 'shop' 'fork-join' 'src'"),
    ("simulate graph.json placement.json --constraints rules.toml", "'src' 'd0'"),
    ("place . --devices 0", "--devices '0'"),
    ("place graph.json --budget -1", "--budget '-1'"),
    ("place graph.json --rate -5", "'-5'"),
    ("place graph.json --rate 5 --set src.rate=2", "--set src.rate=2 --rate"),
    ("plan graph.json --rate 5.. --offers o.toml", "'5..'"),
    ("plan graph.json --rate 5 --headroom x", "'x'"),
    ("place tasks.json --objective latency --placer exact", "exact throughput"),
    ("place tasks.json --require 'throughput>1'", "'throughput>1'"),
    ("place tasks.json --require 'throughput>=2'", "throughput>=2 100.0"),
    ("place tasks.json --settings never.toml", "passes never.toml"),
    ("place tasks.json --settings typo.toml", "'pases' 'passes'"),
    ("place tasks.json --settings never-ends.toml", "from never-ends.toml 'passes'"),
    ("place tasks.json --settings twice.toml", "twice.toml 'trust_profile'"),
    ("place tasks.json --settings large.toml", "limit large.toml"),
    ("place tasks.json --settings deep.toml", "deep.toml"),
    (f"{TRACE} --settings policy.toml", "policy policy.toml 5"),
    ("place graph.json --set sink.ipt=2x -o x.jsonl", "--set"),
    ("simulate graph.json placement.json --require 'latency(src->nowhere)<=1s'", "'nowhere'"),
    ("simulate graph.json placement.json --require 'latency(src->sink)<=1ns'", "src sink allowed"),
    ("place graph.json --require 'latency(sink->src)<=1s'", "'sink' 'src'"),
    ("place graph.json --against throughput", "throughput twice"),
    ("place graph.json --against latency -o x.jsonl", "--against"),
    ("place graph.json --against speed", "'speed'"),
    ("place graph.json -o x.png", "x.png .svg"),
    (f"{PLAN} --settings no-slot.toml", "slot no-slot.toml --schedule"),
    (f"{TRACE} --settings no-slot.toml", "slot"),
    (f"{TRACE} --settings early.toml", "lag early.toml '-1"),
    ("place graph.json --set src.ipt=2x --set src.ipt=3x", "--set 'src"),
    ("place graph.json --set src.rate=2 --set src.rate=3", "--set 'src.rate'"),
    (f"{PLAN} --budget '0 s'", "budget"),
    (f"{TRACE} --policy ds3", "'ds3' 'ds2'"),
    ("place graph.json --cluster rules.toml", "rules.toml: cluster; --constraints"),
    ("place graph.json --constraints two.toml", "two.toml: constraints; --cluster"),
    ("plan graph.json --rate 5 --offers two.toml", "two.toml: offers; --cluster"),
    ("compare set.jsonl --placers metis,heft -o out", "'heft' --objective makespan"),
    ("compare set.jsonl --placers random,metis:k=-1", "k -1"),
    ("compare set.jsonl --placers metis,dream:weights=x -o out", "x:"),
    ("place set.jsonl --placer dream:weights=x -o out.jsonl", "x:"),
    ("place set.jsonl --require throughput>=0 --placer heft -o out.jsonl", "'heft' throughput"),
]
"""Command lines, and what their refusals must name."""
RISING = PLAN.replace("5", "1..3")
REMEDIES = [
    line.split(" | ")
    for line in f"""\
plce graph.json | 'plce' 'place' | place graph.json
schema grpah | 'grpah' 'graph' | schema graph
draw graph.json placement.json | -o FILE.svg | draw graph.json placement.json -o x.svg
simulate placement.json graph.json | placement.json: | simulate graph.json placement.json
simulate graph.json graph.json | graph.json: | simulate graph.json placement.json
export placement.json --to ray -o graph.json | graph.json: folder \
| export placement.json --to ray -o folder
place graph.json -o out.txt | .json | place graph.json -o out.json
describe graph.json --split test | graph.json 'test' --split | describe graph.json
describe set.jsonl --split tset | 'tset' 'test' | describe set.jsonl --split test
place graph.json --placer metis:k | NAME:OPTION=VALUE | place graph.json --placer metis:k=5
place set.jsonl --placer heft -o p.jsonl | 'heft' --objective makespan \
| place set.jsonl --placer heft -o p.jsonl --objective makespan
place graph.json --cluster offers.toml | offers.toml: is offers, not a cluster; --offers \
| plan graph.json --offers offers.toml --evaluations 9
place set.jsonl | several problems; file one, all: -o FILE.jsonl | place set.jsonl -o p.jsonl
place graph.json --set sink.ipt=ax | sink.ipt=2x | place graph.json --set sink.ipt=2x
place graph.json --cluster two.toml --devices 3 | --cluster --devices \
| place graph.json --cluster two.toml
draw graph.json --devices 3 -o x.svg | placement | draw graph.json placement.json -o x.svg
simulate graph.json placement.json --duration 1 | --duration --engine \
| simulate graph.json placement.json --engine --duration 30
place graph.json --rate 10k --rate 20k | --rate | place graph.json --rate 20k
plan graph.json --rate 5 | --offers --cluster | {PLAN}
{RISING} -o out | .png | {RISING} -o out.png
{PLAN} -o out.svg | out.svg is folder -o out/ | {PLAN} -o out/
{PLAN} -o out.json | out.json folder | {PLAN} -o out/
compare graph.json --placers metis -o out.jsonl.gz | folder -o out/ \
| compare graph.json --placers metis -o out/
export placement.json --to ray -o ray.py | folder -o ray/ | export placement.json --to ray -o ray/
export placement.json --to csv -o x.xlsx | x.xlsx .csv | export placement.json --to csv -o x.csv
""".splitlines()
]
"""Command lines, what their refusals must name, and the lines that do as the refusals say."""


@pytest.fixture
def _files(run, graph, placement, tasks):
    for name, text in TABLES.items():
        Path(name).write_text(text)
    document = json.loads(Path("graph.json").read_text())
    lines = [json.dumps({**document, "attributes": {"split": s}}) for s in ("train", "test")]
    Path("set.jsonl").write_text("\n".join(lines) + "\n")


@pytest.mark.usefixtures("_files")
@pytest.mark.parametrize(
    ("line", "words"), [*MISTAKES, *((line, words) for line, words, _ in REMEDIES)]
)
def test_a_mistake_is_named(refusal, line, words):
    message = refusal(*shlex.split(line))
    assert [word for word in words.split() if word not in message] == []


@pytest.mark.usefixtures("_files")
@pytest.mark.parametrize("line", sorted({line for _, _, line in REMEDIES}))
def test_what_a_refusal_proposes_works(run, line):
    quick = ["--evaluations", "9"] if line.startswith("place") else []
    answer = run(*line.split(), *quick)
    assert answer.status == 0, answer.err

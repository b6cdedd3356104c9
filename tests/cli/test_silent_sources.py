"""Sources of rate 0 count for nothing, whatever reads their graph and whatever is asked of it."""

import json
from pathlib import Path

import pytest

OPERATORS = [
    {"name": "cam", "ipt": 1e9, "payload": 1e6, "rate": 0},
    {"name": "video", "ipt": 1e9, "payload": 1e6},
    {"name": "meter", "ipt": 1e5, "payload": 100, "rate": 1e4},
    {"name": "store", "ipt": 5e4},
]
STREAMS = [("cam", "video"), ("video", "store"), ("meter", "store")]
XML = """\
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="ipt" for="node" attr.name="ipt" attr.type="double"/>
<key id="rate" for="node" attr.name="rate" attr.type="double"/>
<graph edgedefault="directed">{}</graph></graphml>
"""


def _graph(**rates):
    operators = [o | {"rate": rates[o["name"]]} if o["name"] in rates else o for o in OPERATORS]
    return {"operators": operators, "streams": [{"from": u, "to": v} for u, v in STREAMS]}


def written():
    """The graph in three formats, by file name."""
    nodes = [{"id": o["name"], **{k: v for k, v in o.items() if k != "name"}} for o in OPERATORS]
    links = [{"source": u, "target": v} for u, v in STREAMS]
    elements = [
        f'<node id="{o["name"]}"><data key="ipt">{o["ipt"]}</data>'
        f'<data key="rate">{o.get("rate", 0)}</data></node>'
        for o in OPERATORS
    ]
    elements += [f'<edge source="{u}" target="{v}"/>' for u, v in STREAMS]
    return {
        "g.json": json.dumps(_graph()),
        "links.json": json.dumps({"nodes": nodes, "links": links}),
        "g.graphml": XML.format("".join(elements)),
    }


@pytest.fixture
def files(tmp_path):
    """The graph in three formats, a placement of it, and offers."""
    texts = {
        **written(),
        "p.json": json.dumps({"assignment": {o["name"]: "d0" for o in OPERATORS}}),
        "offers.toml": "offers = [{name = 'small', price = 0.1, cores = 4}]\n",
        "two.toml": "devices = [{name = 'd0'}, {name = 'd1'}]\n",
        "trace.csv": "time,rate\n0,10000\n3600,20000\n",
    }
    for name, text in texts.items():
        Path(tmp_path, name).write_text(text)


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("name", written())
def test_every_reader_takes_one(run, name):
    answer = run("simulate", name, "p.json", "--devices", "2", "--json")
    assert answer.status == 0, answer.err
    document = json.loads(answer.out)
    assert document["relative_throughput"] == 1
    assert document["sources"] == {"meter": 1}
    assert "no tuples from cam, at rate 0" in document["assumptions"]


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    "line",
    [
        *(f"place g.json --devices 2 --placer {name}" for name in ("metis", "anneal", "exact")),
        "place g.json --devices 2",
        "place g.json --devices 2 --objective latency",
        "place g.json --devices 2 --objective devices --require throughput>=1",
        "place g.json --devices 2 --subtasks -o p.html",
        "simulate g.json p.json --devices 2 --rate 50000 -o s.html",
        "simulate g.json p.json --devices 2 --engine",
        "compare g.json --devices 2 --placers metis,fuser,exact",
        "plan g.json --rate 20000 --offers offers.toml --evaluations 200 -o plan",
        "plan g.json --rate max --cluster two.toml --evaluations 200",
        "plan g.json --trace trace.csv --offers offers.toml --evaluations 200",
        "describe g.json",
        "draw g.json p.json --devices 2 -o d.svg",
        "export p.json --graph g.json --to kubernetes",
    ],
)
def test_every_command_takes_one(run, line):
    answer = run(*line.split())
    assert answer.status == 0, answer.err


@pytest.mark.usefixtures("files")
def test_one_may_be_set_to_0(run):
    answer = run("simulate", "g.json", "p.json", "--set", "cam.rate=2", "--json")
    assert json.loads(answer.out)["sources"].keys() == {"cam", "meter"}
    Path("two.json").write_text(json.dumps(_graph(cam=2.0, meter=1e4)))
    answer = run("simulate", "two.json", "p.json", "--set", "cam.rate=0", "--json")
    assert json.loads(answer.out)["sources"] == {"meter": 1}


@pytest.mark.parametrize("rates", [{"cam": 0.0, "meter": 0.0}, {"cam": -1.0, "meter": 1e4}])
def test_without_a_rate_above_0_or_below_0_a_graph_is_refused(refusal, rates):
    Path("bad.json").write_text(json.dumps(_graph(**rates)))
    error = refusal("place", "bad.json")
    assert "a rate above 0" in error or "rate is -1.0; it should be greater than" in error

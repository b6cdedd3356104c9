"""An answer fits a terminal of 24 lines of 80 columns, for twenty operators on five devices."""

import json
from math import ceil
from pathlib import Path

import pytest

LONG = "{}-of-the-shops-in-the-whole-region-of-eu-west"
PARALLEL = {1: 4, 2: 2, 6: 4, 7: 3, 9: 3, 10: 6, 12: 2}
CLUSTER = 'bandwidth = "1 Gbps"\n[[devices]]\nname = "tm"\ncount = 5\nmips = 2500\n'
CARDS = 'memory = "8 GB"\negress = "2 Gbps"\ningress = "2 Gbps"\n'
BUDGET = "--evaluations 300"
COMMANDS = (
    "generate branched --branches 3 --depth 6 --devices 3 --copies 1 -o branched.json",
    "describe app.json",
    f"place app.json {BUDGET} -o placed.json",
    f"place app.json {BUDGET} --cluster five.toml --rate 90k",
    f"place app.json {BUDGET} --subtasks -o subtasks.json",
    f"place app.json {BUDGET} --objective makespan",
    f"place app.json {BUDGET} --objective devices --require throughput>=0.2",
    f"place app.json {BUDGET} --set {{3}}.ipt=9x --set {{0}}.rate=60k",
    f"place tasks.json {BUDGET} -o pass.json",
    f"place tasks.json {BUDGET} --settings moves.toml",
    "simulate app.json spread.json --rate 90k",
    "simulate app.json spread.json --cluster five.toml --rate 90k",
    "simulate app.json subtasks.json --rate 90k",
    "simulate app.json spread.json --engine --duration 30",
    f"compare app.json --rate 9k --rate 20k {BUDGET}",
    "simulate tasks.json spread.json",
    "simulate tasks.json spread.json --from pass.json",
    "export placed.json --graph app.json --to ray -o ray",
    "draw app.json placed.json spread.json -o drawing.svg",
    f"plan app.json --rate 9k --cluster five.toml {BUDGET}",
    "placers",
    "objectives",
    "library list",
    "library show random-00",
    "library check random-00",
    "demo",
)


def write_inputs(name):
    """Write an application, the same as a task graph, a cluster and a placement; return names."""
    names = [name.format(f"op{v:02}")[:40] for v in range(20)]
    about = "What it does, as a profile of Flink says in a sentence -> Map -> Filter"
    operators = [{"name": x, "ipt": 9000 * (2 + 37 * v % 11), "payload": 80 + 60 * (53 * v % 7),
                  "about": about, "parallelism": PARALLEL.get(v, 1)}
                 for v, x in enumerate(names)]  # fmt: skip
    ends = [(0, 2), (1, 2), *((v, v + 1) for v in range(2, 19)), (4, 9), (7, 15), (12, 19)]
    streams = [{"from": names[u], "to": names[v], "selectivity": 0.9} for u, v in ends]
    sources = [operator | {"rate": 20_000} for operator in operators[:2]]
    app = {"name": name.format("shop")[:40], "operators": [*sources, *operators[2:]]}
    tasks = [{"name": x, "ipt": 1e9 * (1 + 37 * v % 11), "payload": "1 MB"}
             for v, x in enumerate(names)]  # fmt: skip
    lines = [{"from": s["from"], "to": s["to"]} for s in streams]
    spread = {x: f"d{v % 5}" for v, x in enumerate(names)}
    Path("app.json").write_text(json.dumps(app | {"streams": streams}))
    whole = {"name": "tasks", "fires": "all", "operators": tasks, "streams": lines}
    Path("tasks.json").write_text(json.dumps(whole))
    Path("spread.json").write_text(json.dumps({"assignment": spread}))
    Path("moves.toml").write_text('from = "spread.json"\npasses = 100\n')
    Path("five.toml").write_text((CLUSTER + CARDS).replace("tm", "d"))
    return names


@pytest.mark.parametrize("name", ["{}", LONG], ids=["short", "forty"])
def test_every_answer_fits_a_terminal(run, name):
    """Whatever the names; lines on stderr are counted as the terminal breaks them."""
    names = write_inputs(name)
    for command in COMMANDS:
        answer = run(*command.format(*names).split())
        assert answer.status == 0, f"{command}: {answer.err}"
        lines = answer.out.splitlines()
        n_stderr = sum(ceil(len(line) / 80) for line in answer.err.splitlines())
        assert len(lines) + n_stderr <= 24, f"{command}:\n{answer.out}{answer.err}"
        assert max(map(len, lines), default=0) <= 80 or "check" in command, command

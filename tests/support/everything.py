"""Command lines that use everything but learning, and the files that they name."""

from problems import PROBLEMS, random_tasks

from streamplace.families.registry import FAMILIES
from streamplace.io.graphs import write_graph
from streamplace.io.problems import write_problem
from streamplace.model import Cluster, Problem

OFFERS = """
[[offers]]
name = "small"
price = 0.1
cores = 4
egress = "1 Gbps"
[[offers]]
name = "large"
price = 0.36
cores = 16
egress = "5 Gbps"
"""
OF_STREAMS = [
    "place graph.json -o placement.json --budget 0.1",
    "place graph.json --objective latency --budget 0.05",
    "place graph.json --objective devices --require throughput>=0.5 --budget 0.05",
    "place many.json --rate 1e9 --budget 0.05",
    "place ruled.json --budget 0.05",
    "simulate graph.json placement.json",
    "simulate graph.json placement.json --objective latency",
    "place graph.json --objective survives --budget 0.05",
    "simulate graph.json placement.json --without d0",
    "simulate graph.json placement.json --rate 100 --engine --duration 2",
    "simulate graph.json placement.json --rate 100 --engine --duration 2 --random all",
    "plan graph.json --rate 30000 --offers offers.toml --evaluations 500 --settings one.toml",
]
OF_TASKS = [
    "place tasks.json -o schedule.json --budget 0.1",
    "place tasks.json --objective makespan:queue=order --budget 0.05",
    *(
        f"simulate tasks.json schedule.json --objective makespan:network={network}"
        for network in ("free", "sender", "link", "port", "shared")
    ),
    *(
        f"simulate tasks.json schedule.json --objective makespan:preset={name}"
        for name in ("placeto", "doppler")
    ),
]
OTHERS = [
    "compare graph.json --placers metis,pilot --budget 0.05",
    "generate branched --branches 2 --depth 2 --devices 2 --copies 1 -o set.jsonl",
    "export placement.json --graph graph.json --to csv",
    "draw graph.json placement.json -o drawing.svg",
    "describe graph.json",
    "placers",
    "train --help",
]


def write_examples(folder):
    """Write graphs, problems, offers and settings."""
    family = FAMILIES["branched"]
    parameters = family.parameters(branches=2, depth=2, devices=2, copies=1)
    write_graph(next(iter(family.generate(parameters, seed=0))), folder / "graph.json")
    write_problem(Problem(random_tasks(12, 0), Cluster.uniform(3)), folder / "tasks.json")
    write_problem(PROBLEMS["many sources"], folder / "many.json")
    write_problem(PROBLEMS["constrained"], folder / "ruled.json")
    (folder / "offers.toml").write_text(OFFERS)
    (folder / "one.toml").write_text("jobs = 1\n")

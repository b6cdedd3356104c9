"""Files that the demo writes for the commands that one tries next."""

from pathlib import Path

OFFERS = """\
# Machines that can be rented, for: streamplace plan graph.json --offers offers.toml --rate 50000
overhead = "500 ns"  # CPU time for each tuple that leaves or enters a machine

[[offers]]
name = "small"
price = 0.10         # per hour
cores = 4
mips = "2500 MIPS"   # of one core
egress = "1 Gbps"    # of the network card
ingress = "1 Gbps"

[[offers]]
name = "large"
price = 0.36
cores = 16
mips = "2500 MIPS"
egress = "5 Gbps"
ingress = "5 Gbps"
"""
TASKS = {"load": 1e9, "left": 6e9, "right": 4e9, "add": 1e9}
"""Instructions of each task of a task graph."""
FILES = ("tasks.json", "graphs.jsonl.gz", "offers.toml")


def write_files(folder: Path) -> None:
    """Write a task graph, a small data set of graphs, and offers of machines."""
    from streamplace.families.registry import FAMILIES
    from streamplace.io.files import write_text
    from streamplace.io.graphs import write_graph, write_graphs
    from streamplace.model.graph import StreamGraph
    from streamplace.model.operators import Operator
    from streamplace.model.streams import Stream

    operators = [Operator(name, ipt=ipt, payload=1e6) for name, ipt in TASKS.items()]
    ends = [("load", "left"), ("load", "right"), ("left", "add"), ("right", "add")]
    tasks = StreamGraph.of("tasks", operators, [Stream(*pair) for pair in ends], fires="all")
    family = FAMILIES["branched"]
    small = family.parameters(branches=2, depth=3, devices=2, copies=20)
    write_graph(tasks, folder / "tasks.json")
    graphs = (graph for graph in family.generate(small, seed=1) if isinstance(graph, StreamGraph))
    write_graphs(graphs, folder / "graphs.jsonl.gz")
    write_text(folder / "offers.toml", OFFERS)

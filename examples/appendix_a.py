"""Which placement is better? The ranks of the DREAM paper's appendix A, by both simulators.

Five devices of 2500 MIPS, links of 1000 Mbps, 10,000 tuples/s. HIGH work fills a device, LOW a
fiftieth; a BIG payload asks for 2.4 links, a SMALL one for less than a hundredth.
"""

import itertools

from streamsim import throughput_of

from streamplace import Cluster, Operator, Problem, Stream, StreamGraph
from streamplace.evaluate.queues import run_queues

HIGH, LOW = 250_000, 5_000
BIG, SMALL = 30_000, 100


def pipeline(ipt: float, payload: float) -> StreamGraph:
    """A source, four work operators and a sink in a row (the paper's Figure 9)."""
    work = [Operator(f"op{i}", ipt, payload) for i in range(1, 5)]
    operators = [Operator("source", 1000, SMALL, rate=1e4), *work, Operator("sink", 1000)]
    pairs = itertools.pairwise(operators)
    return StreamGraph.of("pipeline", operators, [Stream(u.name, v.name) for u, v in pairs])


def branches(payload: float) -> StreamGraph:
    """Two branches op1 → op3 and op2 → op4; two work operators fill a device (Figure 10)."""
    operators = [Operator("source", 1000, SMALL, rate=1e4), Operator("sink", 1000)]
    operators += [Operator(f"op{i}", HIGH, payload if i < 3 else 0.0) for i in range(1, 5)]
    streams = [Stream("source", "op1", 0.5), Stream("source", "op2", 0.5)]
    streams += [Stream(*pair) for pair in (("op1", "op3"), ("op2", "op4"))]
    return StreamGraph.of(
        "branches", operators, [*streams, Stream("op3", "sink"), Stream("op4", "sink")]
    )


def judge(label: str, graph: StreamGraph, placements: dict[str, list[int]]) -> None:
    """Print the relative throughput of every placement, steady state and engine."""
    problem = Problem(graph, Cluster.uniform(5))
    cells = []
    for name, devices in placements.items():
        steady = throughput_of(problem.instance, devices)
        engine = run_queues(problem, problem.placement(devices)).relative_throughput
        cells.append(f"{name} {steady:.2f} {engine:.2f}")
    print(f"{label:12} " + "   ".join(cells))


print("Table 2: P1 all work on one device, P2 spread (steady state, engine)")
TABLE_2 = {"P1": [0, 1, 1, 1, 1, 1], "P2": [0, 1, 2, 3, 4, 4]}
for cpu, ipt in (("HIGH", HIGH), ("LOW", LOW)):
    for size, payload in (("BIG", BIG), ("SMALL", SMALL)):
        judge(f"{cpu} {size}", pipeline(ipt, payload), TABLE_2)
print("Table 3: P1 branches together, P2 cut over one link, P3 cut over two")
TABLE_3 = {"P1": [0, 3, 1, 2, 1, 2], "P2": [0, 3, 1, 1, 2, 2], "P3": [0, 3, 1, 2, 2, 1]}
for size, payload in (("BIG", BIG), ("SMALL", SMALL)):
    judge(size, branches(payload), TABLE_3)

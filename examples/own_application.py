"""Your own application: build a graph, place it, and read why it is as fast as it is."""

from streamplace import Cluster, Operator, Stream, StreamGraph, place, simulate

graph = StreamGraph.of(
    "word-count",
    [
        Operator("lines", rate=5_000, ipt=20_000, payload=400),
        Operator("split", ipt=120_000, payload=16),
        Operator("count", ipt=60_000, payload=24, parallelism=4),
        Operator("top", ipt=30_000),
    ],
    [
        Stream("lines", "split"),
        Stream("split", "count", selectivity=8),  # eight words a line
        Stream("count", "top", selectivity=0.1),
    ],
)
cluster = Cluster.uniform(3, mips="2500 MIPS", bandwidth="100 Mbps")

result = place(graph, cluster)
answer = simulate(graph, result.placement, cluster)

for device, operators in result.placement.pes().items():
    print(f"{device}: {', '.join(operators)}")
print(answer.verdict)
if answer.move is not None:
    print(f"better still: {' and '.join(answer.move.operators)} to {answer.move.device}")

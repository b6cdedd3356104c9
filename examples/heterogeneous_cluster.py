"""A cluster of unlike devices: sensors' gateways, a server with a GPU, slow links between them."""

from streamplace import Cluster, Constraints, Device, Operator, Stream, StreamGraph, place, simulate

cluster = Cluster.of(
    [
        Device("gateway0", mips="800 MIPS", egress="100 Mbps"),
        Device("gateway1", mips="800 MIPS", egress="100 Mbps"),
        Device("server", mips="3 GIPS", cores=16, tags=frozenset({"gpu"})),
    ],
    bandwidth="1 Gbps",
    latency="5 ms",
    overhead="1 us",
)
graph = StreamGraph.of(
    "cameras",
    [
        Operator("camera0", rate=25, ipt=2e6, payload=600_000),
        Operator("camera1", rate=25, ipt=2e6, payload=600_000),
        Operator("shrink0", ipt=8e6, payload=40_000),
        Operator("shrink1", ipt=8e6, payload=40_000),
        Operator("detect", ipt=5e7, payload=200, requires=frozenset({"gpu"})),
    ],
    [
        Stream("camera0", "shrink0"),
        Stream("camera1", "shrink1"),
        Stream("shrink0", "detect"),
        Stream("shrink1", "detect"),
    ],
)
rules = Constraints(pin={"camera0": "gateway0", "camera1": "gateway1"})

result = place(graph, cluster, constraints=rules)
print(result.placement.pes())
print(simulate(graph, result.placement, cluster).verdict)

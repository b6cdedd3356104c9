"""Tiny named problems of every kind that a placer meets."""

from dataclasses import replace

import numpy as np

from streamplace.io.graphs import Document
from streamplace.io.lines import Line
from streamplace.model import (
    Cluster,
    Constraints,
    Device,
    Operator,
    Operators,
    Problem,
    Stream,
    StreamGraph,
    Streams,
    Window,
)

MBPS = 1e6


def chain(n=4, ipt=1e5, payload=2e4, rate=1e4):
    """Source, stages and sink in a row."""
    operators = [
        Operator(f"v{i}", ipt=ipt, payload=payload, rate=rate if i == 0 else 0.0) for i in range(n)
    ]
    return StreamGraph.of(
        f"chain{n}", operators, [Stream(f"v{i}", f"v{i + 1}") for i in range(n - 1)]
    )


def diamond():
    """A source that feeds two operators that feed a sink."""
    operators = [
        Operator("src", ipt=1e4, payload=3e4, rate=1e4),
        Operator("left", ipt=2e5, payload=1e4),
        Operator("right", ipt=3e5, payload=2e4),
        Operator("sink", ipt=1e4),
    ]
    streams = [
        Stream("src", "left", 0.5),
        Stream("src", "right", 0.5),
        Stream("left", "sink"),
        Stream("right", "sink"),
    ]
    return StreamGraph.of("diamond", operators, streams)


def fork_join(branches=4):
    """A source that splits its tuples among branches of two stages."""
    operators = [Operator("src", ipt=1e4, payload=4e4, rate=1e4), Operator("sink", ipt=1e4)]
    streams = []
    for b in range(branches):
        operators += [
            Operator(f"b{b}s1", ipt=4e5, payload=5e4),
            Operator(f"b{b}s2", ipt=3e5, payload=1e4),
        ]
        streams += [
            Stream("src", f"b{b}s1", 1 / branches),
            Stream(f"b{b}s1", f"b{b}s2"),
            Stream(f"b{b}s2", "sink"),
        ]
    return StreamGraph.of("fork-join", operators, streams)


def lone():
    """A single operator, too heavy for one device."""
    return StreamGraph.of("lone", [Operator("only", ipt=5e5, rate=1e4)])


def disconnected():
    """Two pipelines that share nothing but the cluster."""
    operators = [
        Operator("a1", ipt=1e5, payload=1e4, rate=1e4),
        Operator("a2", ipt=1e5),
        Operator("b1", ipt=2e5, payload=1e4, rate=5e3),
        Operator("b2", ipt=2e5),
    ]
    return StreamGraph.of("disconnected", operators, [Stream("a1", "a2"), Stream("b1", "b2")])


def many_sources():
    """Five sources of different rates into one join and two sinks."""
    operators = [
        Operator(f"s{i}", ipt=2e4, payload=1e4 * (i + 1), rate=2e3 * (i + 1)) for i in range(5)
    ]
    operators += [Operator("join", ipt=1e5, payload=5e3), Operator("x", ipt=1e4), Operator("y")]
    streams = [Stream(f"s{i}", "join", 0.5) for i in range(5)]
    return StreamGraph.of(
        "sources", operators, [*streams, Stream("join", "x"), Stream("join", "y")]
    )


def parallel_streams():
    """Two streams between the same two operators."""
    operators = [Operator("src", ipt=1e5, payload=4e4, rate=1e4), Operator("sink", ipt=2e5)]
    streams = [Stream("src", "sink", 0.5), Stream("src", "sink", 0.25, payload=1e5)]
    return StreamGraph.of("parallel", operators, streams)


def heterogeneous():
    """A fast device, a many-core one, a slow one with tags, behind unequal links."""
    devices = [
        Device("fast", mips=4000),
        Device("wide", mips=1000, cores=4, egress=800 * MBPS),
        Device("edge", mips=500, tags={"gpu"}, ingress=500 * MBPS),
    ]
    bandwidth = [[1e9, 5e8, 1e8], [1e9, 1e9, 2e8], [5e7, 1e8, 1e9]]
    return Cluster.of(devices, bandwidth=bandwidth, latency="1 ms", overhead="1 us", gap="2 us")


def constrained():
    """Pins, groups and allowed devices all at once."""
    rules = Constraints(
        pin={"src": "d1"},
        colocate=({"b0s1", "b0s2"}, {"b1s1", "b1s2"}),
        exlocate=({"b0s1", "b1s1", "sink"},),
        allowed={"sink": {"d0", "d2"}},
    )
    return Problem(fork_join(3), Cluster.uniform(4), rules)


def tagged():
    """An operator that only one device of an uneven cluster can run."""
    operators = [
        Operator("src", ipt=1e4, payload=1e3, rate=1e3),
        Operator("infer", ipt=1e5, payload=1e2, requires={"gpu"}),
        Operator("sink", ipt=1e4),
    ]
    graph = StreamGraph.of("tagged", operators, [Stream("src", "infer"), Stream("infer", "sink")])
    return Problem(graph, heterogeneous())


def layered(n, n_sources=1, devices=6, **rules):
    """A graph of n operators, each fed by two of those just before it."""
    rng = np.random.default_rng(0)
    operators = Operators(
        [f"v{i}" for i in range(n)],
        ipt=rng.uniform(0.5, 1.5, n) * devices * 2.5e9 / n,
        payload=rng.uniform(0, 2e7, n),
        rate=[1.0] * n_sources + [0.0] * (n - n_sources),
    )
    target = np.repeat(np.arange(n_sources, n), 2)
    source = np.maximum(target - rng.integers(n_sources, 2 * n_sources + 8, len(target)), 0)
    streams = Streams(operators, source, target, selectivity=np.full(len(target), 0.5))
    graph = StreamGraph("layered", operators, streams)
    return Problem(graph, Cluster.uniform(devices), Constraints(**rules))


def joined():
    """Two sources whose tuples meet in a join, one way straight, one way through a stage."""
    operators = [
        Operator("left", ipt=2e5, payload=2e3, rate=4e3),
        Operator("right", ipt=5e4, payload=1e3, rate=4e3),
        Operator("stage", ipt=3e5, payload=2e3),
        Operator("join", ipt=1e5, payload=1e3, fires="all"),
        Operator("sink", ipt=5e4),
    ]
    ways = [("left", "stage"), ("stage", "join"), ("right", "join"), ("join", "sink")]
    return StreamGraph.of("joined", operators, [Stream(*ends) for ends in ways])


def four_tasks():
    """One task, two that wait for it, and one that waits for both."""
    work = {"load": (1e9, 4e6), "left": (6e9, 1e6), "right": (4e9, 1e6), "add": (1e9, 0)}
    operators = [Operator(name, ipt=ipt, payload=size) for name, (ipt, size) in work.items()]
    ways = [("load", "left"), ("load", "right"), ("left", "add"), ("right", "add")]
    return StreamGraph.of("tasks", operators, [Stream(*ends) for ends in ways], fires="all")


def random_tasks(n, seed, inputs=lambda rng, i: [rng.integers(i)], ipt=1e8, payload=None):
    """Tasks that each need some of those before, and send 1 to 8 bytes if nothing else is said."""
    rng = np.random.default_rng(seed)
    operators = [
        Operator(f"t{i}", rng.integers(1, 9) * ipt, float(payload or rng.integers(1, 9)))
        for i in range(n)
    ]
    streams = [Stream(f"t{j}", f"t{i}") for i in range(1, n) for j in inputs(rng, i)]
    return StreamGraph.of(f"tasks{seed}", operators, streams, fires="all")


def hungry():
    """Branches of differing memory that fill three unequal devices to the last byte but one GB."""
    graph = fork_join(2)
    sizes = {"src": 1e9, "sink": 0.0, "b0s1": 4e9, "b0s2": 3e9, "b1s1": 2e9, "b1s2": 2e9}
    operators = [replace(row, memory=sizes[row.name]) for row in graph.operators]
    devices = [
        Device("large", memory=6e9),
        Device("small", memory=3e9),
        Device("other", memory=4e9),
    ]
    return Problem(StreamGraph.of("hungry", operators, list(graph.streams)), Cluster.of(devices))


def ruled_and_hungry():
    """Little memory, and rules besides."""
    graph = fork_join(3)
    operators = [replace(row, memory=1e9) for row in graph.operators]
    rules = Constraints(
        pin={"src": "d1"}, colocate=[{"b0s1", "b0s2"}], exlocate=[{"b1s1", "b2s1", "sink"}]
    )
    cluster = Cluster.of([Device(f"d{i}", memory=2e9) for i in range(4)])
    return Problem(StreamGraph.of("ruled", operators, list(graph.streams)), cluster, rules)


def full_and_fair():
    """Many sources on devices whose memory is exactly full."""
    graph = many_sources()
    operators = [replace(row, memory=1.0) for row in graph.operators]
    each = -(-len(operators) // 3)
    rest = len(operators) - 2 * each
    devices = [Device(f"d{i}", memory=size) for i, size in enumerate((each, each, rest))]
    return Problem(StreamGraph.of("full", operators, list(graph.streams)), Cluster.of(devices))


def held():
    """Half of the operators use CPU at any rate, on devices of which some have several cores."""
    graph = fork_join(2)
    parts = [300.0, 0.0, 800.0, 0.0, 1200.0, 0.0]
    operators = [
        replace(row, constant=mips) for row, mips in zip(graph.operators, parts, strict=True)
    ]
    return Problem(StreamGraph.of("held", operators, list(graph.streams)), heterogeneous())


def held_and_fair():
    """Many sources beside operators that use CPU at any rate."""
    graph = many_sources()
    operators = [replace(row, constant=300.0 * (v % 3)) for v, row in enumerate(graph.operators)]
    return Problem(StreamGraph.of("fair", operators, list(graph.streams)), Cluster.uniform(3))


PROBLEMS = {
    "constant loads": held(),
    "constant loads, many sources": held_and_fair(),
    "little memory": hungry(),
    "little memory and rules": ruled_and_hungry(),
    "memory that is full, many sources": full_and_fair(),
    "joined": Problem(joined(), Cluster.uniform(3)),
    "chain": Problem(chain(), Cluster.uniform(3)),
    "long chain on one device": Problem(chain(9), Cluster.uniform(1)),
    "diamond": Problem(diamond(), Cluster.uniform(2)),
    "fork-join": Problem(fork_join(), Cluster.uniform(5)),
    "lone": Problem(lone(), Cluster.uniform(3)),
    "disconnected": Problem(disconnected(), Cluster.uniform(2)),
    "many sources": Problem(many_sources(), Cluster.uniform(3)),
    "parallel streams": Problem(parallel_streams(), Cluster.uniform(2)),
    "heterogeneous": Problem(fork_join(2), heterogeneous()),
    "heterogeneous, many sources": Problem(many_sources(), heterogeneous()),
    "cost matrix": Problem(
        chain(3), Cluster.uniform(2), seconds=[[1e-5, 4e-5], [9e-5, 2e-5], [3e-5, 3e-5]]
    ),
    "constrained": constrained(),
    "tagged": tagged(),
}


def whole():
    """A graph in which every field of operators, streams and windows has a value of its own."""
    window = Window(2, 1, base=3, factor=0.25, limit=9)
    operators = [
        Operator("a", 1e5, 10, rate=60, parallelism=2, kind="source", requires={"gpu"},
                 memory=5e6, about="reads", max_parallelism=8, slot_sharing_group="own",
                 constant=50, max_rate=2500, cores=1.5),
        Operator("b", window=window),
        Operator("c", fires="all"),
    ]  # fmt: skip
    streams = [
        Stream("a", "b", partitioning="rebalance", payload=7, ipt=100),
        Stream("a", "c", 0.5, input="left"),
        Stream("a", "c", 0.5, input="right"),
    ]
    return StreamGraph.of("whole", operators, streams, {"split": "train"})


def same(one, other):
    """Whether two problems were made of the same."""
    costs = [each.seconds for each in (one, other)]
    alike = all(c is None for c in costs) or np.array_equal(*costs)  # type: ignore[arg-type]
    parts = [(p.graph, p.cluster, p.constraints, p.moving) for p in (one, other)]
    return parts[0] == parts[1] and alike


def parse_graph(content, where):
    """Graph of the text of a native document; errors begin with ``where``."""
    return Document.of(Line(content, where, "graph")).graph()

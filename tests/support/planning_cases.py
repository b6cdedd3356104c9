"""Small planning problems, and all plans of the smallest by brute force."""

import itertools
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st
from streamsim import throughput

from streamplace.model import Operator, Problem, Stream, StreamGraph
from streamplace.model.cluster import Cluster
from streamplace.model.devices import Device
from streamplace.model.expansion import expand
from streamplace.model.operators import Window
from streamplace.placers.registry import Budget
from streamplace.planning.offers import Catalogue, Offer
from streamplace.planning.packing import packing_of, uses

MOST_MACHINES = 3


def chain(*operators, kind=""):
    """Operators one after the other, joined by streams of a kind."""
    ends = itertools.pairwise(operator.name for operator in operators)
    return StreamGraph.of("chain", operators, [Stream(a, b, partitioning=kind) for a, b in ends])


class SmallQuestion(NamedTuple):
    """A graph, offers, and the operators that keep the parallelism of the graph, or whether all."""

    graph: StreamGraph
    catalogue: Catalogue
    keeps: bool | frozenset[str]

    @property
    def kept(self):
        """Operators that keep the parallelism of the graph."""
        if isinstance(self.keeps, frozenset):
            return self.keeps
        return frozenset(self.graph.operators.name if self.keeps else ())


@st.composite
def small_questions(draw):
    """Draw up to three operators of unequal parts, and up to two types of machines."""
    n = draw(st.integers(1, 3))
    keeps = draw(st.sampled_from([False, True, frozenset({f"v{n - 1}"})]))
    n_sources = draw(st.integers(1, max(1, n - 1)))
    subtasks = [draw(st.integers(1, 3)) if keeps else 1 for _ in range(n)]
    operators = []
    for v in range(n):
        groups = draw(st.sampled_from([0, 0, 2, 3, 5]))
        operators.append(
            Operator(
                f"v{v}",
                ipt=draw(st.sampled_from([0, 10, 400, 700, 1000])),
                payload=draw(st.sampled_from([0, 5, 100])),
                rate=1000.0 if v < n_sources else 0.0,
                parallelism=subtasks[v],
                max_parallelism=groups if groups >= subtasks[v] else 0,
                memory=draw(st.sampled_from([0, 0, 60, 90])),
                constant=draw(st.sampled_from([0, 0, 0, 0.5, 1.0])),
                max_rate=draw(st.sampled_from([0, 0, 0, 0, 0, 400, 900])),
                cores=draw(st.sampled_from([1.0, 1.0, 1.5])),
                slot_sharing_group=draw(st.sampled_from(["", "default", "own"])),
            )
        )
    streams = []
    for v in range(n_sources, n):
        for u in draw(st.sets(st.integers(0, v - 1), min_size=1)):
            kinds = ["", "rebalance", "hash"]
            kinds += ["forward"] if not keeps or subtasks[u] == subtasks[v] else []
            part, ipt = draw(st.sampled_from([0.5, 1.0, 2.0])), draw(st.sampled_from([0, 0, 300]))
            kind = draw(st.sampled_from(kinds))
            streams.append(Stream(f"v{u}", f"v{v}", part, partitioning=kind, ipt=ipt))
    offers = [
        Offer(
            f"type{t}",
            draw(st.sampled_from([0.1, 0.2, 1 / 3, 0.5, 0.7, 1.1, 1.6, 2.3])),
            mips=draw(st.sampled_from([0.5, 0.75, 1.5, 3.0, 3.0])),
            cores=draw(st.sampled_from([1, 2])),
            memory=draw(st.sampled_from([np.inf, np.inf, 46.0, 61.0, 130.0])),
            egress=draw(st.sampled_from([np.inf, np.inf, 1.0, 4e5])),
            ingress=draw(st.sampled_from([np.inf, np.inf, 1.0, 4e5])),
            slots=draw(st.sampled_from([np.inf, np.inf, 1, 2, 4])),
            at_least=draw(st.sampled_from([0, 0, 0, 1])),
            at_most=draw(st.integers(1, MOST_MACHINES)),
            reserved=draw(st.sampled_from([0.0, 0.0, 0.25])),
        )
        for t in range(draw(st.integers(1, 2)))
    ]
    costs = draw(st.sampled_from([0.0, 1e-4])), draw(st.sampled_from([0.0, 3e-5]))
    catalogue = Catalogue.of(offers, *costs, slot_sharing=draw(st.booleans()))
    messages = {"message ipt": draw(st.sampled_from([0, 0, 300])), "buffer timeout": 0.1}
    graph = StreamGraph.of("asked", operators, streams, messages)
    return SmallQuestion(graph, catalogue, keeps)


def question(seed):
    """Draw arguments of `streamplace.plan`: any graph, machines and flags, and a small budget.

    Half of the questions are about offers of which several machines are needed, the others about
    six given machines of which a few are enough, were their links not slow.
    """
    random = np.random.default_rng(seed)
    keep, on_cluster = bool(random.random() < 0.3), bool(random.random() < 0.5)
    graph = _any_graph(random, keep, heavy=not on_cluster)
    graph = _beside_constants(graph, np.random.default_rng((seed, 1)), 1.0 if on_cluster else 5.0)
    graph = _with_messages(graph, np.random.default_rng((seed, 2)), 1.0 if on_cluster else 5.0)
    graph = _with_limits(graph, np.random.default_rng((seed, 3)))
    return {
        "graph": graph,
        "offers": None if on_cluster else _any_offers(random),
        "cluster": _any_cluster(random) if on_cluster else None,
        "headroom": float(random.choice([0.0, 0.0, 0.2])),
        "keep_parallelism": keep,
        "seed": int(random.integers(4)),
        "budget": Budget(None, int(random.choice([200, 2000, 20_000]))),
    }


def _any_offers(random):
    """Two types of machines, with limits of every kind or none."""

    def limit(*values):
        return float(random.choice([np.inf, np.inf, *values]))

    offers = [
        Offer(
            name,
            price,
            mips=5.0,
            cores=cores,
            memory=limit(30.0),
            egress=limit(2e5),
            ingress=limit(2e5),
            slots=limit(4.0),
            at_least=int(random.choice([0, 0, 1])),
            at_most=int(random.choice([10, 100])),
        )
        for name, price, cores in (("s", 0.1, 2), ("l-8", 0.35, 8))
    ]
    count, overhead = int(random.integers(1, 3)), float(random.choice([0.0, 1e-6]))
    return Catalogue.of(offers[:count], overhead, slot_sharing=bool(random.random() < 0.5))


def _any_cluster(random):
    """Six machines, many of whose links are too slow for what a plan would send."""
    devices = [
        Device(
            f"box-{i}",
            mips=float(random.choice([1.0, 2.0])),
            cores=int(random.choice([1, 2])),
            egress=float(random.choice([np.inf, np.inf, 3e5])),
            memory=float(random.choice([np.inf, np.inf, 30.0])),
        )
        for i in range(6)
    ]
    speeds = random.choice([1e3, 3e3, 1e4, 3e4, 1e6], (6, 6))
    return Cluster.of(devices, bandwidth=speeds, overhead=float(random.choice([0.0, 1e-6])))


def _any_graph(random, keep, heavy):
    """One or two sources, windows, key groups, memory, and every kind of stream."""
    n = int(random.integers(2, 6))
    sources = {0, 1} if n > 2 and random.random() < 0.3 else {0}
    subtasks = [int(random.choice([1, 2, 4])) if keep else 1 for _ in range(n)]
    most_ipt, most_payload = (20_000, 400) if heavy else (1500, 6)
    operators, streams = [], []
    for v in range(n):
        window = Window(2.0, 1.0, 20.0, 0.5) if v not in sources and random.random() < 0.1 else None
        operators.append(
            Operator(
                f"v{v}",
                ipt=float(random.integers(100, most_ipt)),
                payload=float(random.integers(most_payload)),
                rate=1000.0 if v in sources else 0.0,
                parallelism=subtasks[v],
                max_parallelism=int(random.choice([0, 16, 128])),
                memory=float(random.choice([0, 0, 10])),
                slot_sharing_group=str(random.choice(["", "own"])),
                window=window,
            )
        )
        for u in set() if v in sources else {int(random.integers(v)), v - 1}:
            kinds = ["", "rebalance", "hash"]
            if not keep or subtasks[u] == subtasks[v]:
                kinds += ["forward", "chained"]
            factor, kind = float(random.choice([0.5, 1.0, 2.0])), str(random.choice(kinds))
            streams.append(Stream(f"v{u}", f"v{v}", factor, partitioning=kind, ipt=100.0))
    return StreamGraph.of("asked", operators, streams)


def _beside_constants(graph, random, mips):
    """Some operators of every third graph use a part of a core at any rate."""
    if random.random() < 2 / 3:
        return graph
    parts = random.choice([0.0, 0.0, 0.05, 0.2, 0.7], graph.n_operators)
    operators = replace(graph.operators, constant=parts * mips)
    return replace(graph, operators=operators, streams=replace(graph.streams, operators=operators))


def _with_messages(graph, random, mips):
    """Messages cost up to a percent of a core in every third graph; some ``ipt`` contain some."""
    if random.random() < 2 / 3:
        return graph
    attributes = {"message ipt": float(random.choice([100, 1000, 10_000])) * mips}
    attributes["buffer timeout"] = float(random.choice([0.0, 0.1]))
    for name in graph.operators.name:
        if random.random() < 0.5:
            attributes[f"messages per tuple of {name}"] = float(random.choice([0.05, 2.0]))
    return replace(graph, attributes=attributes)


def _with_limits(graph, random):
    """Subtasks of some operators of every third graph read a part of the tuples at most."""
    if random.random() < 2 / 3:
        return graph
    parts = random.choice([0.0, 0.0, 0.3, 0.6, 2.0], graph.n_operators)
    return graph.with_operators(replace(graph.operators, max_rate=parts * graph.input_rate))


def all_contents(parallelism, machines):
    """Every way to put the subtasks onto machines, [D, N]."""
    ways = [
        [row for row in itertools.product(range(p + 1), repeat=machines) if sum(row) == p]
        for p in parallelism.tolist()
    ]
    for rows in itertools.product(*ways):
        yield np.array(rows, np.int32).T.copy()


def cheapest_by_brute_force(demand, catalogue, most, finest):
    """Cost of the cheapest of all plans of up to so many machines; infinite where none carries.

    Operators that may have any parallelism have up to ``finest``.
    """
    limits = [p or finest for p in demand.parallelism_limit.tolist()]
    numbers = [
        range(limit if keeps else 1, limit + 1)
        for limit, keeps in zip(limits, demand.keeps.tolist(), strict=True)
    ]
    ties = list(itertools.combinations(range(len(limits)), 2))
    ties = [(u, v) for u, v in ties if demand.tied[u] == demand.tied[v]]
    vectors = [p for p in itertools.product(*numbers) if all(p[u] == p[v] for u, v in ties)]
    fitting: dict[tuple[int, ...], list[list[tuple[int, ...]]]] = {}
    offers = catalogue.offers
    costs = [
        (sum(o.price * x for o, x in zip(offers, c, strict=True)), c)
        for c in machine_counts(catalogue, most)
    ]
    for cost, counts in sorted(costs):
        for p in vectors:
            if p not in fitting:
                fitting[p] = _fitting(demand, catalogue, p)
            left = {p}
            for fits in (fitting[p][t] for t, count in enumerate(counts) for _ in range(count)):
                pairs = itertools.product(left, fits)
                after = (tuple(a - b for a, b in zip(*pair, strict=True)) for pair in pairs)
                left = {rest for rest in after if min(rest) >= 0}
            if (0,) * len(p) in left:
                return cost
    return float("inf")


def _fitting(demand, catalogue, p):
    """Contents that fit on a machine of each type, at these parallelisms."""
    packing = packing_of(demand, catalogue, np.array(p, np.int32))
    rows = np.array(list(itertools.product(*(range(n + 1) for n in p))), np.int32)
    fitting = []
    for t in range(len(catalogue.offers)):
        use = uses(packing, np.full(len(rows), t, np.int32), rows)
        fitting.append([tuple(row) for row in rows[use.max(axis=1) <= 1 + 1e-9].tolist()])
    return fitting


def machine_counts(catalogue, most):
    """Numbers of machines of each type that may be bought, up to so many in all."""
    ranges = [range(o.at_least, o.at_most + 1) for o in catalogue.offers]
    return (c for c in itertools.product(*ranges) if 0 < sum(c) <= most)


def pipeline(rate=1000.0):
    """Source, keyed count, sink."""
    return StreamGraph.of(
        "pipeline",
        [
            Operator("source", ipt=1000, payload=100, rate=rate, max_parallelism=4),
            Operator("count", ipt=8000, payload=50, max_parallelism=128, memory=1e6),
            Operator("sink", ipt=500, max_parallelism=1),
        ],
        [Stream("source", "count"), Stream("count", "sink", 0.5)],
    )


def carried(result, rate=None):
    """Share of a rate, or its own, that the placement carries in the simulator, links included."""
    graph = result.graph if rate is None else result.graph.at_rate(rate)
    instance = Problem(expand(graph).graph, result.cluster).instance
    return float(throughput(instance, result.placement.index[None])[0])

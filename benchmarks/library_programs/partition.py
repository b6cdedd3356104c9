"""Partitioners as programs: METIS, KaHIP and Mt-KaHyPar.

    python partition.py metis|kahip|mtkahypar PROBLEM ANSWER [--seed 0]

Parts are as large as the devices are fast, and the traffic between parts is small. Each partitioner
comes from its own package (pymetis, kahip, mtkahypar).
"""

import argparse
from math import ceil

from native import Instance

IMBALANCE = 0.03
LARGEST = 10**6
"""Weights are whole numbers; the largest is this."""


def weights(instance):
    """Weights of operators and of pairs of operators, and the share of every device."""
    fastest = [min(row) for row in instance.seconds]
    work = [rate * s for rate, s in zip(instance.rate, fastest, strict=True)]
    traffic = {}
    for u, v, tuples, size in instance.streams:
        pair = min(u, v), max(u, v)
        traffic[pair] = traffic.get(pair, 0) + tuples * size
    power = [
        instance.cores[d] / max(sum(row[d] for row in instance.seconds), 1e-300)
        for d in range(len(instance.devices))
    ]
    pairs = dict(zip(traffic, whole(traffic.values()), strict=True))
    return whole(work), pairs, [share / sum(power) for share in power]


def whole(values):
    """Numbers as whole numbers of at least 1, in proportion."""
    values = list(values)
    scale = LARGEST / (max(values, default=0) or 1)
    return [max(1, round(value * scale)) for value in values]


def adjacency(n, pairs):
    """Neighbours and weights of an undirected graph, as compressed rows."""
    rows = [[] for _ in range(n)]
    for (u, v), weight in pairs.items():
        rows[u].append((v, weight))
        rows[v].append((u, weight))
    start = [0]
    for row in rows:
        start.append(start[-1] + len(row))
    flat = [pair for row in rows for pair in row]
    return start, [v for v, _ in flat], [weight for _, weight in flat]


def metis(work, pairs, shares, seed):
    """Parts by METIS, with a share for each part."""
    import pymetis

    start, neighbours, cost = adjacency(len(work), pairs)
    graph = pymetis.CSRAdjacency(start, neighbours)
    options = pymetis.Options(seed=seed)
    return pymetis.part_graph(
        len(shares), graph, vweights=work, eweights=cost, tpwgts=shares, options=options
    ).vertex_part


def kahip(work, pairs, shares, seed):
    """Parts by KaHIP, of equal size."""
    import kahip as package

    start, neighbours, cost = adjacency(len(work), pairs)
    mode, quiet = package.STRONG, True
    return package.kaffpa(work, start, cost, neighbours, len(shares), IMBALANCE, quiet, seed, mode)[
        1
    ]


def mtkahypar(work, pairs, shares, seed):
    """Parts by Mt-KaHyPar, with a share for each part."""
    import mtkahypar as package

    partitioner = package.initialize(1)
    package.set_seed(seed)
    context = partitioner.context_from_preset(package.PresetType.QUALITY)
    context.set_partitioning_parameters(len(shares), IMBALANCE, package.Objective.CUT)
    context.logging = False
    most = [ceil(share * sum(work) * (1 + IMBALANCE)) + max(work) for share in shares]
    context.set_individual_target_block_weights(most)
    edges, cost = [list(pair) for pair in pairs], list(pairs.values())
    graph = partitioner.create_graph(context, len(work), len(edges), edges, work, cost)
    return graph.partition(context).get_partition()


def main():
    """Partition an instance and write the placement."""
    parser = argparse.ArgumentParser()
    parser.add_argument("partitioner", choices=["metis", "kahip", "mtkahypar"])
    parser.add_argument("problem")
    parser.add_argument("answer")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    instance = Instance(options.problem)
    partitioner = {"metis": metis, "kahip": kahip, "mtkahypar": mtkahypar}[options.partitioner]
    instance.write(options.answer, [int(d) for d in partitioner(*weights(instance), options.seed)])


if __name__ == "__main__":
    main()

"""Large graphs of every shape on equal and uneven devices, CPU-bound, network-bound and mixed.

Every operator takes in between one and two times the source's rate, divided equally among its
inputs; what CPU and what traffic all operators have together is chosen.
"""

import math
from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamplace.families.random_dag import RandomDag, random_dag
from streamplace.model import Cluster, Device, Operators, Problem, StreamGraph, Streams

Rows = NDArray[np.int64]
DEVICES = 16
MIPS = 2500.0
SPEEDS = (1250.0, 2500.0, 5000.0)
SLOWEST_LINK, FASTEST_LINK = 0.25e9, 4e9
RATE = 1e4
EXPONENT = 2.3
"""Of the power law of degrees."""


class Character(NamedTuple):
    """Needs of a graph.

    Attributes
    ----------
    cluster
        CPU of the graph, in clusters.
    links
        Its traffic, in links of 1 Gbps.
    skew
        How uneven the operators are, as in the family random-dag.
    """

    cluster: float
    links: float
    skew: float


CHARACTERS = {
    "CPU-bound": Character(1.5, 60.0, 0.0),
    "network-bound": Character(0.375, 3000.0, 1.0),
    "mixed": Character(1.25, 600.0, 0.0),
}


def chain(n: int, rng: np.random.Generator) -> Rows:
    """One after another."""
    return np.stack([np.arange(n - 1), np.arange(1, n)])


def grid(n: int, rng: np.random.Generator) -> Rows:
    """Square, fed from above and from the left."""
    width = math.isqrt(n)
    at = np.arange(n)
    right, down = at[(at % width < width - 1) & (at < n - 1)], at[: n - width]
    return np.concatenate([np.stack([right, right + 1]), np.stack([down, down + width])], axis=1)


def hubs(n: int, rng: np.random.Generator) -> Rows:
    """Two inputs each by preferential attachment: an end of an earlier stream, chosen at random."""
    ends = np.zeros(4 * n, np.int64)
    draws = rng.random(2 * n)
    streams = [(0, 1)]
    ends[1], size = 1, 2
    for v in range(2, n):
        for source in {int(ends[int(draws[2 * v + i] * size)]) for i in range(2)}:
            streams.append((source, v))
            ends[size], ends[size + 1], size = source, v, size + 2
    return np.array(streams).T


def power_law(n: int, rng: np.random.Generator) -> Rows:
    """Degrees in and out by a power law, whatever the order; all have an input of an earlier."""
    weight = rng.permutation((1.0 + np.arange(n)) ** (-1 / (EXPONENT - 1)))
    total = np.cumsum(weight)
    target = np.arange(1, n)
    source = np.searchsorted(total, rng.random(n - 1) * total[:-1], side="right")
    ends = np.searchsorted(total, rng.random((2, n)) * total[-1], side="right")
    ends = np.sort(ends[:, ends[0] != ends[1]], axis=0)
    streams = np.concatenate([np.stack([source, target]), ends], axis=1)
    return np.asarray(np.unique(np.minimum(streams, n - 1), axis=1))


SHAPES: dict[str, Callable[[int, np.random.Generator], Rows]] = {
    "chain": chain,
    "grid": grid,
    "hubs": hubs,
    "power law": power_law,
}
LAYERED = "layered"
CLUSTERS = ("equal", "uneven")
ALL = tuple(product((*SHAPES, LAYERED), CLUSTERS, CHARACTERS))


def problem_of(shape: str, devices: str, character: str, operators: int) -> Problem:
    """Return the problem of a shape, a cluster and a character."""
    cluster = cluster_of(devices)
    need = CHARACTERS[character]
    mips = need.cluster * float(sum(device.mips for device in cluster.devices))
    if shape != LAYERED:
        return Problem(_graph(shape, need, mips, operators), cluster)
    parameters = RandomDag(
        operators=operators,
        streams=2 * operators,
        devices=mips / MIPS,
        network=need.links,
        skew=need.skew,
    )
    return Problem(next(iter(random_dag(parameters, 0))), cluster)


def cluster_of(devices: str) -> Cluster:
    """Equal devices and links of 1 Gbps, or three speeds and links of 0.25 to 4 Gbps."""
    if devices == "equal":
        return Cluster.uniform(DEVICES, mips=MIPS, bandwidth=1e9)
    rng = np.random.default_rng(0)
    links = np.exp(rng.uniform(np.log(SLOWEST_LINK), np.log(FASTEST_LINK), (DEVICES, DEVICES)))
    mips = [SPEEDS[d % len(SPEEDS)] for d in range(DEVICES)]
    return Cluster.of([Device(f"d{d}", mips=m) for d, m in enumerate(mips)], bandwidth=links)


def _graph(shape: str, need: Character, mips: float, n: int) -> StreamGraph:
    rng = np.random.default_rng(0)
    source, target = SHAPES[shape](n, rng)
    level = RATE * (1 + rng.random(n))
    tuples = level[target] / np.bincount(target, minlength=n)[target]
    ipt, payload = _sizes(n, need.skew, rng), _sizes(n, need.skew, rng)
    ipt *= mips * 1e6 / (level * ipt).sum()
    payload *= need.links * 1e9 / 8 / (tuples * payload[source]).sum()
    rate = np.where(np.bincount(target, minlength=n) == 0, level, 0.0)
    names = tuple(f"op{i}" for i in range(n))
    operators = Operators(names, ipt=ipt, payload=payload, rate=rate)
    streams = Streams(operators, source, target, selectivity=tuples / level[source])
    return StreamGraph(shape, operators, streams)


def _sizes(n: int, skew: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Relative sizes as in the family random-dag: uniform, or lognormal."""
    return 1 - rng.random(n) if skew == 0 else np.exp(skew * rng.standard_normal(n))

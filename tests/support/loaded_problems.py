"""Random problems in which every field that loads a resource has a value, or all but some."""

from collections.abc import Callable
from typing import Any

import numpy as np

from streamplace.model import Cluster, Device, Operator, Problem, Stream, StreamGraph
from streamplace.model.operators import Window

Draw = Callable[[np.random.Generator], Any]


def some(*values):
    """One of these values."""
    return lambda rng: values[rng.integers(len(values))]


TERMS: dict[type[Any], dict[str, Draw]] = {
    Operator: {
        "ipt": some(0.0, 1e4, 5e4),
        "payload": some(0.0, 1e3, 4e3),
        "rate": some(1e4, 2e4),
        "parallelism": some(1, 2, 3),
        "max_parallelism": some(0, 4, 5),
        "window": some(None, None, Window(2.0, 1.0, 20.0, 0.5)),
        "constant": some(0.0, 0.0, 300.0, 900.0),
        "max_rate": some(0.0, 0.0, 0.0, 5e3),
        "cores": some(1.0, 1.5, 2.0),
    },
    Stream: {
        "selectivity": some(0.5, 1.0, 2.0),
        "payload": some(None, 0.0, 2e3),
        "partitioning": some("", "rebalance", "hash"),
        "ipt": some(0.0, 1e5),
    },
    Device: {
        "mips": some(1000.0, 2500.0),
        "cores": some(1, 4, 8),
        "egress": some(np.inf, 4e7),
        "ingress": some(np.inf, 4e7),
        "reserved": some(0.0, 400.0),
    },
    Cluster: {
        "bandwidth": lambda rng: rng.choice([2e7, 1e8, 1e9], (3, 3)),
        "overhead": some(0.0, 5e-5),
        "overhead_per_byte": some(0.0, 2e-7),
        "gap": some(0.0, 4e-5),
    },
}
"""Fields that load resources, with values that are drawn for them."""
Terms = dict[type[Any], set[str]]


def drawn(seed, without=None):
    """Three sources and operators in a row, with a shortcut; fields left out have their defaults.

    What is left out changes no other draw.
    """
    rng, omitted = np.random.default_rng(seed), without or {}

    def values(noun):
        every = {name: draw(rng) for name, draw in TERMS[noun].items()}
        return {name: v for name, v in every.items() if name not in omitted.get(noun, ())}

    rows = [values(Operator) for _ in range(4)]
    rows[0] = {"rate": 1e4} | {k: v for k, v in rows[0].items() if k != "window"}
    for row in rows:
        row["max_parallelism"] = max(row.get("max_parallelism", 0), row.get("parallelism", 1))
    operators = [
        Operator(f"v{i}", **{k: v for k, v in row.items() if k != "rate" or i == 0})
        for i, row in enumerate(rows)
    ]
    ends = [(0, 1), (1, 2), (0, 2), (2, 3)]
    streams = [Stream(f"v{u}", f"v{v}", **values(Stream)) for u, v in ends]
    devices = [Device(f"d{i}", **values(Device)) for i in range(3)]
    costs = {"bandwidth": 1e15} | values(Cluster)
    return Problem(StreamGraph.of("drawn", operators, streams), Cluster.of(devices, **costs))

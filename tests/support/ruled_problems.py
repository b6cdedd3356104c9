"""Random problems under rules of every kind, for brute force."""

import numpy as np

from streamplace import Cluster, Constraints, Operator, Problem, Stream, StreamGraph
from streamplace.model import Device


def drawn(rng, n, d):
    """Problem with one source or several, on equal or unequal devices, under all kinds of rules."""
    is_equal, is_tight, tags = rng.random() < 0.4, rng.random() < 0.25, rng.random() < 0.3
    devices = [
        Device(
            f"d{i}",
            mips=2500 if is_equal else float(rng.choice([1000, 2500, 4000])),
            cores=1 if is_equal else int(rng.integers(1, 4)),
            memory=float(rng.choice([3, 5, 9])) if is_tight else np.inf,
            tags=["gpu"] if tags and rng.random() < 0.6 else [],
            egress=1e12 if is_equal else float(rng.choice([1e8, 1e12])),
        )
        for i in range(d)
    ]
    operators = [
        Operator(
            f"v{i}",
            ipt=3e4 * float(rng.integers(0, 12)),
            payload=float(rng.integers(100, 30_000)),
            rate=5e3 if i == 0 or (i == 1 and rng.random() < 0.5) else 0.0,
            memory=float(rng.integers(0, 3)) if is_tight else 0.0,
            requires=["gpu"] if tags and rng.random() < 0.3 else [],
            constant=float(rng.choice([0, 0, 0, 200])),
            parallelism=int(rng.integers(1, 3)),
        )
        for i in range(n)
    ]
    ends = [(rng.integers(0, v), v) for v in range(2, n)]
    streams = [Stream(f"v{u}", f"v{v}", float(rng.uniform(0.3, 1))) for u, v in ends]
    overhead = float(rng.choice([0, 0, 2e-5]))
    cluster = Cluster.of(devices, bandwidth=float(rng.choice([1e9, 3e8])), overhead=overhead)
    names = [operator.name for operator in operators]
    pairs = [rng.choice(names, 2, replace=False).tolist() for _ in range(2)]
    rules = Constraints(
        pin={v: f"d{rng.integers(d)}" for v in names if rng.random() < 0.12},
        colocate=pairs[:1] if rng.random() < 0.3 else (),
        exlocate=pairs[1:] if rng.random() < 0.3 else (),
        allowed={"v1": [f"d{i}" for i in range(d) if i != 1]}
        if rng.random() < 0.3 and d > 1
        else {},
    )
    return Problem(StreamGraph.of("drawn", operators, streams), cluster, rules)

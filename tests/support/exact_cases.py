"""Problems for the exact placer, and a call of it."""

import itertools
from typing import Any

import numpy as np

from streamplace.model import Cluster, Operator, Problem, Stream, StreamGraph
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.registry import PLACERS, Budget
from streamplace.placers.result import Result

THROUGHPUT = OBJECTIVES["throughput"]
EXACT = PLACERS["exact"]
PLENTY = Budget(seconds=20)


def solved(problem: Problem, budget: Budget = PLENTY, seed: int = 0, **options: Any) -> Result:
    """Place by exact."""
    return EXACT.with_options(**options).place(problem, THROUGHPUT, seed=seed, budget=budget)


def branched(k: int, depth: int, seed: int, rate: float = 2e4) -> Problem:
    """A graph of the benchmark's kind: source, k branches of equal stages, sink, for 5 devices."""
    rng = np.random.default_rng(seed)
    shares = rng.random(depth)
    ipt = shares / shares.sum() * 1.2e6
    operators = [Operator("src", ipt=1e4, payload=rng.uniform(1, 62500), rate=rate)]
    streams = []
    for b in range(k):
        names = [f"b{b}s{s}" for s in range(depth)]
        payloads = rng.uniform(1, 62500, depth)
        operators += [
            Operator(v, ipt=i, payload=p) for v, i, p in zip(names, ipt, payloads, strict=True)
        ]
        streams.append(Stream("src", names[0], selectivity=1 / k))
        streams += [Stream(u, v) for u, v in itertools.pairwise([*names, "sink"])]
    operators.append(Operator("sink", ipt=1e4))
    return Problem(StreamGraph.of("branched", operators, streams), Cluster.uniform(5))

"""Random problems with Python's values, with which the models of the page are compared.

Each is a problem of a report with two or three placements. Together they have every feature of the
models: several sources, network cards, overhead, gaps, windows, operators that fire all, several
cores, uneven key groups, cost matrices, and the three orders of a pass.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from streamplace import Cluster, Device, Operator, Problem, Stream, StreamGraph
from streamplace.model.operators import Window
from streamplace.objectives.registry import OBJECTIVES
from streamplace.report.document import ProblemPart
from streamplace.report.problems import Shown, problem_part


def vectors(count: int, seed: int = 0) -> Iterator[ProblemPart]:
    """Problems of reports with placements."""
    judge = OBJECTIVES["throughput"]
    for problem, placements in problems(count, seed):
        yield problem_part(problem, placements, judge)


def problems(count: int, seed: int = 0) -> Iterator[tuple[Problem, list[Shown]]]:
    """Problems, and two or three placements of each."""
    for i in range(count):
        rng = np.random.default_rng([seed, i])
        problem = _problem(rng, f"{seed}/{i}")
        yield problem, _placements(rng, problem)


def as_line(part: ProblemPart) -> str:
    """Line of a file of vectors."""
    return json.dumps(part, separators=(",", ":")) + "\n"


def _problem(rng: np.random.Generator, name: str) -> Problem:
    n, d = int(rng.integers(1, 11)), int(rng.integers(1, 5))
    label = rng.permutation(n)
    pairs = [(u, v) for v in range(n) for u in range(v)]
    edges = sorted({pairs[i] for i in rng.integers(0, max(1, len(pairs)), 2 * n) if pairs})
    fed = {v for _, v in edges}
    rate = [0.0 if v in fed else _of(rng, 1, 10, 40) for v in range(n)]
    joins = [v in fed and rng.random() < 0.3 for v in range(n)]
    windows = [None if joins[v] or rng.random() < 0.8 else _window(rng) for v in range(n)]
    selectivity = _selectivities(rng, edges, rate, joins, windows)
    operators = [_operator(rng, v, rate[v], joins[v], windows[v]) for v in range(n)]
    streams = [
        Stream(f"v{u}", f"v{v}", share, _of(rng, 0, 1e4, 5e4))
        for (u, v), share in zip(edges, selectivity, strict=True)
    ]
    graph = StreamGraph.of(name, [operators[v] for v in label], streams)
    seconds = None
    if rng.random() < 0.2:
        seconds = [[_of(rng, 0, 0.01, 0.05) for _ in range(d)] for _ in range(n)]
    return Problem(graph, _cluster(rng, d), seconds=seconds)


def _operator(
    rng: np.random.Generator, v: int, rate: float, joins: bool, window: Window | None
) -> Operator:
    groups = int(rng.choice([0, 0, 3, 8]))
    return Operator(
        f"v{v}",
        ipt=_of(rng, 0, 1e7, 5e7),
        rate=rate,
        parallelism=int(rng.integers(1, 4)),
        max_parallelism=groups,
        window=window,
        fires="all" if joins else "each",
    )


def _window(rng: np.random.Generator) -> Window:
    limit = float(rng.choice([20.0, np.inf]))
    size = 2.0 * int(rng.integers(1, 4))
    return Window(size, 2.0, base=_of(rng, 0, 1), factor=_of(rng, 0.1, 0.5), limit=limit)


def _selectivities(
    rng: np.random.Generator,
    edges: Sequence[tuple[int, int]],
    rate: Sequence[float],
    joins: Sequence[bool],
    windows: Sequence[Window | None],
) -> list[float]:
    """Tuples per tuple, such that all streams into an operator that fires all have one rate."""
    selectivity = [_of(rng, 0.25, 0.5, 1, 2) for _ in edges]
    flow = list(rate)
    for v in range(len(rate)):
        into = [e for e, (_, target) in enumerate(edges) if target == v]
        output = {e: _output(flow[edges[e][0]], windows[edges[e][0]]) for e in into}
        if joins[v]:
            flow[v] = _of(rng, 5, 10)
            for e in into:
                selectivity[e] = flow[v] / output[e]
        else:
            flow[v] += sum(selectivity[e] * output[e] for e in into)
    return selectivity


def _output(rate: float, window: Window | None) -> float:
    if window is None:
        return rate
    return min(window.limit, window.base + window.factor * rate * window.size) / window.advance


def _cluster(rng: np.random.Generator, d: int) -> Cluster:
    cores = [int(rng.choice([1, 1, 2, 4])) for _ in range(2)]
    cards, costs = rng.random() < 0.4, rng.random() < 0.4
    devices = []
    for a in range(d):
        kind = int(rng.integers(0, 2))
        limits: dict[str, Any] = {}
        if cards:
            limits = {"egress": _of(rng, 8e6, 4e7, np.inf), "ingress": _of(rng, 8e6, 4e7, np.inf)}
        if costs and a % 2:
            limits["reserved"] = 200.0
        devices.append(Device(f"d{a}", mips=[1000.0, 500.0][kind], cores=cores[kind], **limits))
    alike = rng.random() < 0.3
    matrix = [[_of(rng, 1.6e7, 8e7) for _ in range(d)] for _ in range(d)]
    return Cluster.of(
        devices,
        bandwidth=1.6e7 if alike else np.array(matrix),
        latency=_of(rng, 0, 0.01),
        overhead=_of(rng, 0, 1e-3, 5e-3) if costs else 0.0,
        overhead_per_byte=_of(rng, 0, 1e-8, 5e-8) if costs else 0.0,
        gap=_of(rng, 0, 1e-3, 5e-3) if costs else 0.0,
    )


def _placements(rng: np.random.Generator, problem: Problem) -> list[Shown]:
    """Placements in the three orders of a pass; along the graph, an order that can be held."""
    shown = []
    depth = np.empty(problem.n_operators)
    depth[problem.graph.order] = -np.arange(problem.n_operators)
    for k in range(int(rng.integers(2, 4))):
        place = rng.integers(0, problem.n_devices, problem.n_operators)
        queue = str(rng.choice(["", "priority", "order"]))
        ties = rng.integers(0, 3, problem.n_operators).astype(float)
        priority = {"": None, "priority": ties, "order": depth}[queue]
        placement = problem.placement(place, priority, queue or "priority")
        shown.append(Shown(f"p{k}", placement))
    return shown


def _of(rng: np.random.Generator, *values: float) -> float:
    """One of a few round values, so that exact ties happen, or anything between them."""
    if rng.random() < 0.5:
        return float(rng.choice(values))
    finite = [value for value in values if np.isfinite(value)]
    return float(rng.uniform(max(min(finite), 1e-3 * max(finite)), max(finite)))

"""Speed of HEFT against a straightforward one in Python, on 30 tasks and 20 devices."""

import time

import numpy as np
import pytest

from streamplace.model import Cluster, Device, Operators, Problem, StreamGraph, Streams
from streamplace.scheduling.insertion import by_upward_rank
from streamplace.scheduling.tasks import Tasks, tasks_of


def layered_problem(n: int, width: int, devices: int) -> Problem:
    """Layers of tasks, each fed by two of the layer before, on uneven devices."""
    rng = np.random.default_rng(0)
    target = np.repeat(np.arange(width, n), 2)
    source = (target // width - 1) * width + rng.integers(0, width, len(target))
    pairs = np.unique(np.stack([source, target], axis=1), axis=0)
    operators = Operators(
        [f"t{i}" for i in range(n)],
        ipt=rng.uniform(50e6, 150e6, n),
        rate=np.where(np.isin(np.arange(n), target), 0.0, 1.0),
        fires_all=np.ones(n, bool),
    )
    streams = Streams(operators, *pairs.T, payload=rng.uniform(50, 150, len(pairs)))
    machines = [Device(f"d{i}", mips=mips) for i, mips in enumerate(rng.uniform(3, 7, devices))]
    bandwidth = 8 / rng.uniform(0.006, 0.014, (devices, devices))
    graph = StreamGraph("layered", operators, streams)
    return Problem(graph, Cluster.of(machines, bandwidth=bandwidth))


def straightforward(work, streams, latency, wire):
    """HEFT as one writes it from the paper: dictionaries, lists and recursion."""
    n, d = len(work), len(work[0])
    out, into = {v: [] for v in range(n)}, {v: [] for v in range(n)}
    for u, v, size in streams:
        out[u].append((v, size))
        into[v].append((u, size))
    pairs = [(a, b) for a in range(d) for b in range(d) if a != b]
    ranks = {}

    def rank(v):
        if v not in ranks:
            after = [
                sum(latency[a][b] + size * wire[a][b] for a, b in pairs) / len(pairs) + rank(u)
                for u, size in out[v]
            ]
            ranks[v] = sum(work[v]) / d + max(after, default=0.0)
        return ranks[v]

    slots, place, finish = {a: [] for a in range(d)}, {}, {}
    for v in sorted(range(n), key=lambda v: (-rank(v), v)):
        best = None
        for a in range(d):
            ready = max(
                (
                    finish[u]
                    + (0.0 if place[u] == a else latency[place[u]][a] + size * wire[place[u]][a])
                    for u, size in into[v]
                ),
                default=0.0,
            )
            begin = ready
            for start, end in slots[a]:
                if begin + work[v][a] <= start:
                    break
                begin = max(begin, end)
            if best is None or begin + work[v][a] < best[0]:
                best = begin + work[v][a], a, begin
        finish[v], place[v] = best[0], best[1]
        slots[best[1]].append((best[2], best[0]))
        slots[best[1]].sort()
    return max(finish.values())


def quick(tasks: Tasks) -> float:
    """HEFT of the toolkit, from the arrays."""
    return float(by_upward_rank(tasks, True).finish.max())


def test_heft_on_thirty_tasks(benchmark):
    problem = layered_problem(30, 5, 20)
    tasks = tasks_of(problem)
    streams = list(
        zip(tasks.source.tolist(), tasks.target.tolist(), tasks.size.tolist(), strict=True)
    )
    plain = tasks.work.tolist(), streams, tasks.latency.tolist(), tasks.wire.tolist()
    begin = time.perf_counter()
    theirs = max(straightforward(*plain) for _ in range(5))
    python = (time.perf_counter() - begin) / 5
    ours = benchmark(quick, tasks)
    assert ours == pytest.approx(theirs)
    median = benchmark.stats.stats.median
    print(f"\nheft: {1e6 * median:.0f} µs, {python / median:.0f} × a straightforward one in Python")


@pytest.mark.slow
def test_heft_on_a_million_tasks(benchmark):
    problem = layered_problem(1_000_000, 1000, 16)
    problem.one_pass  # noqa: B018 - compiled before
    makespan = benchmark.pedantic(lambda: quick(tasks_of(problem)), rounds=1, warmup_rounds=0)
    assert makespan > 0
    print(f"\na million tasks on 16 devices: {benchmark.stats.stats.median:.1f} s")

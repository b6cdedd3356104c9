"""Every objective as the page on the models defines it, written from that page alone."""

from dataclasses import replace

import numpy as np
import pytest
from loaded_problems import Terms
from loaded_problems import drawn as drawn_from_terms

from streamplace import Cluster, Operator, Problem, Stream, StreamGraph
from streamplace.model import Device
from streamplace.objectives.registry import OBJECTIVES


class _Page:
    """The quantities of the page for one problem, by names of its formulas."""

    def __init__(self, problem):
        graph, cluster = problem.graph, problem.cluster
        self.ops, self.devs = list(graph.operators), list(cluster.devices)
        self.o, self.o1 = cluster.overhead_s, cluster.overhead_s_per_byte
        self.g, self.joules = cluster.gap_s, cluster.joules_per_byte
        self.bandwidth, self.latency = cluster.bandwidth_bps, cluster.latency_s
        self.rows = {operator.name: v for v, operator in enumerate(self.ops)}
        self.streams = [
            (self.rows[s.source], self.rows[s.target], s.selectivity, s.payload)
            for s in graph.streams
        ]
        self.rate = [operator.rate for operator in self.ops]
        for u, v, sel, _ in sorted(self.streams, key=lambda stream: stream[1]):  # u < v
            self.rate[v] += sel * self.rate[u]
        self.P = 1 / max(operator.rate for operator in self.ops)

    def speed(self, d):
        return self.devs[d].mips - self.devs[d].reserved / self.devs[d].cores

    def free(self, d):
        return self.devs[d].cores * self.speed(d) / self.devs[d].mips

    def s(self, v, d):
        return self.ops[v].ipt / (self.speed(d) * 1e6)

    def W(self, a, b):
        return 8 / min(self.bandwidth[a, b], self.devs[a].egress, self.devs[b].ingress)

    def remote(self, p):
        """Both devices, tuples/s and payload of every remote stream."""
        for u, v, sel, payload in self.streams:
            if p[u] != p[v]:
                size = self.ops[u].payload if payload is None else payload
                yield p[u], p[v], sel * self.rate[u], size

    def throughput(self, p):
        n = len(self.devs)
        load, held = np.zeros(n), np.zeros(n)
        limits, links, sent, taken = [1.0], np.zeros((n, n)), np.zeros(n), np.zeros(n)
        for v, d in enumerate(p):
            op, cores = self.ops[v], self.devs[d].cores
            load[d] += self.rate[v] * self.s(v, d) / cores
            held[d] += op.constant / (self.speed(d) * cores)
            core = self.rate[v] * self.s(v, d) / op.parallelism
            k = op.constant / (self.speed(d) * op.parallelism)
            if k > 1:
                return 0.0
            if core > 0:
                limits.append((1 - k) / core)
        for a, b, t, size in self.remote(p):
            for d in (a, b):
                load[d] += t * (self.o + self.o1 * size) / self.free(d)
            links[a, b] += t * (size * 8 / self.bandwidth[a, b] + self.g)
            sent[a] += t * size * 8 / self.devs[a].egress
            taken[b] += t * size * 8 / self.devs[b].ingress
        if (held > 1).any():
            return 0.0
        limits += [(1 - held[d]) / load[d] for d in range(n) if load[d] > 0]
        limits += [1 / use for use in (*links.ravel(), *sent, *taken) if use > 0]
        return max(0.0, min(limits))

    def devices(self, p):
        return len(set(p))

    def T(self, v, p):
        before = [0.0]
        for u, w, _, payload in self.streams:
            if w == v:
                a, b = p[u], p[v]
                size = self.ops[u].payload if payload is None else payload
                way = self.latency[a, b] + self.g + 2 * self.o
                way += size * (self.W(a, b) + 2 * self.o1) if a != b else 0.0
                before.append(self.T(u, p) + (way if a != b else 0.0))
        return self.s(v, p[v]) + max(before)

    def latency_of(self, p):
        return max(self.T(v, p) for v in range(len(p)))

    def B(self, p):
        busy, x = np.zeros(len(self.devs)), self.throughput(p)
        for v, d in enumerate(p):
            busy[d] += self.P * self.rate[v] * self.s(v, d)
            if self.ops[v].constant:
                lasts = self.P / x if x > 0 else np.inf
                busy[d] += lasts * self.ops[v].constant / self.speed(d)
        for a, b, t, size in self.remote(p):
            for d in (a, b):
                work = self.P * t * (self.o + self.o1 * size)
                busy[d] += work * self.devs[d].cores / self.free(d)
        return busy

    def energy(self, p):
        shares = [d.watts * self.free(i) / d.cores for i, d in enumerate(self.devs)]
        sent = sum(self.P * t * size for _, _, t, size in self.remote(p))
        return float(self.B(p) @ shares) + self.joules * sent

    def cost(self, p):
        ways = (
            self.latency[a, b] + self.P * t * (self.g + size * self.W(a, b))
            for a, b, t, size in self.remote(p)
        )
        if not any(d.price for d in self.devs):
            return float(self.B(p).sum()) + sum(ways)
        each = [d.price / 3600 / d.cores for d in self.devs]
        return 1e6 * float(self.B(p) @ each)


LEFT_OUT: Terms = {
    Operator: {"window", "max_parallelism", "max_rate", "cores"},
    Stream: {"ipt"},
}
"""Fields of loads that the formulas of the page do not name."""


def unruled(seed):
    """Problem of two sources that has all that the formulas name, and no rules."""
    problem, rng = drawn_from_terms(seed, LEFT_OUT), np.random.default_rng(seed)
    graph, cluster = problem.graph, problem.cluster
    rate = float(rng.uniform(1e3, 3e4))
    source = Operator("s", ipt=float(rng.uniform(1e3, 3e5)), payload=900, rate=rate)
    streams = [Stream("s", "v2", 0.5), Stream("s", "v2", 0.25, 5e3), *graph.streams]
    prices = rng.uniform(0, 9, cluster.n_devices) * (seed % 2)
    watts = rng.uniform(1, 90, cluster.n_devices)
    devices = replace(cluster.devices, watts=watts, price=prices)
    latency = rng.uniform(0, 1e-2, cluster.latency_s.shape)
    np.fill_diagonal(latency, 0)
    drawing = replace(cluster, devices=devices, latency_s=latency, joules_per_byte=1e-6)
    return Problem(StreamGraph.of("two", [source, *graph.operators], streams), drawing), rng


@pytest.mark.parametrize("name", ["throughput", "devices", "latency", "energy", "cost"])
def test_an_objective_is_what_the_page_says(name):
    """On random placements of random problems."""
    for seed in range(80):
        problem, rng = unruled(seed)
        page = _Page(problem)
        formula = {"latency": page.latency_of}.get(name) or getattr(page, name)
        places = rng.integers(problem.n_devices, size=(5, problem.n_operators)).astype(np.int32)
        told = OBJECTIVES[name].values(problem, places)
        assert told == pytest.approx([formula(p.tolist()) for p in places], rel=1e-12)


def test_the_makespan_is_what_the_page_says():
    """Chains of a task graph on one core each, where no two tasks are ready at one time."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(2, 7)), int(rng.integers(1, 4))
        work, sizes = rng.uniform(1e8, 9e9, n), rng.uniform(1e3, 1e8, n)
        operators = [Operator(f"t{i}", ipt=work[i], payload=sizes[i]) for i in range(n)]
        ends = {(int(rng.integers(0, v)), v) for v in range(1, n) for _ in range(2)}
        streams = [Stream(f"t{u}", f"t{v}") for u, v in sorted(ends)]
        mips = rng.uniform(1000, 4000, d)
        devices = [Device(f"d{i}", mips=mips[i]) for i in range(d)]
        delay = rng.uniform(1e-3, 1e-1, (d, d))
        cluster = Cluster.of(devices, bandwidth=1e9, latency=delay)
        graph = StreamGraph.of("tasks", operators, streams, fires="all")
        p = rng.integers(d, size=n)
        ready, finish, free = {0: 0.0}, {}, [0.0] * d
        while len(finish) < n:  # the task that starts first; of one device the one ready first
            starts = [(max(at, free[p[v]]), at, v) for v, at in ready.items() if v not in finish]
            start, _, v = min(starts)
            finish[v] = free[p[v]] = start + work[v] / (mips[p[v]] * 1e6)
            for w in range(n):
                before = [u for u, target in ends if target == w]
                if w not in ready and before and all(u in finish for u in before):
                    ways = (
                        finish[u] + (p[u] != p[w]) * (delay[p[u], p[w]] + 8 * sizes[u] / 1e9)
                        for u in before
                    )
                    ready[w] = max(ways)
        told = OBJECTIVES["makespan"].values(Problem(graph, cluster), p[None].astype(np.int32))
        assert told[0] == pytest.approx(max(finish.values()), rel=1e-9)

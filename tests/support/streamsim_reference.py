"""The steady state spelled out in exact fractions, with nothing in common with the kernels."""

from collections import defaultdict
from fractions import Fraction as F
from math import isfinite

Resource = tuple[str, int, int]
Flows = dict[int, F]  # by source


def loads_by_source(problem, place):
    """Load of every resource due to each source at full rate."""
    loads: dict[Resource, Flows] = defaultdict(lambda: defaultdict(F))
    arriving = [_arriving(problem, v) for v in range(problem.n_operators)]
    for v, flows in enumerate(arriving):
        d = place[v]
        seconds = F(problem.seconds[v][problem.device_type[d]])
        for s, rate in flows.items():
            loads["device", d, -1][s] += rate * seconds / problem.cores[d]
            loads["core", v, -1][s] += rate * seconds / problem.parallelism[v]
            if problem.max_rate and isfinite(problem.max_rate[v]):
                loads["rate", v, -1][s] += rate / (problem.parallelism[v] * F(problem.max_rate[v]))
    for e, (u, v) in enumerate(zip(problem.source, problem.target, strict=True)):
        a, b = place[u], place[v]
        if a == b:
            continue
        for s, rate in arriving[u].items():
            tuples = rate * F(problem.selectivity[e]) * _emission(problem, u)
            traffic = tuples * F(problem.payload[e])
            loads["link", a, b][s] += traffic * F(problem.seconds_per_byte[a][b])
            loads["link", a, b][s] += tuples * F(problem.gap)
            loads["egress", a, -1][s] += traffic * F(problem.egress[a])
            loads["ingress", b, -1][s] += traffic * F(problem.ingress[b])
            handling = tuples * F(problem.overhead) + traffic * F(problem.overhead_per_byte)
            free = problem.free_cores or problem.cores
            loads["device", a, -1][s] += handling / F(free[a])
            loads["device", b, -1][s] += handling / F(free[b])
    return loads


def constants(problem, place):
    """Part of every device, and of the core of every operator, that is taken at any rate."""
    taken: dict[Resource, F] = defaultdict(F)
    for v, d in enumerate(place):
        cores = F(problem.constant[v][problem.device_type[d]]) if problem.constant else F(0)
        taken["device", d, -1] += cores / problem.cores[d]
        taken["core", v, -1] += cores / problem.parallelism[v]
    return taken


def throughput(problem, place):
    """Largest share of their rates at which all sources can run at once."""
    taken, loads = constants(problem, place), loads_by_source(problem, place)
    shares = [F(1)]
    for resource, flows in loads.items():
        if (load := sum(flows.values(), F(0))) > 0:
            shares.append(max(F(0), 1 - taken[resource]) / load)
    moving = any(rate > 0 for rate in problem.rate)
    return 0.0 if moving and max(taken.values(), default=0) > 1 else float(min(shares))


def _arriving(problem, v):
    """Tuples/s (or sets) that operator v takes in, by the source that they come from."""
    flows: Flows = defaultdict(F)
    if problem.rate[v] > 0:
        flows[v] += F(problem.rate[v])
    for e, target in enumerate(problem.target):
        if target == v:
            u = problem.source[e]
            for s, rate in _arriving(problem, u).items():
                flows[s] += rate * F(problem.selectivity[e]) * _emission(problem, u)
            if problem.joins and problem.joins[v]:
                break  # every input brings as much
    return flows


def _emission(problem, u):
    """Output tuples of u per input tuple, at full rate: 1 but for windowed operators."""
    for window in problem.windows:
        if window.operator == u:
            rate = sum(_arriving(problem, u).values(), F(0))
            count = rate * F(window.size)
            if count == 0:
                return F(0)
            emitted = F(window.base) + F(window.factor) * count
            return min(F(window.limit), emitted) / F(window.advance) / rate
    return F(1)

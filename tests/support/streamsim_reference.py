"""The steady state spelled out in exact fractions, with nothing in common with the kernels."""

from collections import defaultdict
from fractions import Fraction as F
from math import isfinite

Resource = tuple[str, int, int]
Flows = dict[int, F]  # by group of sources, named after one of them


def loads_by_source(problem, place):
    """Load of every resource due to each group of sources at full rate."""
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


def source_rates(problem, place):
    """Fraction of its rate that each source reaches: progressive filling, one stop at a time."""
    groups = _groups(problem)
    reached = _group_rates(problem, place)
    return {s: reached[groups[s]] for s, rate in enumerate(problem.rate) if rate > 0}


def _group_rates(problem, place):
    loads = {
        r: {s: load for s, load in flows.items() if load > 0}
        for r, flows in loads_by_source(problem, place).items()
    }
    taken = constants(problem, place)
    rising = {_groups(problem)[s] for s, rate in enumerate(problem.rate) if rate > 0}
    reached: dict[int, F] = dict.fromkeys(_stuck(problem, place) & rising, F(0))
    rising -= reached.keys()
    while rising:
        level, stopped = F(1), set(rising)
        for resource, flows in loads.items():
            slope = sum((flows[s] for s in flows.keys() & rising), F(0))
            used = sum((flows[s] * reached[s] for s in flows.keys() & reached.keys()), F(0))
            if slope == 0:
                continue
            stop = max(F(0), 1 - taken[resource] - used) / slope
            if stop < level:
                level, stopped = stop, flows.keys() & rising
            elif stop == level and level < 1:
                stopped = stopped | (flows.keys() & rising)
        reached.update(dict.fromkeys(stopped, level))
        rising -= stopped
    return reached


def _stuck(problem, place):
    """Groups with an operator whose device or core has less than what is taken at any rate."""
    taken = constants(problem, place)
    return {
        s
        for v, d in enumerate(place)
        if max(taken["device", d, -1], taken["core", v, -1]) > 1
        for s, rate in _arriving(problem, v).items()
        if rate > 0
    }


def throughput(problem, place):
    """Relative throughput, Σ x_s R_s / Σ R_s."""
    reached = source_rates(problem, place)
    nominal = sum((F(problem.rate[s]) for s in reached), F(0))
    return float(sum((x * F(problem.rate[s]) for s, x in reached.items()), F(0)) / nominal)


def _arriving(problem, v):
    """Tuples/s (or sets) that operator v takes in, by the group of sources that they come from."""
    flows: Flows = defaultdict(F)
    group = _groups(problem)
    if problem.rate[v] > 0:
        flows[group[v]] += F(problem.rate[v])
    for e, target in enumerate(problem.target):
        if target == v:
            u = problem.source[e]
            for s, rate in _arriving(problem, u).items():
                flows[s] += rate * F(problem.selectivity[e]) * _emission(problem, u)
            if problem.joins and problem.joins[v]:
                break  # every input brings as much
    return flows


def _groups(problem):
    """Group of every operator: all that lead to one join are one."""
    group = {v: v for v in range(problem.n_operators)}
    for v in range(problem.n_operators):
        if problem.joins and problem.joins[v] and problem.target.count(v) > 1:
            met = {group[u] for u in _ancestors(problem, v)}
            group.update({u: min(met) for u, g in group.items() if g in met})
    return group


def _ancestors(problem, v):
    feeders = {problem.source[e] for e, target in enumerate(problem.target) if target == v}
    return {v}.union(*(_ancestors(problem, u) for u in feeders))


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

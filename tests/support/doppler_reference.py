"""Doppler said literally: slow, plain Python, from section 5.2 and appendix D of the paper."""

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from streamplace.model import Problem

Arrays = Mapping[str, Any]
EACH = 0.1


class Costs(NamedTuple):
    """What computing and sending cost: seconds of a task on each device, of a stream."""

    work: Any  # [N, D]
    compute: Any  # [N] in the mean
    sending: Any  # [E] in the mean over pairs of devices


@cache
def costs_of(problem: Problem) -> Costs:
    """Costs of a problem."""
    one, d = problem.one_pass, problem.n_devices
    work = one.work[:, one.devices["type"]]
    pairs = [(a, b) for a in range(d) for b in range(d) if a != b]
    streams = range(problem.graph.n_streams)
    mean = [
        float(np.mean([sent(problem, e, a, b) for a, b in pairs])) if pairs else 0.0
        for e in streams
    ]
    return Costs(work, work.mean(axis=1), np.array(mean))


def sent(problem: Problem, e: int, a: int, b: int) -> float:
    """Seconds of a stream between two devices."""
    if a == b:
        return 0.0
    one = problem.one_pass
    link, stream = one.links[a, b], one.streams[e]
    besides = stream["tuples"] * (one.gap + 2 * one.overhead)
    return float(link["latency"] + stream["size"] * link["seconds_per_byte"] + besides)


@cache
def ends(problem: Problem) -> list[tuple[int, int]]:
    """Sender and taker of every stream."""
    instance = problem.instance
    return list(zip(instance.source.tolist(), instance.target.tolist(), strict=True))


@cache
def paths(problem: Problem, *, to_exit: bool) -> list[tuple[float, list[int]]]:
    """Longest path from every task, to an exit or to an entry: its seconds, and its tasks."""
    costs, streams = costs_of(problem), ends(problem)

    @cache
    def longest(v: int) -> tuple[float, list[int]]:
        ways = []
        for e, (u, w) in enumerate(streams):
            if (u if to_exit else w) == v:
                length, path = longest(w if to_exit else u)
                ways.append((length + costs.sending[e], path))
        if not ways:
            return float(costs.compute[v]), [v]
        best = max(ways, key=lambda way: way[0])
        return float(best[0] + costs.compute[v]), [v, *best[1]]

    return [longest(v) for v in range(problem.n_operators)]


@cache
def task_features(problem: Problem) -> Any:
    """Appendix D.1 [N, 5], each standardised."""
    costs, streams = costs_of(problem), ends(problem)
    rows = [
        (
            costs.compute[v],
            sum(costs.sending[e] for e, (_, w) in enumerate(streams) if w == v),
            sum(costs.sending[e] for e, (u, _) in enumerate(streams) if u == v),
            paths(problem, to_exit=True)[v][0],
            paths(problem, to_exit=False)[v][0],
        )
        for v in range(problem.n_operators)
    ]
    return np.stack([standard(column) for column in np.array(rows).T], axis=1)


def standard(values: Any) -> Any:
    """Mean 0 and deviation 1, or nothing where all are alike."""
    values = np.asarray(values, float)
    if not len(values) or values.std() <= 1e-9 * np.abs(values).max():
        return np.zeros_like(values)
    return (values - values.mean()) / values.std()


def device_features(problem: Problem, done: list[tuple[int, int]], v: int) -> Any:
    """Appendix D.2 [D, 5] of task v when these tasks were placed, in this order; unscaled."""
    costs, streams, d = costs_of(problem), ends(problem), problem.n_devices
    where, start, finish = dict(done), {}, {}
    cores = problem.one_pass.devices["cores"]
    free = [[0.0] * int(cores[a]) for a in range(d)]

    def earliest(w: int, a: int) -> float:
        arrivals = [
            finish[u] + sent(problem, e, where[u], a) for e, (u, x) in enumerate(streams) if x == w
        ]
        return max([min(free[a]), *arrivals])

    for w, a in done:
        start[w] = earliest(w, a)
        finish[w] = start[w] + costs.work[w, a]
        free[a][int(np.argmin(free[a]))] = finish[w]
    rows = []
    for a in range(d):
        mine = [u for u, w in streams if w == v and where[u] == a]
        rows.append(
            (
                sum(costs.work[w, a] for w, b in done if b == a),
                sum(costs.work[u, a] for u in mine),
                min((start[u] for u in mine), default=0.0),
                max((finish[u] for u in mine), default=0.0),
                earliest(v, a),
            )
        )
    return np.array(rows)


def leaky(x: Any) -> Any:
    """Below 0 a tenth of it."""
    return np.where(x > 0, x, 0.1 * x)


def affine(tensors: Arrays, name: str, x: Any) -> Any:
    """FFNN of one layer."""
    return tensors[f"{name}.weight"] @ x + tensors.get(f"{name}.bias", 0.0)


def known(problem: Problem, tensors: Arrays, rounds: int) -> Any:
    """GNN(G, X) [N, W]: every round, all at once."""
    features, seconds = task_features(problem), standard(costs_of(problem).sending)
    h = [affine(tensors, "enter", x) for x in features]
    for _ in range(rounds):
        heard: list[list[Any]] = [[] for _ in h]
        for e, (u, v) in enumerate(ends(problem)):
            for a, b, way in ((u, v, 1.0), (v, u, -1.0)):
                seen = np.concatenate([h[a], h[b], [seconds[e], way]])
                heard[b].append(leaky(affine(tensors, "message", seen)))
        means = [np.mean(part, axis=0) if part else np.zeros_like(h[0]) for part in heard]
        pairs = zip(h, means, strict=True)
        h = [leaky(affine(tensors, "update", np.concatenate(pair))) for pair in pairs]
    return np.array(h)


def sel(problem: Problem, tensors: Arrays, h: Any, ready: list[int]) -> Any:
    """Log-probabilities of the ready tasks."""
    features = task_features(problem)
    scores = []
    for v in ready:
        ways = [paths(problem, to_exit=way)[v][1] for way in (False, True)]
        sums = [EACH * sum(h[u] for u in path) for path in ways]
        joined = np.concatenate([h[v], *sums, affine(tensors, "sel_task", features[v])])
        scores.append(affine(tensors, "sel_out", leaky(affine(tensors, "sel_hidden", joined)))[0])
    return log_softmax(scores)


def plc(
    problem: Problem, tensors: Arrays, h: Any, done: list[tuple[int, int]], v: int, looks: Any
) -> Any:
    """Log-probabilities of all devices for task v, of which it sees these scaled features."""
    z = affine(tensors, "plc_task", task_features(problem)[v])
    scores = []
    for a in range(problem.n_devices):
        there = EACH * sum((h[u] for u, b in done if b == a), np.zeros(h.shape[1]))
        joined = np.concatenate([h[v], there, affine(tensors, "plc_device", looks[a]), z])
        scores.append(affine(tensors, "plc_out", leaky(affine(tensors, "plc_hidden", joined)))[0])
    return np.array(scores)


def log_softmax(scores: Any) -> Any:
    """Logarithm of the softmax."""
    scores = np.asarray(scores) - np.max(scores)
    return scores - np.log(np.exp(scores).sum())

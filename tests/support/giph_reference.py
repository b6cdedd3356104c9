"""gpNet and GiPH's forward pass, said literally: slow, plain Python, from the paper's definitions.

Nodes are pairs (task, device), or (task, the task's device) where tasks alone are chosen.
"""

from typing import Any, NamedTuple

import numpy as np
from streamsim.passes import GIPH, schedule

Pair = tuple[int, int]
Edge = tuple[Pair, Pair, int]
Vector = Any


class Net(NamedTuple):
    """A gpNet: features of every node, and of every edge (sender, taker, stream)."""

    nodes: dict[Pair, Vector]
    edges: dict[Edge, Vector]


def devices_of(problem, v):
    """Devices on which a task may run."""
    rules = problem.rules
    d = range(problem.n_devices)
    return [a for a in d if rules is None or rules.allowed[rules.unit[v], a]]


def gp_net(problem, place, criticality, *, pairs=True):
    """Nodes and edges under a placement; their features as they are, unscaled."""
    n, streams = problem.n_operators, ends(problem)
    timing = schedule(problem.one_pass, place, GIPH)
    work, importance = seconds(problem), importances(problem, criticality)

    def potential(v, a):
        ways = [e for e, (_, w) in enumerate(streams) if w == v]
        if not ways:
            return 0.0
        arrivals = [
            timing.finish[streams[e][0]] + sending(problem, e, place[streams[e][0]], a)
            for e in ways
        ]
        return float(max(arrivals) - timing.start[v])

    nodes: dict[Pair, Vector] = {}
    for v in range(n):
        mine = devices_of(problem, v)
        for a in mine if pairs else [int(place[v])]:
            gain = min(potential(v, b) for b in mine) if not pairs else potential(v, a)
            own = pairs and a == place[v]
            nodes[v, a] = np.array(
                [work[v].mean(), work[:, a].mean(), work[v, a], 0.0 if own else gain, importance[v]]
            )
    edges: dict[Edge, Vector] = {}
    for e, (u, v) in enumerate(streams):
        for i in nodes:
            for j in nodes:
                current = i[1] == place[u] or j[1] == place[v]
                if (i[0], j[0]) == (u, v) and current:
                    edges[i, j, e] = of_edge(problem, e, i[1], j[1], criticality)
    return Net(nodes, edges)


def as_printed(net):
    """Features (1) to (4) of appendix B.7: those of the published code without criticality."""
    nodes = {node: row[:4] for node, row in net.nodes.items()}
    return Net(nodes, {edge: row[:4] for edge, row in net.edges.items()})


def ends(problem):
    """Sender and receiver of every stream."""
    instance = problem.instance
    return list(zip(instance.source.tolist(), instance.target.tolist(), strict=True))


def seconds(problem):
    """Seconds of every task on every device."""
    compiled = problem.one_pass
    return compiled.work[:, compiled.devices["type"]]


def sending(problem, e, a, b):
    """Seconds that a stream takes from a to b."""
    compiled = problem.one_pass
    if a == b:
        return 0.0
    link, stream = compiled.links[a, b], compiled.streams[e]
    each = stream["tuples"] * (compiled.gap + 2 * compiled.overhead)
    return float(link["latency"] + stream["size"] * link["seconds_per_byte"] + each)


def of_edge(problem, e, a, b, criticality):
    """What an edge looks like."""
    compiled = problem.one_pass
    link = compiled.links[a, b]
    return np.array(
        [
            compiled.streams[e]["size"],
            link["latency"],
            sending(problem, e, a, b),
            link["seconds_per_byte"],
            criticality[e],
        ]
    )


def importances(problem, criticality):
    """Criticality of the tasks."""
    found: dict[int, float] = {}
    for v in problem.graph.order.tolist():
        ways = [(e, u) for e, (u, w) in enumerate(ends(problem)) if w == v]
        found[v] = sum(found[u] * criticality[e] for e, u in ways) if ways else 1.0
    return [found[v] for v in range(problem.n_operators)]


def first_criticality(problem):
    """Softmax of 10 · bytes / most over the streams out of every task."""
    streams, size = ends(problem), problem.one_pass.streams["size"]
    found = []
    for e, (u, _) in enumerate(streams):
        beside = [k for k, (w, _) in enumerate(streams) if w == u]
        most = max(size[k] for k in beside) or 1.0
        total = sum(np.exp(10 * size[k] / most) for k in beside)
        found.append(float(np.exp(10 * size[e] / most) / total))
    return found


def heeded(problem, place, criticality):
    """Criticality of the streams after a simulation."""
    timing, streams, found = schedule(problem.one_pass, place, GIPH), ends(problem), [*criticality]
    index = problem.one_pass.stream_index
    v = int(np.argmax(timing.finish))
    while True:
        last = [
            e
            for e, (_, w) in enumerate(streams)
            if w == v and timing.arrival[index[e]] == timing.ready[v]
        ]
        if not last:
            return found
        u = max(streams[e][0] for e in last)
        out = [e for e, (w, _) in enumerate(streams) if w == u]
        for e in out if len(out) > 1 else []:
            found[e] += 0.1 * (1 - found[e]) if streams[e][1] == v else -0.1 * found[e]
        v = u


def scaled(rows):
    """Every feature between -1 and 1; 0 where all are equal."""
    if not rows:
        return {}
    table = np.array(list(rows.values()))
    low, span = table.min(axis=0), np.ptp(table, axis=0)
    flat = np.where(span > 0, (table - low) * 2 / np.where(span > 0, span, 1) - 1, 0)
    return dict(zip(rows, flat, strict=True))


def linear(tensors, name, x):
    """Linear map of a vector, with a bias where there is one."""
    return tensors[f"{name}.weight"] @ x + tensors.get(f"{name}.bias", 0.0)


def relu(x):
    """Whatever is above 0."""
    return np.maximum(x, 0)


def log_softmax(scores):
    """Logarithm of the softmax."""
    scores = np.asarray(scores) - np.max(scores)
    return scores - np.log(np.exp(scores).sum())


def scores(net, tensors, order):
    """Score of every node by equation 1, from features scaled to [-1, 1]."""
    backwards = {(j, i, e): x for (i, j, e), x in net.edges.items()}
    against = Net(net.nodes, backwards)
    ways = [
        summaries(net, tensors, "along", order),
        summaries(against, tensors, "against", order[::-1]),
    ]
    both = {u: np.concatenate([direction[u] for direction in ways]) for u in net.nodes}
    hidden = {u: relu(linear(tensors, "hidden", x)) for u, x in both.items()}
    return {u: float(linear(tensors, "out", x)[0]) for u, x in hidden.items()}


def sage_scores(net, tensors):
    """Score of every node by three layers of GraphSAGE along the edges, and the MLP."""
    states = {u: np.concatenate([x, mean_out(net, u)]) for u, x in scaled(net.nodes).items()}
    for layer in ("layers.0", "layers.1", "layers.2"):
        heard = {
            u: [states[i] for i, j, _ in net.edges if j == u] or [np.zeros_like(states[u])]
            for u in states
        }
        states = {
            u: relu(
                linear(tensors, f"{layer}.own", states[u])
                + tensors[f"{layer}.others.weight"] @ np.mean(heard[u], axis=0)
            )
            for u in states
        }
    hidden = {u: relu(linear(tensors, "hidden", x)) for u, x in states.items()}
    return {u: float(linear(tensors, "out", x)[0]) for u, x in hidden.items()}


def mean_out(net, u):
    """Mean of the scaled features of the edges out of a node; 0 where there is none."""
    return np.mean([x for (i, _, _), x in scaled(net.edges).items() if i == u] or [np.zeros(5)], 0)


def summaries(net, tensors, direction, order):
    """What every node knows in the end."""
    return known_by(scaled(net.nodes), scaled(net.edges), tensors, direction, order)


def known_by(nodes, edges, tensors, direction, order):
    """What every node knows in the end, from features as the network takes them."""
    own = {
        u: linear(tensors, f"{direction}.lift", relu(linear(tensors, f"{direction}.enter", x)))
        for u, x in nodes.items()
    }
    states = dict(own)

    def received(u):
        messages = [
            relu(linear(tensors, f"{direction}.message", np.concatenate([states[i], x])))
            for (i, j, _), x in edges.items()
            if j == u
        ]
        if not messages:
            return own[u]
        return relu(linear(tensors, f"{direction}.update", np.mean(messages, axis=0))) + own[u]

    for v in order:
        states |= {u: received(u) for u in nodes if u[0] == v}
    return states

"""What the nodes and edges of a gpNet look like under a placement.

Times come from one simulation of the placement. With e(v, d) the time at which all inputs of v
would be on d, the *start-time potential* of a node is e(v, d) less the start of v: how much sooner
it could begin there. The *criticality* of a stream is a share: those out of one task add up to 1.
It begins as the softmax of 10 · bytes over their maximum, and every simulation moves the streams
of its critical path by a tenth towards 1 and their neighbours towards 0. That of a task is 1 where
nothing comes in, else what its inputs bring along: Σ criticality(u) · criticality(u, v).

All features are scaled to [-1, 1] by their least and largest value under the placement.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from streamsim.jit import borrowing_kernel, kernel
from streamsim.passes.sending import sending_seconds
from streamsim.passes.state import State

from streamplace.learn.models.giph.view import View
from streamplace.model.arrays import Bools, Floats, Ints

Singles = NDArray[np.float32]

NODE_FEATURES = ("compute", "slowness", "seconds", "start-time potential", "criticality")
EDGE_FEATURES = ("bytes", "latency", "seconds", "seconds per byte", "criticality")
N_NODE, N_EDGE = len(NODE_FEATURES), len(EDGE_FEATURES)
POTENTIAL = NODE_FEATURES.index("start-time potential")
STEP = 0.1
"""Share by which the criticality of streams on the critical path moves."""
SHARPNESS = 10.0


class Sight(NamedTuple):
    """A gpNet under a placement (H nodes, M edges, F features of a node)."""

    nodes: Singles  # [H, F] the features, and where messages carry none the mean of the edges'
    edges: Singles  # [M, 5]
    source: Ints  # [M] nodes
    target: Ints  # [M]
    open: Bools  # [H] what may be chosen


def new_sight(view: View, features: int) -> Sight:
    """Room for a look."""
    return Sight(
        np.zeros((view.n_nodes, features), np.float32),
        np.zeros((view.n_edges, N_EDGE), np.float32),
        np.zeros(view.n_edges, np.int32),
        np.zeros(view.n_edges, np.int32),
        np.zeros(view.n_nodes, np.bool_),
    )


def first_criticality(view: View) -> Floats:
    """Criticality of the streams [E] before anything was simulated."""
    n, source, size = view.n_tasks, view.source, view.size
    largest = np.zeros(n)
    np.maximum.at(largest, source, size)
    weight = np.exp(SHARPNESS * size / np.where(largest > 0, largest, 1.0)[source])
    total = np.bincount(source, weight, n)
    return np.asarray(weight / total[source])


@borrowing_kernel
def heed(view: View, state: State, criticality: Floats) -> None:
    """Move the criticality of streams towards the critical path of what was simulated."""
    v = 0
    for u in range(view.work.shape[0]):
        if state.operators[u].finish > state.operators[v].finish:
            v = u
    while state.operators[v].producer >= 0:
        u = state.operators[v].producer
        sender = view.one.operators[u]
        if sender.out_end - sender.out_start > 1:
            for e in range(sender.out_start, sender.out_end):
                if view.target[e] == v:
                    criticality[e] += STEP * (1.0 - criticality[e])
                else:
                    criticality[e] -= STEP * criticality[e]
        v = u


@kernel
def look(
    view: View,
    place: Ints,
    device: Ints,
    state: State,
    criticality: Floats,
    with_potential: bool,
    sight: Sight,
) -> None:
    """Measure all nodes and edges under a simulated placement; nodes [H] are on these devices."""
    of_task = np.ones(len(place))
    for v in view.order:
        if view.in_start[v] < view.in_start[v + 1]:
            of_task[v] = 0.0
        for i in range(view.in_start[v], view.in_start[v + 1]):
            e = view.in_stream[i]
            of_task[v] += of_task[view.source[e]] * criticality[e]
    for i in range(len(view.task)):
        v, d = view.task[i], device[i]
        row = sight.nodes[i]
        row[0] = view.compute[v]
        row[1] = view.slowness[d]
        row[2] = view.work[v, d]
        row[3] = _potential(view, place, state, v, d) if with_potential else 0.0
        row[4] = of_task[v]
    _see_edges(view, place, device, criticality, sight)
    scale(sight.edges)
    if sight.nodes.shape[1] > N_NODE:
        _mean_of_edges(sight)
    scale(sight.nodes[:, :N_NODE])


@borrowing_kernel
def _potential(view: View, place: Ints, state: State, v: int, d: int) -> float:
    """Start-time potential of task v on device d; of a task alone, on the best of its devices."""
    if view.in_start[v] == view.in_start[v + 1]:
        return 0.0
    begun: float = state.operators[v].start
    if view.pairs:
        return 0.0 if d == place[v] else earliest(view, place, state, v, d) - begun
    soonest = np.inf
    for a in range(view.work.shape[1]):
        if view.allowed[view.unit[v], a]:
            soonest = min(soonest, earliest(view, place, state, v, a))
    return soonest - begun


@borrowing_kernel
def earliest(view: View, place: Ints, state: State, v: int, d: int) -> float:
    """Time at which all inputs of task v would be on device d, the others being where they are."""
    ready: float = view.one.operators[v].release
    for i in range(view.in_start[v], view.in_start[v + 1]):
        e = view.in_stream[i]
        u = view.source[e]
        arrival = state.operators[u].finish + _transfer(view, e, place[u], d)
        ready = max(ready, arrival)
    return ready


@borrowing_kernel
def _transfer(view: View, e: int, a: int, b: int) -> float:
    if a == b:
        return 0.0
    return sending_seconds(view.latency[a, b], view.size[e], view.wire[a, b], view.fixed_s[e])


@borrowing_kernel
def _see_edges(view: View, place: Ints, device: Ints, criticality: Floats, sight: Sight) -> None:
    """Lay out the edges of every stream, first those out of where its sender is."""
    for e in range(len(view.size)):
        u, v = view.source[e], view.target[e]
        here, there = view.node_of[u, place[u]], view.node_of[v, place[v]]
        k = view.edge_start[e]
        for j in range(view.node_start[v], view.node_start[v + 1]):
            _see_edge(view, sight, criticality, device, e, k, here, j)
            k += 1
        for i in range(view.node_start[u], view.node_start[u + 1]):
            if i != here:
                _see_edge(view, sight, criticality, device, e, k, i, there)
                k += 1


@borrowing_kernel
def _see_edge(
    view: View, sight: Sight, criticality: Floats, device: Ints, e: int, k: int, i: int, j: int
) -> None:
    a, b = device[i], device[j]
    sight.source[k], sight.target[k] = i, j
    row = sight.edges[k]
    row[0] = view.size[e]
    row[1] = view.latency[a, b]
    row[2] = _transfer(view, e, a, b)
    row[3] = view.wire[a, b]
    row[4] = criticality[e]


@kernel
def _mean_of_edges(sight: Sight) -> None:
    """Put the mean of the edges out of every node beside its features; 0 where there is none."""
    count = np.zeros(len(sight.nodes), np.int64)
    sight.nodes[:, N_NODE:] = 0.0
    for k in range(len(sight.edges)):
        i = sight.source[k]
        count[i] += 1
        for f in range(N_EDGE):
            sight.nodes[i, N_NODE + f] += sight.edges[k, f]
    for i in range(len(count)):
        for f in range(N_EDGE):
            sight.nodes[i, N_NODE + f] /= np.float32(max(1, count[i]))


@kernel
def scale(table: Singles) -> None:
    """Scale every column to [-1, 1]; to 0 where all its values are equal."""
    for f in range(table.shape[1]):
        least, largest = np.inf, -np.inf
        for i in range(len(table)):
            least, largest = min(least, table[i, f]), max(largest, table[i, f])
        for i in range(len(table)):
            span = largest - least
            table[i, f] = (table[i, f] - least) * 2.0 / span - 1.0 if span > 0 else 0.0

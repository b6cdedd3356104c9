"""Features of the nodes and edges of a gpNet under a placement.

Times come from one simulation of the placement. With e(v, d) the time at which all inputs of v
would be on d, the *start-time potential* of a node is e(v, d) minus the start of v: how much
earlier it could start there. The *criticality* of a stream is a share: those out of one task add up
to 1. It begins as the softmax of 10 · bytes over their maximum, and every simulation moves the
streams of its critical path by a tenth towards 1 and their neighbours towards 0. It is 1 for a task
if it has no inputs, else Σ criticality(u) · criticality(u, v) over them.

All features are scaled to [-1, 1] by their least and largest value under the placement.
"""

import numpy as np
from streamsim.jit import borrowing_kernel, kernel
from streamsim.passes.state import State

from streamplace.model.arrays import Floats, Ints
from streamplace.papers.walks.graph import NodeFeatures, NodeGraph, scale
from streamplace.scheduling.tasks import transfer

NODE_FEATURES = ("compute", "slowness", "seconds", "start-time potential", "criticality")
EDGE_FEATURES = ("bytes", "latency", "seconds", "seconds per byte", "criticality")
N_NODE, N_EDGE = len(NODE_FEATURES), len(EDGE_FEATURES)
STEP = 0.1
"""Share by which the criticality of streams on the critical path moves."""
SHARPNESS = 10.0


def first_criticality(graph: NodeGraph) -> Floats:
    """Criticality of the streams [E] before the first simulation."""
    n, source, size = graph.n_tasks, graph.tasks.source, graph.tasks.size
    largest = np.zeros(n)
    np.maximum.at(largest, source, size)
    weight = np.exp(SHARPNESS * size / np.where(largest > 0, largest, 1.0)[source])
    total = np.bincount(source, weight, n)
    return np.asarray(weight / total[source])


@borrowing_kernel
def update_criticality(graph: NodeGraph, state: State, criticality: Floats) -> None:
    """Move the criticality of streams towards the critical path of the last simulation."""
    v = 0
    for u in range(graph.tasks.work.shape[0]):
        if state.operators[u].finish > state.operators[v].finish:
            v = u
    while state.operators[v].producer >= 0:
        u = state.operators[v].producer
        sender = graph.compiled.operators[u]
        if sender.out_end - sender.out_start > 1:
            for e in range(sender.out_start, sender.out_end):
                if graph.tasks.target[e] == v:
                    criticality[e] += STEP * (1.0 - criticality[e])
                else:
                    criticality[e] -= STEP * criticality[e]
        v = u


@kernel
def look(
    graph: NodeGraph,
    place: Ints,
    device: Ints,
    state: State,
    criticality: Floats,
    with_potential: bool,
    features: NodeFeatures,
) -> None:
    """Measure all nodes and edges under a simulated placement; nodes [H] are on these devices."""
    of_task = np.ones(len(place))
    for v in graph.tasks.order:
        if graph.tasks.in_start[v] < graph.tasks.in_start[v + 1]:
            of_task[v] = 0.0
        for i in range(graph.tasks.in_start[v], graph.tasks.in_start[v + 1]):
            e = graph.tasks.in_stream[i]
            of_task[v] += of_task[graph.tasks.source[e]] * criticality[e]
    for i in range(len(graph.task)):
        v, d = graph.task[i], device[i]
        row = features.nodes[i]
        row[0] = graph.compute[v]
        row[1] = graph.slowness[d]
        row[2] = graph.tasks.work[v, d]
        row[3] = _potential(graph, place, state, v, d) if with_potential else 0.0
        row[4] = of_task[v]
    _fill_edges(graph, place, device, criticality, features)
    scale(features.edges)
    if features.nodes.shape[1] > N_NODE:
        _mean_of_edges(features)
    scale(features.nodes[:, :N_NODE])


@borrowing_kernel
def _potential(graph: NodeGraph, place: Ints, state: State, v: int, d: int) -> float:
    """Start-time potential of task v on device d; of a task alone, on the best of its devices."""
    if graph.tasks.in_start[v] == graph.tasks.in_start[v + 1]:
        return 0.0
    begun: float = state.operators[v].start
    if graph.pairs:
        return 0.0 if d == place[v] else earliest(graph, place, state, v, d) - begun
    soonest = np.inf
    for a in range(graph.tasks.work.shape[1]):
        if graph.tasks.work[v, a] < np.inf:
            soonest = min(soonest, earliest(graph, place, state, v, a))
    return soonest - begun


@borrowing_kernel
def earliest(graph: NodeGraph, place: Ints, state: State, v: int, d: int) -> float:
    """Time at which all inputs of task v would be on device d, with all other tasks fixed."""
    ready: float = graph.tasks.release[v]
    for i in range(graph.tasks.in_start[v], graph.tasks.in_start[v + 1]):
        e = graph.tasks.in_stream[i]
        u = graph.tasks.source[e]
        arrival = state.operators[u].finish + transfer(graph.tasks, e, place[u], d)
        ready = max(ready, arrival)
    return ready


@borrowing_kernel
def _fill_edges(
    graph: NodeGraph, place: Ints, device: Ints, criticality: Floats, features: NodeFeatures
) -> None:
    """Write the edges of every stream, first those from the sender's device."""
    for e in range(len(graph.tasks.size)):
        u, v = graph.tasks.source[e], graph.tasks.target[e]
        here, there = graph.node_of[u, place[u]], graph.node_of[v, place[v]]
        k = graph.edge_start[e]
        for j in range(graph.node_start[v], graph.node_start[v + 1]):
            _fill_edge(graph, features, criticality, device, e, k, here, j)
            k += 1
        for i in range(graph.node_start[u], graph.node_start[u + 1]):
            if i != here:
                _fill_edge(graph, features, criticality, device, e, k, i, there)
                k += 1


@borrowing_kernel
def _fill_edge(
    graph: NodeGraph,
    features: NodeFeatures,
    criticality: Floats,
    device: Ints,
    e: int,
    k: int,
    i: int,
    j: int,
) -> None:
    a, b = device[i], device[j]
    features.source[k], features.target[k] = i, j
    row = features.edges[k]
    row[0] = graph.tasks.size[e]
    row[1] = graph.tasks.latency[a, b]
    row[2] = transfer(graph.tasks, e, a, b)
    row[3] = graph.tasks.wire[a, b]
    row[4] = criticality[e]


@kernel
def _mean_of_edges(features: NodeFeatures) -> None:
    """Add the mean features of its outgoing edges to every node; 0 without edges."""
    count = np.zeros(len(features.nodes), np.int64)
    features.nodes[:, N_NODE:] = 0.0
    for k in range(len(features.edges)):
        i = features.source[k]
        count[i] += 1
        for f in range(N_EDGE):
            features.nodes[i, N_NODE + f] += features.edges[k, f]
    for i in range(len(count)):
        for f in range(N_EDGE):
            features.nodes[i, N_NODE + f] /= np.float32(max(1, count[i]))

"""GiPH with fixed weights, in numba: its network, its episodes, weights from a file.

Every node u of a gpNet has features x_u, every edge features x_vu, all scaled to [-1, 1]. With
ξ(u) the nodes from which an edge leads to u, and f a linear map and ReLU,

    y_u = W₂ relu(W₁ x_u)
    e_u = f₂(mean over v in ξ(u) of f₁([e_v : x_vu])) + y_u        (equation 1; y_u without ξ(u))

along the streams, so that e_u depends on all nodes upstream of it, and with other weights against
them. The score of a node is MLP([e_u along : e_u against]); P(u) is the softmax over open nodes.

``no-edges`` sends messages without x_vu. ``sage`` is a GraphSAGE of three layers
h_u ← relu(A h_u + B mean over ξ(u) of h_v) instead, and ``plain`` scores each node by its own
features. In these three, the features of a node include the mean features of the edges out of it.

At every step of an episode the present placement is simulated and one task is moved. An action is
a node (v, d) of the gpNet: task v and the tasks colocated with it go to device d. It is neither the
present device of a task nor a move of the task that was moved last, so that many tasks are visited;
unless ``printed``, it may be both after the first N + 1 steps. Only legal actions are open. If only
tasks are chosen, the device is the one on which the task finishes first.

Times come from one simulation of the placement. With e(v, d) the time at which all inputs of v
would be on d, the *start-time potential* of a node is e(v, d) minus the start of v: how much
earlier it could start there. The *criticality* of a stream is a share: those out of one task add up
to 1. It begins as the softmax of 10 · bytes over their maximum, and every simulation moves the
streams of its critical path by a tenth towards 1 and their neighbours towards 0. It is 1 for a task
if it has no inputs, else Σ criticality(u) · criticality(u, v) over them. The paper's text lacks it,
and so does a policy that is ``printed``. All features are scaled to [-1, 1] by their least and
largest value under the placement.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from streamplace.io.weights import check_features
from streamplace.learn.algorithms.kernels import Row, weights_of
from streamplace.learn.improver import STEPS_PER_OPERATOR, Agent, Episode, Improver
from streamplace.learn.model_weights import LinearMap, check_maps, loaded, read_model
from streamplace.learn.numba_kernels.arrays import copy_row, copy_rows
from streamplace.learn.numba_kernels.jit import borrowing_kernel, kernel
from streamplace.learn.numba_kernels.passes import PassState, new_state, run
from streamplace.learn.numba_kernels.policies import drawn_open, product
from streamplace.learn.numba_kernels.tasks import transfer
from streamplace.model.arrays import Floats, Ints, Longs, Singles
from streamplace.model.problem import Problem
from streamplace.papers.giph import FEATURES_OF_EACH, GiphConfig
from streamplace.papers.improving.gpnet import (
    WIDTH,
    DirectionWeights,
    NodeFeatures,
    NodeGraph,
    StepRecord,
    direction_maps,
    may,
    memory_used,
    new_features,
    node_graph_of,
    put,
    scale,
    summaries,
)

HIDDEN = 16
SAGE = (16, 16, 10)
NODE_FEATURES = ("compute", "slowness", "seconds", "start-time potential", "criticality")
EDGE_FEATURES = ("bytes", "latency", "seconds", "seconds per byte", "criticality")
NUDGE = 0.1
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
def update_criticality(graph: NodeGraph, state: PassState, criticality: Floats) -> None:
    """Move the criticality of streams towards the critical path of the last simulation."""
    v = 0
    for u in range(graph.tasks.work.shape[0]):
        if state.operators[u].finish > state.operators[v].finish:
            v = u
    while state.operators[v].producer >= 0:
        u = state.operators[v].producer
        first, last = graph.tasks.out_start[u], graph.tasks.out_end[u]
        if last - first > 1:
            for e in range(first, last):
                if graph.tasks.target[e] == v:
                    criticality[e] += NUDGE * (1.0 - criticality[e])
                else:
                    criticality[e] -= NUDGE * criticality[e]
        v = u


@kernel
def measure(
    graph: NodeGraph,
    place: Ints,
    device: Ints,
    state: PassState,
    criticality: Floats,
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
        row[3] = _potential(graph, place, state, v, d)
        if features.edges.shape[1] == FEATURES_OF_EACH:
            row[4] = of_task[v]
    _fill_edges(graph, place, device, criticality, features)
    scale(features.edges)
    size = features.edges.shape[1]
    if features.nodes.shape[1] > size:
        _mean_of_edges(features)
    scale(features.nodes[:, :size])


@borrowing_kernel
def _potential(graph: NodeGraph, place: Ints, state: PassState, v: int, d: int) -> float:
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
def earliest(graph: NodeGraph, place: Ints, state: PassState, v: int, d: int) -> float:
    """Time at which all inputs of task v would be on device d, with all other tasks fixed."""
    ready = 0.0
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
    if len(row) == FEATURES_OF_EACH:
        row[4] = criticality[e]


@kernel
def _mean_of_edges(features: NodeFeatures) -> None:
    """Add the mean features of its outgoing edges to every node; 0 without edges."""
    count, size = np.zeros(len(features.nodes), np.int64), features.edges.shape[1]
    features.nodes[:, size:] = 0.0
    for k in range(len(features.edges)):
        i = features.source[k]
        count[i] += 1
        for f in range(size):
            features.nodes[i, size + f] += features.edges[k, f]
    for i in range(len(count)):
        for f in range(size):
            features.nodes[i, size + f] /= np.float32(max(1, count[i]))


class SageWeights(NamedTuple):
    """One layer of GraphSAGE."""

    own: Singles
    others: Singles
    own_bias: Singles


class GiphNetwork(NamedTuple):
    """All weights; those that a form lacks are empty."""

    along: DirectionWeights
    against: DirectionWeights
    layers: tuple[SageWeights, SageWeights, SageWeights]
    hidden: Singles
    hidden_bias: Singles
    out: Row
    out_bias: Singles


def n_node_features(config: GiphConfig) -> int:
    """Features of a node: those of its edges are among them where messages do not carry them."""
    return config.n_own_features if config.form == "two-way" else 2 * config.n_own_features


def maps_of(config: GiphConfig) -> dict[str, LinearMap]:
    """Linear maps of the network."""
    size = n_node_features(config)
    maps: dict[str, LinearMap] = {}
    if config.form in ("two-way", "no-edges"):
        maps = direction_maps(size, 2 * config.n_own_features - size)
        size = 2 * WIDTH
    elif config.form == "sage":
        for i, out in enumerate(SAGE):
            maps[f"layers.{i}.own"] = LinearMap(out, size)
            maps[f"layers.{i}.others"] = LinearMap(out, size, bias=False)
            size = out
    return maps | {"hidden": LinearMap(HIDDEN, size), "out": LinearMap(1, HIDDEN)}


@kernel
def scores(network: GiphNetwork, graph: NodeGraph, features: NodeFeatures) -> Singles:
    """Score of every node [H]."""
    summary = features.nodes
    if len(network.along.message):
        along = summaries(network.along, graph, features, False)
        against = summaries(network.against, graph, features, True)
        summary = np.concatenate((along, against), axis=1)
    elif len(network.layers[0].own):
        for layer in network.layers:
            mean = _mean_of_neighbours(summary, features)
            summary = product(summary, layer.own) + product(mean, layer.others) + layer.own_bias
            summary = np.maximum(summary, np.float32(0))
    hidden = product(summary, network.hidden) + network.hidden_bias
    score = np.empty(len(hidden), np.float32)
    for i in range(len(hidden)):
        total = network.out_bias[0]
        for k in range(hidden.shape[1]):
            total += max(hidden[i, k], np.float32(0)) * network.out[k]
        score[i] = total
    return score


@kernel
def _mean_of_neighbours(h: Singles, features: NodeFeatures) -> Singles:
    """Mean over the nodes from which an edge leads to each; 0 where there is none."""
    mean, count = np.zeros_like(h), np.zeros(len(h), np.int64)
    for k in range(len(features.source)):
        i, j = features.source[k], features.target[k]
        count[j] += 1
        for c in range(h.shape[1]):
            mean[j, c] += h[i, c]
    for j in range(len(h)):
        for c in range(h.shape[1]):
            mean[j, c] /= np.float32(max(1, count[j]))
    return mean


NOTHING = -1
STEP, LAST, MASKED = range(3)
"""Counters of an episode: steps so far, the unit that was moved last, and steps with masks."""


def names_of_features(config: GiphConfig) -> list[str]:
    """Names of the features; weights only fit those that they were trained on."""
    nodes, edges = NODE_FEATURES[: config.n_own_features], EDGE_FEATURES[: config.n_own_features]
    return [*(f"node {name}" for name in nodes), *(f"edge {name}" for name in edges)]


class StepState(NamedTuple):
    """State of an episode between two steps."""

    place: Ints  # [N]
    device: Ints  # [H] of every node
    criticality: Floats  # [E]
    counters: Longs  # [3] by the names above
    state: PassState
    features: NodeFeatures


@kernel
def go(
    graph: NodeGraph, network: GiphNetwork, step: StepState, uniform: Floats, record: StepRecord
) -> Ints:
    """Take T steps and return the placements [T, N] after each.

    Choices are drawn with the numbers ``uniform`` [T] in [0, 1); below 0, the likeliest is taken.
    """
    places = np.empty((len(uniform), len(step.place)), np.int32)
    for t in range(len(uniform)):
        run(graph.tasks, graph.times, step.place, step.state)
        update_criticality(graph, step.state, step.criticality)
        if not graph.pairs:  # nodes are tasks, each on its present device
            copy_row(step.device, step.place)
        measure(graph, step.place, step.device, step.state, step.criticality, step.features)
        _unlock(graph, step)
        chosen = drawn_open(scores(network, graph, step.features), step.features.open, uniform[t])
        if t < len(record.chosen):
            _keep(step.features, chosen, record, t)
        _move(graph, step, chosen)
        places[t] = step.place
    return places


@kernel
def _unlock(graph: NodeGraph, step: StepState) -> None:
    """Open the nodes that may be chosen; if there are none, all legal ones."""
    used = memory_used(graph.tasks, step.place)
    early = step.counters[STEP] < step.counters[MASKED]
    unlocked = False
    for i in range(len(graph.task)):
        v, d = graph.task[i], step.device[i]
        legal = may(graph.tasks, step.place, used, graph.tasks.unit[v], d)
        masked = early and (
            graph.tasks.unit[v] == step.counters[LAST] or (graph.pairs and step.place[v] == d)
        )
        step.features.open[i] = legal and not masked
        unlocked |= step.features.open[i]
    for i in range(0 if unlocked else len(graph.task)):
        unit = graph.tasks.unit[graph.task[i]]
        step.features.open[i] = may(graph.tasks, step.place, used, unit, step.device[i])


@borrowing_kernel
def _keep(features: NodeFeatures, chosen: int, record: StepRecord, t: int) -> None:
    copy_rows(record.nodes[t], features.nodes)
    copy_rows(record.edges[t], features.edges)
    copy_row(record.source[t], features.source)
    copy_row(record.target[t], features.target)
    copy_row(record.open[t], features.open)
    record.chosen[t] = chosen


@kernel
def _move(graph: NodeGraph, step: StepState, chosen: int) -> None:
    """Move the task of a node, and with it its unit."""
    v = graph.task[chosen]
    unit, d = graph.tasks.unit[v], step.device[chosen]
    if not graph.pairs:
        d = _soonest(graph, step, v)
    put(graph.tasks, step.place, v, d)
    step.counters[STEP] += 1
    step.counters[LAST] = unit


@kernel
def _soonest(graph: NodeGraph, step: StepState, v: int) -> int:
    """Device on which task v would finish first, ignoring other tasks there."""
    used = memory_used(graph.tasks, step.place)
    best, soonest = step.place[v], np.inf
    for d in range(graph.tasks.work.shape[1]):
        if may(graph.tasks, step.place, used, graph.tasks.unit[v], d):
            finish = earliest(graph, step.place, step.state, v, d) + graph.tasks.work[v, d]
            if finish < soonest:
                best, soonest = d, finish
    return best


@dataclass(slots=True)
class GiphAgent(Agent):
    """GiPH on one problem."""

    network: GiphNetwork
    config: GiphConfig
    graph: NodeGraph
    state: StepState | None = None

    @property
    def length(self) -> int:
        """Steps of a whole episode, two per task."""
        return STEPS_PER_OPERATOR * self.graph.n_tasks

    def begin(self, place: Ints) -> None:
        """Start an episode at a placement."""
        graph, config = self.graph, self.config
        masked = 1 + (self.length if config.printed else graph.n_tasks)
        self.state = StepState(
            place=np.array(place, np.int32),
            device=graph.device.copy(),
            criticality=first_criticality(graph),
            counters=np.array([0, NOTHING, masked], np.int64),
            state=new_state(graph.tasks),
            features=new_features(graph, n_node_features(config), config.n_own_features),
        )

    def episode(self, uniform: Floats, *, recorded: int) -> Episode:
        """Move one task for every number."""
        assert self.state is not None
        h, m = self.graph.n_nodes, self.graph.n_edges
        record = StepRecord(
            nodes=np.zeros((recorded, h, n_node_features(self.config)), np.float32),
            edges=np.zeros((recorded, m, self.config.n_own_features), np.float32),
            source=np.zeros((recorded, m), np.int32),
            target=np.zeros((recorded, m), np.int32),
            open=np.zeros((recorded, h), np.bool_),
            chosen=np.zeros(recorded, np.int32),
        )
        places = go(self.graph, self.network, self.state, uniform, record)
        return Episode(places, record)


def agent_on(network: GiphNetwork, config: GiphConfig, problem: Problem) -> GiphAgent:
    """Put GiPH with fixed weights on one problem."""
    return GiphAgent(network, config, node_graph_of(problem, pairs=config.pairs))


@loaded
def trained(path: Path, model: str) -> Improver:
    """GiPH, or a variant, from a weights file."""
    weights, config, where = read_model(path, model, GiphConfig)
    check_features(weights.document, names_of_features(config), where)
    check_maps(weights.tensors, maps_of(config), where)
    return partial(agent_on, weights_of(GiphNetwork, weights.tensors), config)

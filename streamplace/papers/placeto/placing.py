"""Placeto with fixed weights, in numba: its network, its visits, weights from a file.

The embedding e_u of an operator is computed as in `streamplace.papers.improving.gpnet`, on the
graph of the operators and without features of streams. With f and g a linear map and ReLU each, the
scores of the devices for operator v are

    MLP([e_v : g₁(mean f₁(e_u) upstream of v) : g₂(… downstream of v) : g₃(… all others)])

Every operator is visited once, in an order, and goes to a device that the policy chooses. At each
visit the features are those of the present placement. Only legal devices are open: the operator
and those colocated with it may run there, and none is there that must not share its device. After
the last visit the tour begins again, and all operators count as not yet visited.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from streamplace.learn.algorithms.kernels import weights_of
from streamplace.learn.algorithms.orders import decision_order
from streamplace.learn.config import check_devices
from streamplace.learn.improver import Agent, Episode, Improver
from streamplace.learn.model_weights import LinearMap, check_maps, loaded, read_model
from streamplace.learn.numba_kernels.arrays import copy_row, copy_rows
from streamplace.learn.numba_kernels.jit import kernel
from streamplace.learn.numba_kernels.passes import PassState, new_state, run
from streamplace.learn.numba_kernels.policies import drawn_open, product
from streamplace.model.arrays import Bools, Floats, Ints, Longs, Singles
from streamplace.model.problem import Problem
from streamplace.papers.improving.gpnet import (
    WIDTH,
    DirectionWeights,
    NodeFeatures,
    NodeGraph,
    direction_maps,
    may,
    memory_used,
    new_features,
    node_graph_of,
    put,
    scale,
    summaries,
)
from streamplace.papers.placeto import PlacetoConfig

HIDDEN = 32
GROUPS = ("upstream", "downstream", "beside")
SUMMARY = 2 * WIDTH


class PoolWeights(NamedTuple):
    """How operators are pooled; matrices as [in, out]."""

    each: Singles  # f
    each_bias: Singles
    pooled: Singles  # g
    pooled_bias: Singles


class PlacetoNetwork(NamedTuple):
    """All weights; matrices as [in, out]."""

    along: DirectionWeights
    against: DirectionWeights
    upstream: PoolWeights
    downstream: PoolWeights
    beside: PoolWeights
    hidden: Singles
    hidden_bias: Singles
    out: Singles
    out_bias: Singles  # [D] one for each device that the model knows


def maps_of(devices: int) -> dict[str, LinearMap]:
    """Linear maps of the network for so many devices."""
    maps = direction_maps(N_OPERATOR + devices, 0)
    pools = [f"{group}.{name}" for group in GROUPS for name in ("each", "pooled")]
    maps |= dict.fromkeys(pools, LinearMap(SUMMARY, SUMMARY))
    joined = (1 + len(GROUPS)) * SUMMARY
    return maps | {"hidden": LinearMap(HIDDEN, joined), "out": LinearMap(devices, HIDDEN)}


@kernel
def scores(
    network: PlacetoNetwork, graph: NodeGraph, features: NodeFeatures, upstream: Bools, v: int
) -> Singles:
    """Score of every device [D] for operator v."""
    along = summaries(network.along, graph, features, False)
    against = summaries(network.against, graph, features, True)
    states = np.concatenate((along, against), axis=1)
    n = len(states)
    group = np.full(n, 2, np.int64)
    for u in range(n):
        if upstream[v, u]:
            group[u] = 0
        elif upstream[u, v]:
            group[u] = 1
    group[v] = -1
    joined = np.zeros((1, (1 + len(GROUPS)) * states.shape[1]), np.float32)
    copy_row(joined[0, : states.shape[1]], states[v])
    size = states.shape[1]
    for g, part in enumerate((network.upstream, network.downstream, network.beside)):
        copy_row(joined[0, (1 + g) * size : (2 + g) * size], _pooled(part, states, group, g))
    hidden = np.maximum(product(joined, network.hidden) + network.hidden_bias, np.float32(0))
    return (product(hidden, network.out) + network.out_bias)[0]


@kernel
def _pooled(part: PoolWeights, states: Singles, group: Longs, g: int) -> Singles:
    """Pooled embedding of a group of operators."""
    each = np.maximum(product(states, part.each) + part.each_bias, np.float32(0))
    mean, count = np.zeros((1, each.shape[1]), np.float32), 0
    for u in range(len(each)):
        if group[u] == g:
            count += 1
            for k in range(each.shape[1]):
                mean[0, k] += each[u, k]
    mean /= np.float32(max(1, count))
    return np.maximum(product(mean, part.pooled) + part.pooled_bias, np.float32(0))[0]


OPERATOR_FEATURES = ("seconds", "bytes out", "visited", "current", "start")
"""Features of an operator, besides one for each device that the model supports."""
N_OPERATOR = len(OPERATOR_FEATURES)
FEATURES = [*OPERATOR_FEATURES, "device"]
"""Features of Placeto; weights only fit those that they were trained on."""


class Tour(NamedTuple):
    """A problem and the order of the visits (N operators)."""

    graph: NodeGraph  # of the operators alone, without pairs
    order: Ints  # [N]
    upstream: Bools  # [N, N] whether the column's operator is upstream of the row's
    bytes_out: Floats  # [N] mean bytes of the streams out of an operator


class Visit(NamedTuple):
    """State of a tour."""

    place: Ints  # [N]
    counters: Longs  # [1] visits so far
    state: PassState
    features: NodeFeatures


class VisitRecord(NamedTuple):
    """Inputs and choices of T visits; of length 0 where nothing is to be recorded."""

    nodes: Singles  # [T, N, F]
    current: Ints  # [T] operators
    open: Bools  # [T, D] devices that the model supports
    chosen: Ints  # [T] devices


def tour_of(problem: Problem, order: str) -> Tour:
    """Prepare a problem, visited in an order."""
    graph = node_graph_of(problem, pairs=False)
    source = graph.tasks.source
    count = np.bincount(source, minlength=graph.n_tasks)
    total = np.bincount(source, graph.tasks.size, graph.n_tasks)
    sequence = decision_order(problem, order).astype(np.int32)
    return Tour(graph, sequence, _upstream(graph), total / np.maximum(count, 1))


@kernel
def _upstream(graph: NodeGraph) -> Bools:
    n = len(graph.tasks.order)
    upstream = np.zeros((n, n), np.bool_)
    for v in graph.tasks.order:
        for i in range(graph.tasks.in_start[v], graph.tasks.in_start[v + 1]):
            u = graph.tasks.source[graph.tasks.in_stream[i]]
            upstream[v, u] = True
            for w in range(n):
                upstream[v, w] |= upstream[u, w]
    return upstream


@kernel
def go(
    tour: Tour, network: PlacetoNetwork, visit: Visit, uniform: Floats, record: VisitRecord
) -> Ints:
    """Make T visits and return the placements [T, N] after each; as in GiPH."""
    graph, place, features = tour.graph, visit.place, visit.features
    n, devices = len(place), len(network.out_bias)
    places = np.empty((len(uniform), n), np.int32)
    is_open = np.zeros(devices, np.bool_)
    for t in range(len(uniform)):
        done = visit.counters[0] % n
        v = tour.order[done]
        run(graph.tasks, graph.times, place, visit.state)
        _measure(tour, visit, done)
        used = memory_used(graph.tasks, place)
        for d in range(graph.tasks.work.shape[1]):
            is_open[d] = may(graph.tasks, place, used, graph.tasks.unit[v], d)
        d = drawn_open(scores(network, graph, features, tour.upstream, v), is_open, uniform[t])
        if t < len(record.chosen):
            copy_rows(record.nodes[t], features.nodes)
            record.current[t], record.chosen[t] = v, d
            copy_row(record.open[t], is_open)
        put(graph.tasks, place, v, d)
        visit.counters[0] += 1
        copy_row(places[t], place)
    return places


@kernel
def _measure(tour: Tour, visit: Visit, done: int) -> None:
    """Write the features of all operators after so many visits; the next one is current."""
    nodes, n = visit.features.nodes, len(visit.place)
    nodes[:] = 0.0
    for v in range(n):
        nodes[v, 0] = tour.graph.compute[v]
        nodes[v, 1] = tour.bytes_out[v]
        nodes[v, 4] = visit.state.operators[v].start
        nodes[v, N_OPERATOR + visit.place[v]] = 1.0
    for i in range(done):
        nodes[tour.order[i], 2] = 1.0
    nodes[tour.order[done], 3] = 1.0
    scale(nodes[:, 0:2])
    scale(nodes[:, 4:5])


@dataclass(slots=True)
class PlacetoAgent(Agent):
    """Placeto on one problem."""

    network: PlacetoNetwork
    tour: Tour
    devices: int
    visit: Visit | None = None

    @property
    def length(self) -> int:
        """Steps of a whole episode, one per operator."""
        return self.tour.graph.n_tasks

    def begin(self, place: Ints) -> None:
        """Start an episode at a placement."""
        graph = self.tour.graph
        features = new_features(graph, N_OPERATOR + self.devices, 0)
        features.source[:], features.target[:] = graph.tasks.source, graph.tasks.target
        self.visit = Visit(
            place=np.array(place, np.int32),
            counters=np.zeros(1, np.int64),
            state=new_state(graph.tasks),
            features=features,
        )

    def episode(self, uniform: Floats, *, recorded: int) -> Episode:
        """Visit one operator for every number."""
        assert self.visit is not None
        n, d = self.tour.graph.n_tasks, self.devices
        record = VisitRecord(
            nodes=np.zeros((recorded, n, N_OPERATOR + d), np.float32),
            current=np.zeros(recorded, np.int32),
            open=np.zeros((recorded, d), np.bool_),
            chosen=np.zeros(recorded, np.int32),
        )
        return Episode(go(self.tour, self.network, self.visit, uniform, record), record)


def agent_on(network: PlacetoNetwork, config: PlacetoConfig, problem: Problem) -> PlacetoAgent:
    """Put Placeto with fixed weights on one problem."""
    check_devices(problem, config.devices)
    return PlacetoAgent(network, tour_of(problem, config.order), config.devices)


@loaded
def trained(path: Path) -> Improver:
    """Placeto from a weights file."""
    weights, config, where = read_model(path, "placeto", PlacetoConfig, FEATURES)
    check_maps(weights.tensors, maps_of(config.devices), where)
    return partial(agent_on, weights_of(PlacetoNetwork, weights.tensors), config)

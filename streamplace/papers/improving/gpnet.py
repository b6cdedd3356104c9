"""gpNet: a node for every task on every device that may run it, legal moves, and messages.

With p the current placement there is an edge between two nodes of tasks u and v for every stream
from u to v, wherever at least one of the two is where the placement has its task:

    (u, p(u)) → (v, b) for every device b of v;    (u, a) → (v, p(v)) for every other device a of u

so that the edges of a node show the neighbourhood that its task would have after that move. Which
nodes an edge joins depends on the placement, the number of edges does not: the edges of stream e
are the rows ``edge_start[e]`` to ``edge_start[e + 1]``.

Messages go in one direction through the graph. Every node u has features x_u, every edge features
x_vu. With ξ(u) the nodes from which an edge leads to u, and f a linear map and ReLU,

    y_u = W₂ relu(W₁ x_u)
    e_u = f₂(mean over v in ξ(u) of f₁([e_v : x_vu])) + y_u        (y_u without ξ(u))
"""

from typing import NamedTuple

import numpy as np

from streamplace.learn.model_weights import LinearMap
from streamplace.learn.numba_kernels.jit import borrowing_kernel, kernel
from streamplace.learn.numba_kernels.passes import PassTimes, pass_times
from streamplace.learn.numba_kernels.policies import product
from streamplace.learn.numba_kernels.tasks import TaskColumns, tasks_of
from streamplace.model.arrays import Bools, Floats, Ints, Longs, Singles
from streamplace.model.devices import SLACK
from streamplace.model.problem import Problem

WIDTH = 5
"""Dimensions of a node's summary of one direction."""


class NodeGraph(NamedTuple):
    """gpNet of a problem: N tasks, E streams, D devices, H nodes, U units of tasks.

    If ``pairs`` is false there is one node per task, which represents it on its present device.
    """

    tasks: TaskColumns
    times: PassTimes
    pairs: bool
    compute: Floats  # [N] mean seconds over the devices
    slowness: Floats  # [D] mean seconds over the tasks
    task: Ints  # [H]
    device: Ints  # [H]
    node_start: Ints  # [N + 1] the nodes of v are node_start[v]:node_start[v + 1]
    node_of: Ints  # [N, D] node of a task on a device, -1 where it may not run
    edge_start: Ints  # [E + 1]

    @property
    def n_tasks(self) -> int:
        """Number of tasks, N."""
        return len(self.compute)

    @property
    def n_nodes(self) -> int:
        """Number of nodes, H."""
        return len(self.task)

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return int(self.edge_start[-1])


def node_graph_of(problem: Problem, *, pairs: bool = True) -> NodeGraph:
    """Graph of a problem, by pairs of tasks and devices or by tasks alone."""
    tasks, times = tasks_of(problem), pass_times(problem)
    task, device, node_of = _nodes(np.isfinite(tasks.work), pairs)
    node_start = np.searchsorted(task, np.arange(tasks.n_tasks + 1)).astype(np.int32)
    nodes = np.diff(node_start)
    edges = nodes[tasks.source] + nodes[tasks.target] - 1
    return NodeGraph(
        tasks=tasks,
        times=times,
        pairs=pairs,
        compute=times.work.mean(axis=1),
        slowness=times.work.mean(axis=0),
        task=task,
        device=device,
        node_start=node_start,
        node_of=node_of,
        edge_start=np.concatenate(([0], np.cumsum(edges))).astype(np.int32),
    )


def _nodes(allowed: Bools, pairs: bool) -> tuple[Ints, Ints, Ints]:
    """Task and device of every node, and the node of every pair."""
    n, d = allowed.shape
    if not pairs:
        tasks = np.arange(n, dtype=np.int32)
        return tasks, np.zeros(n, np.int32), np.repeat(tasks[:, None], d, axis=1)
    task, device = (column.astype(np.int32) for column in np.nonzero(allowed))
    node_of = np.full((n, d), -1, np.int32)
    node_of[task, device] = np.arange(len(task))
    return task, device, node_of


class NodeFeatures(NamedTuple):
    """A node graph under a placement (H nodes, M edges, F features of a node)."""

    nodes: Singles  # [H, F]
    edges: Singles  # [M, features of an edge]
    source: Ints  # [M] nodes
    target: Ints  # [M]
    open: Bools  # [H] nodes that may be chosen


class StepRecord(NamedTuple):
    """Inputs and choices of T steps; of length 0 where nothing is to be recorded."""

    nodes: Singles  # [T, H, F]
    edges: Singles  # [T, M, features of an edge]
    source: Ints  # [T, M]
    target: Ints  # [T, M]
    open: Bools  # [T, H]
    chosen: Ints  # [T]


def new_features(graph: NodeGraph, of_node: int, of_edge: int) -> NodeFeatures:
    """Zero features, so many of every node and edge."""
    return NodeFeatures(
        nodes=np.zeros((graph.n_nodes, of_node), np.float32),
        edges=np.zeros((graph.n_edges, of_edge), np.float32),
        source=np.zeros(graph.n_edges, np.int32),
        target=np.zeros(graph.n_edges, np.int32),
        open=np.zeros(graph.n_nodes, np.bool_),
    )


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


@kernel
def memory_used(tasks: TaskColumns, place: Ints) -> Floats:
    """Bytes in use on every device, [0] where memory does not limit."""
    used = np.zeros(len(tasks.room))
    for u in range(len(tasks.memory)):
        used[place[tasks.members[tasks.member_start[u]]]] += tasks.memory[u]
    return used


@borrowing_kernel
def may(tasks: TaskColumns, place: Ints, used: Floats, u: int, d: int) -> bool:
    """Whether unit u may move to device d, with all others fixed."""
    first = tasks.members[tasks.member_start[u]]
    if tasks.work[first, d] == np.inf:
        return False
    if place[first] == d:
        return True
    for i in range(tasks.rival_start[u], tasks.rival_start[u + 1]):
        if place[tasks.members[tasks.member_start[tasks.rivals[i]]]] == d:
            return False
    return len(tasks.memory) == 0 or used[d] + tasks.memory[u] <= tasks.room[d] * (1 + SLACK)


@borrowing_kernel
def put(tasks: TaskColumns, place: Ints, v: int, d: int) -> None:
    """Move task v to device d, with the tasks colocated with it."""
    unit = tasks.unit[v]
    for i in range(tasks.member_start[unit], tasks.member_start[unit + 1]):
        place[tasks.members[i]] = d


class DirectionWeights(NamedTuple):
    """Messages in one direction; matrices as [in, out]."""

    enter: Singles  # W₁
    enter_bias: Singles
    lift: Singles  # W₂
    lift_bias: Singles
    message: Singles  # f₁, of the sender, then of the edge if messages carry its features
    message_bias: Singles
    update: Singles  # f₂
    update_bias: Singles


def direction_maps(features: int, edges: int) -> dict[str, LinearMap]:
    """Linear maps of both directions, by name.

    Nodes have so many features, and messages carry so many of the edges.
    """
    message = WIDTH + edges
    sizes = {"enter": (features, features), "lift": (WIDTH, features)}
    sizes |= {"message": (message, message), "update": (WIDTH, message)}
    return {f"{d}.{n}": LinearMap(*s) for d in ("along", "against") for n, s in sizes.items()}


class DirectionState(NamedTuple):
    """Messages in one direction under way (H nodes)."""

    summary: Singles  # [H, 5]
    sent: Singles  # [H, M] what every node sends
    sums: Singles  # [H, M] of the messages to every node
    received: Longs  # [H] number of these
    row: Singles  # [M] buffer


@kernel
def summaries(
    weights: DirectionWeights, graph: NodeGraph, features: NodeFeatures, against: bool
) -> Singles:
    """Summary of the nodes upstream of every node, or downstream if against; [H, 5]."""
    entered = np.maximum(product(features.nodes, weights.enter) + weights.enter_bias, np.float32(0))
    own = product(entered, weights.lift) + weights.lift_bias
    senders, receivers = features.source, features.target
    if against:
        senders, receivers = features.target, features.source
    sent = product(own, weights.message[:WIDTH])
    received, row = np.zeros(len(own), np.int64), np.zeros(sent.shape[1], np.float32)
    state = DirectionState(own.copy(), sent, np.zeros_like(sent), received, row)
    n = len(graph.tasks.order)
    for at in range(n):
        v = graph.tasks.order[n - 1 - at] if against else graph.tasks.order[at]
        first, last = graph.tasks.in_start[v], graph.tasks.in_start[v + 1]
        if against:
            first, last = graph.tasks.out_start[v], graph.tasks.out_end[v]
        for i in range(first, last):
            e = i if against else graph.tasks.in_stream[i]
            begin, end = graph.edge_start[e], graph.edge_start[e + 1]
            _send(weights, features.edges, senders, receivers, begin, end, state)
        _finish(weights, own, graph.node_start[v], graph.node_start[v + 1], state)
    return state.summary


@borrowing_kernel
def _send(
    weights: DirectionWeights,
    edges: Singles,
    senders: Ints,
    receivers: Ints,
    first: int,
    last: int,
    state: DirectionState,
) -> None:
    """Add the messages over some edges to the sums of their receivers."""
    row = state.row
    for k in range(first, last):
        i, j = senders[k], receivers[k]
        for c in range(len(row)):
            row[c] = state.sent[i, c] + weights.message_bias[c]
        for f in range(len(weights.message) - WIDTH):
            for c in range(len(row)):
                row[c] += edges[k, f] * weights.message[WIDTH + f, c]
        for c in range(len(row)):
            state.sums[j, c] += max(row[c], np.float32(0))
        state.received[j] += 1


@borrowing_kernel
def _finish(
    weights: DirectionWeights, own: Singles, first: int, last: int, state: DirectionState
) -> None:
    """Compute the summaries of some nodes from their messages, and what they send."""
    summary, sent, sums, count = state.summary, state.sent, state.sums, state.received
    for i in range(first, last):
        if count[i]:
            for c in range(summary.shape[1]):
                total = weights.update_bias[c]
                for k in range(sums.shape[1]):
                    total += sums[i, k] / np.float32(count[i]) * weights.update[k, c]
                summary[i, c] = own[i, c] + max(total, np.float32(0))
        for k in range(sent.shape[1]):
            total = np.float32(0)
            for c in range(summary.shape[1]):
                total += summary[i, c] * weights.message[c, k]
            sent[i, k] = total

"""The decoder on a CPU: samples that begin alike share the states of these decisions.

Samples of a graph are paths in a tree whose nodes are distinct beginnings of placements. What was
computed while samples were drawn serves their likelihood, and only what a replayed placement does
not share with them is computed anew. `network` has the formulas.

Shapes: V nodes, G graphs, S samples of each, N operators, D devices, W width, K further inputs,
F features of a device, which are none where a decoder tells devices by their numbers.
"""

import math
from contextlib import suppress
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from streamplace.learn.constructive.policy import CLOSED, Likelihood
from streamplace.learn.constructive.recurrence import (
    Forest,
    Segment,
    advance,
    gates_of,
    retraced,
)
from streamplace.learn.models.dream.devices import (
    DeviceCosts,
    DeviceLoads,
    carry,
    describe,
    no_loads,
    summarise,
)
from streamplace.learn.numba_kernels.arrays import copy_row
from streamplace.learn.numba_kernels.jit import kernel, relaxed_kernel
from streamplace.learn.numba_kernels.policies import rectify
from streamplace.learn.tensors.draws import gumbel
from streamplace.learn.tensors.few_rows import multiply_transposed
from streamplace.model.arrays import Array

MOST_KEPT = 1 << 16
"""Most nodes of which the memory is kept for another tree."""
LOWEST = np.float32(-80)
"""Smaller logarithms are raised to this, as exponentials of less take much longer."""


class DecoderWeights(NamedTuple):
    """What a decoder needs of encoded graphs, and its parameters: tensors, arrays or gradients."""

    inputs: Any  # [G, N, 4W] operators' part of the LSTM's input, and its bias
    recurrent: Any  # [4W, W] maps the state to the rest of the input
    reading: Any  # [4W, K] maps earlier decisions to it
    keys: Any  # [G, N, W] operators
    values: Any  # [G, N, W] operators' part of the MLP's first layer
    start: Any  # [G, W] s_0
    state: Any  # [W, W] the state's part of the MLP's first layer
    state_bias: Any  # [W]
    output: Any  # [D, W] the MLP's second layer, or [1, W] of every device
    output_bias: Any  # [D], or [1]
    described: Any  # [F, W] the first layer's part of a device


class GraphArrays(NamedTuple):
    """Graphs in the order of decision, see `GraphBatch`; what is not needed is empty."""

    size: Array  # [G] operators
    upstream: Array  # [G, N, N]
    allowed: Array  # [G, N, D]
    lower: Array  # [G, D, D]
    mates: Array  # [G, N, N]
    rivals: Array  # [G, N, N]
    costs: DeviceCosts


class PrefixNodes(NamedTuple):
    """What is known of nodes besides their states."""

    child: Array  # [V, D] node after a decision, -1 where there is none
    open: Array  # [V, D] devices that are open
    hidden: Array  # [V, W] hidden layer of the MLP, without the part of a device
    features: Array  # [V, D, F]
    log_p: Array  # [V, D]
    scores: Array  # [2, N] room for the attention of one node
    rectified: Array  # [W] room for the hidden layer of one device


@kernel
def grow(
    nodes: PrefixNodes,
    forest: Forest,
    graphs: GraphArrays,
    loads: DeviceLoads,
    start: Array,
    paths: Array,
    step: int,
    count: int,
) -> int:
    """Go one step along paths [2, G, S, N], into new nodes where need be; the number of nodes.

    Paths are devices and, up to this step, nodes.
    """
    are_described = nodes.features.shape[2] > 0
    for graph in np.flatnonzero(graphs.size > step):
        for sample in range(paths.shape[2]):
            parent, row = -1, paths[0, graph, sample, :step]
            if step == 0:
                node = graph if graph < count else -1
            else:
                parent = paths[1, graph, sample, step - 1]
                node = nodes.child[parent, row[-1]]
                if are_described:
                    carry(loads, graphs.costs, int(graph), sample, row)
            if node < 0:
                node, count = count, count + 1
                forest.parent[node], forest.graph[node], nodes.child[node] = parent, graph, -1
                if step > 0:
                    nodes.child[parent, row[-1]] = node
                find_open(nodes.open[node], graphs, int(graph), row)
                read(forest, graphs, start[graph], row, node)
                if are_described:
                    into, is_open = nodes.features[node], nodes.open[node]
                    describe(into, loads, graphs.costs, int(graph), sample, row, is_open)
                    joined = forest.joined[node, start.shape[1] :]
                    summarise(joined, into, graphs.costs, int(graph), row, is_open)
            paths[1, graph, sample, step] = node
    return count


@kernel
def read(forest: Forest, graphs: GraphArrays, start: Array, row: Array, node: int) -> None:
    """Input of the LSTM: the state before, and the previous and the upstream devices by number."""
    devices, width, step = graphs.allowed.shape[2], len(start), len(row)
    graph, parent, joined = forest.graph[node], forest.parent[node], forest.joined[node]
    copy_row(joined[:width], start)
    joined[width:] = 0
    if step == 0:
        return
    copy_row(joined[:width], forest.states[parent])
    if len(graphs.costs.load):
        return
    joined[width + row[-1]] = 1
    if len(graphs.upstream):
        for other in range(step):
            joined[width + devices + row[other]] += graphs.upstream[graph, step, other]


@kernel
def find_open(is_open: Array, graphs: GraphArrays, graph: int, row: Array) -> None:
    """Find the open devices: allowed, and of interchangeable unused ones only the first.

    An operator follows a mate that is placed, and avoids the devices of its rivals. If no device
    remains, all allowed ones are open and the placement has to be repaired.
    """
    step, idle = len(row), np.ones(len(is_open), np.bool_)
    idle[row] = False
    for device in range(len(is_open)):
        waits = (idle & (graphs.lower[graph, :, device] > 0)).any()
        is_open[device] = graphs.allowed[graph, step, device] and not waits
    if len(graphs.mates):
        mates = row[graphs.mates[graph, step, :step] > 0]
        if len(mates):
            is_open[:] = False
            is_open[mates] = True
        is_open[row[graphs.rivals[graph, step, :step] > 0]] = False
        if not is_open.any():
            copy_row(is_open, graphs.allowed[graph, step])


@kernel
def choose(nodes: PrefixNodes, graphs: GraphArrays, noise: Array, paths: Array, step: int) -> None:
    """Choose the device of the largest log-probability plus noise [G, S, N, D]."""
    for graph in np.flatnonzero(graphs.size > step):
        for sample in range(paths.shape[2]):
            likely = nodes.log_p[paths[1, graph, sample, step]] + noise[graph, sample, step]
            paths[0, graph, sample, step] = likely.argmax()


@relaxed_kernel
def attend(scores: Array, state: Array, keys: Array, size: int) -> None:
    """Weights of the operators of a graph: softmax of the products of state and keys."""
    top = np.float32(-np.inf)
    for j in range(size):
        key, total = keys[j], np.float32(0)
        for k in range(len(state)):
            total += state[k] * key[k]
        scores[j] = total
        top = max(top, scores[j])
    total = np.float32(0)
    for j in range(size):
        scores[j] = np.exp(max(scores[j] - top, LOWEST))
        total += scores[j]
    for j in range(size):
        scores[j] /= total


@relaxed_kernel
def judge(
    nodes: PrefixNodes,
    forest: Forest,
    graphs: GraphArrays,
    weights: DecoderWeights,
    first: int,
    last: int,
) -> None:
    """Log-probabilities of new nodes, whose ``hidden`` has the state's part of the first layer."""
    scores, are_described = nodes.scores[0], len(weights.described) > 0
    for v in range(first, last):
        graph, hidden, log_p = forest.graph[v], nodes.hidden[v], nodes.log_p[v]
        attend(scores, forest.states[v], weights.keys[graph], graphs.size[graph])
        for j in range(graphs.size[graph]):
            share, value = scores[j], weights.values[graph, j]
            for k in range(len(hidden)):
                hidden[k] += share * value[k]
        if not are_described:
            rectify(hidden)
        for device in range(len(log_p)):
            log_p[device] = CLOSED
            if nodes.open[v, device]:
                output, row = (0, nodes.rectified) if are_described else (device, hidden)
                if are_described:
                    activate(row, hidden, nodes.features[v, device], weights.described)
                logit = weights.output_bias[output]
                for k in range(len(hidden)):
                    logit += row[k] * weights.output[output, k]
                log_p[device] = logit
        normalise(log_p)


@relaxed_kernel
def normalise(log_p: Array) -> None:
    """Turn the logits of a node into log-probabilities."""
    top, total = np.float32(2 * CLOSED), np.float32(0)
    for device in range(len(log_p)):
        top = max(top, log_p[device])
    for device in range(len(log_p)):
        total += np.exp(max(log_p[device] - top, LOWEST))
    top += np.log(total)
    for device in range(len(log_p)):
        log_p[device] -= top


@relaxed_kernel
def activate(rectified: Array, hidden: Array, features: Array, described: Array) -> None:
    """Hidden layer of the MLP for a device."""
    for k in range(len(hidden)):
        rectified[k] = hidden[k]
    for f in range(len(features)):
        for k in range(len(hidden)):
            rectified[k] += features[f] * described[f, k]
    for k in range(len(hidden)):
        rectified[k] = max(rectified[k], np.float32(0))


@relaxed_kernel
def described_gradients(
    nodes: PrefixNodes,
    weights: DecoderWeights,
    d_logits: Array,
    d_hidden: Array,
    d_output: Array,
    d_described: Array,
) -> None:
    """Add gradients of the MLP's layers, from those of the logits [V, D]."""
    rectified = nodes.rectified
    for v in range(len(d_logits)):
        for device in range(d_logits.shape[1]):
            d_logit, features = d_logits[v, device], nodes.features[v, device]
            if not nodes.open[v, device]:
                continue
            activate(rectified, nodes.hidden[v], features, weights.described)
            for k in range(len(rectified)):
                d_output[0, k] += d_logit * rectified[k]
                rectified[k] = d_logit * weights.output[0, k] if rectified[k] > 0 else 0
                d_hidden[v, k] += rectified[k]
            for f in range(len(features)):
                for k in range(len(rectified)):
                    d_described[f, k] += features[f] * rectified[k]


@kernel
def logit_gradients(
    nodes: PrefixNodes,
    graphs: GraphArrays,
    paths: Array,
    d_log_p: Array,
    d_entropy: Array,
    d_logits: Array,
) -> None:
    """Gradients of logits [V, D], zero before, from those [G, S] of the samples."""
    spread = np.zeros(len(d_logits), d_logits.dtype)
    for graph in range(len(graphs.size)):
        size = graphs.size[graph]
        for sample in range(paths.shape[2]):
            for t in range(size):
                device, node = paths[:, graph, sample, t]
                d_logits[node, device] += d_log_p[graph, sample]
                spread[node] -= d_entropy[graph, sample] / size
    for node in range(len(d_logits)):
        p = np.exp(np.maximum(nodes.log_p[node], LOWEST))
        d_logits[node] += spread[node] * p * (nodes.log_p[node] + np.float32(1))
        d_logits[node] -= p * d_logits[node].sum()


@relaxed_kernel
def attention_gradients(
    nodes: PrefixNodes,
    forest: Forest,
    graphs: GraphArrays,
    weights: DecoderWeights,
    gradients: tuple[Array, Array, Array, Array],
) -> None:
    """Add gradients of states, keys and values, after those of the contexts [V, W]."""
    d_context, d_states, d_keys, d_values = gradients
    scores, d_scores = nodes.scores[0], nodes.scores[1]
    for v in range(len(d_context)):
        graph, d_c, state, d_state = forest.graph[v], d_context[v], forest.states[v], d_states[v]
        attend(scores, state, weights.keys[graph], graphs.size[graph])
        mean = np.float32(0)
        for j in range(graphs.size[graph]):
            value, total = weights.values[graph, j], np.float32(0)
            for k in range(len(state)):
                total += value[k] * d_c[k]
            d_scores[j] = total
            mean += scores[j] * total
        for j in range(graphs.size[graph]):
            share, d_score = scores[j], scores[j] * (d_scores[j] - mean)
            key, d_key, d_value = weights.keys[graph, j], d_keys[graph, j], d_values[graph, j]
            for k in range(len(state)):
                d_value[k] += share * d_c[k]
            for k in range(len(state)):
                d_key[k] += d_score * state[k]
            for k in range(len(state)):
                d_state[k] += d_score * key[k]


class PrefixTree:
    """All that was decided about a batch with the present parameters."""

    free: ClassVar[list[dict[str, Tensor]]] = []
    """Memory of former trees: fresh pages take longer than what fills them."""

    def __init__(self, weights: DecoderWeights, graphs: GraphArrays) -> None:
        self.weights, self.graphs = weights, graphs
        self._detached = DecoderWeights(*(part.detach().contiguous() for part in weights))
        self._arrays = DecoderWeights(*(part.numpy() for part in self._detached))
        self._segments: list[Segment] = []
        self._memory: dict[str, Tensor] = {}
        self._parts: dict[str, Tensor] = {}
        self._count = 0

    def __del__(self) -> None:
        """Leave the memory to another tree."""
        if 0 < len(self._parts.get("gates", ())) <= MOST_KEPT:
            self.free.append(self._memory)

    @torch.no_grad()
    def decide(self, samples: int, keys: Tensor | None) -> Tensor:
        """Placements [G, S, N], step by step: drawn by keys [G]; without keys, the likeliest."""
        graphs, n, devices = self.graphs.allowed.shape
        if keys is None:
            noise = torch.zeros(graphs, samples, n, devices)
        else:
            noise = gumbel(keys, samples, n, devices)
        chosen = torch.zeros(graphs, samples, n, dtype=torch.int64)
        return torch.from_numpy(self.along(chosen, noise.numpy())[0])

    def likelihood(self, placements: Tensor) -> Likelihood:
        """Log-probabilities and entropies of placements [G, S, N], with gradients."""
        found: Any = PathLikelihood.apply(self, placements, *self.weights)  # type: ignore[no-untyped-call]
        return Likelihood(*found)

    def along(self, devices: Tensor, noise: Array | None = None) -> Array:
        """Paths [2, G, S, N] of devices and their nodes; noise chooses the devices step by step."""
        w, graphs = self._detached, self.graphs
        paths = torch.stack([devices, torch.zeros_like(devices)]).numpy()
        self._reserve(self._count + devices.numel())
        described = len(w.described) > 0
        shape = (*devices.shape[:2], graphs.allowed.shape[2]) if described else (0, 0, 0)
        loads = no_loads(shape, self._arrays.keys.dtype)
        for t in range(devices.shape[2]):
            first = self._count
            last = grow(self.nodes, self.forest, graphs, loads, self._arrays.start, paths, t, first)
            if last > first:
                self._count = last
                self._segments.append((t, first, last))
                names = "joined", "gates", "states", "hidden"
                joined, gates, states, hidden = (self._parts[n][first:last] for n in names)
                gates_of(joined, w.recurrent, w.reading, gates)
                advance(self.forest, self._arrays.inputs, t, first, last)
                multiply_transposed(states, w.state, hidden)
                hidden += w.state_bias
                judge(self.nodes, self.forest, graphs, self._arrays, first, last)
            if noise is not None:
                choose(self.nodes, graphs, noise, paths, t)
        return paths

    def gradients(self, paths: Array, d_log_p: Tensor, d_entropy: Tensor) -> DecoderWeights:
        """Gradients from those of the likelihood of paths."""
        w, part = self._detached, {n: tensor[: self._count] for n, tensor in self._parts.items()}
        of_log_p, of_entropy = d_log_p.contiguous().numpy(), d_entropy.contiguous().numpy()
        d_logits = torch.zeros_like(part["log_p"])
        logit_gradients(self.nodes, self.graphs, paths, of_log_p, of_entropy, d_logits.numpy())
        d_hidden, d_described = part["d_hidden"], torch.zeros_like(w.described)
        if len(w.described):
            d_output = torch.zeros_like(w.output)
            of_layers = d_hidden.zero_().numpy(), d_output.numpy(), d_described.numpy()
            described_gradients(self.nodes, self._arrays, d_logits.numpy(), *of_layers)
            d_output_bias = d_logits.sum()[None]
        else:
            torch.mm(d_logits, w.output, out=d_hidden).mul_(part["hidden"] > 0)
            d_output, d_output_bias = d_logits.t() @ part["hidden"], d_logits.sum(0)
        d_states = torch.mm(d_hidden, w.state, out=part["d_states"])
        d_keys, d_values = torch.zeros_like(w.keys), torch.zeros_like(w.values)
        added = d_hidden.numpy(), d_states.numpy(), d_keys.numpy(), d_values.numpy()
        attention_gradients(self.nodes, self.forest, self.graphs, self._arrays, added)
        work = part["d_cells"].zero_(), part["d_before"], part["deltas"]
        d_inputs, d_start, d_recurrent, d_reading = retraced(
            self.forest, self._segments, d_states, w.recurrent, w.inputs, part["joined"], work
        )
        return DecoderWeights(
            inputs=d_inputs,
            recurrent=d_recurrent,
            reading=d_reading,
            keys=d_keys,
            values=d_values,
            start=d_start,
            state=d_hidden.t() @ part["states"],
            state_bias=d_hidden.sum(0),
            output=d_output,
            output_bias=d_output_bias,
            described=d_described,
        )

    def _reserve(self, room: int) -> None:
        """Make room for so many nodes, of which more come when replayed placements are added."""
        if self._parts and len(self._parts["joined"]) >= room:
            return
        w, devices = self._detached, self.graphs.allowed.shape[2]
        (gates, width), features = w.recurrent.shape, len(w.described)
        joined = width + w.reading.shape[1]
        wide = "cells", "states", "hidden", "d_hidden", "d_states", "d_cells", "d_before"
        sizes: dict[str, tuple[int, ...]] = {
            **{"joined": (joined,), "log_p": (devices,), "features": (devices, features)},
            **dict.fromkeys(("gates", "deltas"), (gates,)),
            **dict.fromkeys(wide, (width,)),
            **{"child": (devices,), "open": (devices,), "parent": (), "graph": ()},
        }
        kinds = {"open": torch.bool, **dict.fromkeys(("child", "parent", "graph"), torch.int32)}
        memory: dict[str, Tensor] = {}
        with suppress(IndexError):  # where no tree has left any
            memory = self.free.pop()
        parts = {}
        for name, size in sizes.items():
            each, kind = math.prod(size), kinds.get(name, w.start.dtype)
            if name not in memory or memory[name].dtype != kind or len(memory[name]) < room * each:
                memory[name] = torch.empty(4 * room * each, dtype=kind)
            parts[name] = memory[name][: room * each].view(room, *size)
            if self._count:
                parts[name][: self._count] = self._parts[name][: self._count]
        self._memory, self._parts = memory, parts
        arrays = {name: tensor.numpy() for name, tensor in parts.items()}
        arrays["scores"] = np.empty((2, self.graphs.allowed.shape[1]), self._arrays.keys.dtype)
        arrays["rectified"] = np.empty(width, self._arrays.keys.dtype)
        self.forest = Forest(*(arrays[name] for name in Forest._fields))
        self.nodes = PrefixNodes(*(arrays[name] for name in PrefixNodes._fields))


class PathLikelihood(torch.autograd.Function):
    """Log-probability and mean entropy [G, S] of placements [G, S, N]."""

    @staticmethod
    def forward(ctx: Any, tree: PrefixTree, devices: Tensor, *_: Tensor) -> tuple[Tensor, Tensor]:
        """Sum over the nodes on the paths."""
        ctx.tree, ctx.paths = tree, tree.along(devices)
        size = torch.from_numpy(tree.graphs.size)
        there = torch.arange(devices.shape[2]) < size[:, None, None]
        each = torch.from_numpy(tree.nodes.log_p)[torch.from_numpy(ctx.paths[1])]
        taken = each.gather(3, devices[..., None])[..., 0].masked_fill(~there, 0).sum(2)
        spread = (each.exp() * each).sum(3).masked_fill(~there, 0).sum(2)
        return taken, -spread / size[:, None]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_log_p: Tensor, d_entropy: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of what is encoded, and of the parameters."""
        return None, None, *ctx.tree.gradients(ctx.paths, d_log_p, d_entropy)

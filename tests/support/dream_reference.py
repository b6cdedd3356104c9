"""The paper's formulas, operator by operator, from a policy's parameters; slow and literal."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamplace.learn.models.dream.graphs import FeatureScale
from streamplace.learn.models.dream.network import (
    EncoderDecoder,
    GraphEncoder,
    Hop,
    SequenceEncoder,
)
from streamplace.model.problem import Problem


def sigmoid(z: NDArray[Any]) -> NDArray[Any]:
    return 1 / (1 + np.exp(-z))


def linear(layer: Any, x: NDArray[Any]) -> NDArray[Any]:
    """A linear layer as float64."""
    weight = layer.weight.detach().double().numpy()
    bias = 0 if layer.bias is None else layer.bias.detach().double().numpy()
    return weight @ x + bias


def parameter(tensor: Any) -> NDArray[Any]:
    return tensor.detach().double().numpy()


def graph_vectors(
    encoder: GraphEncoder, problem: Problem, scale: FeatureScale
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Vectors of operators [N, W] in operator order, and of the graph [W] (§3.1)."""
    ends = np.stack([problem.instance.source, problem.instance.target], axis=1).tolist()
    views = []
    for hops, forward in ((encoder.up, True), (encoder.down, False)):
        h = list(scale.operators(problem))
        for hop in hops:
            h = [one_update(hop, h, v, ends, forward) for v in range(len(h))]
        views.append(h)
    nodes = np.array([np.concatenate([up, down]) for up, down in zip(*views, strict=True)])
    return nodes, np.max([linear(encoder.pool, h) for h in nodes], axis=0)


def one_update(
    hop: Hop, h: list[NDArray[Any]], v: int, ends: list[Any], forward: bool
) -> NDArray[Any]:
    """Equation 1 for one operator and one view."""
    arriving = []
    for u, w in ends:
        neighbour, here = (u, w) if forward else (w, u)
        if here == v:
            arriving.append(np.tanh(linear(hop.incoming, h[neighbour])))
    width = hop.incoming.out_features
    mean = np.mean(arriving, axis=0) if arriving else np.zeros(width)
    return np.tanh(linear(hop.update_view, np.concatenate([h[v], mean])))


def sequence_vectors(
    encoder: SequenceEncoder, problem: Problem, scale: FeatureScale, order: list[int]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Vectors of operators [N, W] in operator order, and of the graph [W], of the baseline B."""
    width = encoder.recurrent.shape[1]
    state, cell = np.zeros(width), np.zeros(width)
    nodes = np.zeros((problem.n_operators, width))
    for v in order:
        gates = linear(encoder.read, scale.operators(problem)[v])
        state, cell = lstm(gates + parameter(encoder.recurrent) @ state, cell)
        nodes[v] = state
    return nodes, state


def lstm(gates: NDArray[Any], cell: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    i, f, o, g = np.split(gates, 4)
    cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(cell), cell


def probabilities(
    policy: EncoderDecoder,
    problem: Problem,
    scale: FeatureScale,
    placement: dict[int, int],
    order: list[int],
) -> NDArray[Any]:
    """P(d_v | decisions before) [N, D], in the order of decision, along a placement (§3.2)."""
    decoder = policy.decoder
    encoder = policy.encoder
    if hasattr(encoder, "up"):
        nodes, state = graph_vectors(encoder, problem, scale)
    else:
        nodes, state = sequence_vectors(encoder, problem, scale, order)
    devices = parameter(decoder.devices)
    cell, previous = np.zeros_like(state), np.zeros(devices.shape[1])
    decided = {}
    rows = []
    for v in order:
        gates = linear(decoder.read, nodes[v]) + linear(decoder.read_previous, previous)
        if decoder.read_upstream is not None:
            gates += linear(decoder.read_upstream, upstream_mean(problem, v, decided, devices))
        if decoder.read_state is not None:
            gates += linear(decoder.read_state, device_state(problem, v, decided, len(devices)))
        state, cell = lstm(gates + parameter(decoder.recurrent) @ state, cell)
        attention = np.exp([state @ h for h in nodes])
        context = (attention / attention.sum()) @ nodes
        hidden = linear(decoder.state_layer, state) + linear(decoder.context_layer, context)
        score = np.exp(linear(decoder.output, np.maximum(hidden, 0)))
        score *= [is_open(problem, d, decided) for d in range(len(devices))]
        rows.append(score / score.sum())
        decided[v] = placement[v]
        previous = devices[placement[v]]
    return np.array(rows)


def upstream_mean(
    problem: Problem, v: int, decided: dict[Any, Any], devices: NDArray[Any]
) -> NDArray[Any]:
    """D^(up)(v): mean embedding of the devices of upstream operators that are decided about."""
    ends = zip(problem.instance.source.tolist(), problem.instance.target.tolist(), strict=True)
    known = [devices[decided[u]] for u in {u for u, w in ends if w == v} if u in decided]
    return np.mean(known, axis=0) if known else np.zeros(devices.shape[1])


def device_state(problem: Problem, v: int, decided: dict[Any, Any], n_devices: int) -> NDArray[Any]:
    """Load of every device so far, and what it would send to the operator as a share of a link."""
    instance, d = problem.instance, problem.n_devices
    load, inbound = np.zeros(n_devices), np.zeros(n_devices)
    for u, device in decided.items():
        load[device] += instance.load[u, instance.device_type[device]]
    wire = instance.seconds_per_byte.sum() / max(d * (d - 1), 1)
    for u, w, traffic in zip(instance.source, instance.target, instance.traffic, strict=True):
        if w == v and u in decided:
            inbound[decided[u]] += traffic * wire
    return np.concatenate([load, inbound])


def is_open(problem: Problem, device: int, decided: dict[Any, Any]) -> bool:
    """Of interchangeable devices only the first unused is open; without rules."""
    if device >= problem.n_devices:
        return False
    used = set(decided.values())
    alike = np.flatnonzero(problem.interchangeable == problem.interchangeable[device])
    return all(other in used for other in alike if other < device)

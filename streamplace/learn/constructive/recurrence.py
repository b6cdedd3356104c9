"""The recurrence of an LSTM, forward and backward.

    z = x + W h + U r;  i, f, o = σ(z), g = tanh(z);  c' = f c + i g;  h' = o tanh(c')

It goes over a forest: every node is the state after one more decision, and its parent the
state before. Nodes come in segments, of which each has only parents in earlier ones. The gradients
of W and U are one matrix product each over all nodes. Both are never joined: matrices whose rows
are not aligned take twice as long.

Shapes: V nodes, G graphs, T steps, S samples per graph, R = G · S rows, H width, K further inputs.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from streamplace.learn.numba_kernels.jit import inlined_kernel, relaxed_kernel
from streamplace.learn.tensors.few_rows import multiply, multiply_transposed
from streamplace.model.arrays import Array

Segment = tuple[int, int, int]
"""Step, and first and last node (excluded)."""


class Forest(NamedTuple):
    """States after decisions; float32, or float64 to test gradients."""

    parent: Array  # [V] node before, in an earlier segment; -1: the initial state, and c = 0
    graph: Array  # [V]
    joined: Array  # [V, H + K] [h : r]
    gates: Array  # [V, 4H] z, then i, f, o, g
    cells: Array  # [V, H] c'
    states: Array  # [V, H] h'


@inlined_kernel
def tanh(x: Any) -> Any:
    """Return tanh within 2e-7, as a fraction that takes vector instructions."""
    x = max(min(x, np.float32(7.9053111)), np.float32(-7.9053111))
    y = x * x
    top = y * np.float32(-2.76076847742355e-16) + np.float32(2.00018790482477e-13)
    top = y * top + np.float32(-8.60467152213735e-11)
    top = y * top + np.float32(5.12229709037114e-08)
    top = y * top + np.float32(1.48572235717979e-05)
    top = y * top + np.float32(6.37261928875436e-04)
    top = y * top + np.float32(4.89352455891786e-03)
    bottom = y * np.float32(1.19825839466702e-06) + np.float32(1.18534705686654e-04)
    bottom = y * bottom + np.float32(2.26843463243900e-03)
    bottom = y * bottom + np.float32(4.89352518554385e-03)
    return x * top / bottom


@inlined_kernel
def sigmoid(x: Any) -> Any:
    """Logistic function."""
    half = np.float32(0.5)
    return half + half * tanh(half * x)


@relaxed_kernel
def advance(forest: Forest, inputs: Array, step: int, first: int, last: int) -> None:
    """States of a segment, whose gates hold W h + U r; ``inputs`` are x [G, T, 4H]."""
    width = forest.cells.shape[1]
    for v in range(first, last):
        x, z, parent = inputs[forest.graph[v], step], forest.gates[v], forest.parent[v]
        cell, state, before = forest.cells[v], forest.states[v], forest.cells[max(parent, 0)]
        for k in range(width):
            i = sigmoid(z[k] + x[k])
            f = sigmoid(z[width + k] + x[width + k])
            o = sigmoid(z[2 * width + k] + x[2 * width + k])
            g = tanh(z[3 * width + k] + x[3 * width + k])
            z[k], z[width + k], z[2 * width + k], z[3 * width + k] = i, f, o, g
            cell[k] = i * g + (f * before[k] if parent >= 0 else np.float32(0))
            state[k] = o * tanh(cell[k])


@relaxed_kernel
def retreat(
    forest: Forest,
    segments: tuple[int, int, int, int, int],
    d_inputs: Array,
    d_states: Array,
    d_cells: Array,
    d_before: Array,
    deltas: Array,
) -> None:
    """Gradients of z of a segment (step, first, last), given all of later ones.

    Those of h of the segment done before it (first, last) first go to the parents.
    """
    step, first, last, done, end = segments
    width = forest.cells.shape[1]
    for v in range(done, end):
        to, part = d_states[forest.parent[v]], d_before[v]
        for k in range(width):
            to[k] += part[k]
    one = np.float32(1)
    for v in range(first, last):
        parent, cell, state = forest.parent[v], d_cells[v], d_states[v]
        i, f = forest.gates[v, :width], forest.gates[v, width : 2 * width]
        o, g = forest.gates[v, 2 * width : 3 * width], forest.gates[v, 3 * width :]
        d_i, d_f = deltas[v, :width], deltas[v, width : 2 * width]
        d_o, d_g = deltas[v, 2 * width : 3 * width], deltas[v, 3 * width :]
        for k in range(width):
            squashed = tanh(forest.cells[v, k])
            cell[k] += state[k] * o[k] * (one - squashed * squashed)
            d_o[k] = state[k] * squashed * o[k] * (one - o[k])
        for k in range(width):
            d_i[k] = cell[k] * g[k] * i[k] * (one - i[k])
            d_g[k] = cell[k] * i[k] * (one - g[k] * g[k])
        for k in range(width):
            d_f[k] = 0
            if parent >= 0:
                d_f[k] = cell[k] * forest.cells[parent, k] * f[k] * (one - f[k])
                d_cells[parent, k] += cell[k] * f[k]
        for k in range(4 * width):
            d_inputs[forest.graph[v], step, k] += deltas[v, k]


def gates_of(joined: Tensor, recurrent: Tensor, reading: Tensor, into: Tensor) -> None:
    """Write W h + U r of [h : r]."""
    multiply_transposed(joined, recurrent, into)
    if reading.shape[1]:
        into.addmm_(joined[:, recurrent.shape[1] :], reading.t())


def retraced(
    forest: Forest,
    segments: Sequence[Segment],
    d_states: Tensor,
    recurrent: Tensor,
    inputs: Tensor,
    joined: Tensor,
    work: tuple[Tensor, Tensor, Tensor],
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of x [G, T, 4H], of initial states, of W and of U, from those of the states.

    The nodes of the first segment, and no others, have initial states. ``d_states`` is consumed,
    as is ``work``: zeros [V, H], and anything [V, H] and [V, 4H].
    """
    width, d_inputs = d_states.shape[1], torch.zeros_like(inputs)
    d_cells, d_before, deltas = work
    arrays: Any = [part.numpy() for part in (d_inputs, d_states, d_cells, d_before, deltas)]
    done = 0, 0
    for step, first, last in reversed(segments):
        retreat(forest, (step, first, last, *done), *arrays)
        multiply(deltas[first:last], recurrent, d_before[first:last])
        done = first, last
    d_recurrent, d_reading = deltas.t() @ joined[:, :width], deltas.t() @ joined[:, width:]
    return d_inputs, d_before[: segments[0][2]], d_recurrent, d_reading


class LstmRecurrence(torch.autograd.Function):
    """All states of an LSTM, whose inputs the samples of a graph share."""

    @staticmethod
    def forward(
        ctx: Any, inputs: Tensor, read: Tensor, start: Tensor, recurrent: Tensor, reading: Tensor
    ) -> Tensor:
        """States [T, R, H] of x [T, G, 4H], r [T, G, S, K], h_0 [R, H], W [4H, H], U [4H, K]."""
        steps, graphs, samples, extra = read.shape
        rows, width = graphs * samples, start.shape[1]
        x = inputs.transpose(0, 1).contiguous()
        joined = inputs.new_empty(steps, rows, width + extra)
        gates = inputs.new_empty(steps, rows, 4 * width)
        cells, states = inputs.new_empty(2, steps, rows, width)
        joined[:, :, width:] = read.flatten(1, 2)
        parent = np.arange(-rows, (steps - 1) * rows, dtype=np.int32).clip(min=-1)
        graph = np.tile(np.repeat(np.arange(graphs, dtype=np.int32), samples), steps)
        parts = (part.flatten(0, 1).numpy() for part in (joined, gates, cells, states))
        forest = Forest(parent, graph, *parts)
        for t in range(steps):
            joined[t, :, :width] = states[t - 1] if t else start
            gates_of(joined[t], recurrent, reading, gates[t])
            advance(forest, x.numpy(), t, t * rows, (t + 1) * rows)
        ctx.save_for_backward(x, joined, recurrent)
        ctx.forest, ctx.segments = forest, [(t, t * rows, (t + 1) * rows) for t in range(steps)]
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, Tensor, Tensor, Tensor]:
        """Gradients of x, h_0, W and U from that of the states [T, R, H]; r has none."""
        x, joined, recurrent = ctx.saved_tensors
        d_states = grad.flatten(0, 1).clone()
        deltas = d_states.new_empty(len(d_states), len(recurrent))
        work = torch.zeros_like(d_states), torch.empty_like(d_states), deltas
        d_x, d_start, d_recurrent, d_reading = retraced(
            ctx.forest, ctx.segments, d_states, recurrent, x, joined.flatten(0, 1), work
        )
        return d_x.transpose(0, 1), None, d_start, d_recurrent, d_reading


def lstm_states(
    inputs: Tensor, read: Tensor, start: Tensor, recurrent: Tensor, reading: Tensor
) -> Tensor:
    """States [T, R, H] of x [T, G, 4H], r [T, G, S, K], h_0 [R, H], W [4H, H], U [4H, K]."""
    parts = inputs, read, start, recurrent, reading
    states: Tensor = LstmRecurrence.apply(*parts)  # type: ignore[no-untyped-call]
    return states

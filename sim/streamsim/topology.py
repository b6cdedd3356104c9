"""Order, adjacency and rates of a stream graph given as source and target columns."""

import numpy as np
from numpy.typing import NDArray

from streamsim.jit import kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


@kernel
def group_by(keys: Ints, n: int) -> tuple[Ints, Ints]:
    """Positions of each key: those of k are ``positions[start[k]:start[k + 1]]``, rising."""
    start = np.zeros(n + 1, np.int32)
    for key in keys:
        start[key + 1] += 1
    for k in range(n):
        start[k + 1] += start[k]
    fill = start[:-1].copy()
    positions = np.empty(len(keys), np.int32)
    for i in range(len(keys)):
        positions[fill[keys[i]]] = i
        fill[keys[i]] += 1
    return start, positions


@kernel
def topological_order(n: int, source: Ints, target: Ints) -> Ints:
    """Operators in breadth-first topological order; shorter than n where there is a cycle."""
    start, streams = group_by(source, n)
    waiting = np.zeros(n, np.int32)
    for v in target:
        waiting[v] += 1
    order = np.empty(n, np.int32)
    end = 0
    for v in range(n):
        if waiting[v] == 0:
            order[end] = v
            end += 1
    done = 0
    while done < end:
        u = order[done]
        done += 1
        for i in range(start[u], start[u + 1]):
            v = target[streams[i]]
            waiting[v] -= 1
            if waiting[v] == 0:
                order[end] = v
                end += 1
    return order[:end]


@kernel
def window_output(row: Floats, count: float) -> float:
    """What a window emits for ``count`` tuples: f(count) of `streamsim.instance.Window`."""
    return min(row[5], row[3] + row[4] * count) if count > 0 else 0.0


@kernel
def propagate_rates(
    rate: Floats, source: Ints, target: Ints, selectivity: Floats, windows: Floats
) -> tuple[Floats, Floats, Floats]:
    """Input and output rate of every operator and tuple rate of every stream, at full rate.

    Streams must be sorted by the topological position of their source. The output rate of an
    operator is its input rate λ(v) = R_v + Σ over (u, v) of selectivity · output rate of u; that of
    a windowed operator is f(λ · size) / advance.
    """
    window_row = np.full(len(rate), -1, np.int32)
    for k in range(len(windows)):
        window_row[int(windows[k, 0])] = k
    input_rate = rate.copy()
    tuples = np.empty(len(source))
    for e in range(len(source)):
        u = source[e]
        tuples[e] = selectivity[e] * _output(input_rate[u], window_row[u], windows)
        input_rate[target[e]] += tuples[e]
    output_rate = np.empty(len(rate))
    for v in range(len(rate)):
        output_rate[v] = _output(input_rate[v], window_row[v], windows)
    return input_rate, output_rate, tuples


@kernel
def _output(rate: float, row: int, windows: Floats) -> float:
    if row < 0:
        return rate
    output: float = window_output(windows[row], rate * windows[row, 1]) / windows[row, 2]
    return output

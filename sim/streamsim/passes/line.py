"""Lines: the order in which every device runs its operators under the queue ``order``."""

from typing import NamedTuple

import numpy as np

from streamsim.arrays import Floats, Ints, Longs
from streamsim.jit import inlined_kernel, kernel, patient
from streamsim.passes.compiled import Pass
from streamsim.passes.state import State

WAITING, READY = range(2)
"""States of an operator in a line: inputs missing, or all present."""


class Conflict(NamedTuple):
    """Two operators of one line; the first is ahead but depends on the second."""

    first: int
    second: int


def lines(one_pass: Pass, priorities: Floats) -> Ints:
    """Operators by falling priority [B, N], with ties in topological order.

    The line of a device consists of its operators in this order.
    """
    along = np.argsort(-priorities[:, one_pass.order], axis=1, kind="stable")
    return np.ascontiguousarray(one_pass.order[along], np.int32)


def merged_order(one_pass: Pass, place: Ints, priorities: Floats) -> Ints:
    """Operators in an order that agrees with the streams and with the line of every device.

    Operators that could never start are missing; see `conflict`.
    """
    line = lines(one_pass, priorities[None])[0]
    return _merged(one_pass, _before(place, line, one_pass.n_devices))


def conflict(one_pass: Pass, place: Ints, priorities: Floats) -> Conflict | None:
    """Find two operators whose order in a line contradicts the streams; None if there are none."""
    before = _before(place, lines(one_pass, priorities[None])[0], one_pass.n_devices)
    stuck = np.ones(one_pass.n_operators, np.bool_)
    stuck[_merged(one_pass, before)] = False
    if not stuck.any():
        return None
    streams = one_pass.streams
    came = {v: int(before[v]) for v in np.flatnonzero(stuck).tolist()}
    inside = np.flatnonzero(stuck[streams["source"]] & stuck[streams["target"]])
    came |= {int(streams["target"][e]): int(streams["source"][e]) for e in inside}
    way, v = [], next(iter(came))
    while v not in way:
        way.append(v)
        v = came[v]
    second = next(u for u in way[way.index(v) :] if came[u] == before[u])
    return Conflict(int(before[second]), second)


@inlined_kernel
def line_up(state: State, place: Ints, line: Ints) -> None:
    """Put every operator into the line of its device."""
    for d in range(len(state.devices)):
        state.devices[d].head = -1
    for i in range(len(line) - 1, -1, -1):
        v = line[i]
        operator, device = state.operators[v], state.devices[place[v]]
        operator.child = WAITING
        operator.next = device.head
        device.head = v


@inlined_kernel
def note_ready(state: State, v: int) -> None:
    """Note that an operator in a line has all of its inputs."""
    state.operators[v].child = READY


@inlined_kernel
def is_ready(state: State, v: int) -> bool:
    """Whether an operator in a line has all of its inputs."""
    mark: int = state.operators[v].child
    return mark == READY


@inlined_kernel
def is_left(state: State) -> bool:
    """Whether any line is non-empty; at the end of a pass, its operators can never start."""
    left = False
    for d in range(len(state.devices)):
        left |= state.devices[d].head >= 0
    return left


def _merged(one_pass: Pass, before: Ints) -> Ints:
    operators = one_pass.operators
    return _topological(
        operators["inputs"],
        operators["out_start"],
        operators["out_end"],
        one_pass.streams["target"],
        before,
    )


@patient
@kernel
def _before(place: Ints, line: Ints, n_devices: int) -> Ints:
    """Predecessor of each operator in the line of its device, -1 for the first."""
    last = np.full(n_devices, -1, np.int32)
    before = np.empty(len(line), np.int32)
    for v in line:
        before[v] = last[place[v]]
        last[place[v]] = v
    return before


@patient
@kernel
def _topological(
    inputs: Ints, out_start: Longs, out_end: Longs, target: Ints, before: Ints
) -> Ints:
    """Topological order of streams and lines together, without operators on cycles."""
    n = len(before)
    behind, waiting = np.full(n, -1, np.int32), np.zeros(n, np.int32)
    order, size = np.empty(n, np.int32), 0
    for v in range(n):
        waiting[v] = inputs[v]
        if before[v] >= 0:
            behind[before[v]] = v
            waiting[v] += 1
        if waiting[v] == 0:
            order[size] = v
            size += 1
    done = 0
    while done < size:
        v = order[done]
        done += 1
        for e in range(out_start[v], out_end[v]):
            size = _arrived(target[e], waiting, order, size)
        if behind[v] >= 0:
            size = _arrived(behind[v], waiting, order, size)
    return order[:size]


@kernel
def _arrived(v: int, waiting: Ints, order: Ints, size: int) -> int:
    """Count an arrival at v and append it when ready; return the new size of the order."""
    waiting[v] -= 1
    if waiting[v] > 0:
        return size
    order[size] = v
    return size + 1

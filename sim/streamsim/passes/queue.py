"""Queues for cores: first in, first out; heaps by rank; and lines, which devices hold.

The line of a device is the order in which it runs its operators under the queue ``order``.
"""

from typing import Final, NamedTuple

import numpy as np

from streamsim.arrays import Floats, Ints, Records
from streamsim.jit import inlined_kernel
from streamsim.passes.compiled import Pass
from streamsim.passes.state import GRANTED_TO, TOUCHED, WAVE, State
from streamsim.topology import topological_order

#: Queues as encoded for the kernels.
FIFO, ROWS, RANKED, LINE = range(4)
QUEUES: Final = {
    "fifo": FIFO,
    "rows": ROWS,
    "priority": RANKED,
    "depth": RANKED,
    "breadth": RANKED,
    "order": LINE,
}
WAITING, READY = range(2)
"""States of an operator in a line: inputs missing, or all present."""


@inlined_kernel
def offer(state: State, queue: int, v: int) -> int:
    """Give a ready operator a core and return it, or put it into its device's queue (-1)."""
    d = state.operators[v].device
    device = state.devices[d]
    if queue != FIFO:
        if queue == LINE:
            state.operators[v].child = READY
        else:
            _enter(state, queue, v)
        touch(state, d)
        return -1
    if device.free > 0:
        device.free -= 1
        return v
    state.operators[v].next = -1
    if device.head < 0:
        device.head = v
    else:
        state.operators[device.tail].next = v
    device.tail = v
    return -1


@inlined_kernel
def release(state: State, queue: int, d: int) -> int:
    """Free a core of device d; return the operator that takes it over at once, or -1."""
    device = state.devices[d]
    v: int = device.head
    if queue != FIFO:
        touch(state, d)
        v = -1
    if v < 0:
        device.free += 1
        return -1
    device.head = state.operators[v].next
    return v


@inlined_kernel
def touch(state: State, d: int) -> None:
    """Mark device d as possibly having an operator to start at the end of this instant."""
    if state.devices[d].marked == 0:
        state.devices[d].marked = 1
        state.devices[state.counters[TOUCHED]].touched = d
        state.counters[TOUCHED] += 1


@inlined_kernel
def next_granted(state: State, queue: int) -> int:
    """Give a free core of a touched device to the first operator of its heap; -1 at the end.

    If the first of a line still waits for inputs, the line waits.
    """
    while state.counters[GRANTED_TO] < state.counters[TOUCHED]:
        device = state.devices[state.devices[state.counters[GRANTED_TO]].touched]
        v: int = device.head
        if device.free > 0 and v >= 0 and (queue != LINE or state.operators[v].child == READY):
            device.free -= 1
            if queue == LINE:
                device.head = state.operators[v].next
            else:
                device.head = _without_root(state.operators, v)
            return v
        device.marked = 0
        state.counters[GRANTED_TO] += 1
    state.counters[TOUCHED] = 0
    state.counters[GRANTED_TO] = 0
    return -1


@inlined_kernel
def _enter(state: State, queue: int, v: int) -> None:
    """Insert an operator into its device's heap; for a queue by rank, its key is already set."""
    operator = state.operators[v]
    if queue == ROWS:
        operator.key = state.counters[WAVE]
        operator.tie = ((operator.producer + 1) << 32) | v
    operator.child = -1
    operator.next = -1
    device = state.devices[operator.device]
    device.head = _meld(state.operators, device.head, v)


@inlined_kernel
def _without_root(operators: Records, root: int) -> int:
    """Remove the root of a pairing heap: meld the children in pairs, then the pairs."""
    paired, v = -1, operators[root].child
    while v >= 0:
        other = operators[v].next
        following = operators[other].next if other >= 0 else -1
        pair = _meld(operators, v, other)
        operators[pair].next = paired
        paired, v = pair, following
    if paired < 0:
        return -1
    rest, paired = paired, operators[paired].next
    while paired >= 0:
        following = operators[paired].next
        rest = _meld(operators, rest, paired)
        paired = following
    return rest


@inlined_kernel
def _meld(operators: Records, a: int, b: int) -> int:
    """Merge two heaps, either of which may be empty; return the root."""
    if a < 0 or b < 0:
        return max(a, b)
    first, second = operators[a], operators[b]
    if second.key < first.key or (second.key == first.key and second.tie < first.tie):
        a, b = b, a
    operators[b].next = operators[a].child
    operators[a].child = b
    operators[a].next = -1
    return a


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
    return _merged(one_pass, _before(place, line))


def conflict(one_pass: Pass, place: Ints, priorities: Floats) -> Conflict | None:
    """Find two operators whose order in a line contradicts the streams; None if there are none."""
    before = _before(place, lines(one_pass, priorities[None])[0])
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
def is_left(state: State) -> bool:
    """Whether any line is non-empty; at the end of a pass, its operators can never start."""
    left = False
    for d in range(len(state.devices)):
        left |= state.devices[d].head >= 0
    return left


def _merged(one_pass: Pass, before: Ints) -> Ints:
    """Topological order of streams and lines together, without operators on cycles."""
    streams, behind = one_pass.streams, np.flatnonzero(before >= 0).astype(np.int32)
    source = np.concatenate([streams["source"], before[behind]])
    target = np.concatenate([streams["target"], behind])
    return topological_order(one_pass.n_operators, source, target)


def _before(place: Ints, line: Ints) -> Ints:
    """Predecessor of each operator in the line of its device, -1 for the first."""
    by_device = line[np.argsort(place[line], kind="stable")]
    follows = place[by_device[1:]] == place[by_device[:-1]]
    before = np.full(len(line), -1, np.int32)
    before[by_device[1:][follows]] = by_device[:-1][follows]
    return before

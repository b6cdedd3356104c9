"""Queues for cores: first in, first out; heaps by rank; and lines."""

from typing import Final

from streamsim.arrays import Records
from streamsim.jit import inlined_kernel
from streamsim.passes.line import is_ready, note_ready
from streamsim.passes.state import GRANTED_TO, TOUCHED, WAVE, State

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


@inlined_kernel
def offer(state: State, queue: int, v: int) -> int:
    """Give a ready operator a core and return it, or put it into its device's queue (-1)."""
    d = state.operators[v].device
    device = state.devices[d]
    if queue != FIFO:
        if queue == LINE:
            note_ready(state, v)
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
        if device.free > 0 and v >= 0 and (queue != LINE or is_ready(state, v)):
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
    one_pass, two = operators[a], operators[b]
    if two.key < one_pass.key or (two.key == one_pass.key and two.tie < one_pass.tie):
        a, b = b, a
    operators[b].next = operators[a].child
    operators[a].child = b
    operators[a].next = -1
    return a

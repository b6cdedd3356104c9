"""One pass by the rules of GiPH: cores serve in order of arrival, and links have no contention.

The order of events, which decides the many ties, is that of `streamsim.passes`: (time, number),
where each of the following steps is an event of its own, at the same instant unless a duration is
named.

========  ======================================================================================
FINISHED  of v: hands the core to the head of the queue (GRANTED) or frees it; then SENDS of v
SENDS     of v: for every stream, in the caller's order, ARRIVED after the transfer time
ARRIVED   an input is present: COUNTED
COUNTED   after the last input of an operator: READY
READY     of v: gets a free core (GRANTED), or joins the end of its device's queue
GRANTED   of v: FINISHED after its work
========  ======================================================================================

A step that is alone at its instant is carried out at once, and only the last input of an operator
is an event at all; neither changes the order. Later events are in a heap; those of this instant
have higher numbers, and are in a ring.
"""

from typing import Final, NamedTuple

import numpy as np
from streamsim.arrays import Records

from streamplace.learn.numba_kernels.jit import borrowing_kernel, inlined_kernel
from streamplace.learn.numba_kernels.tasks import TaskColumns
from streamplace.model.arrays import Floats, Ints, Longs
from streamplace.model.problem import Problem

#: An event is kind | index, with kinds in multiples of 1 << INDEX_BITS; in the heap, its number is
#: in the bits above.
INDEX_BITS, EVENT_BITS = 28, 32
INDEX_MASK, EVENT_MASK = (1 << INDEX_BITS) - 1, (1 << EVENT_BITS) - 1
ARRIVED, COUNTED, READY, GRANTED, FINISHED, SENDS = (kind << INDEX_BITS for kind in range(6))

#: Counters: events in the heap, start of the ring, events in the ring, last number, and consecutive
#: arrivals that are alone at their instant.
WAITING, OLDEST, PRESENT, NUMBER, ALONE = range(5)

#: Progress of an operator.
PROGRESS: Final = np.dtype(
    [
        ("ready", np.float64),  # arrival of its last input
        ("start", np.float64),
        ("finish", np.float64),
        ("number", np.int64),  # number of the event that makes it ready
        ("producer", np.int64),  # highest index among the producers of its last inputs
        ("waiting", np.int64),  # number of missing inputs
        ("next", np.int64),  # next in the queue
    ],
    align=True,
)

#: Free cores of a device; first and last in its queue, the first -1 if it is empty.
SERVER: Final = np.dtype([("free", np.int64), ("head", np.int64), ("tail", np.int64)], align=True)

#: An event in the heap, with its time and number.
LATER: Final = np.dtype([("time", np.float64), ("entry", np.int64)], align=True)


class PassTimes(NamedTuple):
    """Seconds of one pass of N operators and M streams on D devices."""

    work: Floats  # [N, D] whether an operator may run there or not
    gaps: Floats  # [M] on the link, for the gaps between tuples
    of_tuples: Floats  # [M] overhead at both ends for tuples
    of_bytes: Floats  # [M] overhead at both ends for bytes


class PassState(NamedTuple):
    """Buffers of one pass, which allocates nothing while it runs."""

    operators: Records  # [N] of PROGRESS
    devices: Records  # [D] of SERVER
    heap: Records  # [2 N] of LATER
    now: Longs  # [power of two] ring of the events of this instant, without numbers
    counters: Longs  # [5] by the names above


def pass_times(problem: Problem) -> PassTimes:
    """Times of a problem's pass."""
    one_pass = problem.one_pass
    tuples, size = one_pass.streams["tuples"], one_pass.streams["size"]
    return PassTimes(
        work=np.ascontiguousarray(one_pass.work[:, one_pass.devices["type"]]),
        gaps=tuples * one_pass.gap,
        of_tuples=tuples * (2.0 * one_pass.overhead),
        of_bytes=size * (2.0 * one_pass.overhead_per_byte),
    )


def new_state(tasks: TaskColumns) -> PassState:
    """Allocate buffers for a pass."""
    n, devices = tasks.n_tasks, np.zeros(len(tasks.latency), SERVER)
    devices["free"], devices["head"] = np.diff(tasks.core_start), -1
    ring = np.empty(1 << (2 * n).bit_length(), np.int64)
    return PassState(
        np.empty(n, PROGRESS), devices, np.empty(2 * n, LATER), ring, np.zeros(5, np.int64)
    )


@borrowing_kernel
def run(tasks: TaskColumns, times: PassTimes, place: Ints, state: PassState) -> float:
    """Simulate one pass and return its makespan; the times of operators are in ``state``."""
    _begin(tasks, place, state)
    now = 0.0
    while True:
        event, alone = _next_event(state, now)
        if event >= 0:
            _step(tasks, times, place, state, now, event, alone)
            continue
        if state.counters[WAITING] == 0:
            return now
        now = state.heap[0].time


@inlined_kernel
def _begin(tasks: TaskColumns, place: Ints, state: PassState) -> None:
    """Initialise operators; those without inputs arrive now, before all other events."""
    state.counters[NUMBER] = len(place)
    for v in range(len(place)):
        operator = state.operators[v]
        operator.ready = 0.0
        operator.number = v
        operator.producer = -1
        operator.waiting = tasks.in_start[v + 1] - tasks.in_start[v]
        if operator.waiting == 0:
            _push_now(state, ARRIVED | v)
    state.counters[ALONE] = state.counters[PRESENT]


@inlined_kernel
def _next_event(state: PassState, now: float) -> tuple[int, bool]:
    """Next event of this instant, -1 if it is over; and whether it is alone at the instant."""
    if state.counters[ALONE] > 0:
        state.counters[ALONE] -= 1
        return _pop_now(state), True
    if state.counters[WAITING] > 0 and state.heap[0].time <= now:
        event = _pop_later(state)
    elif state.counters[PRESENT] > 0:
        event = _pop_now(state)
    else:
        return -1, False
    later = state.counters[WAITING] == 0 or state.heap[0].time > now
    return event, later and state.counters[PRESENT] == 0


@inlined_kernel
def _step(
    tasks: TaskColumns,
    times: PassTimes,
    place: Ints,
    state: PassState,
    now: float,
    event: int,
    alone: bool,
) -> None:
    """Carry out one event; immediate consequences are events, unless this one is alone."""
    kind, v = event & ~INDEX_MASK, event & INDEX_MASK
    starts = _gets_core(place, state, kind, v, alone)
    if starts >= 0:
        if alone or kind == GRANTED:
            operator = state.operators[starts]
            operator.start = now
            operator.finish = now + times.work[starts, place[starts]]
            _push(state, now, operator.finish, FINISHED | starts)
        else:
            _push_now(state, GRANTED | starts)
    if kind == SENDS or (kind == FINISHED and alone):
        _send(tasks, times, place, state, now, v)
    elif kind == FINISHED:
        _push_now(state, SENDS | v)
    if alone and kind == FINISHED:
        state.counters[ALONE] = _arrivals_alone(state)


@inlined_kernel
def _gets_core(place: Ints, state: PassState, kind: int, v: int, alone: bool) -> int:
    """Operator that gets a core through this event, -1 if there is none."""
    if kind == GRANTED:
        return v
    if kind == READY or (kind == ARRIVED and alone):
        return _offer(state, place[v], v)
    if kind in (ARRIVED, COUNTED):
        _push_now(state, (kind + COUNTED) | v)
    elif kind == FINISHED:
        return _release(state, place[v])
    return -1


@inlined_kernel
def _offer(state: PassState, d: int, v: int) -> int:
    """Give a ready operator a core and return it, or put it into its device's queue (-1)."""
    device = state.devices[d]
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
def _release(state: PassState, d: int) -> int:
    """Free a core of device d; return the operator that takes it over at once, or -1."""
    device = state.devices[d]
    v: int = device.head
    if v < 0:
        device.free += 1
        return -1
    device.head = state.operators[v].next
    return v


@inlined_kernel
def _send(
    tasks: TaskColumns, times: PassTimes, place: Ints, state: PassState, now: float, v: int
) -> None:
    """Schedule the arrival of every output stream of v."""
    a = place[v]
    for e in range(tasks.out_start[v], tasks.out_end[v]):
        b, time = place[tasks.target[e]], now
        if a != b:
            held = tasks.size[e] * tasks.wire[a, b] + times.gaps[e]
            apart = tasks.latency[a, b] + times.of_tuples[e] + times.of_bytes[e]
            time = now + (apart + held)
        _arrive(tasks, state, e, now, time)


@inlined_kernel
def _arrive(tasks: TaskColumns, state: PassState, e: int, now: float, time: float) -> None:
    """Schedule the arrival of stream e; as the last input, it makes its operator ready."""
    v = tasks.target[e]
    target = state.operators[v]
    ticket = _number(state)
    if time >= target.ready:
        later = time > target.ready
        target.producer = max(-1 if later else target.producer, tasks.source[e])
        target.ready = time
        target.number = ticket
    target.waiting -= 1
    if target.waiting == 0:
        if target.ready > now:
            _push_later(state, target.ready, target.number, ARRIVED | v)
        else:
            _push_now(state, ARRIVED | v)


@inlined_kernel
def _arrivals_alone(state: PassState) -> int:
    """Number of events of this instant if all are arrivals, which may run at once; else 0."""
    for i in range(state.counters[PRESENT]):
        at = (state.counters[OLDEST] + i) & (len(state.now) - 1)
        if state.now[at] & ~INDEX_MASK != ARRIVED:
            return 0
    present: int = state.counters[PRESENT]
    return present


@inlined_kernel
def _number(state: PassState) -> int:
    """Return the next number of an event."""
    state.counters[NUMBER] += 1
    latest: int = state.counters[NUMBER]
    return latest


@inlined_kernel
def _push(state: PassState, now: float, time: float, event: int) -> None:
    """Schedule an event now or later."""
    if time > now:
        _push_later(state, time, _number(state), event)
    else:
        _push_now(state, event)


@inlined_kernel
def _push_now(state: PassState, event: int) -> None:
    """Append an event of this instant."""
    at = (state.counters[OLDEST] + state.counters[PRESENT]) & (len(state.now) - 1)
    state.now[at] = event
    state.counters[PRESENT] += 1


@inlined_kernel
def _pop_now(state: PassState) -> int:
    """Remove and return the oldest event of this instant."""
    event: int = state.now[state.counters[OLDEST]]
    state.counters[OLDEST] = (state.counters[OLDEST] + 1) & (len(state.now) - 1)
    state.counters[PRESENT] -= 1
    return event


@inlined_kernel
def _push_later(state: PassState, time: float, ticket: int, event: int) -> None:
    """Insert an event into the heap."""
    entry = (ticket << EVENT_BITS) | event
    heap = state.heap
    i = state.counters[WAITING]
    state.counters[WAITING] = i + 1
    while i > 0:
        up = (i - 1) >> 1
        if heap[up].time < time or (heap[up].time == time and heap[up].entry < entry):
            break
        heap[i].time, heap[i].entry = heap[up].time, heap[up].entry
        i = up
    heap[i].time, heap[i].entry = time, entry


@inlined_kernel
def _pop_later(state: PassState) -> int:
    """Remove and return the first event of the heap."""
    heap = state.heap
    first: int = heap[0].entry & EVENT_MASK
    size = state.counters[WAITING] - 1
    state.counters[WAITING] = size
    time, entry = heap[size].time, heap[size].entry
    i, down = 0, 1
    while down < size:
        if down + 1 < size and (
            heap[down + 1].time < heap[down].time
            or (heap[down + 1].time == heap[down].time and heap[down + 1].entry < heap[down].entry)
        ):
            down += 1
        if time < heap[down].time or (time == heap[down].time and entry < heap[down].entry):
            break
        heap[i].time, heap[i].entry = heap[down].time, heap[down].entry
        i, down = down, 2 * down + 1
    heap[i].time, heap[i].entry = time, entry
    return first

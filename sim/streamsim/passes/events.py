"""Events in the order (time, number): a heap for later events, a ring for the current instant.

Events are numbered in the order of their creation. An event that is due at once has a higher number
than all events in the heap for this instant, so those of the heap come first, and a first-in,
first-out ring keeps the order of the others.
"""

from typing import Final, NamedTuple

import numpy as np

from streamsim.arrays import Longs, Records
from streamsim.jit import inlined_kernel

#: An event is kind | index, with kinds in multiples of 1 << INDEX_BITS; in the heap, its number is
#: in the bits above. (One integer instead of two, because kernels are compiled again for every
#: constant argument.)
INDEX_BITS, EVENT_BITS = 28, 32
INDEX_MASK, EVENT_MASK = (1 << INDEX_BITS) - 1, (1 << EVENT_BITS) - 1

#: Counters: events in the heap, start of the ring, events in the ring, last number.
WAITING, OLDEST, PRESENT, NUMBER = range(4)


#: An event in the heap, with its time and number.
LATER: Final = np.dtype([("time", np.float64), ("entry", np.int64)], align=True)


class Events(NamedTuple):
    """Buffers of future events."""

    heap: Records  # [later] of LATER
    now: Longs  # [power of two] ring of the events of this instant, without numbers
    counters: Longs  # [4] by the names above


def no_events(later: int, now: int) -> Events:
    """Allocate space for ``later`` events in the heap and ``now`` events of one instant."""
    ring = np.empty(1 << now.bit_length(), np.int64)
    return Events(np.empty(later, LATER), ring, np.zeros(4, np.int64))


@inlined_kernel
def number(events: Events) -> int:
    """Return the next number of an event."""
    events.counters[NUMBER] += 1
    latest: int = events.counters[NUMBER]
    return latest


@inlined_kernel
def push_now(events: Events, event: int) -> None:
    """Append an event of this instant."""
    at = (events.counters[OLDEST] + events.counters[PRESENT]) & (len(events.now) - 1)
    events.now[at] = event
    events.counters[PRESENT] += 1


@inlined_kernel
def pop_now(events: Events) -> int:
    """Remove and return the oldest event of this instant."""
    event: int = events.now[events.counters[OLDEST]]
    events.counters[OLDEST] = (events.counters[OLDEST] + 1) & (len(events.now) - 1)
    events.counters[PRESENT] -= 1
    return event


@inlined_kernel
def push_later(events: Events, time: float, ticket: int, event: int) -> None:
    """Insert an event into the heap."""
    entry = (ticket << EVENT_BITS) | event
    heap = events.heap
    i = events.counters[WAITING]
    events.counters[WAITING] = i + 1
    while i > 0:
        up = (i - 1) >> 1
        if heap[up].time < time or (heap[up].time == time and heap[up].entry < entry):
            break
        heap[i].time, heap[i].entry = heap[up].time, heap[up].entry
        i = up
    heap[i].time, heap[i].entry = time, entry


@inlined_kernel
def pop_later(events: Events) -> int:
    """Remove and return the first event of the heap."""
    heap = events.heap
    first: int = heap[0].entry & EVENT_MASK
    size = events.counters[WAITING] - 1
    events.counters[WAITING] = size
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


@inlined_kernel
def push(events: Events, now: float, time: float, event: int) -> None:
    """Schedule an event now or later."""
    if time > now:
        push_later(events, time, number(events), event)
    else:
        push_now(events, event)

"""State of a pass: progress of operators and streams, and the queues of devices."""

from typing import Final, NamedTuple

import numpy as np

from streamsim.arrays import Floats, Ints, Longs, Records
from streamsim.jit import inlined_kernel
from streamsim.passes.compiled import Pass, records
from streamsim.passes.events import INDEX_BITS, Events, no_events, number, push_later, push_now

#: Kinds of events, each with an operator; CLEARED with the first stream of a transfer. ARRIVED,
#: COUNTED and READY are the steps in which the last input of an operator arrives.
ARRIVED, COUNTED, READY, GRANTED, FINISHED, SENDS, RESTED, CLEARED = (
    kind << INDEX_BITS for kind in range(8)
)

#: Counters: touched devices, those that have been granted cores, whether granting is in progress,
#: number of grantings so far, and consecutive arrivals that are alone at their instant.
TOUCHED, GRANTED_TO, GRANTING, WAVE, ALONE = range(5)


#: Progress of an operator.
PROGRESS: Final = np.dtype(
    [
        ("ready", np.float64),  # arrival of its last input
        ("start", np.float64),
        ("finish", np.float64),
        ("work", np.float64),  # seconds it runs
        ("key", np.float64),  # rank in the heap of its device; lower goes first
        ("tie", np.int64),  # decides between equal ranks
        ("number", np.int64),  # number of the event that makes it ready
        ("producer", np.int64),  # highest index among the producers of its last inputs
        ("waiting", np.int64),  # number of missing inputs
        ("device", np.int64),
        ("next", np.int64),  # next in the queue or line, or next sibling in the heap
        ("child", np.int64),  # first child in the heap; in a line, WAITING or READY
    ],
    align=True,
)

#: Times of a stream.
JOURNEY: Final = np.dtype([("departure", np.float64), ("arrival", np.float64)], align=True)

#: State of a device.
SERVER: Final = np.dtype(
    [
        ("free", np.int64),  # number of free cores
        ("head", np.int64),  # first in its queue or line, or the root of its heap; -1 if empty
        ("tail", np.int64),  # last in its queue
        ("touched", np.int64),  # list of devices that may have an operator to start
        ("marked", np.int64),  # whether the device is in that list
    ],
    align=True,
)


class Case(NamedTuple):
    """Rules of a pass as encoded for the kernels, and noise."""

    queue: int
    network: int
    pause: float  # seconds for which a core stays occupied after an operator
    spacing: float  # seconds for which a channel stays occupied after a transfer
    send_factor: Floats  # [M] factors of the times of transfers
    line: Ints  # [N] operators in the order of the lines of their devices, [0] without lines


class State(NamedTuple):
    """Buffers of one pass, which allocates nothing while it runs."""

    operators: Records  # [N] of PROGRESS
    streams: Records  # [M] of JOURNEY
    devices: Records  # [D] of SERVER
    counters: Longs  # [5] by the names above
    events: Events


def new_state(one_pass: Pass, contended: bool) -> State:
    """Allocate buffers for a pass."""
    servers = records(SERVER, free=one_pass.devices["cores"])
    servers["head"] = -1
    n, transfers = one_pass.n_operators, one_pass.n_streams if contended else 0
    return State(
        np.empty(n, PROGRESS),
        np.empty(one_pass.n_streams, JOURNEY),
        servers,
        np.zeros(5, np.int64),
        no_events(2 * n + transfers, 2 * n + transfers),
    )


@inlined_kernel
def arrive(one_pass: Pass, state: State, e: int, now: float, time: float) -> None:
    """Schedule the arrival of stream e; as the last input, it makes its operator ready."""
    v = one_pass.streams[e].target
    target = state.operators[v]
    state.streams[e].arrival = time
    ticket = number(state.events)
    if time >= target.ready:
        later = time > target.ready
        target.producer = max(-1 if later else target.producer, one_pass.streams[e].source)
        target.ready = time
        target.number = ticket
    target.waiting -= 1
    if target.waiting == 0:
        if target.ready > now:
            push_later(state.events, target.ready, target.number, ARRIVED | v)
        else:
            push_now(state.events, ARRIVED | v)

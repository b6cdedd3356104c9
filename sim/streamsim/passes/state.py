"""Where a pass stands: what has happened to operators and streams, and who waits for a core."""

from typing import Final, NamedTuple

import numpy as np

from streamsim.arrays import Floats, Ints, Longs, Records
from streamsim.jit import inlined_kernel
from streamsim.passes.compiled import Pass, records
from streamsim.passes.events import INDEX_BITS, Events, no_events, number, push_later, push_now

#: Kinds of events, each with an operator, or for the last with the first stream of a transfer.
#: ARRIVED, COUNTED and READY are the steps by which the last input of an operator comes in.
ARRIVED, COUNTED, READY, GRANTED, FINISHED, SENDS, RESTED, CLEARED = (
    kind << INDEX_BITS for kind in range(8)
)

#: Counters: devices touched, those of them that have been granted cores, whether that is going on,
#: how often it has been, and arrivals in a row that have their instant to themselves.
TOUCHED, GRANTED_TO, GRANTING, WAVE, ALONE = range(5)


#: Where an operator stands.
PROGRESS: Final = np.dtype(
    [
        ("ready", np.float64),  # when its last input arrived
        ("start", np.float64),
        ("finish", np.float64),
        ("work", np.float64),  # seconds it runs
        ("key", np.float64),  # rank in the heap of its device, the lower the sooner
        ("tie", np.int64),  # decides between equal ranks
        ("number", np.int64),  # of the event that makes it ready
        ("producer", np.int64),  # highest row among those whose output arrived last
        ("waiting", np.int64),  # inputs still to come
        ("device", np.int64),
        ("next", np.int64),  # next in the queue or line, or in the heap the next sibling
        ("child", np.int64),  # first child in the heap; in a line whether it is ready
    ],
    align=True,
)

#: Where a stream stands.
JOURNEY: Final = np.dtype([("departure", np.float64), ("arrival", np.float64)], align=True)

#: Where a device stands.
SERVER: Final = np.dtype(
    [
        ("free", np.int64),  # cores
        ("head", np.int64),  # first in its queue or line, or the root of its heap; -1 if empty
        ("tail", np.int64),  # last in its queue
        ("touched", np.int64),  # a list of devices that may have something to start
        ("marked", np.int64),  # whether it stands in that list
    ],
    align=True,
)


class Case(NamedTuple):
    """Rules of a pass as the kernels know them, and noise."""

    queue: int
    network: int
    pause: float  # seconds for which a core stays taken after an operator
    spacing: float  # seconds for which a channel stays taken after a transfer
    send_factor: Floats  # [M] by which the times of transfers are multiplied
    line: Ints  # [N] operators as they stand in the lines of their devices, [0] without lines


class State(NamedTuple):
    """Buffers of one pass; nothing is allocated while it runs."""

    operators: Records  # [N] of PROGRESS
    streams: Records  # [M] of JOURNEY
    devices: Records  # [D] of SERVER
    counters: Longs  # [5] by the names above
    events: Events


def new_state(one_pass: Pass, contended: bool) -> State:
    """Buffers for passes of this kind."""
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
    """Stream e will arrive at a time; if it is the last input, that makes its operator ready."""
    v = one_pass.streams[e].target
    target = state.operators[v]
    state.streams[e].arrival = time
    given = number(state.events)
    if time >= target.ready:
        later = time > target.ready
        target.producer = max(-1 if later else target.producer, one_pass.streams[e].source)
        target.ready = time
        target.number = given
    target.waiting -= 1
    if target.waiting == 0:
        if target.ready > now:
            push_later(state.events, target.ready, target.number, ARRIVED | v)
        else:
            push_now(state.events, ARRIVED | v)

"""Transfers of outputs, each identified by the first stream that it serves."""

from typing import Final, NamedTuple

import numpy as np

from streamsim.arrays import Floats, Longs, Records
from streamsim.equation import link_load
from streamsim.jit import inlined_kernel
from streamsim.passes.compiled import Pass
from streamsim.passes.sending import unoccupied_seconds
from streamsim.passes.state import Case, State, arrive

#: Networks as encoded for the kernels.
FREE, SENDER, LINK, PORT, SHARED = range(5)
NETWORKS: Final = {"free": FREE, "sender": SENDER, "link": LINK, "port": PORT, "shared": SHARED}

#: Counters: passes, posted outputs, whether `settle` is due, transfers in progress, and the first
#: (-1: none) and last in line.
RUN, STAMP, UNSETTLED, ACTIVE, HEAD, TAIL = range(6)
#: Clock: times of the last settling, of the next completed transfer, and at which all channels are
#: free.
LAST, DUE, FREED = range(3)

#: A transfer, or a further stream that it serves.
TRANSFER: Final = np.dtype(
    [
        ("held", np.float64),  # seconds that it occupies its channel; -1 if not the first stream
        ("posted", np.int64),  # pass in which this output was posted
        ("together", np.int64),  # next stream of the same transfer, -1 after the last
        ("next", np.int64),  # next in the line
    ],
    align=True,
)

#: A transfer that shares the network.
FLOW: Final = np.dtype(
    [
        ("left", np.float64),  # fraction still to be sent
        ("share", np.float64),  # fraction of its full speed
        ("due", np.float64),  # time of its completion
        ("on_link", np.float64),  # fraction of the link that full speed uses
        ("on_egress", np.float64),  # fraction of the sender's card
        ("on_ingress", np.float64),  # fraction of the receiver's card
        ("sender", np.int64),
        ("receiver", np.int64),
        ("active", np.int64),  # list of the transfers in progress
    ],
    align=True,
)

#: Latest transfer of the output that is being posted, by receiving device.
RECEIVER: Final = np.dtype(
    [("stamp", np.int64), ("leader", np.int64), ("newest", np.int64)], align=True
)

#: A bus or link that serves in turn: the time at which it is free, and the pass.
TURN: Final = np.dtype([("until", np.float64), ("run", np.int64)], align=True)

#: A port, link or network card.
CHANNEL: Final = np.dtype(
    [
        ("used", np.float64),  # fraction used by stopped transfers
        ("rising", np.float64),  # fraction that the others would use at full speed
        ("busy", np.int64),
    ],
    align=True,
)


class Transfers(NamedTuple):
    """Buffers of a network with contention."""

    streams: Records  # [M] of TRANSFER
    receivers: Records  # [D] of RECEIVER
    turns: Records  # [D · D] of TURN: links, or buses
    channels: Records  # [D · D + 2 · D] of CHANNEL: links, then cards of senders and receivers
    flows: Records  # [M] of FLOW
    counters: Longs  # [6] by the names above
    clock: Floats  # [3] by the names above


def new_transfers(one_pass: Pass) -> Transfers:
    """Allocate buffers for the transfers of a pass."""
    m, d = one_pass.n_streams, one_pass.n_devices
    return Transfers(
        np.zeros(m, TRANSFER),
        np.zeros(d, RECEIVER),
        np.zeros(d * d, TURN),
        np.zeros(d * d + 2 * d, CHANNEL),
        np.zeros(m, FLOW),
        np.array([0, 0, 0, 0, -1, -1]),
        np.array([0.0, np.inf, 0.0]),
    )


@inlined_kernel
def ends(one_pass: Pass, state: State, e: int) -> tuple[int, int]:
    """Devices that send and receive stream e."""
    a: int = state.operators[one_pass.streams[e].source].device
    b: int = state.operators[one_pass.streams[e].target].device
    return a, b


@inlined_kernel
def transfer_seconds(one_pass: Pass, case: Case, e: int, a: int, b: int) -> tuple[float, float]:
    """Transfer time of stream e from a to b: seconds on the channel, and apart from it."""
    stream, link, factor = one_pass.streams[e], one_pass.links[a, b], case.send_factor[e]
    held = link_load(stream.size, stream.tuples, link.seconds_per_byte, one_pass.gap)
    apart = unoccupied_seconds(one_pass, link.latency, e)
    return held * factor, apart * factor


@inlined_kernel
def gather(one_pass: Pass, case: Case, state: State, net: Transfers, e: int) -> None:
    """Form the transfers of the output that stream e carries: one per device, or one to all."""
    i = one_pass.streams[e].first
    if one_pass.streams[i].more < 0:
        a, b = ends(one_pass, state, i)
        net.streams[i].together = -1
        net.streams[i].held = transfer_seconds(one_pass, case, i, a, b)[0]
        return
    net.counters[STAMP] += 1
    while i >= 0:
        a, b = ends(one_pass, state, i)
        if a != b:
            held = transfer_seconds(one_pass, case, i, a, b)[0]
            to = net.receivers[0 if case.network == SENDER else b]
            net.streams[i].together = -1
            net.streams[i].held = held
            if to.stamp == net.counters[STAMP]:
                net.streams[to.newest].together = i
                net.streams[to.leader].held = max(net.streams[to.leader].held, held)
                net.streams[i].held = -1.0
            else:
                to.stamp = net.counters[STAMP]
                to.leader = i
            to.newest = i
        i = one_pass.streams[i].more


@inlined_kernel
def depart(
    one_pass: Pass,
    case: Case,
    state: State,
    net: Transfers,
    now: float,
    begin: float,
    transfer: int,
) -> None:
    """Schedule the arrivals of a transfer that begins at a known time and has its channel alone."""
    e = transfer
    while e >= 0:
        a, b = ends(one_pass, state, e)
        held, apart = transfer_seconds(one_pass, case, e, a, b)
        state.streams[e].departure = begin
        arrive(one_pass, state, e, now, begin + (apart + held))
        e = net.streams[e].together

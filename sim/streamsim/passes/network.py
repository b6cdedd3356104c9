"""The network of a pass: outputs that are posted, the transfers that carry them, and who is next.

A transfer carries one output to a device, or to all of them, and is identified by the first stream
that it serves. A channel of ``sender`` or ``link`` carries one transfer at a time, in the order of
posting, so the begin of a transfer is known when it is posted. With ``port``, every device sends
one transfer and receives one at a time: transfers wait in one line, in the order of posting, which
is scanned at the end of every instant with a change.

With ``shared``, the speeds of all transfers in progress rise together, as fractions of the speed
that each would have alone, until a link or card is full; the transfers that use it stop there and
the others rise further (max–min fairness). Shares change only when a transfer begins or completes.
"""

from typing import Final, NamedTuple

import numpy as np

from streamsim.arrays import Floats, Longs, Records
from streamsim.equation import link_load
from streamsim.jit import borrowing_kernel, inlined_kernel
from streamsim.passes.compiled import Pass
from streamsim.passes.events import push
from streamsim.passes.sending import unoccupied_seconds
from streamsim.passes.state import CLEARED, Case, State, arrive

#: Networks as encoded for the kernels.
FREE, SENDER, LINK, PORT, SHARED = range(5)
NETWORKS: Final = {"free": FREE, "sender": SENDER, "link": LINK, "port": PORT, "shared": SHARED}

#: Counters: passes, posted outputs, whether `settle` is due, transfers in progress, and the first
#: (-1: none) and last in line.
RUN, STAMP, UNSETTLED, ACTIVE, HEAD, TAIL = range(6)
#: Clock: times of the last settling, of the next completed transfer, and at which all channels are
#: free.
LAST, DUE, FREED = range(3)

#: Remaining fraction below which a transfer is complete, and relative tolerance within which
#: resources fill up at the same level.
TIE = 1e-12

#: Marks, in place of shares, of transfers that still rise and of those that have just stopped.
GAINS, STAYS = -1.0, -2.0

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


@borrowing_kernel
def join(
    one_pass: Pass, case: Case, state: State, net: Transfers, now: float, transfer: int
) -> None:
    """Begin a transfer; one that occupies no channel completes at once."""
    e = transfer
    while e >= 0:
        state.streams[e].departure = now
        e = net.streams[e].together
    flow = net.flows[transfer]
    if net.streams[transfer].held == 0:
        _deliver(one_pass, case, state, net, now, transfer)
        return
    flow.left, flow.share, flow.due = 1.0, 0.0, np.inf
    _note_uses(one_pass, state, net, transfer)
    net.flows[net.counters[ACTIVE]].active = transfer
    net.counters[ACTIVE] += 1
    net.counters[UNSETTLED] = 1


@borrowing_kernel
def share_out(one_pass: Pass, case: Case, state: State, net: Transfers, now: float) -> None:
    """Deliver completed transfers and share the network among the others."""
    passed = now - net.clock[LAST]
    net.clock[LAST] = now
    active = 0
    for k in range(net.counters[ACTIVE]):
        i = net.flows[k].active
        flow = net.flows[i]
        flow.left -= flow.share * passed / net.streams[i].held
        if flow.due <= now or flow.left <= TIE:
            _deliver(one_pass, case, state, net, now, i)
        else:
            net.flows[active].active = i
            active += 1
    net.counters[ACTIVE] = active
    _fill(net)
    net.clock[DUE] = np.inf
    for k in range(active):
        i = net.flows[k].active
        flow = net.flows[i]
        flow.due = now + flow.left * net.streams[i].held / flow.share
        net.clock[DUE] = min(net.clock[DUE], flow.due)


@inlined_kernel
def _deliver(
    one_pass: Pass, case: Case, state: State, net: Transfers, now: float, transfer: int
) -> None:
    """Let all streams of a transfer arrive, after the seconds that occupy no channel."""
    e = transfer
    while e >= 0:
        a, b = ends(one_pass, state, e)
        arrive(one_pass, state, e, now, now + transfer_seconds(one_pass, case, e, a, b)[1])
        e = net.streams[e].together


@inlined_kernel
def _fill(net: Transfers) -> None:
    """Raise all shares together; transfers stop at full links and cards."""
    for k in range(net.counters[ACTIVE]):
        e = net.flows[k].active
        net.flows[e].share = GAINS
        for r in range(3):
            net.channels[_use(net, e, r)[0]].used = 0.0
    gaining = net.counters[ACTIVE]
    while gaining > 0:
        _add_up(net)
        gaining -= _stop(net, _level(net))


@inlined_kernel
def _add_up(net: Transfers) -> None:
    """Sum the use of links and cards by rising transfers at full speed."""
    for k in range(net.counters[ACTIVE]):
        for r in range(3):
            net.channels[_use(net, net.flows[k].active, r)[0]].rising = 0.0
    for k in range(net.counters[ACTIVE]):
        e = net.flows[k].active
        if net.flows[e].share == GAINS:
            for r in range(3):
                at, use = _use(net, e, r)
                net.channels[at].rising += use


@inlined_kernel
def _level(net: Transfers) -> float:
    """Share, at most 1, at which the next link or card becomes full."""
    level = 1.0
    for k in range(net.counters[ACTIVE]):
        e = net.flows[k].active
        if net.flows[e].share == GAINS:
            for r in range(3):
                channel = net.channels[_use(net, e, r)[0]]
                if channel.rising > 0:
                    level = min(level, max(0.0, 1.0 - channel.used) / channel.rising)
    return level


@inlined_kernel
def _stop(net: Transfers, level: float) -> int:
    """Stop the transfers that use a full link or card at this level; return their number."""
    stopped = 0
    for k in range(net.counters[ACTIVE]):
        e = net.flows[k].active
        stays = net.flows[e].share == GAINS and level >= 1.0
        if net.flows[e].share == GAINS:
            for r in range(3):
                at, use = _use(net, e, r)
                room = max(0.0, 1.0 - net.channels[at].used)
                stays |= use > 0 and room <= level * (1 + TIE) * net.channels[at].rising
        if stays:
            net.flows[e].share = STAYS
            stopped += 1
    for k in range(net.counters[ACTIVE]):
        e = net.flows[k].active
        if net.flows[e].share == STAYS:
            net.flows[e].share = level
            for r in range(3):
                at, use = _use(net, e, r)
                net.channels[at].used += use * level
    return stopped


@inlined_kernel
def _note_uses(one_pass: Pass, state: State, net: Transfers, e: int) -> None:
    """Store the use of link and cards by a transfer at full speed."""
    a, b = ends(one_pass, state, e)
    stream, link, transfer = one_pass.streams[e], one_pass.links[a, b], net.flows[e]
    alone = link_load(stream.size, stream.tuples, link.seconds_per_byte, one_pass.gap)
    transfer.sender, transfer.receiver = a, b
    on_link = link_load(stream.size, stream.tuples, link.link, one_pass.gap)
    transfer.on_link = on_link / alone
    transfer.on_egress = stream.size * one_pass.devices[a].egress / alone
    transfer.on_ingress = stream.size * one_pass.devices[b].ingress / alone


@inlined_kernel
def _use(net: Transfers, e: int, r: int) -> tuple[int, float]:
    """Index and use at full speed of the link (0), sender's card (1) or receiver's card (2)."""
    d, transfer = len(net.receivers), net.flows[e]
    if r == 1:
        return d * d + transfer.sender, transfer.on_egress
    if r == 2:
        return d * d + d + transfer.receiver, transfer.on_ingress
    return transfer.sender * d + transfer.receiver, transfer.on_link


@inlined_kernel
def line_up(net: Transfers, transfer: int) -> None:
    """Append a transfer to the line."""
    net.streams[transfer].next = -1
    if net.counters[HEAD] < 0:
        net.counters[HEAD] = transfer
    else:
        net.streams[net.counters[TAIL]].next = transfer
    net.counters[TAIL] = transfer
    net.counters[UNSETTLED] = 1


@inlined_kernel
def release_ports(one_pass: Pass, state: State, net: Transfers, transfer: int) -> None:
    """Free the ports of a transfer."""
    a, b = ends(one_pass, state, transfer)
    net.channels[a].busy = 0
    net.channels[len(one_pass.devices) + b].busy = 0
    net.counters[UNSETTLED] = 1


@borrowing_kernel
def begin_waiting(one_pass: Pass, case: Case, state: State, net: Transfers, now: float) -> None:
    """Scan the line and begin the transfers with two free ports."""
    before, transfer = -1, net.counters[HEAD]
    while transfer >= 0:
        following = net.streams[transfer].next
        a, b = ends(one_pass, state, transfer)
        out, into = net.channels[a], net.channels[len(one_pass.devices) + b]
        if out.busy or into.busy:
            before = transfer
        else:
            out.busy = 1
            into.busy = 1
            if before < 0:
                net.counters[HEAD] = following
            else:
                net.streams[before].next = following
            depart(one_pass, case, state, net, now, now, transfer)
            clear = now + net.streams[transfer].held + case.spacing
            push(state.events, now, clear, CLEARED | transfer)
        transfer = following
    net.counters[TAIL] = before


@inlined_kernel
def depart_in_turn(
    one_pass: Pass, case: Case, state: State, net: Transfers, now: float, transfer: int
) -> None:
    """Begin a transfer as soon as those before it have left its channel."""
    a, b = ends(one_pass, state, transfer)
    bus_or_link = a if case.network == SENDER else a * len(one_pass.devices) + b
    channel = net.turns[bus_or_link]
    begin = max(now, channel.until) if channel.run == net.counters[RUN] else now
    depart(one_pass, case, state, net, now, begin, transfer)
    channel.run = net.counters[RUN]
    channel.until = begin + net.streams[transfer].held + case.spacing
    net.clock[FREED] = max(net.clock[FREED], channel.until)


@inlined_kernel
def post(one_pass: Pass, case: Case, state: State, net: Transfers, now: float, e: int) -> None:
    """Post the output that stream e carries to the network, unless that was done before."""
    i = one_pass.streams[e].first
    if net.streams[i].posted == net.counters[RUN]:
        return
    net.streams[i].posted = net.counters[RUN]
    gather(one_pass, case, state, net, e)
    while i >= 0:
        a, b = ends(one_pass, state, i)
        if a != b and net.streams[i].held >= 0:
            if case.network == SHARED:
                join(one_pass, case, state, net, now, i)
            elif case.network == PORT:
                line_up(net, i)
            else:
                depart_in_turn(one_pass, case, state, net, now, i)
        i = one_pass.streams[i].more


@borrowing_kernel
def settle(one_pass: Pass, case: Case, state: State, net: Transfers, now: float) -> None:
    """Decide at the end of an instant which transfers are in progress from now on."""
    net.counters[UNSETTLED] = 0
    if case.network == SHARED:
        share_out(one_pass, case, state, net, now)
    else:
        begin_waiting(one_pass, case, state, net, now)

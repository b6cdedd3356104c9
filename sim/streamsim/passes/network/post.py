"""Posting outputs to the network, and deciding which transfers are next.

A channel of ``sender`` or ``link`` carries one transfer at a time, in the order of posting, so the
begin of a transfer is known when it is posted. With ``port``, every device sends one transfer and
receives one at a time: transfers wait in one line, in the order of posting, which is scanned at the
end of every instant with a change.
"""

from streamsim.jit import borrowing_kernel, inlined_kernel
from streamsim.passes.compiled import Pass
from streamsim.passes.events import push
from streamsim.passes.network.shared import join, share_out
from streamsim.passes.network.transfers import (
    FREED,
    HEAD,
    PORT,
    RUN,
    SENDER,
    SHARED,
    TAIL,
    UNSETTLED,
    Transfers,
    depart,
    ends,
    gather,
)
from streamsim.passes.state import CLEARED, Case, State


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

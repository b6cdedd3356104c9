"""Posting outputs to the network, and deciding which transfers are next.

A channel of ``sender`` or ``link`` carries one transfer at a time, in the order of posting, so the
begin of a transfer is known when it is posted.
"""

from streamsim.jit import borrowing_kernel, inlined_kernel
from streamsim.passes.compiled import Pass
from streamsim.passes.network.port import begin_waiting, line_up
from streamsim.passes.network.shared import join, share_out
from streamsim.passes.network.transfers import (
    FREED,
    PORT,
    RUN,
    SENDER,
    SHARED,
    UNSETTLED,
    Transfers,
    depart,
    ends,
    gather,
)
from streamsim.passes.state import Case, State


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

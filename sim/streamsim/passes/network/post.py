"""Posting outputs to the network, clearing its channels, and settling who sends next."""

from streamsim.jit import borrowing_kernel, inlined_kernel
from streamsim.passes.compiled import Pass
from streamsim.passes.network.exclusive import pass_on, take
from streamsim.passes.network.port import begin_waiting, line_up, release_ports
from streamsim.passes.network.shared import join, share_out
from streamsim.passes.network.transfers import (
    PORT,
    RUN,
    SHARED,
    UNSETTLED,
    Transfers,
    depart,
    ends,
    gather,
)
from streamsim.passes.state import Case, State


@inlined_kernel
def post(one: Pass, case: Case, state: State, net: Transfers, now: float, e: int) -> None:
    """Hand the output that stream e carries to the network, unless it was handed over before."""
    i = one.streams[e].first
    if net.streams[i].posted == net.counters[RUN]:
        return
    net.streams[i].posted = net.counters[RUN]
    gather(one, case, state, net, e)
    while i >= 0:
        a, b = ends(one, state, i)
        if a != b and net.streams[i].held >= 0:
            if case.network == SHARED:
                join(one, case, state, net, now, i)
            elif case.network == PORT:
                line_up(net, i)
            elif take(one, case, state, net, i):
                depart(one, case, state, net, now, i)
        i = one.streams[i].more


@inlined_kernel
def clear(one: Pass, case: Case, state: State, net: Transfers, now: float, transfer: int) -> None:
    """Let the channel of a transfer go on to the next."""
    if case.network == PORT:
        release_ports(one, state, net, transfer)
        return
    following = pass_on(one, case, state, net, transfer)
    if following >= 0:
        depart(one, case, state, net, now, following)


@borrowing_kernel
def settle(one: Pass, case: Case, state: State, net: Transfers, now: float) -> None:
    """At the end of an instant, decide who sends from now on."""
    net.counters[UNSETTLED] = 0
    if case.network == SHARED:
        share_out(one, case, state, net, now)
    else:
        begin_waiting(one, case, state, net, now)

"""Posting outputs to the network, and settling who sends next."""

from streamsim.jit import borrowing_kernel, inlined_kernel
from streamsim.passes.compiled import Pass
from streamsim.passes.network.exclusive import depart_in_turn
from streamsim.passes.network.port import begin_waiting, line_up
from streamsim.passes.network.shared import join, share_out
from streamsim.passes.network.transfers import (
    PORT,
    RUN,
    SHARED,
    UNSETTLED,
    Transfers,
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
            else:
                depart_in_turn(one, case, state, net, now, i)
        i = one.streams[i].more


@borrowing_kernel
def settle(one: Pass, case: Case, state: State, net: Transfers, now: float) -> None:
    """At the end of an instant, decide who sends from now on."""
    net.counters[UNSETTLED] = 0
    if case.network == SHARED:
        share_out(one, case, state, net, now)
    else:
        begin_waiting(one, case, state, net, now)

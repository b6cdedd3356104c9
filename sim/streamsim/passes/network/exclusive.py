"""Networks ``sender`` and ``link``: channels that carry one transfer at a time, in order.

A channel serves in the order of posting, so the begin of a transfer is known when it is posted.
"""

from streamsim.jit import inlined_kernel
from streamsim.passes.compiled import Pass
from streamsim.passes.network.transfers import FREED, RUN, SENDER, Transfers, depart, ends
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

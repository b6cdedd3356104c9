"""Networks ``sender`` and ``link``: channels that carry one transfer at a time, in order."""

from streamsim.jit import inlined_kernel
from streamsim.passes.compiled import Pass
from streamsim.passes.network.transfers import SENDER, Transfers, ends, enqueue
from streamsim.passes.state import Case, State


@inlined_kernel
def take(one: Pass, case: Case, state: State, net: Transfers, transfer: int) -> bool:
    """Whether a transfer gets its channel at once; else it waits."""
    channel = net.channels[_channel(one, case, state, transfer)]
    if channel.busy:
        enqueue(net, channel, transfer)
        return False
    channel.busy = 1
    return True


@inlined_kernel
def pass_on(one: Pass, case: Case, state: State, net: Transfers, transfer: int) -> int:
    """Transfer that takes over the channel of one that is through, -1 if none waits."""
    channel = net.channels[_channel(one, case, state, transfer)]
    following: int = channel.head
    if following < 0:
        channel.busy = 0
    else:
        channel.head = net.streams[following].next
    return following


@inlined_kernel
def _channel(one: Pass, case: Case, state: State, transfer: int) -> int:
    """Bus of the sending device, or link of the ordered pair."""
    a, b = ends(one, state, transfer)
    return a if case.network == SENDER else a * len(one.devices) + b

"""Network ``port``: every device sends one transfer and receives one at a time.

Transfers wait in one line, in the order in which they were posted. At the end of every instant with
a change, the line is scanned, and transfers with two free ports begin.
"""

from streamsim.jit import borrowing_kernel, inlined_kernel
from streamsim.passes.compiled import Pass
from streamsim.passes.events import push
from streamsim.passes.network.transfers import HEAD, TAIL, UNSETTLED, Transfers, depart, ends
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

"""The event loop of one pass.

Events happen in the order (time, number), and each of the following steps is an event of its own,
at the same instant unless a duration is named. SimPy, and therefore the simulator of GiPH, uses the
same order, which decides the many ties.

========  ======================================================================================
FINISHED  of v: hands the core to the head of the queue (GRANTED) or frees it; then SENDS of v
SENDS     of v: for every stream, in the caller's order, ARRIVED after the transfer time
ARRIVED   an input is present: COUNTED
COUNTED   after the last input of an operator: READY
READY     of v: gets a free core (GRANTED), or joins the end of its device's queue
GRANTED   of v: FINISHED after its work
RESTED    of v: hands on the core that FINISHED kept during the pause, if there is one
CLEARED   a transfer has left its ports, which are free now
========  ======================================================================================

A step that is alone at its instant is carried out at once, and only the last input of an operator
is an event at all; neither changes the order. Arrivals are numbered when their time is decided.
Under all queues but ``fifo`` no operator starts before all other events of the instant have
happened; ``port`` and ``shared`` decide about transfers after that. Under ``order`` an operator is
in the line of its device from the beginning, and READY marks that it may start.
"""

import numpy as np

from streamsim.arrays import Floats, Ints
from streamsim.jit import borrowing_kernel, inlined_kernel
from streamsim.passes.compiled import Pass
from streamsim.passes.events import (
    INDEX_MASK,
    NUMBER,
    OLDEST,
    PRESENT,
    WAITING,
    Events,
    pop_later,
    pop_now,
    push,
    push_now,
)
from streamsim.passes.network import (
    DUE,
    FREED,
    LAST,
    RUN,
    UNSETTLED,
    Transfers,
    post,
    release_ports,
    settle,
    transfer_seconds,
)
from streamsim.passes.queue import LINE, is_left, line_up, next_granted, offer, release
from streamsim.passes.state import (
    ALONE,
    ARRIVED,
    CLEARED,
    COUNTED,
    FINISHED,
    GRANTED,
    GRANTING,
    READY,
    RESTED,
    SENDS,
    TOUCHED,
    WAVE,
    Case,
    State,
    arrive,
)


@borrowing_kernel
def run(
    one_pass: Pass,
    case: Case,
    place: Ints,
    priority: Floats,
    work_factor: Floats,
    state: State,
    net: Transfers | None,
) -> float:
    """Simulate one pass and return its makespan; the times of all events are in ``state``.

    The makespan is ∞ if the lines of ``order`` contradict the streams, so that operators wait
    forever. ``net`` is None for the free network: the kernel is then compiled without the others.
    """
    _begin(one_pass, place, priority, work_factor, state)
    if case.queue == LINE:
        line_up(state, place, case.line)
    if net is not None:
        net.counters[RUN] += 1
        net.clock[LAST] = 0.0
        net.clock[FREED] = 0.0
    now = 0.0
    while True:
        event, alone = _next_event(case, state, now)
        if event >= 0:
            _step(one_pass, case, state, net, now, event, alone)
            continue
        time = _turn(one_pass, case, state, net, now)
        if time == np.inf and case.queue == LINE and is_left(state):
            return np.inf
        if time == np.inf:
            return now if net is None else max(now, net.clock[FREED])
        now = time


@inlined_kernel
def _begin(
    one_pass: Pass, place: Ints, priority: Floats, work_factor: Floats, state: State
) -> None:
    """Initialise operators; those without inputs arrive now, before all other events."""
    state.events.counters[NUMBER] = len(place)
    state.counters[WAVE] = 0
    for v in range(len(place)):
        operator, d = state.operators[v], place[v]
        operator.ready = 0.0
        operator.work = one_pass.work[v, one_pass.devices[d].type] * work_factor[v]
        operator.key = -priority[v]
        operator.tie = v
        operator.number = v
        operator.producer = -1
        operator.waiting = one_pass.operators[v].inputs
        operator.device = d
        if operator.waiting == 0:
            push_now(state.events, ARRIVED | v)
    state.counters[ALONE] = state.events.counters[PRESENT]


@inlined_kernel
def _next_event(case: Case, state: State, now: float) -> tuple[int, bool]:
    """Next event of this instant, -1 if it is over; and whether it is alone at the instant."""
    events = state.events
    if state.counters[ALONE] > 0:
        state.counters[ALONE] -= 1
        return pop_now(events), True
    if state.counters[GRANTING] > 0:
        v = next_granted(state, case.queue)
        if v >= 0:
            return GRANTED | v, False
        state.counters[GRANTING] = 0
    if events.counters[WAITING] > 0 and events.heap[0].time <= now:
        event = pop_later(events)
    elif events.counters[PRESENT] > 0:
        event = pop_now(events)
    else:
        return -1, False
    later = events.counters[WAITING] == 0 or events.heap[0].time > now
    return event, later and events.counters[PRESENT] == 0


@inlined_kernel
def _turn(one_pass: Pass, case: Case, state: State, net: Transfers | None, now: float) -> float:
    """Do the work at the end of an instant, or return the time of the next one (∞: none)."""
    events = state.events
    if state.counters[TOUCHED] > 0:
        state.counters[GRANTING] = 1
        state.counters[WAVE] += 1
        return now
    if net is not None and net.counters[UNSETTLED] > 0:
        settle(one_pass, case, state, net, now)
        return now
    time = np.inf if events.counters[WAITING] == 0 else events.heap[0].time
    if net is not None and net.clock[DUE] <= time:
        time = net.clock[DUE]
        net.clock[DUE] = np.inf
        net.counters[UNSETTLED] = 1 if time < np.inf else 0
    return time


@inlined_kernel
def _step(
    one_pass: Pass,
    case: Case,
    state: State,
    net: Transfers | None,
    now: float,
    event: int,
    alone: bool,
) -> None:
    """Carry out one event; immediate consequences are events, unless this one is alone."""
    kind, v = event & ~INDEX_MASK, event & INDEX_MASK
    if net is not None and kind == CLEARED:
        release_ports(one_pass, state, net, v)
    starts = _gets_core(case, state, now, kind, v, alone)
    if starts >= 0:
        if alone or kind == GRANTED:
            operator = state.operators[starts]
            operator.start = now
            operator.finish = now + operator.work
            push(state.events, now, operator.finish, FINISHED | starts)
        else:
            push_now(state.events, GRANTED | starts)
    if kind == SENDS or (kind == FINISHED and alone and not _rests_now(state.events)):
        _send(one_pass, case, state, net, now, v)
    elif kind == FINISHED:
        push_now(state.events, SENDS | v)
    if alone and kind in (FINISHED, CLEARED):
        state.counters[ALONE] = _arrivals_alone(state.events)


@inlined_kernel
def _gets_core(case: Case, state: State, now: float, kind: int, v: int, alone: bool) -> int:
    """Operator that gets a core through this event, -1 if there is none."""
    operator = state.operators[v]
    if kind == GRANTED:
        return v
    if kind == READY or (kind == ARRIVED and alone):
        return offer(state, case.queue, v)
    if kind in (ARRIVED, COUNTED):
        push_now(state.events, (kind + COUNTED) | v)
    elif kind == FINISHED and case.pause > 0 and operator.work > 0:
        push(state.events, now, now + case.pause, RESTED | v)
    elif kind in (FINISHED, RESTED):
        return release(state, case.queue, operator.device)
    return -1


@inlined_kernel
def _send(
    one_pass: Pass, case: Case, state: State, net: Transfers | None, now: float, v: int
) -> None:
    """Schedule the arrival of every output stream of v, or post it to the network."""
    a, sender = state.operators[v].device, one_pass.operators[v]
    for e in range(sender.out_start, sender.out_end):
        b = state.operators[one_pass.streams[e].target].device
        time = now
        if a != b:
            if net is not None:
                post(one_pass, case, state, net, now, e)
                continue
            held, apart = transfer_seconds(one_pass, case, e, a, b)
            time = now + (apart + held)
        state.streams[e].departure = now
        arrive(one_pass, state, e, now, time)


@inlined_kernel
def _rests_now(events: Events) -> bool:
    """Whether a pause is shorter than rounding, so that its end is an event of this instant."""
    if events.counters[PRESENT] == 0:
        return False
    kind: int = events.now[events.counters[OLDEST]] & ~INDEX_MASK
    return kind == RESTED


@inlined_kernel
def _arrivals_alone(events: Events) -> int:
    """Number of events of this instant if all are arrivals, which may run at once; else 0."""
    for i in range(events.counters[PRESENT]):
        at = (events.counters[OLDEST] + i) & (len(events.now) - 1)
        if events.now[at] & ~INDEX_MASK != ARRIVED:
            return 0
    present: int = events.counters[PRESENT]
    return present

"""Queues: what an operator takes from its own in its turn on the CPU, and puts into others.

A queue that is full holds back the operators before it. A windowed operator collects tuples in
panes, and emits f(tuples in the panes) every advance.
"""

from streamsim.arrays import Floats, Ints
from streamsim.engine.plan import Plan
from streamsim.engine.state import (
    BLOCKED,
    CAPPED,
    DONE,
    EngineState,
    Totals,
    Turn,
    draw_sets,
    received_per_set,
    sets_waiting,
    wake,
)
from streamsim.engine.tuple_ages import Pair, Stamps, blend, drawn
from streamsim.engine.wiring import Wiring
from streamsim.flow import window_output
from streamsim.instance import Instance
from streamsim.jit import borrowing_kernel, inlined_kernel
from streamsim.loads import handles, slowdown

ROUNDING = 1e-12  # share of a capacity below which free space is a rounding error
# Capacity of a pane, as a multiple of the tuples at full rate between two advances. Without it, a
# window that falls behind would take in its entire backlog at once and fall behind further.
MOST = 2.0


@inlined_kernel
def process(
    turn: Turn,
    instance: Instance,
    wiring: Wiring,
    plan: Plan,
    state: EngineState,
    totals: Totals,
    stamps: Stamps | None,
) -> tuple[float, float, int]:
    """Take in min(waiting, limit / cost, free space downstream) tuples and emit the results.

    Returns the tuples taken in, the core seconds spent and the reason that ended the turn.
    """
    v = turn.v
    waiting = tuples_waiting(v, wiring, state)
    if waiting <= 0.0:
        return 0.0, 0.0, DONE
    cost = plan.cost[v] + receiving_cost(v, waiting, instance, wiring, plan, state)
    take, outcome = affordable(v, waiting, cost, turn.limit, plan, state)
    free = fitting(v, take, instance, wiring, plan, state)
    if free < take:
        take, outcome = free, BLOCKED
    if take <= 0.0:
        return 0.0, 0.0, outcome
    stamp = (0.0, 0.0)
    if stamps is not None:
        stamp = drawn(v, take, waiting, turn.slice_index, wiring, state, stamps)
    draw(v, take, waiting, wiring, state)
    emit(v, take, stamp, instance, wiring, plan, state, stamps)
    count_served(v, take, plan, state, totals)
    return take, take * cost, outcome


@inlined_kernel
def affordable(
    v: int, waiting: float, cost: float, limit: float, plan: Plan, state: EngineState
) -> tuple[float, int]:
    """Number of waiting tuples that the CPU limit and the operator's own cores allow."""
    take, outcome = waiting, DONE
    if take * cost > limit:
        take, outcome = limit / cost, CAPPED
    if plan.limited and state.served[v] + take > plan.most[v]:
        take, outcome = max(plan.most[v] - state.served[v], 0.0), BLOCKED
    return take, outcome


@inlined_kernel
def count_served(v: int, take: float, plan: Plan, state: EngineState, totals: Totals) -> None:
    """Count tuples taken in."""
    totals.taken[v] += take
    if plan.limited:
        state.served[v] += take


@inlined_kernel
def tuples_waiting(v: int, wiring: Wiring, state: EngineState) -> float:
    """Tuples in all queues and the backlog of an operator; complete sets for a join."""
    if wiring.joins[v]:
        return sets_waiting(v, wiring, state)
    first, last = wiring.inlet_start[v], wiring.inlet_start[v + 1]
    waiting = state.queued[wiring.inlets[first]]
    for i in range(first + 1, last):
        waiting += state.queued[wiring.inlets[i]]
    return waiting


@inlined_kernel
def receiving_cost(
    v: int, waiting: float, instance: Instance, wiring: Wiring, plan: Plan, state: EngineState
) -> float:
    """Core seconds for receiving over links, per tuple (or set) taken in."""
    cost = 0.0
    if not handles(instance):
        return cost
    if instance.overhead > 0.0:
        cost += instance.overhead * _received(v, waiting, plan.remote, wiring, state)
    if instance.overhead_per_byte > 0.0:
        size = _received(v, waiting, plan.remote_payload, wiring, state)
        cost += instance.overhead_per_byte * size
    return cost * slowdown(instance, plan.placement[v])


@inlined_kernel
def _received(
    v: int, waiting: float, weight: Ints | Floats, wiring: Wiring, state: EngineState
) -> float:
    """Mean total weight of the streams that deliver a tuple (or set)."""
    if wiring.joins[v]:
        return received_per_set(v, weight, wiring, state)
    received = 0.0
    for i in range(wiring.inlet_start[v], wiring.inlet_start[v + 1]):
        inlet = wiring.inlets[i]
        if inlet < len(weight):
            received += weight[inlet] * state.queued[inlet]
    return received / waiting


@inlined_kernel
def fitting(
    v: int, amount: float, instance: Instance, wiring: Wiring, plan: Plan, state: EngineState
) -> float:
    """Number of input tuples, up to ``amount``, whose results fit on every output stream."""
    for e in range(wiring.out_start[v], wiring.out_end[v]):
        free = plan.room[e] - state.queued[e] - state.sending[e] - state.flying[e]
        if free < ROUNDING * plan.room[e]:
            free = 0.0
        if instance.selectivity[e] * amount > free:
            amount = free / instance.selectivity[e]
    return amount


@inlined_kernel
def draw(v: int, take: float, waiting: float, wiring: Wiring, state: EngineState) -> None:
    """Remove ``take`` tuples from the queues in proportion to their lengths; wake the senders.

    A join removes ``take`` tuples from every port.
    """
    if wiring.joins[v]:
        draw_sets(v, take, wiring, state)
        return
    first, last = wiring.inlet_start[v], wiring.inlet_start[v + 1]
    if last - first == 1:
        state.queued[wiring.inlets[first]] -= take
        wake(wiring.senders[first], BLOCKED, state)
        return
    share = 0.0 if take == waiting else (waiting - take) / waiting
    for i in range(first, last):
        state.queued[wiring.inlets[i]] *= share
        wake(wiring.senders[i], BLOCKED, state)


@inlined_kernel
def emit(
    v: int,
    amount: float,
    stamp: Pair,
    instance: Instance,
    wiring: Wiring,
    plan: Plan,
    state: EngineState,
    stamps: Stamps | None,
) -> None:
    """Put selectivity × amount tuples on every stream out of an operator; wake the receivers."""
    for e in range(wiring.out_start[v], wiring.out_end[v]):
        added = instance.selectivity[e] * amount
        if plan.remote[e]:
            if stamps is not None:
                for c in range(2):
                    mean = stamps.sending[c, e]
                    stamps.sending[c, e] = blend(state.sending[e], mean, added, stamp[c])
            state.sending[e] += added
        else:
            if stamps is not None:
                for c in range(2):
                    mean = stamps.queued[c, e]
                    stamps.queued[c, e] = blend(state.queued[e], mean, added, stamp[c])
            state.queued[e] += added
            wake(wiring.target[e], DONE, state)


@borrowing_kernel
def process_window(
    turn: Turn,
    instance: Instance,
    wiring: Wiring,
    plan: Plan,
    state: EngineState,
    totals: Totals,
    stamps: Stamps | None,
) -> tuple[float, float, int]:
    """Release held results, advance when due, then take in min(waiting, limit / cost) tuples.

    A window does not advance while earlier results wait for space downstream. Once an advance is
    overdue, its operator takes nothing in, so that back-pressure reaches its inputs.
    """
    v, limit, slice_index = turn
    k = wiring.window_of[v]
    out = release(v, limit, instance, wiring, plan, state, stamps)
    while state.held[k] <= 0.0 and is_due(k, slice_index, instance, wiring, state):
        advance(k, instance, wiring, state, stamps)
        left = limit - out * plan.send_cost[v]
        out += release(v, left, instance, wiring, plan, state, stamps)
    totals.emitted[k] += out
    spent = out * plan.send_cost[v]
    if is_due(k, slice_index, instance, wiring, state):
        return out, spent, BLOCKED
    left_turn = Turn(v, limit - spent, slice_index)
    take, seconds, outcome = take_in(left_turn, instance, wiring, plan, state, stamps)
    count_served(v, take, plan, state, totals)
    return out + take, spent + seconds, outcome


@inlined_kernel
def is_due(
    k: int, slice_index: int, instance: Instance, wiring: Wiring, state: EngineState
) -> bool:
    """Whether the next advance of a window is due by the start of this slice."""
    due = (state.advanced[k] + 1.0) * instance.windows[k, 2]
    return bool(due <= (slice_index + 1e-6) * wiring.slice_seconds)


@inlined_kernel
def advance(
    k: int, instance: Instance, wiring: Wiring, state: EngineState, stamps: Stamps | None
) -> None:
    """Evaluate a window into ``held`` and open its next pane."""
    row, panes = instance.windows[k], wiring.panes[k]
    count = 0.0
    for i in range(panes):
        if stamps is not None:
            for c in range(2):
                mean, other = stamps.held[c, k], stamps.panes[c, k, i]
                stamps.held[c, k] = blend(count, mean, state.panes[k, i], other)
        count += state.panes[k, i]
    state.held[k] = window_output(row, count * row[1] / (panes * row[2]))
    state.advanced[k] += 1.0
    state.panes[k, int(state.advanced[k]) % panes] = 0.0


@inlined_kernel
def release(
    v: int,
    limit: float,
    instance: Instance,
    wiring: Wiring,
    plan: Plan,
    state: EngineState,
    stamps: Stamps | None,
) -> float:
    """Release as much of ``held`` as the CPU for sending and the space downstream allow."""
    k = wiring.window_of[v]
    amount = state.held[k]
    if amount * plan.send_cost[v] > limit:
        amount = limit / plan.send_cost[v]
    amount = fitting(v, amount, instance, wiring, plan, state)
    if amount <= 0.0:
        return 0.0
    stamp = (0.0, 0.0)
    if stamps is not None:
        stamp = (stamps.held[0, k], stamps.held[1, k])
    emit(v, amount, stamp, instance, wiring, plan, state, stamps)
    state.held[k] = 0.0 if amount == state.held[k] else state.held[k] - amount
    return amount


@inlined_kernel
def take_in(
    turn: Turn,
    instance: Instance,
    wiring: Wiring,
    plan: Plan,
    state: EngineState,
    stamps: Stamps | None,
) -> tuple[float, float, int]:
    """Move waiting tuples into the open pane, up to its capacity."""
    v = turn.v
    waiting = tuples_waiting(v, wiring, state)
    if waiting <= 0.0:
        return 0.0, 0.0, DONE
    cost = plan.cost[v] + receiving_cost(v, waiting, instance, wiring, plan, state)
    take, outcome = affordable(v, waiting, cost, turn.limit, plan, state)
    k = wiring.window_of[v]
    pane = int(state.advanced[k]) % wiring.panes[k]
    comes = instance.input_rate[v] * wiring.peak * instance.windows[k, 2]
    free = max(MOST * comes - state.panes[k, pane], 0.0)
    if free < take:
        take, outcome = free, BLOCKED
    if take <= 0.0:
        return 0.0, 0.0, outcome
    if stamps is not None:
        fresh: Pair = drawn(v, take, waiting, turn.slice_index, wiring, state, stamps)
        for c in range(2):
            mean = stamps.panes[c, k, pane]
            stamps.panes[c, k, pane] = blend(state.panes[k, pane], mean, take, fresh[c])
    draw(v, take, waiting, wiring, state)
    state.panes[k, pane] += take
    return take, take * cost, outcome

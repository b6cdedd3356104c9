"""Windowed operators: collect tuples in panes, and emit f(tuples in the panes) every advance."""

from streamsim.engine.operators import (
    affordable,
    count_served,
    draw,
    emit,
    fitting,
    receiving_cost,
    tuples_waiting,
)
from streamsim.engine.plan import Plan
from streamsim.engine.stamps import Pair, Stamps, blend, drawn
from streamsim.engine.state import BLOCKED, DONE, EngineState, Totals, Turn
from streamsim.engine.wiring import Wiring
from streamsim.flow import window_output
from streamsim.instance import Instance
from streamsim.jit import borrowing_kernel, inlined_kernel

# Capacity of a pane, as a multiple of the tuples at full rate between two advances. Without it, a
# window that falls behind would take in its entire backlog at once and fall behind further.
MOST = 2.0


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

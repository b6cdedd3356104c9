"""Network: links move bytes once per tick; tuples arrive after the latency."""

import numpy as np

from streamsim.engine.nics import grant
from streamsim.engine.plan import Plan
from streamsim.engine.state import EngineState, Totals
from streamsim.engine.tuple_ages import Stamps, blend
from streamsim.jit import borrowing_kernel, inlined_kernel


@inlined_kernel
def transmit(
    tick: int, dt: float, plan: Plan, state: EngineState, totals: Totals, stamps: Stamps | None
) -> None:
    """Deliver due tuples, then let every link move for ``dt`` seconds."""
    if len(state.pipe):
        land(tick, plan, state, stamps)
    if len(plan.nics.left):
        transmit_through_nics(tick, dt, plan, state, totals, stamps)
        return
    for link in range(len(plan.link_start) - 1):
        level = fair_level(link, dt, plan, state)
        for i in range(plan.link_start[link], plan.link_start[link + 1]):
            e = plan.link_streams[i]
            amount = state.sending[e]
            if amount * plan.wire[e] > level:
                amount = level / plan.wire[e]
            move(e, amount, tick, plan, state, totals, stamps)


@borrowing_kernel
def transmit_through_nics(
    tick: int, dt: float, plan: Plan, state: EngineState, totals: Totals, stamps: Stamps | None
) -> None:
    """Move the tuples that links and NICs together allow."""
    for i in range(len(plan.link_streams)):
        plan.nics.demand[i] = state.sending[plan.link_streams[i]]
    grant(dt, plan.nics)
    for i in range(len(plan.link_streams)):
        e = plan.link_streams[i]
        move(e, plan.nics.granted[i], tick, plan, state, totals, stamps)


@inlined_kernel
def fair_level(link: int, dt: float, plan: Plan, state: EngineState) -> float:
    """Max-min fair link seconds per stream: Σ min(demand, level) = dt, or infinite if all fits."""
    first, last = plan.link_start[link], plan.link_start[link + 1]
    demand = 0.0
    for i in range(first, last):
        e = plan.link_streams[i]
        demand += state.sending[e] * plan.wire[e]
    if demand <= dt:
        return np.inf
    level, hungry = dt / (last - first), last - first + 1
    while True:
        remaining, above = dt, 0
        for i in range(first, last):
            e = plan.link_streams[i]
            wanted = state.sending[e] * plan.wire[e]
            if wanted > level:
                above += 1
            else:
                remaining -= wanted
        if above >= hungry or above == 0:
            return level
        level, hungry = remaining / above, above


@inlined_kernel
def move(
    e: int,
    amount: float,
    tick: int,
    plan: Plan,
    state: EngineState,
    totals: Totals,
    stamps: Stamps | None,
) -> None:
    """Move tuples from a send buffer into the receiver's queue, or into the pipe to it."""
    delay = plan.delay[e]
    if delay == 0:
        if stamps is not None:
            for c in range(2):
                mean, other = stamps.queued[c, e], stamps.sending[c, e]
                stamps.queued[c, e] = blend(state.queued[e], mean, amount, other)
        state.queued[e] += amount
    else:
        if stamps is not None:
            for c in range(2):
                stamps.pipe[c, tick % delay, e] = stamps.sending[c, e]
        state.pipe[tick % delay, e] = amount
        state.flying[e] += amount
    state.sending[e] = 0.0 if amount == state.sending[e] else state.sending[e] - amount
    totals.moved[e] += amount


@borrowing_kernel
def land(tick: int, plan: Plan, state: EngineState, stamps: Stamps | None) -> None:
    """Deliver the tuples that were moved ``delay`` ticks ago."""
    for e in plan.link_streams:
        delay = plan.delay[e]
        if delay > 0:
            amount = state.pipe[tick % delay, e]
            if stamps is not None:
                for c in range(2):
                    mean, other = stamps.queued[c, e], stamps.pipe[c, tick % delay, e]
                    stamps.queued[c, e] = blend(state.queued[e], mean, amount, other)
            state.queued[e] += amount
            state.flying[e] = max(state.flying[e] - amount, 0.0)

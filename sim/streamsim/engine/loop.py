"""The loop over the ticks and slices of a run: how devices spend CPU, batches, and logs.

If a state recurs exactly, the ticks in between repeat for ever and are not simulated.
"""

from typing import NamedTuple

import numpy as np

from streamsim.array_copies import copy_row
from streamsim.arrays import Floats, Ints
from streamsim.engine.network import transmit
from streamsim.engine.plan import Plan, plan_run
from streamsim.engine.queues import process, process_window
from streamsim.engine.state import (
    BLOCKED,
    CAPPED,
    EngineState,
    Totals,
    Turn,
    clear,
    empty_state,
    no_totals,
)
from streamsim.engine.tuple_ages import Stamps, no_stamps
from streamsim.engine.wiring import DYNAMIC, Wiring
from streamsim.instance import Instance
from streamsim.jit import inlined_kernel, kernel

EVERY = 8  # ticks between snapshots, and therefore the longest period that is recognised


class Snapshot(NamedTuple):
    """State and totals of an earlier tick."""

    queued: Floats
    sending: Floats
    flying: Floats
    pipe: Floats
    taken: Floats
    moved: Floats
    busy: Floats


@kernel
def no_snapshot(state: EngineState, totals: Totals) -> Snapshot:
    """Allocate a snapshot."""
    return Snapshot(
        state.queued.copy(),
        state.sending.copy(),
        state.flying.copy(),
        state.pipe.copy(),
        totals.taken.copy(),
        totals.moved.copy(),
        totals.busy.copy(),
    )


@inlined_kernel
def take_snapshot(snapshot: Snapshot, state: EngineState, totals: Totals) -> None:
    """Copy the current state and totals."""
    copy_row(snapshot.queued, state.queued)
    copy_row(snapshot.sending, state.sending)
    copy_row(snapshot.flying, state.flying)
    for slot in range(len(state.pipe)):
        for e in range(len(state.flying)):
            snapshot.pipe[slot, e] = state.pipe[slot, e]
    copy_row(snapshot.taken, totals.taken)
    copy_row(snapshot.moved, totals.moved)
    copy_row(snapshot.busy, totals.busy)


@inlined_kernel
def repeats(
    snapshot: Snapshot, period: int, wiring: Wiring, plan: Plan, state: EngineState
) -> bool:
    """Whether every tick from here on repeats the one ``period`` ticks before it.

    True if all queues and buffers are bit for bit as before, tuples in flight are the same for
    every tick of arrival, and backlogs make no difference. Windows are never found to repeat.
    """
    for e in range(len(state.sending)):
        if state.queued[e] != snapshot.queued[e] or state.sending[e] != snapshot.sending[e]:
            return False
    if len(wiring.panes):
        return False
    for s in range(len(wiring.sources)):
        if not backlog_repeats(s, snapshot, period, wiring, state):
            return False
    return len(state.pipe) == 0 or pipe_repeats(snapshot, plan, state)


@inlined_kernel
def backlog_repeats(
    s: int, snapshot: Snapshot, period: int, wiring: Wiring, state: EngineState
) -> bool:
    """Whether a backlog is as before, or has grown without ever having limited its source.

    After being emptied, it would hold at most the tuples generated since. A larger backlog changes
    no minimum and therefore no tick, unless the operator draws from other queues as well.
    """
    inlet = len(state.sending) + s
    now, then = state.queued[inlet], snapshot.queued[inlet]
    if now == then:
        return True
    v = wiring.sources[s]
    if wiring.inlet_start[v + 1] - wiring.inlet_start[v] > 1:
        return False
    came = 0.0
    for i in range(wiring.generated.shape[1] - wiring.iterations, wiring.generated.shape[1]):
        came += wiring.generated[s, i] * period
    return bool(now > then and now > came * (1.0 + 1e-9))


@inlined_kernel
def pipe_repeats(snapshot: Snapshot, plan: Plan, state: EngineState) -> bool:
    """Whether the tuples in flight are as before, and the same for every tick of arrival."""
    for e in plan.link_streams:
        if state.flying[e] != snapshot.flying[e]:
            return False
        for slot in range(plan.delay[e]):
            amount = state.pipe[slot, e]
            if amount != snapshot.pipe[slot, e] or amount != state.pipe[0, e]:
                return False
    return True


@inlined_kernel
def skip(times: int, snapshot: Snapshot, state: EngineState, totals: Totals) -> None:
    """Add the changes since the snapshot ``times`` more times."""
    for i in range(len(state.sending), len(state.queued)):
        state.queued[i] += times * (state.queued[i] - snapshot.queued[i])
    extend(times, totals.taken, snapshot.taken)
    extend(times, totals.moved, snapshot.moved)
    extend(times, totals.busy, snapshot.busy)


@inlined_kernel
def extend(times: int, total: Floats, before: Floats) -> None:
    """Add the increase of a total ``times`` more times."""
    for i in range(len(total)):
        total[i] += times * (total[i] - before[i])


class Sums(NamedTuple):
    """Sums over the measured window, one row per run."""

    taken: Floats  # [B, N] tuples
    emitted: Floats  # [B, K] tuples released by windows
    busy: Floats  # [B, D] core seconds
    link: Floats  # [B, D, D] seconds
    opening: Floats  # [B, M + S] tuples in streams, then backlogs, at the start
    closing: Floats  # [B, M + S] tuples in streams, then backlogs, at the end
    repeating: Floats  # [B] first tick that repeats forever, or -1


class Log(NamedTuple):
    """One row per tick; queues and backlogs are those at its end."""

    queued: Floats  # [T, M] tuples
    transit: Floats  # [T, M] tuples waiting for the link or in flight
    backlog: Floats  # [T, S] tuples
    taken: Floats  # [T, N] tuples
    emitted: Floats  # [T, K] tuples released by windows
    busy: Floats  # [T, D] core seconds
    link: Floats  # [T, M] seconds
    delay: Floats  # [T, 2, N] Σ tuples · latency, since generation and since admission


def empty_log(instance: Instance, wiring: Wiring) -> Log:
    """Allocate rows for all ticks."""
    t, n, m, d = wiring.ticks, instance.n_operators, instance.n_streams, instance.n_devices
    return Log(
        queued=np.zeros((t, m)),
        transit=np.zeros((t, m)),
        backlog=np.zeros((t, len(wiring.sources))),
        taken=np.zeros((t, n)),
        emitted=np.zeros((t, len(instance.windows))),
        busy=np.zeros((t, d)),
        link=np.zeros((t, m)),
        delay=np.zeros((t, 2, n)),
    )


@kernel
def write_tick(
    tick: int, plan: Plan, state: EngineState, totals: Totals, stamps: Stamps, log: Log
) -> None:
    """Write the row of one tick; totals are those of this tick alone."""
    m = len(plan.remote)
    log.queued[tick] = state.queued[:m]
    log.transit[tick] = state.sending + state.flying
    log.backlog[tick] = state.queued[m:]
    log.taken[tick] = totals.taken
    log.emitted[tick] = totals.emitted
    for k in range(len(plan.devices)):
        log.busy[tick, plan.devices[k]] = totals.busy[k]
    for e in plan.link_streams:
        log.link[tick, e] = totals.moved[e] * plan.wire[e]
    log.delay[tick] = stamps.delay


@inlined_kernel
def spend(
    k: int,
    slice_index: int,
    instance: Instance,
    wiring: Wiring,
    plan: Plan,
    state: EngineState,
    totals: Totals,
    stamps: Stamps | None,
) -> None:
    """Spend the budget of the k-th device in rounds of turns.

    In the first round every operator may use its share. Fixed shares end there. The dynamic policy
    divides the rest equally among the operators that ran out of CPU, round after round, until the
    budget is used up or nothing moves. Operators that cannot do anything are skipped.
    """
    budget = plan.budget[k]
    tolerance = 1e-12 * budget
    share = -1.0  # every operator's own
    progress = 0.0
    for i in range(plan.turn_start[k], plan.turn_start[k + 1]):
        state.turn[plan.turns[i]] = CAPPED
    while True:
        moved, capped, blocked = 0.0, 0, 0
        for i in range(plan.turn_start[k], plan.turn_start[k + 1]):
            v = plan.turns[i]
            if state.turn[v] != CAPPED:
                continue
            limit = max(min(plan.share[v] if share < 0.0 else share, budget), 0.0)
            turn = Turn(v, limit, slice_index)
            if wiring.window_of[v] < 0:
                done = process(turn, instance, wiring, plan, state, totals, stamps)
            else:
                done = process_window(turn, instance, wiring, plan, state, totals, stamps)
            tuples, seconds, outcome = done
            state.turn[v] = outcome
            budget -= seconds
            moved += tuples
            capped += outcome == CAPPED
            blocked += outcome == BLOCKED
        progress += moved
        stuck = capped + blocked == 0 or moved <= 1e-9 * progress
        if stuck or budget <= tolerance or wiring.policy != DYNAMIC:
            break
        share = budget / max(capped, 1)
    totals.busy[k] += plan.budget[k] - budget + plan.constant[k]


@inlined_kernel
def run_tick(
    tick: int,
    instance: Instance,
    wiring: Wiring,
    plan: Plan,
    state: EngineState,
    totals: Totals,
    stamps: Stamps | None,
) -> None:
    """Generate tuples and spend CPU slice by slice, then let the network move bytes."""
    m = len(plan.remote)
    for i in range(wiring.iterations):
        slice_index = tick * wiring.iterations + i
        for s in range(len(wiring.sources)):
            state.queued[m + s] += wiring.generated[s, slice_index]
        if plan.limited:
            for v in range(len(state.served)):
                state.served[v] = 0.0
        for k in range(len(plan.devices)):
            if plan.turn_start[k] == plan.turn_start[k + 1]:
                break
            spend(k, slice_index, instance, wiring, plan, state, totals, stamps)
    transmit(tick, wiring.dt, plan, state, totals, stamps)


@inlined_kernel
def run(
    instance: Instance,
    wiring: Wiring,
    plan: Plan,
    state: EngineState,
    totals: Totals,
    snapshot: Snapshot,
    opening: Floats,
    jump: bool,
) -> int:
    """Run one placement; return the first tick known to repeat forever, or -1.

    Totals are those of the measured window; ``opening`` receives the tuples in streams and backlogs
    at its start. With ``jump``, ticks that repeat exactly are counted instead of simulated, up to
    the start of the window and up to the end.
    """
    since, tick, repeating = -1, 0, -1
    while tick < wiring.ticks:
        if tick == wiring.warm_ticks:
            clear(totals)
            hold(state, opening)
            since = -1
        run_tick(tick, instance, wiring, plan, state, totals, None)
        tick += 1
        if not jump or tick <= wiring.constant_from:
            continue
        target = wiring.warm_ticks if tick <= wiring.warm_ticks else wiring.ticks
        if since >= 0 and repeats(snapshot, tick - since, wiring, plan, state):
            repeating = since if repeating < 0 else repeating
            times = (target - tick) // (tick - since)
            skip(times, snapshot, state, totals)
            tick += times * (tick - since)
            since = -1
        elif tick % EVERY == 0 or since < 0:
            take_snapshot(snapshot, state, totals)
            since = tick
    return repeating


@inlined_kernel
def hold(state: EngineState, amounts: Floats) -> None:
    """Write the tuples in every stream, queued or in transit, and in every backlog."""
    for i in range(len(amounts)):
        amounts[i] = state.queued[i]
    for e in range(len(state.sending)):
        amounts[e] += state.sending[e] + state.flying[e]


@kernel
def run_batch(instance: Instance, wiring: Wiring, placements: Ints, jump: bool, sums: Sums) -> None:
    """Run every placement and write its sums."""
    for b in range(len(placements)):
        placement = placements[b]
        plan = plan_run(instance, wiring, placement)
        state = empty_state(instance, wiring, plan)
        totals = no_totals(instance)
        snapshot = no_snapshot(state, totals)
        opening = sums.opening[b]
        sums.repeating[b] = run(instance, wiring, plan, state, totals, snapshot, opening, jump)
        sums.taken[b] = totals.taken
        sums.emitted[b] = totals.emitted
        for k in range(len(plan.devices)):
            sums.busy[b, plan.devices[k]] = totals.busy[k]
        for e in plan.link_streams:
            sender, receiver = placement[instance.source[e]], placement[instance.target[e]]
            sums.link[b, sender, receiver] += totals.moved[e] * plan.wire[e]
        hold(state, sums.closing[b])


@kernel
def run_logged(instance: Instance, wiring: Wiring, placement: Ints, log: Log) -> None:
    """Run one placement tick by tick, with stamps, and write every tick into the log."""
    plan = plan_run(instance, wiring, placement)
    state = empty_state(instance, wiring, plan)
    totals = no_totals(instance)
    stamps = no_stamps(instance, state)
    for tick in range(wiring.ticks):
        run_tick(tick, instance, wiring, plan, state, totals, stamps)
        write_tick(tick, plan, state, totals, stamps, log)
        clear(totals)
        stamps.delay[:] = 0.0

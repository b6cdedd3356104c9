"""The loop over the ticks and slices of a run, of a batch of runs, and of a logged run."""

from streamsim.arrays import Floats, Ints
from streamsim.engine.log import Log, write_tick
from streamsim.engine.network import transmit
from streamsim.engine.plan import Plan, plan_run
from streamsim.engine.policies import spend
from streamsim.engine.repeat import EVERY, Snapshot, no_snapshot, repeats, skip, take_snapshot
from streamsim.engine.stamps import Stamps, no_stamps
from streamsim.engine.state import EngineState, Totals, clear, empty_state, no_totals
from streamsim.engine.wiring import Wiring
from streamsim.instance import Instance
from streamsim.jit import inlined_kernel, kernel


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
def run_batch(
    instance: Instance,
    wiring: Wiring,
    placements: Ints,
    jump: bool,
    taken: Floats,
    emitted: Floats,
    busy: Floats,
    link: Floats,
    opening: Floats,
    closing: Floats,
    repeating: Floats,
) -> None:
    """Run every placement and write its totals into the rows of the last seven arrays."""
    for b in range(len(placements)):
        placement = placements[b]
        plan = plan_run(instance, wiring, placement)
        state = empty_state(instance, wiring, plan)
        totals = no_totals(instance)
        snapshot = no_snapshot(state, totals)
        repeating[b] = run(instance, wiring, plan, state, totals, snapshot, opening[b], jump)
        taken[b] = totals.taken
        emitted[b] = totals.emitted
        for k in range(len(plan.devices)):
            busy[b, plan.devices[k]] = totals.busy[k]
        for e in plan.link_streams:
            sender, receiver = placement[instance.source[e]], placement[instance.target[e]]
            link[b, sender, receiver] += totals.moved[e] * plan.wire[e]
        hold(state, closing[b])


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

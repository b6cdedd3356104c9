"""Repetition: if a state recurs exactly, the ticks in between repeat forever."""

from typing import NamedTuple

from streamsim.arrays import Floats
from streamsim.engine.plan import Plan
from streamsim.engine.state import EngineState, Totals
from streamsim.engine.wiring import Wiring
from streamsim.jit import inlined_kernel, kernel
from streamsim.rows import copy_row

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

"""Repetition: when a whole state comes back, the ticks in between repeat for ever."""

from typing import NamedTuple

from streamsim.arrays import Floats
from streamsim.engine.plan import Plan
from streamsim.engine.state import EngineState, Totals
from streamsim.engine.wiring import Wiring
from streamsim.jit import inlined_kernel, kernel

EVERY = 8  # ticks between snapshots, and so the longest period that is recognised


class Snapshot(NamedTuple):
    """State and totals some ticks ago."""

    queued: Floats
    sending: Floats
    flying: Floats
    pipe: Floats
    taken: Floats
    moved: Floats
    busy: Floats


@kernel
def no_snapshot(state: EngineState, totals: Totals) -> Snapshot:
    """Room for a snapshot."""
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
    """Remember the present."""
    copy(state.queued, snapshot.queued)
    copy(state.sending, snapshot.sending)
    copy(state.flying, snapshot.flying)
    for slot in range(len(state.pipe)):
        for e in range(len(state.flying)):
            snapshot.pipe[slot, e] = state.pipe[slot, e]
    copy(totals.taken, snapshot.taken)
    copy(totals.moved, snapshot.moved)
    copy(totals.busy, snapshot.busy)


@inlined_kernel
def copy(source: Floats, target: Floats) -> None:
    """Copy a column."""
    for i in range(len(source)):
        target[i] = source[i]


@inlined_kernel
def repeats(
    snapshot: Snapshot, period: int, wiring: Wiring, plan: Plan, state: EngineState
) -> bool:
    """Whether every tick from here on repeats the one ``period`` ticks before it.

    That is so if all queues and buffers are bit for bit as they were, what is under way is the same
    for every tick of arrival, and the backlogs do not matter. Windows are never said to repeat.
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
    """Whether a backlog is as it was, or has grown without ever having limited its source.

    Had it been emptied, no more would be left than what came since. A backlog which is larger
    still changes no minimum and so no tick, unless the operator draws from other queues as well.
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
    """Whether all that is under way is as it was, and the same for every tick of arrival."""
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
    """Count what happened since the snapshot ``times`` times more."""
    for i in range(len(state.sending), len(state.queued)):
        state.queued[i] += times * (state.queued[i] - snapshot.queued[i])
    extend(times, totals.taken, snapshot.taken)
    extend(times, totals.moved, snapshot.moved)
    extend(times, totals.busy, snapshot.busy)


@inlined_kernel
def extend(times: int, total: Floats, before: Floats) -> None:
    """Add ``times`` times what a total has gained."""
    for i in range(len(total)):
        total[i] += times * (total[i] - before[i])

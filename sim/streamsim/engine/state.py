"""State: where tuples are between two slices, turns of operators, totals so far; sets of joins.

A join takes sets of one tuple from every port, as many from each.
"""

from typing import NamedTuple

import numpy as np

from streamsim.arrays import Floats, Ints
from streamsim.engine.plan import Plan
from streamsim.engine.wiring import Wiring
from streamsim.instance import Instance
from streamsim.jit import inlined_kernel, kernel

# Outcomes: DONE, no tuple waits; CAPPED, out of CPU; BLOCKED, a successor or the operator's own
# cores are full. DONE lasts until a tuple arrives, BLOCKED until space becomes free.
DONE, CAPPED, BLOCKED = 0, 1, 2


class EngineState(NamedTuple):
    """Tuples in queues, send buffers, on the wire and in windows."""

    queued: Floats  # [M + S] waiting at the receiver; then the backlogs of the sources
    sending: Floats  # [M] waiting for the link
    flying: Floats  # [M] in flight
    pipe: Floats  # [longest delay, M] in flight, by tick of arrival
    served: Floats  # [N] tuples taken in during this slice
    turn: Ints  # [N] outcome of the last turn of this slice, or CAPPED after a wake-up
    panes: Floats  # [K, panes] tuples taken in per advance of a window, a ring
    held: Floats  # [K] results of the window that are not yet released
    advanced: Floats  # [K] number of advances of the window


class Turn(NamedTuple):
    """A turn of operator v in a slice, with at most ``limit`` core seconds."""

    v: int
    limit: float
    slice_index: int


class Totals(NamedTuple):
    """Sums since the start of the measured window (or of the tick, if ticks are logged)."""

    taken: Floats  # [N] tuples taken in by an operator
    emitted: Floats  # [K] tuples released by a window
    moved: Floats  # [M] tuples moved over a link
    busy: Floats  # [D] core seconds used, in the order of `Plan.devices`


@kernel
def empty_state(instance: Instance, wiring: Wiring, plan: Plan) -> EngineState:
    """Allocate the state of a cluster without tuples."""
    m, k = len(instance.source), len(wiring.panes)
    longest = 0
    for delay in plan.delay:
        longest = max(longest, delay)
    widest = 0
    for panes in wiring.panes:
        widest = max(widest, panes)
    return EngineState(
        np.zeros(m + len(wiring.sources)),
        np.zeros(m),
        np.zeros(m),
        np.zeros((longest, m)),
        np.zeros(len(plan.turns)),
        np.zeros(len(plan.turns), np.int32),
        np.zeros((k, widest)),
        np.zeros(k),
        np.zeros(k),
    )


@kernel
def no_totals(instance: Instance) -> Totals:
    """Allocate totals of 0."""
    return Totals(
        np.zeros(len(instance.rate)),
        np.zeros(len(instance.windows)),
        np.zeros(len(instance.source)),
        np.zeros(len(instance.cores)),
    )


@inlined_kernel
def clear(totals: Totals) -> None:
    """Reset all totals to 0."""
    for v in range(len(totals.taken)):
        totals.taken[v] = 0.0
    for w in range(len(totals.emitted)):
        totals.emitted[w] = 0.0
    for e in range(len(totals.moved)):
        totals.moved[e] = 0.0
    for k in range(len(totals.busy)):
        totals.busy[k] = 0.0


@inlined_kernel
def wake(v: int, outcome: int, state: EngineState) -> None:
    """Give another turn to an operator whose last turn had this outcome."""
    if state.turn[v] == outcome:
        state.turn[v] = CAPPED


@inlined_kernel
def port_end(i: int, v: int, wiring: Wiring) -> int:
    """Index after the last inlet that shares the port of inlet i."""
    j = i + 1
    while j < wiring.inlet_start[v + 1] and wiring.ports[j] == wiring.ports[i]:
        j += 1
    return j


@inlined_kernel
def in_port(i: int, end: int, wiring: Wiring, state: EngineState) -> float:
    """Tuples in the queues of one port."""
    waiting = state.queued[wiring.inlets[i]]
    for j in range(i + 1, end):
        waiting += state.queued[wiring.inlets[j]]
    return waiting


@inlined_kernel
def sets_waiting(v: int, wiring: Wiring, state: EngineState) -> float:
    """Complete sets that wait: the number of tuples at the port with the fewest."""
    i = int(wiring.inlet_start[v])
    end = port_end(i, v, wiring)
    fewest = in_port(i, end, wiring, state)
    while end < wiring.inlet_start[v + 1]:
        i = end
        end = port_end(i, v, wiring)
        fewest = min(fewest, in_port(i, end, wiring, state))
    return fewest


@inlined_kernel
def received_per_set(v: int, weight: Ints | Floats, wiring: Wiring, state: EngineState) -> float:
    """Total weight of the streams that deliver a set, in proportion to the queues of each port."""
    received, i = 0.0, int(wiring.inlet_start[v])
    while i < wiring.inlet_start[v + 1]:
        end = port_end(i, v, wiring)
        waiting = in_port(i, end, wiring, state)
        for j in range(i, end):
            inlet = wiring.inlets[j]
            if waiting > 0.0 and inlet < len(weight):
                received += weight[inlet] * (state.queued[inlet] / waiting)
        i = end
    return received


@inlined_kernel
def draw_sets(v: int, take: float, wiring: Wiring, state: EngineState) -> None:
    """Remove ``take`` tuples from every port, in proportion to its queues; wake the senders."""
    i = int(wiring.inlet_start[v])
    while i < wiring.inlet_start[v + 1]:
        end = port_end(i, v, wiring)
        waiting = in_port(i, end, wiring, state)
        share = 0.0 if take >= waiting else (waiting - take) / waiting
        for j in range(i, end):
            state.queued[wiring.inlets[j]] *= share
            wake(wiring.senders[j], BLOCKED, state)
        i = end

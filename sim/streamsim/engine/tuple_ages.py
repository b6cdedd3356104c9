"""Ages of tuples, as stamps: mean times at which those of a queue were generated and admitted.

Every function of the engine that moves tuples takes ``stamps`` last. For None, numba compiles a
variant without stamps.
"""

from typing import NamedTuple

import numpy as np

from streamsim.arrays import Floats, Ints
from streamsim.engine.state import EngineState, in_port, port_end
from streamsim.engine.wiring import Wiring
from streamsim.instance import Instance
from streamsim.jit import inlined_kernel, kernel

Pair = tuple[float, float]  # seconds of generation and of admission


class Stamps(NamedTuple):
    """Mean stamps of every quantity of `EngineState`, and the latency of processed tuples.

    The first axis is generation (0) or admission (1). Merging takes the size-weighted mean, and a
    partial draw does not change the mean, except in source backlogs, which are exact FIFOs.
    """

    queued: Floats  # [2, M]
    sending: Floats  # [2, M]
    pipe: Floats  # [2, longest delay, M]
    panes: Floats  # [2, K, panes]
    held: Floats  # [2, K]
    head: Ints  # [S] slice in which the oldest tuples of a backlog were generated
    served: Floats  # [S] tuples of that slice that left the backlog
    delay: Floats  # [2, N] Σ tuples · latency of an operator's input since the last tick


@kernel
def no_stamps(instance: Instance, state: EngineState) -> Stamps:
    """Stamps of an empty cluster."""
    m = len(state.sending)
    k, panes = state.panes.shape
    sources = len(state.queued) - m
    return Stamps(
        np.zeros((2, m)),
        np.zeros((2, m)),
        np.zeros((2, len(state.pipe), m)),
        np.zeros((2, k, panes)),
        np.zeros((2, k)),
        np.zeros(sources, np.int32),
        np.zeros(sources),
        np.zeros((2, len(instance.rate))),
    )


@inlined_kernel
def blend(size: float, mean: float, added: float, other: float) -> float:
    """Mean of ``size`` tuples stamped ``mean`` after ``added`` tuples stamped ``other`` join."""
    return mean + (other - mean) * added / (size + added) if added > 0.0 else mean


@inlined_kernel
def middle(wiring: Wiring, slice_index: int) -> float:
    """Time in the middle of a slice, the stamp of everything that happens in it."""
    return (slice_index + 0.5) * wiring.slice_seconds


@inlined_kernel
def drawn(
    v: int,
    take: float,
    waiting: float,
    slice_index: int,
    wiring: Wiring,
    state: EngineState,
    stamps: Stamps,
) -> Pair:
    """Mean stamps of ``take`` of the ``waiting`` tuples of an operator; also add their latency."""
    now = middle(wiring, slice_index)
    if wiring.joins[v]:
        generated, admitted = _oldest(v, now, wiring, state, stamps)
    else:
        generated, admitted = _mixed(v, take, waiting, slice_index, wiring, state, stamps)
    stamps.delay[0, v] += take * (now - generated)
    stamps.delay[1, v] += take * (now - admitted)
    return generated, admitted


@inlined_kernel
def _oldest(v: int, now: float, wiring: Wiring, state: EngineState, stamps: Stamps) -> Pair:
    """Stamps of sets of a join: a set is as old as the tuples of its oldest port."""
    generated, admitted, i = now, now, int(wiring.inlet_start[v])
    while i < wiring.inlet_start[v + 1]:
        end = port_end(i, v, wiring)
        waiting = in_port(i, end, wiring, state)
        made = let_in = 0.0
        for j in range(i, end):
            inlet = wiring.inlets[j]
            part = state.queued[inlet] / waiting
            made += part * stamps.queued[0, inlet]
            let_in += part * stamps.queued[1, inlet]
        generated, admitted = min(generated, made), min(admitted, let_in)
        i = end
    return generated, admitted


@inlined_kernel
def _mixed(
    v: int,
    take: float,
    waiting: float,
    slice_index: int,
    wiring: Wiring,
    state: EngineState,
    stamps: Stamps,
) -> Pair:
    """Mean stamps of tuples drawn from all queues in proportion to their lengths."""
    m = len(state.sending)
    now = middle(wiring, slice_index)
    generated = 0.0
    admitted = 0.0
    for i in range(wiring.inlet_start[v], wiring.inlet_start[v + 1]):
        inlet = wiring.inlets[i]
        part = state.queued[inlet] / waiting
        if inlet >= m:
            generated += part * _from_backlog(inlet - m, part * take, slice_index, wiring, stamps)
            admitted += part * now
        else:
            generated += part * stamps.queued[0, inlet]
            admitted += part * stamps.queued[1, inlet]
    return generated, admitted


@inlined_kernel
def _from_backlog(
    source: int, amount: float, slice_index: int, wiring: Wiring, stamps: Stamps
) -> float:
    """Remove the oldest ``amount`` tuples of a backlog; return their mean generation time."""
    remaining = amount
    total = 0.0
    while remaining > 0.0:
        head = stamps.head[source]
        available = wiring.generated[source, head] - stamps.served[source]
        if available > remaining or head >= slice_index:
            stamps.served[source] += remaining
            return (total + remaining * middle(wiring, head)) / amount
        total += available * middle(wiring, head)
        remaining -= available
        stamps.head[source] = head + 1
        stamps.served[source] = 0.0
    return total / amount if amount > 0.0 else middle(wiring, slice_index)

"""Joins: operators that take sets of one tuple from every port, equal amounts from each."""

from streamsim.arrays import Floats, Ints
from streamsim.engine.state import BLOCKED, EngineState, wake
from streamsim.engine.wiring import Wiring
from streamsim.jit import inlined_kernel


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

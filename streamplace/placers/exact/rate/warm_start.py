"""A short simulated annealing, compiled, for the placement that the proof starts from."""

import numpy as np
from streamsim.equation import (
    egress_at,
    ingress_at,
    link_at,
    link_load,
    n_resources,
    nic_load,
)
from streamsim.jit import borrowing_kernel, kernel

from streamplace.model.arrays import Floats, Ints
from streamplace.placers.exact.rate.branch_and_bound import has_memory
from streamplace.placers.exact.rate.units import Units, unit_handling

SWAPS = 0.3
HOT, COLD = 0.1, 0.002
FREE = -1


@kernel
def anneal(
    units: Units, start: Ints, kind: Ints, moves: int, stop: int, enough: float, seed: int
) -> tuple[Ints, float]:
    """Return the best legal placement found and its peak load; end early at ``enough``.

    The temperature falls over ``moves`` moves, of which at most ``stop`` are made.

    Units of kind FREE move to any device and swap with any other; units of another kind only swap
    with their own kind, so that every device keeps its number of each kind.
    """
    np.random.seed(seed)  # noqa: NPY002 - numba's generator, private to compiled code
    n, d = units.load.shape
    loads = np.empty(n_resources(d))
    place, best = start.copy(), start.copy()
    best_peak = write_loads(units, place, loads)
    energy = _energy(loads, best_peak)
    hot, cold = HOT * energy, COLD * energy
    for i in range(min(moves, stop)):
        if best_peak <= enough:
            break
        u = np.random.randint(n)  # noqa: NPY002
        old, v, new = place[u], -1, np.random.randint(d)  # noqa: NPY002
        if kind[u] != FREE or np.random.random() < SWAPS:  # noqa: NPY002
            v = np.random.randint(n)  # noqa: NPY002
            new = place[v]
            if kind[u] != kind[v]:
                continue
        if new == old:
            continue
        _exchange(place, u, v, new, old)
        if _legal(units, place, u) and (v < 0 or _legal(units, place, v)):
            peak = write_loads(units, place, loads)
            tried = _energy(loads, peak)
            heat = hot * (cold / hot) ** (i / moves)
            if np.random.random() < np.exp((energy - tried) / heat):  # noqa: NPY002
                energy = tried
                if peak < best_peak:
                    best_peak = peak
                    for w in range(n):
                        best[w] = place[w]
                continue
        _exchange(place, u, v, old, new)
    return best, best_peak


@borrowing_kernel
def _exchange(place: Ints, u: int, v: int, new: int, old: int) -> None:
    """Put unit u on the new device and, if v ≥ 0, unit v on the old one."""
    place[u] = new
    if v >= 0:
        place[v] = old


@borrowing_kernel
def write_loads(units: Units, place: Ints, loads: Floats) -> float:
    """Compute the load of every resource; return the largest, single cores included."""
    n = len(units.classes)
    loads[:] = 0.0
    peak = 0.0
    for u in range(len(place)):
        loads[place[u]] += units.load[u, place[u]]
        peak = max(peak, units.core[u, place[u]])
    for e in range(len(units.source)):
        a, b = place[units.source[e]], place[units.target[e]]
        if a == b:
            continue
        traffic, tuples = units.traffic[e], units.tuples[e]
        loads[a] += unit_handling(units, tuples, traffic, a)
        loads[b] += unit_handling(units, tuples, traffic, b)
        wire = units.seconds_per_byte[a, b]
        loads[link_at(n, a, b)] += link_load(traffic, tuples, wire, units.gap)
        loads[egress_at(n, a)] += nic_load(traffic, units.egress[a])
        loads[ingress_at(n, b)] += nic_load(traffic, units.ingress[b])
    for load in loads:
        peak = max(peak, load)
    return peak


@borrowing_kernel
def _energy(loads: Floats, peak: float) -> float:
    """8-norm of the loads: the largest dominates, but the others contribute."""
    total = 0.0
    for load in loads:
        share = load / peak if peak > 0 else 0.0
        square = share * share
        total += square * square * square * square
    return peak * total**0.125


@borrowing_kernel
def _legal(units: Units, place: Ints, u: int) -> bool:
    """Whether unit u may be on its device, given the others."""
    if np.isinf(units.load[u, place[u]]):
        return False
    for i in range(units.rival_start[u], units.rival_start[u + 1]):
        if place[units.rivals[i]] == place[u]:
            return False
    return has_memory(units, place, u, place[u])

"""Ties between placements of equal throughput: least peak load first, then least traffic.

All placements that keep up with the sources have equal throughput, whether or not they leave
capacity free. From the result of a search, single units are moved while that lowers the peak load,
or lowers the traffic without raising the peak; the throughput never falls.
"""

import numpy as np
from streamsim import throughput

from streamplace.errors import StreamplaceError
from streamplace.model.arrays import Floats, Ints
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.placers.partition import unit_of

WORK = 3_000_000
"""Operators and streams to examine in total, which takes some milliseconds."""
ROUNDS = 100
OVERLOAD = 1e6
"""Multiple of the rate at which no placement keeps up, so that throughput gives the peak load."""


def with_least_peak(problem: Problem, placement: Placement) -> Placement:
    """Return a placement of no less throughput, with least peak load, then least traffic.

    The minimum is local, over moves of single units. Graphs too large to examine them keep their
    placement.
    """
    unit = unit_of(problem)
    moves = (int(unit.max()) + 1) * problem.n_devices
    rounds = min(ROUNDS, WORK // (moves * (problem.n_operators + problem.graph.n_streams)))
    if not rounds:
        return placement
    try:
        overloaded = problem.at_rate(OVERLOAD * problem.graph.source_rate)
    except StreamplaceError:  # the rate is too large to compute with
        return placement
    place = np.array(placement.index, np.int32)
    peak, traffic = _cost(problem, overloaded, place[None])
    best = peak[0], traffic[0]
    for _ in range(rounds):
        near = _neighbours(problem, unit, place)
        if not len(near):
            break
        peak, traffic = _cost(problem, overloaded, near)
        first = np.lexsort((traffic, peak))[0]
        if not (peak[first], traffic[first]) < best:
            break
        place, best = near[first], (peak[first], traffic[first])
    reached = throughput(problem.instance, np.stack([placement.index, place]))
    return problem.placement(place) if reached[1] >= reached[0] else placement


def _neighbours(problem: Problem, unit: Ints, place: Ints) -> Ints:
    """Legal placements that differ by one unit."""
    units, devices = np.arange(unit.max() + 1), np.arange(problem.n_devices, dtype=np.int32)
    moved = np.repeat(units, len(devices))[:, None] == unit
    near = np.where(moved, np.tile(devices, len(units))[:, None], place)
    return near[problem.legal(near)]


def _cost(problem: Problem, overloaded: Problem, placements: Ints) -> tuple[Floats, Floats]:
    """Peak load and traffic between devices of each placement."""
    instance = problem.instance
    peak = 1 / np.maximum(throughput(overloaded.instance, placements), 1e-300)
    remote = placements[:, instance.source] != placements[:, instance.target]
    return peak / OVERLOAD, remote @ instance.traffic

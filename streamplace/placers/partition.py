"""What placers that cut the graph into parts share: the graph of units, and parts to devices."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamplace.errors import SettingError
from streamplace.model.columns import Floats, Ints
from streamplace.model.problem import Problem

Longs = NDArray[np.int64]

LARGEST_TOTAL = 1e9
"""Scaled weights add up to about this, which fits 32 bits whatever a partitioner adds up."""


class Neighbours(NamedTuple):
    """An undirected graph: the neighbours of u are ``neighbour[start[u]:start[u + 1]]``."""

    start: Longs
    neighbour: Longs
    weight: Longs


def checked_parts(problem: Problem, k: int | None) -> int:
    """Return the number of parts asked for, as many as devices by default."""
    most = problem.n_devices
    if k is None:
        return most
    if not 1 <= k <= most:
        raise SettingError(f"k is {k}; it must be between 1 and the number of devices, {most}")
    return k


def unit_of(problem: Problem) -> Ints:
    """Unit of every operator; colocated operators are one unit, all others their own."""
    if problem.rules is None:
        return np.arange(problem.n_operators, dtype=np.int32)
    return problem.rules.unit


def whole(weights: Floats) -> Longs:
    """Weights as integers in proportion; no positive one becomes 0 and the total cannot overflow.

    >>> whole(np.array([0.0, 1e-30, 0.25, 0.75])).tolist()
    [0, 1, 250000000, 750000000]
    """
    total = weights.sum()
    if not total > 0:
        return np.zeros(len(weights), np.int64)
    scaled: Longs = np.ceil(weights * (LARGEST_TOTAL / total)).astype(np.int64)
    return scaled


def neighbours(problem: Problem, unit: Ints, n_units: int, weight: Longs) -> Neighbours:
    """Undirected graph of the units; streams between the same two are merged into one edge."""
    from streamsim.topology import undirected

    source, target = problem.instance.source, problem.instance.target
    if problem.rules is not None:
        source, target = unit[source], unit[target]
    return Neighbours(*undirected(source, target, weight, n_units))


def power(problem: Problem) -> Floats:
    """Share of the graph that each device could carry, up to a common factor; shape [D]."""
    instance = problem.instance
    if instance.load.shape[1] == 1:
        return np.ones(instance.n_devices)
    whole_graph = instance.load.sum(axis=0)
    return np.where(whole_graph > 0, 1 / np.maximum(whole_graph, 1e-300), 1.0)[instance.device_type]


def strongest(power: Floats, k: int) -> Ints:
    """Rows of the k devices of most power, the first of equals, in order."""
    if k == len(power):
        return np.arange(k, dtype=np.int32)
    return np.sort(np.argsort(-power, kind="stable")[:k]).astype(np.int32)


def on_devices(problem: Problem, part: Ints, devices: Ints) -> Ints:
    """Legal placement that runs part p of the operators on ``devices[p]``, or near it.

    Where the constraints say otherwise, parts swap devices so that as many constrained units as
    possible stay in their part; the rest is moved one by one.
    """
    if problem.rules is None:
        return devices[part]
    first = problem.rules.first_operator
    limited = ~problem.rules.allowed.all(axis=1)
    agreement = np.zeros((len(devices), problem.n_devices))
    np.add.at(agreement, part[first[limited]], problem.rules.allowed[limited])
    agreement[np.arange(len(devices)), devices] += 0.5
    return problem.repaired(_matched(agreement)[part])


def _matched(agreement: Floats) -> Ints:
    """Greedy one-to-one map of rows to columns, the largest agreement first."""
    left = agreement.copy()
    column = np.zeros(len(left), np.int32)
    for _ in range(len(left)):
        p, d = np.unravel_index(int(np.argmax(left)), left.shape)
        column[p] = d
        left[p, :] = -1.0
        left[:, d] = -1.0
    return column

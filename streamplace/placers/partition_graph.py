"""The graph of units that METIS and fuser partition, and the assignment of parts to devices."""

from math import factorial
from typing import NamedTuple

import numpy as np
from streamsim import _core

from streamplace.errors import OptionError, SettingError
from streamplace.model.arrays import Floats, Ints, Longs
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.meter import Meter
from streamplace.placers.registry import Budget, remaining_budget

MAX_TOTAL = 1e9
"""Approximate sum of scaled weights; it fits 32 bits, so sums inside a partitioner do, too."""
MIN_TOTAL = 1e-290
"""Smaller sums of weights count as 0, since their inverses would be infinite."""
ROWS, TIMED_ROWS = 1_000_000, 200_000
"""Operators in placements that are evaluated at once, and before the clock is read again."""
MAX_EXCHANGED = 256
"""Most parts that exchange devices; with more, that would take longer than the cut."""
MAX_MAPPINGS = 5040
"""Most assignments of parts to devices that are evaluated: all of seven unlike devices."""
MAX_MAPPED = 20_000_000
"""Most operators in them together, which takes about a second."""


class Neighbours(NamedTuple):
    """An undirected graph: the neighbours of u are ``neighbour[start[u]:start[u + 1]]``."""

    start: Longs
    neighbour: Longs
    weight: Longs


def checked_parts(problem: Problem, k: int | None) -> int:
    """Return the number of parts, by default as many as devices; raise SettingError if illegal."""
    most = problem.n_devices
    if k is None:
        return most
    if not 1 <= k <= most:
        error = SettingError if k > most else OptionError
        raise error(f"k is {k}; it must be between 1 and the number of devices, {most}")
    return k


def whole(weights: Floats) -> Longs:
    """Scale weights to integers; no positive one becomes 0, and the total cannot overflow.

    >>> whole(np.array([0.0, 1e-30, 0.25, 0.75])).tolist()
    [0, 1, 250000000, 750000000]
    """
    total = weights.sum()
    if not total > MIN_TOTAL:
        return np.zeros(len(weights), np.int64)
    scaled: Longs = np.ceil(weights * (MAX_TOTAL / total)).astype(np.int64)
    return scaled


def neighbours(problem: Problem, unit: Ints, n_units: int, weight: Longs) -> Neighbours:
    """Undirected graph of the units; streams between the same two units form one edge."""
    source, target = problem.instance.source, problem.instance.target
    if problem.rules is not None:
        source, target = unit[source], unit[target]
    return Neighbours(*_core.undirected(source, target, weight, n_units))


def power(problem: Problem) -> Floats:
    """Power of each device: the share of the graph it could carry, up to a factor; shape [D]."""
    instance = problem.instance
    if instance.load.shape[1] == 1:
        return np.ones(instance.n_devices)
    whole_graph = instance.full_load.sum(axis=0)
    of_type = np.where(whole_graph > MIN_TOTAL, 1 / np.maximum(whole_graph, MIN_TOTAL), 1.0)
    return of_type[instance.device_type]


def strongest(power: Floats, k: int) -> Ints:
    """Indices of the k most powerful devices, ascending; of equal ones, the first."""
    if k == len(power):
        return np.arange(k, dtype=np.int32)
    return np.sort(np.argsort(-power, kind="stable")[:k]).astype(np.int32)


def exchanged(problem: Problem, part: Ints, devices: Ints) -> Ints:
    """Exchange devices of equal power between parts to lower the load of the fullest link.

    Partitioners do not know links, so chance decides which parts share a slow one. Two devices are
    exchanged while that lowers the sum of the links' loads to the power of eight, which the fullest
    link dominates. If all links are equal, devices stay as they are.
    """
    k = len(devices)
    wire = problem.instance.seconds_per_byte[np.ix_(devices, devices)]
    links = wire[~np.eye(k, dtype=bool)]
    if not 1 < k <= MAX_EXCHANGED or (links == links[0]).all():
        return devices
    instance = problem.instance
    pair = part[instance.source].astype(np.int64) * k + part[instance.target]
    traffic = np.bincount(pair, instance.traffic, k * k).reshape(k, k)
    kind = np.unique(power(problem)[devices], return_inverse=True)[1].astype(np.int32)
    return devices[
        _core.exchanged_parts(traffic / max(traffic.max(), 1e-300), wire / links.max(), kind)
    ]


def on_devices(problem: Problem, part: Ints, devices: Ints) -> Ints:
    """Return a legal placement close to running part p of the operators on ``devices[p]``.

    If constraints forbid that, parts swap devices so that as many constrained units as possible
    stay in their part; the others are moved one by one.
    """
    if problem.rules is None:
        return devices[part]
    first = problem.rules.first_operator
    limited = ~problem.rules.allowed.all(axis=1)
    agreement = np.zeros((len(devices), problem.n_devices))
    np.add.at(agreement, part[first[limited]], problem.rules.allowed[limited])
    agreement[np.arange(len(devices)), devices] += 0.5
    return problem.repaired(matched(agreement)[part])


def best_mapping(
    problem: Problem, objective: Objective, part: Ints, devices: Ints, budget: Budget
) -> Placement:
    """Placement of the parts on the devices where the objective is best; at first ``devices``.

    If devices are unlike, all assignments of parts to devices that differ are evaluated, if they
    are few; else two devices are exchanged, the unused ones too, while that helps. The parts are
    kept, as are the devices if all are alike.
    """
    best, kind = on_devices(problem, part, devices), problem.interchangeable
    if (kind == kind[0]).all():
        return problem.placement(best)
    most = min(MAX_MAPPINGS, MAX_MAPPED // problem.n_operators)
    meter = Meter(remaining_budget(budget.seconds, min(budget.evaluations or most, most) or 1), 1)
    meter.spend(1)
    value = float(objective.evaluate(problem, best[None])[0])
    if value == objective.limit:
        return problem.placement(best)
    rows = max(1, (ROWS if budget.seconds is None else TIMED_ROWS) // problem.n_operators)

    def improve(maps: Ints) -> int:
        """Evaluate devices of parts [M, K]; return the row that is the best so far, or -1."""
        nonlocal best, value
        found = -1
        for first in range(0, len(maps), rows):
            chunk = maps[first : first + meter.chunk(rows)]
            meter.spend(len(chunk))
            legal = np.flatnonzero(problem.legal(chunk[:, part])) if len(chunk) else chunk
            if not len(legal):
                continue
            batch = chunk[legal][:, part]
            values = objective.evaluate(problem, batch)
            i = objective.best(values)
            if objective.better(float(values[i]), value):
                best, value, found = batch[i], float(values[i]), first + int(legal[i])
        return found

    maps = _mappings(kind, len(devices), most)
    if maps is not None:
        improve(maps)
        return problem.placement(best)
    at = np.concatenate([devices, np.setdiff1d(np.arange(problem.n_devices), devices)])
    stale = 0
    while stale < len(devices) and not meter.over:
        for a in range(len(devices)):
            others = np.flatnonzero(kind[at] != kind[at[a]])
            maps = np.tile(at, (len(others), 1))
            maps[:, a], maps[np.arange(len(others)), others] = at[others], at[a]
            found = improve(maps[:, : len(devices)])
            at, stale = (at, stale + 1) if found < 0 else (maps[found], 0)
    return problem.placement(best)


def _mappings(kind: Ints, k: int, most: int) -> Ints | None:
    """Assign k parts to devices in all ways that differ, [M, K]; None if these are too many.

    >>> _mappings(np.array([0, 0, 1]), 2, 10).tolist()
    [[0, 1], [0, 2], [2, 0]]
    """
    groups = [np.flatnonzero(kind == c).tolist() for c in np.unique(kind)]
    ways = np.ones(1)  # [x^j] of the product over kinds of Σ x^i / i!: divided by j!, of j parts
    for group in groups:
        ways = np.convolve(ways, [1 / factorial(i) for i in range(min(len(group), k) + 1)])
    if ways[k] * factorial(k) > most + 0.5:
        return None
    maps, used = np.zeros((1, 0), np.int32), np.zeros((1, len(groups)), np.int32)
    sizes = np.array([len(group) for group in groups])
    devices = np.zeros((len(groups), sizes.max()), np.int32)
    for g, group in enumerate(groups):
        devices[g, : len(group)] = group
    for _ in range(k):
        row, chosen = np.nonzero(used < sizes)  # row by row, in the order of the groups
        maps = np.column_stack((maps[row], devices[chosen, used[row, chosen]]))
        used = used[row]
        used[np.arange(len(row)), chosen] += 1
    return maps


def matched(agreement: Floats) -> Ints:
    """Map rows to columns one to one, by largest agreement; negative only if unavoidable."""
    agreements = agreement.copy()
    column = np.zeros(len(agreements), np.int32)
    for _ in range(len(agreements)):
        p, d = np.unravel_index(int(np.argmax(agreements)), agreements.shape)
        column[p] = d
        agreements[p, :] = -np.inf
        agreements[:, d] = -np.inf
    return column

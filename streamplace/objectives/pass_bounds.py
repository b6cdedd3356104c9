"""Lower bounds of the cost and the energy of one pass, summed over devices and links."""

from collections.abc import Callable, Iterator

import numpy as np

from streamplace.model.arrays import Floats, Ints
from streamplace.model.problem import Problem

MAX_CELLS = 20_000_000
"""Links of the forest times pairs of devices, above which the bound leaves out the network."""
Sending = Callable[[float, float], Floats]
"""Cost of sending tuples and bytes from device to device, [D, D], besides core seconds."""


def least_of_a_pass(problem: Problem, per_second: Floats, sending: Sending) -> float:
    """Least cost of a pass at a price per core second, [D], if only a forest of streams costs.

    Colocated operators are one unit, which may run on its allowed devices. For the streams of a
    spanning forest, the heaviest first, the least cost is exact: m(u, d), the least of a subtree
    with u on d, is the cost of u on d + Σ over children of min over c of (m(child, c) +
    transfer(c, d)). The other streams cost at least 0.
    """
    from streamsim.pass_costs import pass_seconds

    instance, unit, rules = problem.instance, problem.unit, problem.rules
    seconds, column = pass_seconds(instance), instance.device_type
    busy = seconds * instance.input_rate[:, None] * instance.seconds[:, column]
    if len(instance.constant):  # at full rate, where a pass is shortest
        busy = busy + seconds * instance.constant[:, column] * instance.cores
    least = np.zeros((int(unit.max()) + 1, problem.n_devices))
    np.add.at(least, unit, busy * per_second)
    if rules is not None:
        least = np.where(rules.allowed, least, np.inf)
    handling = per_second * instance.cores / instance.free_cores

    def transfers(streams: Ints, child: int) -> Floats:
        """Cost of streams by the devices of the child and of the other unit, [D, D]."""
        total = np.zeros((problem.n_devices, problem.n_devices))
        for e in streams.tolist():
            tuples, size = seconds * instance.tuples[e], seconds * instance.traffic[e]
            work = tuples * instance.overhead + size * instance.overhead_per_byte
            cost = sending(tuples, size) + work * (handling[:, None] + handling[None, :])
            total += cost if unit[instance.source[e]] == child else cost.T
        np.fill_diagonal(total, 0.0)
        return total

    if least.size * problem.n_devices <= MAX_CELLS:
        for child, parent, streams in _leaves_first(problem):
            least[parent] += (least[child][:, None] + transfers(streams, child)).min(axis=0)
            least[child] = 0.0
    return float(least.min(axis=1).sum())


def _leaves_first(problem: Problem) -> Iterator[tuple[int, int, Ints]]:
    """Yield the links of a spanning forest of the units: child, parent, and their streams."""
    instance, unit = problem.instance, problem.unit
    ends = np.sort(unit[np.stack([instance.source, instance.target], axis=1)], axis=1)
    remote = np.flatnonzero(ends[:, 0] != ends[:, 1])
    pairs, number = np.unique(ends[remote], axis=0, return_inverse=True)
    weight = np.bincount(number.ravel(), instance.traffic[remote], len(pairs))
    root = np.arange(int(unit.max()) + 1)
    linked: dict[int, list[tuple[int, int]]] = {}
    for i in np.argsort(-weight, kind="stable").tolist():
        a, b = pairs[i].tolist()
        if root[a] != root[b]:
            root[root == root[b]] = root[a]
            linked.setdefault(a, []).append((b, i))
            linked.setdefault(b, []).append((a, i))
    visited, order = set[int](), list[tuple[int, int, int]]()
    for first in linked:
        stack = [] if first in visited else [first]
        visited.update(stack)
        while stack:
            parent = stack.pop()
            for child, i in linked[parent]:
                if child not in visited:
                    visited.add(child)
                    stack.append(child)
                    order.append((child, parent, i))
    for child, parent, i in reversed(order):
        yield child, parent, remote[number.ravel() == i].astype(np.int32)

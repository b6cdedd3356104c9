"""Lines: the order in which each device runs its operators under the queue ``order``."""

from typing import NamedTuple

import numpy as np

from streamsim import _core
from streamsim.arrays import Floats, Ints
from streamsim.passes.compiled import Pass


class Conflict(NamedTuple):
    """Two operators of one line; the first is ahead but depends on the second."""

    first: int
    second: int


def lines(one_pass: Pass, priorities: Floats) -> Ints:
    """Operators by falling priority [B, N], with ties in topological order.

    The line of a device consists of its operators in this order.
    """
    along = np.argsort(-priorities[:, one_pass.order], axis=1, kind="stable")
    return np.ascontiguousarray(one_pass.order[along], np.int32)


def merged_order(one_pass: Pass, place: Ints, priorities: Floats) -> Ints:
    """Operators in an order that agrees with the streams and with the line of every device.

    Operators that could never start are missing; see `conflict`.
    """
    line = lines(one_pass, priorities[None])[0]
    return _merged(one_pass, _before(place, line))


def conflict(one_pass: Pass, place: Ints, priorities: Floats) -> Conflict | None:
    """Find two operators whose order in a line contradicts the streams; None if there are none."""
    before = _before(place, lines(one_pass, priorities[None])[0])
    stuck = np.ones(one_pass.n_operators, np.bool_)
    stuck[_merged(one_pass, before)] = False
    if not stuck.any():
        return None
    streams = one_pass.streams
    predecessor = {v: int(before[v]) for v in np.flatnonzero(stuck).tolist()}
    inside = np.flatnonzero(stuck[streams["source"]] & stuck[streams["target"]])
    predecessor |= {int(streams["target"][e]): int(streams["source"][e]) for e in inside}
    walk, v = [], next(iter(predecessor))
    while v not in walk:
        walk.append(v)
        v = predecessor[v]
    second = next(u for u in walk[walk.index(v) :] if predecessor[u] == before[u])
    return Conflict(int(before[second]), second)


def _merged(one_pass: Pass, before: Ints) -> Ints:
    """Topological order of streams and lines together, without operators on cycles."""
    streams, behind = one_pass.streams, np.flatnonzero(before >= 0).astype(np.int32)
    source = np.concatenate([streams["source"], before[behind]])
    target = np.concatenate([streams["target"], behind])
    return _core.topological_order(one_pass.n_operators, source, target)


def _before(place: Ints, line: Ints) -> Ints:
    """Predecessor of each operator in the line of its device, -1 for the first."""
    by_device = line[np.argsort(place[line], kind="stable")]
    follows = place[by_device[1:]] == place[by_device[:-1]]
    before = np.full(len(line), -1, np.int32)
    before[by_device[1:][follows]] = by_device[:-1][follows]
    return before

"""Features of a problem before the first decision, and the order of the decisions.

All loads are in units of the *yardstick*, the least peak that any placement could have, but at
least 1: an operator of 0.4 needs four tenths of the load that the fullest resource must carry in
any case, at any rate, on any number of devices of any speed.
"""

import heapq
from typing import NamedTuple

import numpy as np
from streamsim.jit import kernel, patient

from streamplace.model.arrays import Floats, Ints, Singles
from streamplace.model.level import Level, finest_level, least_peak
from streamplace.model.problem import Problem

UNIT_FEATURES = (
    "log-load",
    "load",
    "log-sent",
    "log-taken",
    "log-most-sent",
    "log-most-taken",
    "most-sent",
    "most-taken",
    "ways-out",
    "ways-in",
    "position",
    "load-over-mean",
    "load-per-device",
    "heaviest",
    "yardstick",
    "one-by-devices",
    "log-units",
)
PAIR_FEATURES = ("log-sent", "log-taken", "sent", "taken", "sends", "takes")
FLOOR = 1e-3


class PilotFeatures(NamedTuple):
    """Features of a problem (U units, E pairs, one for each end of a connection, D devices)."""

    level: Level
    yardstick: float
    order: Ints  # [U] units in the order in which they are placed
    group: Ints  # [D] class of interchangeable devices
    units: Singles  # [U, 17] `UNIT_FEATURES`
    pairs: Singles  # [E, 6] `PAIR_FEATURES`
    unit_of: Ints  # [N] unit of every operator


def features_of(problem: Problem) -> PilotFeatures:
    """Compute the features of a problem."""
    level = finest_level(problem)
    yardstick = max(1.0, least_peak(problem, level))
    if not np.isfinite(yardstick):
        yardstick = 1.0
    unit_of = np.arange(problem.n_operators, dtype=np.int32)
    if problem.rules is not None:
        unit_of = problem.rules.unit.astype(np.int32)
    sequence = decision_order(level)
    wire = _typical(level.wire) / yardstick
    sent, taken = level.sent * wire, level.taken * wire
    return PilotFeatures(
        level,
        yardstick,
        sequence,
        problem.interchangeable.astype(np.int32),
        _unit_features(level, sequence, yardstick, sent, taken),
        np.stack(
            [_log(sent), _log(taken), _small(sent), _small(taken), sent > 0, taken > 0], axis=1
        ).astype(np.float32),
        unit_of,
    )


def on_walk(features: PilotFeatures, walk: int) -> PilotFeatures:
    """Features of the same problem for a walk that begins at another unit; the first walk is 0."""
    sequence = decision_order(features.level, walk)
    units = features.units.copy()
    units[:, UNIT_FEATURES.index("position")] = _position(sequence)
    return features._replace(order=sequence, units=units)


def _position(sequence: Ints) -> Floats:
    """Share of the units that come before each."""
    position = np.empty(len(sequence))
    position[sequence] = np.arange(len(sequence)) / len(sequence)
    return position


def _typical(wire: Floats) -> float:
    """Median seconds per byte between two devices."""
    between = wire[~np.eye(len(wire), dtype=bool)]
    return float(np.median(between)) if len(between) else 0.0


def _unit_features(
    level: Level, sequence: Ints, yardstick: float, sent: Floats, taken: Floats
) -> Singles:
    """`UNIT_FEATURES` of every unit; the last five are of the whole problem."""
    u, d = level.n_units, len(level.device_type)
    cost = level.load[:, level.device_type] / yardstick
    if level.ruled:
        cost = np.where(level.allowed[level.kind], cost, np.inf)
    least = cost.min(axis=1)
    owner = np.repeat(np.arange(u), np.diff(level.start))
    sums = [np.bincount(owner, flow, u).astype(np.float64) for flow in (sent, taken)]
    most = [np.zeros(u), np.zeros(u)]
    for peak, flow in zip(most, (sent, taken), strict=True):
        np.maximum.at(peak, owner, flow)
    partners = [np.bincount(owner[flow > 0], minlength=u) for flow in (sent, taken)]
    of_problem = [
        least.sum() / d,
        least.max(),
        np.log(yardstick),
        1 / d,
        np.log(u) / 4,
    ]
    columns = [
        _log(least),
        _small(least),
        *(_log(flow) for flow in (*sums, *most)),
        *(_small(flow) for flow in most),
        *(np.log1p(count) for count in partners),
        _position(sequence),
        _small(least / max(least.mean(), FLOOR)),
        *(np.full(u, value) for value in of_problem),
    ]
    return np.stack(columns, axis=1).astype(np.float32)


def _log(load: Floats) -> Floats:
    """Logarithm of a load, from 0 at nothing to about 1 at the yardstick."""
    return np.log1p(load / FLOOR) / np.log1p(1 / FLOOR)


def _small(load: Floats) -> Floats:
    """The load itself where it is small, never above 3."""
    return np.minimum(load, 3.0)


NOWHERE = -1


def decision_order(level: Level, walk: int = 0) -> Ints:
    """Units [U] in the order of `grown`; first those with one device, then those with rivals.

    What must not be separated is placed early, while there is room. The first walk begins at the
    heaviest pair, the k-th after it at the k-th lightest unit.
    """
    sequence = grown(level, _lightest(level, walk - 1) if walk else NOWHERE)
    if not level.ruled:
        return sequence
    choices = level.allowed[level.kind].sum(axis=1)
    rivals = np.diff(level.rival_start) if len(level.rival_start) else np.zeros(level.n_units)
    key = np.where(choices == 1, 0, np.where(rivals > 0, 1, 2))
    return sequence[np.argsort(key[sequence], kind="stable")]


def _lightest(level: Level, k: int) -> int:
    """Unit with the k-th least bytes/s to and from it."""
    owner = np.repeat(np.arange(level.n_units), np.diff(level.start))
    flow = np.bincount(owner, level.sent + level.taken, level.n_units)
    return int(np.argsort(flow, kind="stable")[k % level.n_units])


@patient
@kernel
def grown(level: Level, first: int) -> Ints:
    """Units from ``first`` on, always the one to which most bytes/s lead from those before.

    This is a maximum adjacency order; ties go to the unit of the heavier pair, then to the first,
    and so does the beginning if it is `NOWHERE`.
    """
    n = len(level.load)
    heaviest, pull, done = np.zeros(n), np.zeros(n), np.zeros(n, np.bool_)
    for u in range(n):
        for e in range(level.start[u], level.start[u + 1]):
            heaviest[u] = max(heaviest[u], level.sent[e] + level.taken[e])
    if first != NOWHERE:
        pull[first] = np.inf
    heap = [(-pull[u], -heaviest[u], np.int64(u)) for u in range(n)]
    heapq.heapify(heap)
    order, end = np.empty(n, np.int32), 0
    while end < n:
        key, _, top = heapq.heappop(heap)
        u = int(top)
        if done[u] or -key < pull[u]:
            continue
        done[u], order[end] = True, u
        end += 1
        for e in range(level.start[u], level.start[u + 1]):
            v = np.int64(level.peer[e])
            if not done[v]:
                pull[v] += level.sent[e] + level.taken[e]
                heapq.heappush(heap, (-pull[v], -heaviest[v], v))
    return order

"""What pilot sees of a problem before it begins: units, what flows between them, and a yardstick.

All loads are in units of the *yardstick*, the least peak that any placement could have, but at
least 1: an operator of 0.4 means "four tenths of what the fullest resource must carry anyhow", at
any rate, on any number of devices of any speed.
"""

from typing import NamedTuple

import numpy as np

from streamplace.learn.models.pilot.order import decision_order
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
    """A problem as pilot sees it (U units, E pairs seen from both ends, D devices)."""

    level: Level
    yardstick: float
    order: Ints  # [U] units in the order in which they are placed
    group: Ints  # [D] class of interchangeable devices
    units: Singles  # [U, 17] `UNIT_FEATURES`
    pairs: Singles  # [E, 6] `PAIR_FEATURES`
    unit_of: Ints  # [N] unit of every operator


def features_of(problem: Problem) -> PilotFeatures:
    """See a problem."""
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
    """See the same problem, begun elsewhere; the first walk is 0."""
    sequence = decision_order(features.level, walk)
    units = features.units.copy()
    units[:, UNIT_FEATURES.index("position")] = _position(sequence)
    return features._replace(order=sequence, units=units)


def _position(sequence: Ints) -> Floats:
    """Part of the units that come before each."""
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
    whole = [
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
        *(np.full(u, value) for value in whole),
    ]
    return np.stack(columns, axis=1).astype(np.float32)


def _log(load: Floats) -> Floats:
    """Logarithm of a load, from 0 at nothing to about 1 at the yardstick."""
    return np.log1p(load / FLOOR) / np.log1p(1 / FLOOR)


def _small(load: Floats) -> Floats:
    """The load itself where it is small, never above 3."""
    return np.minimum(load, 3.0)

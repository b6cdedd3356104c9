"""Features that pilot knows: of units and pairs, and of devices under the placement so far.

All loads are in units of the *yardstick*, the least peak that any placement could have, but at
least 1: an operator of 0.4 needs four tenths of the load that the fullest resource must carry in
any case, at any rate, on any number of devices of any speed. These numbers are the only inputs of
the network, in the core and in torch. Features of devices are computed by
`streamsim._core.PilotState`.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from streamsim import _core

from streamplace.model.arrays import Floats, Ints, Singles
from streamplace.model.coarsening import Level, finest_level
from streamplace.model.least_peak import peak_yardstick
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
    yardstick = peak_yardstick(problem, level)
    sequence = decision_order(level)
    between = level.platform.seconds_per_byte[~np.eye(problem.n_devices, dtype=bool)]
    wire = (float(np.median(between)) if len(between) else 0.0) / yardstick
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
        problem.unit.astype(np.int32),
    )


def for_rollout(features: PilotFeatures, rollout: int) -> PilotFeatures:
    """Features of the same problem for a rollout from another unit; rollouts count from 0."""
    sequence = decision_order(features.level, rollout)
    units = features.units.copy()
    units[:, UNIT_FEATURES.index("position")] = _position(sequence)
    return features._replace(order=sequence, units=units)


def _position(sequence: Ints) -> Floats:
    """Share of the units that come before each."""
    position = np.empty(len(sequence))
    position[sequence] = np.arange(len(sequence)) / len(sequence)
    return position


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
    of_problem = [least.sum() / d, least.max(), np.log(yardstick), 1 / d, np.log(u) / 4]
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
    """The load, at most 3."""
    return np.minimum(load, 3.0)


def decision_order(level: Level, rollout: int = 0) -> Ints:
    """Units [U], always the one to which most flow leads; first those with one device, then rivals.

    Units with few choices are placed early, while there is room. The first rollout begins at the
    heaviest pair, the k-th after it at the k-th lightest unit.
    """
    first = None
    if rollout:
        owner = np.repeat(np.arange(level.n_units), np.diff(level.start))
        flow = np.bincount(owner, level.sent + level.taken, level.n_units)
        first = int(np.argsort(flow, kind="stable")[(rollout - 1) % level.n_units])
    sequence = _core.grown(level.start, level.peer, level.sent + level.taken, first)
    if not level.ruled:
        return sequence
    choices = level.allowed[level.kind].sum(axis=1)
    rivals = np.diff(level.rival_start) if len(level.rival_start) else np.zeros(level.n_units)
    key = np.where(choices == 1, 0, np.where(rivals > 0, 1, 2))
    return sequence[np.argsort(key[sequence], kind="stable")]


class DeviceFeature(IntEnum):
    """Features of a device, by column."""

    LOAD = 0
    LOAD_AFTER = 1
    TOO_MUCH_AFTER = 2
    LINK_AFTER = 3
    LINK_TOO_MUCH_AFTER = 4
    SHARE_AT_HOME = 5
    FLOW_AT_HOME = 6
    FLOW_CUT = 7
    FLOW_LOOSE = 8
    EMPTY = 9
    LAST = 10
    SPEED = 11
    PEAK_GROWTH = 12
    ROOM_OVER_COMING = 13
    MISFIT = 14
    OWN = 15
    LESS_ROOM_THAN_MOST = 16
    NEIGHBOUR = 17
    FULLEST_LINK = 18
    FLOW = 19


class StepFeature(IntEnum):
    """Features of a decision itself, by column."""

    COMING = 0
    COMING_OVER_ROOM = 1
    PEAK = 2
    DEVICES_USED = 3
    MOST_ROOM = 4
    POSITION = 5


N_DEVICE, N_STEP = len(DeviceFeature), len(StepFeature)
MAX_FEATURE = 4.0
"""Largest value of a feature without another bound."""

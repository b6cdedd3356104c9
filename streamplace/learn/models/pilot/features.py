"""What pilot knows: features of units and pairs, and of devices under the placement so far.

All loads are in units of the *yardstick*, the least peak that any placement could have, but at
least 1: an operator of 0.4 needs four tenths of the load that the fullest resource must carry in
any case, at any rate, on any number of devices of any speed. These numbers are the only inputs that
the network has, in numba and in torch.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from streamsim.jit import kernel

from streamplace.learn.algorithms.orders import NOWHERE, grown
from streamplace.model.arrays import Bools, Floats, Ints, Singles
from streamplace.model.coarsening import Level, finest_level
from streamplace.model.devices import SLACK
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
    """The load itself where it is small, never above 3."""
    return np.minimum(load, 3.0)


def decision_order(level: Level, rollout: int = 0) -> Ints:
    """Units [U] in the order of `grown`; first those with one device, then those with rivals.

    What must not be separated is placed early, while there is room. The first rollout begins at the
    heaviest pair, the k-th after it at the k-th lightest unit.
    """
    first = _lightest(level, rollout - 1) if rollout else NOWHERE
    rank = np.arange(level.n_units)
    order = grown(level.start, level.peer, level.sent + level.taken, rank, first)
    sequence = order.astype(np.int32)
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
MOST = 4.0
"""Largest value of a feature that has no bound of its own."""


class RolloutState(NamedTuple):
    """A partial placement; loads in yardsticks."""

    place: Ints  # [U] device of every unit, -1 while it has none
    load: Floats  # [D]
    link: Floats  # [D, D]
    sent: Floats  # [D] load of the outgoing NIC
    taken: Floats  # [D]
    loose: Floats  # [D] flow between the device's units and units that have no device yet
    units: Ints  # [D] units on the device
    totals: Floats  # [4] peak, CPU load still to come, whole CPU load, last device


PEAK, COMING, ALL_LOAD, LAST = range(4)


@kernel
def begin(features: PilotFeatures) -> RolloutState:
    """State in which no unit has a device."""
    u, d = len(features.order), len(features.group)
    totals = np.zeros(4)
    for v in range(u):
        totals[ALL_LOAD] += _least(features.level, v) / features.yardstick
    totals[COMING] = totals[ALL_LOAD]
    totals[LAST] = -1
    return RolloutState(
        np.full(u, -1, np.int32),
        np.zeros(d),
        np.zeros((d, d)),
        np.zeros(d),
        np.zeros(d),
        np.zeros(d),
        np.zeros(d, np.int32),
        totals,
    )


@kernel
def _least(level: Level, u: int) -> float:
    """Load of a unit where it is least."""
    least = np.inf
    for c in range(level.load.shape[1]):
        least = min(least, level.load[u, c])
    return least


@kernel
def measure(
    features: PilotFeatures,
    state: RolloutState,
    u: int,
    t: int,
    devices: Singles,
    steps: Singles,
    is_open: Bools,
) -> bool:
    """Write the features of every device for unit u; False if none is open."""
    level, d = features.level, len(features.group)
    out, back, loose = _flows(features, state, u)
    most_free, free, used = 0.0, 0.0, 0
    for a in range(d):
        headroom = max(0.0, 1 - float(state.load[a]))
        free, most_free = free + headroom, max(most_free, headroom)
        used += 1 if state.units[a] else 0
    any_open = _open(features, state, u, is_open)
    least = _least(level, u) / features.yardstick
    flow = loose
    for a in range(d):
        flow += out[a] + back[a]
    for a in range(d):
        own = level.load[u, level.device_type[a]] / features.yardstick
        row = devices[a]
        after = state.load[a] + own
        worst, cut = _links_after(features, state, a, out, back)
        home = out[a] + back[a]
        wire = _wire(features, a)
        peak = max(state.totals[PEAK], after, worst)
        row[DeviceFeature.LOAD] = min(MOST, state.load[a])
        row[DeviceFeature.LOAD_AFTER] = min(MOST, after)
        row[DeviceFeature.TOO_MUCH_AFTER] = min(MOST, max(0.0, after - 1))
        row[DeviceFeature.LINK_AFTER] = min(MOST, worst)
        row[DeviceFeature.LINK_TOO_MUCH_AFTER] = min(MOST, max(0.0, worst - 1))
        row[DeviceFeature.SHARE_AT_HOME] = home / flow if flow > 0 else 0.0
        row[DeviceFeature.FLOW_AT_HOME] = min(MOST, home * wire)
        row[DeviceFeature.FLOW_CUT] = min(MOST, cut)
        row[DeviceFeature.FLOW_LOOSE] = min(MOST, state.loose[a] * wire)
        row[DeviceFeature.EMPTY] = state.units[a] == 0
        row[DeviceFeature.LAST] = a == state.totals[LAST]
        row[DeviceFeature.SPEED] = least / own if own > 0 else 1.0
        row[DeviceFeature.PEAK_GROWTH] = min(MOST, peak - state.totals[PEAK])
        row[DeviceFeature.ROOM_OVER_COMING] = (
            min(MOST, (1 - after) / (state.totals[COMING] + 1e-3)) if after < 1 else 0.0
        )
        row[DeviceFeature.MISFIT] = min(MOST, abs(1 - after) * 10)
        row[DeviceFeature.OWN] = min(MOST, own)
        row[DeviceFeature.LESS_ROOM_THAN_MOST] = most_free - max(0.0, 1 - state.load[a])
        row[DeviceFeature.NEIGHBOUR] = home > 0
        row[DeviceFeature.FULLEST_LINK] = min(
            MOST, max(_most(state.link[a]), _most(state.link[:, a]))
        )
        row[DeviceFeature.FLOW] = min(MOST, wire * flow)
    steps[StepFeature.COMING] = state.totals[COMING] / (state.totals[ALL_LOAD] + 1e-9)
    steps[StepFeature.COMING_OVER_ROOM] = min(MOST, state.totals[COMING] / (free + 1e-3))
    steps[StepFeature.PEAK] = min(MOST, state.totals[PEAK])
    steps[StepFeature.DEVICES_USED] = used / d
    steps[StepFeature.MOST_ROOM] = min(MOST, most_free)
    steps[StepFeature.POSITION] = (t % len(features.order)) / len(features.order)
    return any_open


@kernel
def _flows(features: PilotFeatures, state: RolloutState, u: int) -> tuple[Floats, Floats, float]:
    """Bytes/s of unit u to and from the units on each device, and with units that have none."""
    level = features.level
    out, back, loose = np.zeros(len(features.group)), np.zeros(len(features.group)), 0.0
    for e in range(level.start[u], level.start[u + 1]):
        a = state.place[level.peer[e]]
        if a < 0:
            loose += level.sent[e] + level.taken[e]
        else:
            out[a] += level.sent[e]
            back[a] += level.taken[e]
    return out, back, loose


@kernel
def _open(features: PilotFeatures, state: RolloutState, u: int, is_open: Bools) -> bool:
    """Which devices unit u may go to; of interchangeable empty ones only the first."""
    level, any_open = features.level, False
    for a in range(len(features.group)):
        is_open[a] = level.allowed[level.kind[u], a]
        if state.units[a] == 0:
            for b in range(a):
                if state.units[b] == 0 and features.group[b] == features.group[a]:
                    is_open[a] = False
                    break
    if len(level.rival_start):
        for i in range(level.rival_start[u], level.rival_start[u + 1]):
            if state.place[level.rival[i]] >= 0:
                is_open[state.place[level.rival[i]]] = False
    if len(level.memory):
        _close_full(features, state, u, is_open)
    for a in range(len(features.group)):
        any_open |= is_open[a]
    return any_open


@kernel
def _close_full(features: PilotFeatures, state: RolloutState, u: int, is_open: Bools) -> None:
    """Close the devices that have too little memory left for unit u."""
    level = features.level
    free = level.room.copy()
    for v in range(len(level.memory)):
        if state.place[v] >= 0:
            free[state.place[v]] -= level.memory[v]
    for a in range(len(free)):
        if level.memory[u] > free[a] + SLACK * level.room[a]:
            is_open[a] = False


@kernel
def _links_after(
    features: PilotFeatures, state: RolloutState, a: int, out: Floats, back: Floats
) -> tuple[float, float]:
    """Fullest link or NIC that the streams of a unit on device a would use, and their load."""
    platform, worst, cut = features.level.platform, 0.0, 0.0
    wire, sent, taken = platform.seconds_per_byte, 0.0, 0.0
    for b in range(len(out)):
        if b != a:
            if out[b] > 0:
                more = out[b] * wire[a, b] / features.yardstick
                worst, cut = max(worst, state.link[a, b] + more), cut + more
                taken_b = state.taken[b] + out[b] * platform.ingress[b] / features.yardstick
                worst, sent = max(worst, taken_b), sent + out[b]
            if back[b] > 0:
                more = back[b] * wire[b, a] / features.yardstick
                worst, cut = max(worst, state.link[b, a] + more), cut + more
                sent_b = state.sent[b] + back[b] * platform.egress[b] / features.yardstick
                worst, taken = max(worst, sent_b), taken + back[b]
    if sent > 0:
        worst = max(worst, state.sent[a] + sent * platform.egress[a] / features.yardstick)
    if taken > 0:
        worst = max(worst, state.taken[a] + taken * platform.ingress[a] / features.yardstick)
    return worst, cut


@kernel
def _wire(features: PilotFeatures, a: int) -> float:
    """Mean yardsticks per byte/s of the links out of a device."""
    d, wire = len(features.group), features.level.platform.seconds_per_byte
    total = 0.0
    for b in range(d):
        total += wire[a, b]
    return total / max(1, d - 1) / features.yardstick


@kernel
def _most(values: Floats) -> float:
    most = 0.0
    for value in values:
        most = max(most, value)
    return most


@kernel
def put(features: PilotFeatures, state: RolloutState, u: int, a: int, sign: int) -> None:
    """Place unit u on device a, or with sign -1 remove it."""
    level, unit = features.level, sign / features.yardstick
    platform, wire = level.platform, level.platform.seconds_per_byte
    state.place[u] = a if sign > 0 else -1
    state.load[a] += level.load[u, level.device_type[a]] * unit
    state.units[a] += sign
    state.totals[COMING] -= _least(level, u) * unit
    if sign > 0:
        state.totals[LAST] = a
    for e in range(level.start[u], level.start[u + 1]):
        b, flow = state.place[level.peer[e]], level.sent[e] + level.taken[e]
        if b < 0:
            state.loose[a] += sign * flow
            continue
        state.loose[b] -= sign * flow
        if b != a:
            out, back = level.sent[e] * unit, level.taken[e] * unit
            state.link[a, b] += out * wire[a, b]
            state.link[b, a] += back * wire[b, a]
            state.sent[a] += out * platform.egress[a]
            state.taken[b] += out * platform.ingress[b]
            state.sent[b] += back * platform.egress[b]
            state.taken[a] += back * platform.ingress[a]
            _raise_peak(state, max(state.link[a, b], state.link[b, a]))
            _raise_peak(state, max(state.sent[a], state.taken[b]))
            _raise_peak(state, max(state.sent[b], state.taken[a]))
    _raise_peak(state, state.load[a])
    if sign < 0:
        state.totals[PEAK] = max(_most(state.load), _most(state.sent), _most(state.taken))
        for row in state.link:
            _raise_peak(state, _most(row))


@kernel
def _raise_peak(state: RolloutState, load: float) -> None:
    state.totals[PEAK] = max(state.totals[PEAK], load)

"""What placing a unit on a device would do, measured while a placement comes about.

All loads are in the yardsticks of `view`. The networks, in numpy and in torch, see these numbers
and nothing else of the devices.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from streamsim.jit import kernel

from streamplace.learn.models.pilot.view import View
from streamplace.model.level import Level

Singles = NDArray[np.float32]
Doubles = NDArray[np.float64]
Ints = NDArray[np.int32]
Flags = NDArray[np.bool_]

DEVICE_FEATURES = (
    "load",
    "load-after",
    "too-much-after",
    "link-after",
    "link-too-much-after",
    "share-at-home",
    "flow-at-home",
    "flow-cut",
    "flow-loose",
    "empty",
    "last",
    "speed",
    "peak-growth",
    "room-over-coming",
    "misfit",
    "own",
    "less-room-than-most",
    "neighbour",
    "fullest-link",
    "flow",
)
STEP_FEATURES = ("coming", "coming-over-room", "peak", "devices-used", "most-room", "position")
N_DEVICE, N_STEP = len(DEVICE_FEATURES), len(STEP_FEATURES)
MOST = 4.0


class State(NamedTuple):
    """A placement in the making; loads in yardsticks."""

    place: Ints  # [U] device of every unit, -1 while it has none
    load: Doubles  # [D]
    link: Doubles  # [D, D]
    sent: Doubles  # [D] load of the outgoing NIC
    taken: Doubles  # [D]
    loose: Doubles  # [D] flow between the device's units and units that have no device yet
    units: Ints  # [D] units on the device
    totals: Doubles  # [4] peak, CPU load still to come, whole CPU load, last device


PEAK, COMING, WHOLE, LAST = range(4)


@kernel
def begin(view: View) -> State:
    """No unit has a device."""
    u, d = len(view.order), len(view.group)
    totals = np.zeros(4)
    for v in range(u):
        totals[WHOLE] += _least(view.level, v) / view.yardstick
    totals[COMING] = totals[WHOLE]
    totals[LAST] = -1
    return State(
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
def look(
    view: View, state: State, u: int, t: int, devices: Singles, steps: Singles, is_open: Flags
) -> bool:
    """Measure every device for unit u; False where none is open."""
    level, d = view.level, len(view.group)
    out, back, loose = _flows(view, state, u)
    most_free, free, used = 0.0, 0.0, 0
    for a in range(d):
        room = max(0.0, 1 - float(state.load[a]))
        free, most_free = free + room, max(most_free, room)
        used += 1 if state.units[a] else 0
    any_open = _open(view, state, u, is_open)
    least = _least(level, u) / view.yardstick
    flow = loose
    for a in range(d):
        flow += out[a] + back[a]
    for a in range(d):
        own = level.load[u, level.device_type[a]] / view.yardstick
        row = devices[a]
        after = state.load[a] + own
        worst, cut = _links_after(view, state, a, out, back)
        home = out[a] + back[a]
        wire = _wire(view, a)
        peak = max(state.totals[PEAK], after, worst)
        row[0] = min(MOST, state.load[a])
        row[1] = min(MOST, after)
        row[2] = min(MOST, max(0.0, after - 1))
        row[3] = min(MOST, worst)
        row[4] = min(MOST, max(0.0, worst - 1))
        row[5] = home / flow if flow > 0 else 0.0
        row[6] = min(MOST, home * wire)
        row[7] = min(MOST, cut)
        row[8] = min(MOST, state.loose[a] * wire)
        row[9] = state.units[a] == 0
        row[10] = a == state.totals[LAST]
        row[11] = least / own if own > 0 else 1.0
        row[12] = min(MOST, peak - state.totals[PEAK])
        row[13] = min(MOST, (1 - after) / (state.totals[COMING] + 1e-3)) if after < 1 else 0.0
        row[14] = min(MOST, abs(1 - after) * 10)
        row[15] = min(MOST, own)
        row[16] = most_free - max(0.0, 1 - state.load[a])
        row[17] = home > 0
        row[18] = min(MOST, max(_most(state.link[a]), _most(state.link[:, a])))
        row[19] = min(MOST, wire * flow)
    steps[0] = state.totals[COMING] / (state.totals[WHOLE] + 1e-9)
    steps[1] = min(MOST, state.totals[COMING] / (free + 1e-3))
    steps[2] = min(MOST, state.totals[PEAK])
    steps[3] = used / d
    steps[4] = min(MOST, most_free)
    steps[5] = (t % len(view.order)) / len(view.order)
    return any_open


@kernel
def _flows(view: View, state: State, u: int) -> tuple[Doubles, Doubles, float]:
    """Bytes/s of unit u to and from the units on each device, and with units that have none."""
    level = view.level
    out, back, loose = np.zeros(len(view.group)), np.zeros(len(view.group)), 0.0
    for e in range(level.start[u], level.start[u + 1]):
        a = state.place[level.peer[e]]
        if a < 0:
            loose += level.sent[e] + level.taken[e]
        else:
            out[a] += level.sent[e]
            back[a] += level.taken[e]
    return out, back, loose


@kernel
def _open(view: View, state: State, u: int, is_open: Flags) -> bool:
    """Which devices unit u may go to; of interchangeable empty ones only the first."""
    level, found = view.level, False
    for a in range(len(view.group)):
        is_open[a] = level.allowed[level.kind[u], a]
        if state.units[a] == 0:
            for b in range(a):
                if state.units[b] == 0 and view.group[b] == view.group[a]:
                    is_open[a] = False
                    break
    if len(level.rival_start):
        for i in range(level.rival_start[u], level.rival_start[u + 1]):
            if state.place[level.rival[i]] >= 0:
                is_open[state.place[level.rival[i]]] = False
    if len(level.memory):
        _close_full(view, state, u, is_open)
    for a in range(len(view.group)):
        found |= is_open[a]
    return found


@kernel
def _close_full(view: View, state: State, u: int, is_open: Flags) -> None:
    """Close the devices that have too little memory left for unit u."""
    level = view.level
    left = level.room.copy()
    for v in range(len(level.memory)):
        if state.place[v] >= 0:
            left[state.place[v]] -= level.memory[v]
    for a in range(len(left)):
        if level.memory[u] > left[a]:
            is_open[a] = False


@kernel
def _links_after(
    view: View, state: State, a: int, out: Doubles, back: Doubles
) -> tuple[float, float]:
    """Fullest link or NIC that the streams of a unit on device a would use, and what they add."""
    level, worst, cut = view.level, 0.0, 0.0
    sent, taken = 0.0, 0.0
    for b in range(len(out)):
        if b != a:
            if out[b] > 0:
                more = out[b] * level.wire[a, b] / view.yardstick
                worst, cut = max(worst, state.link[a, b] + more), cut + more
                taken_b = state.taken[b] + out[b] * level.ingress[b] / view.yardstick
                worst, sent = max(worst, taken_b), sent + out[b]
            if back[b] > 0:
                more = back[b] * level.wire[b, a] / view.yardstick
                worst, cut = max(worst, state.link[b, a] + more), cut + more
                sent_b = state.sent[b] + back[b] * level.egress[b] / view.yardstick
                worst, taken = max(worst, sent_b), taken + back[b]
    if sent > 0:
        worst = max(worst, state.sent[a] + sent * level.egress[a] / view.yardstick)
    if taken > 0:
        worst = max(worst, state.taken[a] + taken * level.ingress[a] / view.yardstick)
    return worst, cut


@kernel
def _wire(view: View, a: int) -> float:
    """Mean yardsticks per byte/s of the links out of a device."""
    d = len(view.group)
    total = 0.0
    for b in range(d):
        total += view.level.wire[a, b]
    return total / max(1, d - 1) / view.yardstick


@kernel
def _most(values: Doubles) -> float:
    most = 0.0
    for value in values:
        most = max(most, value)
    return most


@kernel
def put(view: View, state: State, u: int, a: int, sign: int) -> None:
    """Place unit u on device a, or with sign -1 take it away."""
    level, unit = view.level, sign / view.yardstick
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
            state.link[a, b] += out * level.wire[a, b]
            state.link[b, a] += back * level.wire[b, a]
            state.sent[a] += out * level.egress[a]
            state.taken[b] += out * level.ingress[b]
            state.sent[b] += back * level.egress[b]
            state.taken[a] += back * level.ingress[a]
            _raise_peak(state, max(state.link[a, b], state.link[b, a]))
            _raise_peak(state, max(state.sent[a], state.taken[b]))
            _raise_peak(state, max(state.sent[b], state.taken[a]))
    _raise_peak(state, state.load[a])
    if sign < 0:
        state.totals[PEAK] = max(_most(state.load), _most(state.sent), _most(state.taken))
        for row in state.link:
            _raise_peak(state, _most(row))


@kernel
def _raise_peak(state: State, load: float) -> None:
    state.totals[PEAK] = max(state.totals[PEAK], load)

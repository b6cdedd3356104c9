"""The walk through the operators: at every step, what each device looks like, and a choice.

What a device looks like for unit u is measured here and nowhere else; the networks, in numpy and in
torch, only see the numbers. A rollout can follow given choices, which is how good placements and
replayed samples are looked at.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from streamsim.jit import inlined_kernel, kernel

from streamplace.learn.pilot.view import View
from streamplace.model.level import Level

Floats = NDArray[np.float32]
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


class Heads(NamedTuple):
    """What the network has to say about the units of one problem, and how it weighs devices."""

    unit: Floats  # [U, H] what the choice for a unit starts from
    content: Floats  # [U, H] what a unit adds to its device for later choices
    device: Floats  # [20, H] of `DEVICE_FEATURES`
    step: Floats  # [6, H] of `STEP_FEATURES`
    own: Floats  # [H, H] second layer, of the device itself
    mean: Floats  # [H, H] second layer, of the mean over the open devices
    bias: Floats  # [H]
    out: Floats  # [H]


class Record(NamedTuple):
    """What was seen on the way (S rollouts); of length 0 where nobody wants to know."""

    devices: Floats  # [S, T, D, 20]
    steps: Floats  # [S, T, 6]
    open: Flags  # [S, T, D] devices that could be chosen


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


def new_record(rollouts: int, view: View) -> Record:
    """Room for what so many rollouts see in one look."""
    t, d = view.level.n_units, len(view.group)
    return Record(
        np.zeros((rollouts, t, d, N_DEVICE), np.float32),
        np.zeros((rollouts, t, N_STEP), np.float32),
        np.zeros((rollouts, t, d), np.bool_),
    )


NOTHING = Record(
    np.zeros((0, 0, 0, N_DEVICE), np.float32),
    np.zeros((0, 0, N_STEP), np.float32),
    np.zeros((0, 0, 0), np.bool_),
)


@kernel
def rollouts(
    view: View, heads: Heads, given: Ints, uniform: Floats, record: Record
) -> tuple[Ints, Doubles]:
    """Place all units, once per row of ``given``.

    With T = L · U decisions everything is looked at L times: after the first look every unit in
    turn is taken from its device, and decided anew while all others stay where they are.

    Parameters
    ----------
    given
        [S, T] devices to follow, -1 where the policy is to choose.
    uniform
        [S, T] numbers in [0, 1) that choices are drawn with; below 0, the likeliest is taken.

    Returns
    -------
    The devices [S, T], -1 all along where the rules left no choice at some decision, and the
    log-probabilities [S].
    """
    s, n_steps = given.shape
    u, d, h = len(view.order), len(view.group), len(heads.out)
    keep = len(record.open) > 0
    devices, steps = np.zeros((d, N_DEVICE), np.float32), np.zeros(N_STEP, np.float32)
    is_open = np.zeros(d, np.bool_)
    chosen, likelihood = np.empty((s, n_steps), np.int32), np.zeros(s)
    first, second = np.zeros((d, h), np.float32), np.zeros((d, h), np.float32)
    for i in range(s):
        state = _begin(view)
        contents = np.zeros((d, h), np.float32)
        for t in range(n_steps):
            unit = view.order[t % u]
            was = state.place[unit]
            if was >= 0:
                _put(view, state, unit, was, -1)
                _add(contents[was], heads.content[unit], np.float32(-1))
            to = given[i, t]
            if to < 0 or keep:
                if not _look(view, state, unit, t, devices, steps, is_open):
                    chosen[i] = -1
                    break
                if keep:
                    record.devices[i, t, :, :] = devices
                    record.steps[i, t, :] = steps
                    record.open[i, t, :] = is_open
                logits = _logits(heads, unit, devices, steps, is_open, contents, first, second)
                if to < 0:
                    to = _drawn(logits, uniform[i, t])
                likelihood[i] += _log_probability(logits, to)
            _put(view, state, unit, to, 1)
            _add(contents[to], heads.content[unit], np.float32(1))
            chosen[i, t] = to
    return chosen, likelihood


def places_after(view: View, chosen: Ints, look: int) -> Ints:
    """Devices of the operators [S, N] after so many looks of rollouts [S, T]."""
    u = len(view.order)
    place = np.empty((len(chosen), u), np.int32)
    place[:, view.order] = chosen[:, (look - 1) * u : look * u]
    return place[:, view.unit_of]


@kernel
def _begin(view: View) -> State:
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
def _look(
    view: View, state: State, u: int, t: int, devices: Floats, steps: Floats, is_open: Flags
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
    for a in range(len(view.group)):
        found |= is_open[a]
    return found


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
def _put(view: View, state: State, u: int, a: int, sign: int) -> None:
    """Place unit u on device a, or with sign -1 take it away."""
    level, unit = view.level, sign / view.yardstick
    state.place[u] = a if sign > 0 else -1
    state.load[a] += level.load[u, level.device_type[a]] * unit
    state.units[a] += sign
    state.totals[COMING] -= _least(level, u) * unit
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


@kernel
def _logits(
    heads: Heads,
    u: int,
    devices: Floats,
    steps: Floats,
    is_open: Flags,
    contents: Floats,
    first: Floats,
    second: Floats,
) -> Doubles:
    """Preference for every device, -inf where it is not open."""
    base, common, n = heads.unit[u].copy(), heads.bias.copy(), np.float32(is_open.sum())
    for f in range(N_STEP):
        _add(base, heads.step[f], steps[f])
    mean = np.zeros_like(base)
    for a in range(len(first)):
        if is_open[a]:
            _first_layer(heads, base, devices[a], contents[a], first[a])
            _add(mean, first[a], np.float32(1))
    for j in range(len(mean)):
        _add(common, heads.mean[j], mean[j] / n)
    logits = np.full(len(first), -np.inf)
    for a in range(len(first)):
        if is_open[a]:
            row, total = second[a], np.float32(0)
            row[:] = common
            for j in range(len(mean)):
                _add(row, heads.own[j], first[a, j])
            for k in range(len(row)):
                total += max(row[k], np.float32(0)) * heads.out[k]
            logits[a] = total
    return logits


@kernel
def _first_layer(heads: Heads, base: Floats, device: Floats, content: Floats, row: Floats) -> None:
    """First hidden layer of one device."""
    for k in range(len(row)):
        row[k] = base[k] + content[k]
    for f in range(N_DEVICE):
        _add(row, heads.device[f], device[f])
    for k in range(len(row)):
        row[k] = max(row[k], np.float32(0))


@inlined_kernel
def _add(row: Floats, other: Floats, factor: np.float32) -> None:
    """Add a multiple of another row."""
    if factor != 0:
        for k in range(len(row)):
            row[k] += factor * other[k]


@kernel
def _drawn(logits: Doubles, uniform: float) -> int:
    """Device drawn by the softmax of the logits, or the likeliest."""
    if uniform < 0:
        return int(np.argmax(logits))
    weights = np.exp(logits - logits.max())
    left, last = uniform * weights.sum(), 0
    for a in range(len(weights)):
        if weights[a] > 0:
            last = a
            left -= weights[a]
            if left < 0:
                break
    return last


@kernel
def _log_probability(logits: Doubles, a: int) -> float:
    top = logits.max()
    return logits[a] - top - np.log(np.exp(logits - top).sum())

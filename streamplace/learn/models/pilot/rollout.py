"""The walk through the operators: at every step the devices are measured, and one is chosen.

A rollout can follow given choices, which is how good placements and alternatives are looked at.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from streamsim.jit import inlined_kernel, kernel

from streamplace.learn.algorithms.drawing import drawn
from streamplace.learn.models.pilot.measures import N_DEVICE, N_STEP, begin, look, put
from streamplace.learn.models.pilot.view import View

Singles = NDArray[np.float32]
Doubles = NDArray[np.float64]
Ints = NDArray[np.int32]
Flags = NDArray[np.bool_]


class Heads(NamedTuple):
    """What the network has to say about the units of one problem, and how it weighs devices."""

    unit: Singles  # [U, H] what the choice for a unit starts from
    content: Singles  # [U, H] what a unit adds to its device for later choices
    device: Singles  # [20, H] of `DEVICE_FEATURES`
    step: Singles  # [6, H] of `STEP_FEATURES`
    own: Singles  # [H, H] second layer, of the device itself
    mean: Singles  # [H, H] second layer, of the mean over the open devices
    bias: Singles  # [H]
    out: Singles  # [H]


class Trail(NamedTuple):
    """What was seen on the way (S rollouts); of length 0 where nobody wants to know."""

    devices: Singles  # [S, T, D, 20]
    steps: Singles  # [S, T, 6]
    open: Flags  # [S, T, D] devices that could be chosen


def new_record(rollouts: int, view: View) -> Trail:
    """Room for what so many rollouts see in one look."""
    t, d = view.level.n_units, len(view.group)
    return Trail(
        np.zeros((rollouts, t, d, N_DEVICE), np.float32),
        np.zeros((rollouts, t, N_STEP), np.float32),
        np.zeros((rollouts, t, d), np.bool_),
    )


NOTHING = Trail(
    np.zeros((0, 0, 0, N_DEVICE), np.float32),
    np.zeros((0, 0, N_STEP), np.float32),
    np.zeros((0, 0, 0), np.bool_),
)


@kernel
def rollouts(
    view: View, heads: Heads, given: Ints, uniform: Singles, record: Trail
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
    log-probabilities [S]; without a record, given decisions are not judged and add none.
    """
    s, n_steps = given.shape
    u, d, h = len(view.order), len(view.group), len(heads.out)
    keep = len(record.open) > 0
    devices, steps = np.zeros((d, N_DEVICE), np.float32), np.zeros(N_STEP, np.float32)
    is_open = np.zeros(d, np.bool_)
    chosen, likelihood = np.empty((s, n_steps), np.int32), np.zeros(s)
    first, second = np.zeros((d, h), np.float32), np.zeros((d, h), np.float32)
    for i in range(s):
        state = begin(view)
        contents = np.zeros((d, h), np.float32)
        for t in range(n_steps):
            unit = view.order[t % u]
            was = state.place[unit]
            if was >= 0:
                put(view, state, unit, was, -1)
                _add(contents[was], heads.content[unit], np.float32(-1))
            to = given[i, t]
            if to < 0 or keep:
                if not look(view, state, unit, t, devices, steps, is_open):
                    chosen[i] = -1
                    break
                if keep:
                    record.devices[i, t, :, :] = devices
                    record.steps[i, t, :] = steps
                    record.open[i, t, :] = is_open
                logits = _logits(heads, unit, devices, steps, is_open, contents, first, second)
                if to < 0:
                    to = drawn(logits, uniform[i, t])
                likelihood[i] += _log_probability(logits, to)
            put(view, state, unit, to, 1)
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
def _logits(
    heads: Heads,
    u: int,
    devices: Singles,
    steps: Singles,
    is_open: Flags,
    contents: Singles,
    first: Singles,
    second: Singles,
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
def _first_layer(
    heads: Heads, base: Singles, device: Singles, content: Singles, row: Singles
) -> None:
    """First hidden layer of one device."""
    for k in range(len(row)):
        row[k] = base[k] + content[k]
    for f in range(N_DEVICE):
        _add(row, heads.device[f], device[f])
    for k in range(len(row)):
        row[k] = max(row[k], np.float32(0))


@inlined_kernel
def _add(row: Singles, other: Singles, factor: np.float32) -> None:
    """Add a multiple of another row."""
    if factor != 0:
        for k in range(len(row)):
            row[k] += factor * other[k]


@kernel
def _log_probability(logits: Doubles, a: int) -> float:
    top = logits.max()
    return logits[a] - top - np.log(np.exp(logits - top).sum())

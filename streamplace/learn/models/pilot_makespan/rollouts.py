"""The network of the policy in numba, a logit for every device; and rollouts with it.

With x_a the features of device a, s those of the step, the mean over the open devices, and all
weights learned,

    h_a = relu(A x_a + B s + b)
    g_a = relu(C h_a + D mean_b h_b + c)
    logit_a = o · g_a + k · x_a

At every step of a rollout the devices are measured for one task, and one of them is chosen.
`PilotMakespanModule` in `learner` is the same network in torch, for training.
"""

from typing import NamedTuple

import numpy as np
from streamsim.array_copies import copy_row, copy_rows
from streamsim.jit import kernel

from streamplace.learn.algorithms.kernels import (
    DecisionRecord,
    Row,
    add_multiple,
    drawn,
    empty_record,
    plus_product,
    rectify,
)
from streamplace.learn.model_weights import LinearMap
from streamplace.learn.models.pilot_makespan.features import (
    N_DEVICE,
    N_STEP,
    PilotMakespanFeatures,
    PreviousSchedule,
    empty,
    find,
    measure,
    run,
)
from streamplace.model.arrays import Bools, Floats, Ints, Singles
from streamplace.scheduling.insertion import ListSchedule


class PilotMakespanNetwork(NamedTuple):
    """All weights, matrices as [in, out]."""

    device: Singles  # A [F, H]
    step: Singles  # B [S, H]
    device_bias: Singles  # b
    own: Singles  # C
    mean: Singles  # D
    own_bias: Singles  # c
    out: Row  # o
    skip: Row  # k [F]


def maps_of(width: int) -> dict[str, LinearMap]:
    """Linear maps of the network."""
    return {
        "device": LinearMap(width, N_DEVICE),
        "step": LinearMap(width, N_STEP, bias=False),
        "own": LinearMap(width, width),
        "mean": LinearMap(width, width, bias=False),
        "out": LinearMap(1, width, bias=False),
        "skip": LinearMap(1, N_DEVICE, bias=False),
    }


@kernel
def preferences(
    net: PilotMakespanNetwork,
    rows: Singles,
    row: Singles,
    may: Bools,
    first: Singles,
    logits: Floats,
) -> None:
    """Write the preference for every device [D], -inf where it is not open.

    ``first`` [D, H] is a buffer.
    """
    base, mean = net.device_bias.copy(), np.zeros(len(net.out), np.float32)
    for f in range(N_STEP):
        add_multiple(base, net.step[f], row[f])
    count = np.float32(may.sum())
    for a in range(len(may)):
        if may[a]:
            copy_row(first[a], base)
            for f in range(N_DEVICE):
                add_multiple(first[a], net.device[f], rows[a, f])
            rectify(first[a])
            add_multiple(mean, first[a], 1 / count)
    copy_row(base, net.own_bias)
    for j in range(len(mean)):
        add_multiple(base, net.mean[j], mean[j])
    for a in range(len(may)):
        logits[a] = -np.inf
        if may[a]:
            second = base.copy()
            for j in range(len(mean)):
                add_multiple(second, net.own[j], first[a, j])
            rectify(second)
            of_layers = plus_product(np.float32(0), second, net.out)
            logits[a] = plus_product(of_layers, rows[a], net.skip)


def new_record(rollouts: int, features: PilotMakespanFeatures) -> DecisionRecord:
    """Empty record of so many rollouts."""
    return empty_record((rollouts, *features.tasks.work.shape), N_DEVICE, N_STEP)


@kernel
def rollouts(
    features: PilotMakespanFeatures,
    before: PreviousSchedule,
    net: PilotMakespanNetwork,
    fixed: Ints,
    uniform: Singles,
    record: DecisionRecord,
) -> tuple[Ints, ListSchedule]:
    """Schedules [S, N], one per row of ``fixed`` [S, N], and their devices [S, N] by step.

    The policy chooses where no device is given (-1): with the number ``uniform`` [S, N] in [0, 1),
    or below 0 the likeliest. Devices are -1 from the step at which the rules left none.
    """
    s, n = fixed.shape
    d, keep = len(before.loads), len(record.open) > 0
    rows, row = np.zeros((d, N_DEVICE), np.float32), np.zeros(N_STEP, np.float32)
    first, logits = np.zeros((d, len(net.out)), np.float32), np.zeros(d)
    chosen = np.full((s, n), -1, np.int32)
    place, start, finish = np.full((s, n), -1, np.int32), np.zeros((s, n)), np.zeros((s, n))
    for i in range(s):
        state, gaps = empty(features, before)
        for t in range(n):
            v, to = before.order[t], fixed[i, t]
            count = find(features, state, gaps, v)
            if count == 0 or (to >= 0 and not state.may[to]):
                break
            if keep or (to < 0 and count > 1):
                measure(features, before, state, gaps, v, t, rows, row)
            if keep:
                copy_rows(record.devices[i, t], rows)
                copy_row(record.steps[i, t], row)
                copy_row(record.open[i, t], state.may)
            if to < 0 and count == 1:
                to = np.argmax(state.may)
            elif to < 0:
                preferences(net, rows, row, state.may, first, logits)
                to = drawn(logits, uniform[i, t])
            gaps = run(features, before, state, gaps, v, to)
            chosen[i, t] = to
        copy_row(place[i], state.place)
        copy_row(start[i], state.start)
        copy_row(finish[i], state.finish)
    return chosen, ListSchedule(place, start, finish)

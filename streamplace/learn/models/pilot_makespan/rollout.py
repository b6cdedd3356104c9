"""Rollouts: at every step the devices are measured for one task, and one of them is chosen.

A rollout can follow given choices, which is how training evaluates good placements.
"""

import numpy as np
from streamsim.jit import kernel

from streamplace.learn.algorithms.decisions import DecisionRecord, empty_record
from streamplace.learn.algorithms.drawing import drawn
from streamplace.learn.models.pilot_makespan.features import CompleteSchedule, PilotMakespanFeatures
from streamplace.learn.models.pilot_makespan.measures import (
    N_DEVICE,
    N_STEP,
    empty,
    find,
    look,
    run,
)
from streamplace.learn.models.pilot_makespan.network import PilotMakespanNetwork, preferences
from streamplace.model.arrays import Ints, Singles
from streamplace.scheduling.insertion import ListSchedule


def new_record(rollouts: int, features: PilotMakespanFeatures) -> DecisionRecord:
    """Empty record of so many rollouts."""
    return empty_record((rollouts, *features.tasks.work.shape), N_DEVICE, N_STEP)


@kernel
def rollouts(
    features: PilotMakespanFeatures,
    before: CompleteSchedule,
    net: PilotMakespanNetwork,
    given: Ints,
    uniform: Singles,
    record: DecisionRecord,
) -> tuple[Ints, ListSchedule]:
    """Schedules [S, N], one per row of ``given`` [S, N], and their devices [S, N] by step.

    The policy chooses where no device is given (-1): with the number ``uniform`` [S, N] in [0, 1),
    or below 0 the likeliest. Devices are -1 from the step at which the rules left none.
    """
    s, n = given.shape
    d, keep = len(before.loads), len(record.open) > 0
    rows, row = np.zeros((d, N_DEVICE), np.float32), np.zeros(N_STEP, np.float32)
    first, logits = np.zeros((d, len(net.out)), np.float32), np.zeros(d)
    chosen = np.full((s, n), -1, np.int32)
    place, start, finish = np.full((s, n), -1, np.int32), np.zeros((s, n)), np.zeros((s, n))
    for i in range(s):
        state, gaps = empty(features, before)
        for t in range(n):
            v, to = before.order[t], given[i, t]
            count = find(features, state, gaps, v)
            if count == 0 or (to >= 0 and not state.may[to]):
                break
            if keep or (to < 0 and count > 1):
                look(features, before, state, gaps, v, t, rows, row)
            if keep:
                record.devices[i, t], record.steps[i, t] = rows, row
                record.open[i, t] = state.may
            if to < 0 and count == 1:
                to = np.argmax(state.may)
            elif to < 0:
                preferences(net, rows, row, state.may, first, logits)
                to = drawn(logits, uniform[i, t])
            gaps = run(features, before, state, gaps, v, to)
            chosen[i, t] = to
        place[i], start[i], finish[i] = state.place, state.start, state.finish
    return chosen, ListSchedule(place, start, finish)

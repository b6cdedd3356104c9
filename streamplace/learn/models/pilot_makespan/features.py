"""What the policy knows: a problem and its previous schedule, and devices for one task.

The features of a device are the effect of running a task there, given the schedule so far. All
times are shares of the span of the previous schedule. These numbers are the only inputs of the
network, in numba and in torch.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from streamsim.jit import kernel

from streamplace.model.arrays import Bools, Floats, Ints, Singles
from streamplace.model.problem import Problem
from streamplace.scheduling.insertion import (
    NOWHERE,
    Gaps,
    ListSchedule,
    all_free,
    earliest_on,
    find_open,
    give_home,
    is_full,
    latest_starts,
    ready_on,
    take,
    wider,
)
from streamplace.scheduling.ranks import by_rank, least_after
from streamplace.scheduling.tasks import Tasks, tasks_of, transfer


class TaskDeviceFeature(IntEnum):
    """Features of a device, by column."""

    FINISH = 0
    FINISH_AND_WAY_TO_THE_END = 1
    WAIT = 2
    READY = 3
    WORK = 4
    LATE = 5
    LATER_THAN_ELSEWHERE = 6
    BUSY_UNTIL = 7
    COMING_LOAD = 8
    BEFORE = 9
    SHARE_OF_INPUTS_AT_HOME = 10
    SHARE_OF_OUTPUTS_AT_HOME = 11
    SHARE_OF_PARTNERS_AT_HOME = 12
    WAY_TO_THE_END = 13


class TaskStepFeature(IntEnum):
    """Features of a decision itself, by column."""

    SLACK = 0
    POSITION = 1
    OUTPUTS = 2
    INPUTS = 3
    WORK = 4
    SENDING = 5
    TASKS = 6
    DEVICES = 7
    OPEN = 8
    LOAD = 9


BESIDE_THE_BEST = tuple(
    int(TaskDeviceFeature[name])
    for name in (
        "FINISH", "FINISH_AND_WAY_TO_THE_END", "READY", "WORK", "LATER_THAN_ELSEWHERE", "BUSY_UNTIL"
    )
)  # fmt: skip
"""Features that are differences from the open device with the least."""
N_DEVICE, N_STEP = len(TaskDeviceFeature), len(TaskStepFeature)
MOST = 4.0
"""Largest value of a feature that is a share of the span, and with a minus the smallest."""


class PilotMakespanFeatures(NamedTuple):
    """A problem; seconds."""

    tasks: Tasks
    after: Floats  # [N, D] least seconds from the end of a task on a device to the end of the pass
    least: Floats  # [N] work where it is quickest
    coming: Floats  # [N] bytes that a task receives
    going: Floats  # [N] bytes that it sends
    shortest: float  # work of the shortest task


class PreviousSchedule(NamedTuple):
    """The schedule that is to be improved, with the slack of its tasks."""

    order: Ints  # [N] order of the decisions
    place: Ints  # [N]
    latest: Floats  # [N] start of every task when all are as late as can be
    span: float  # seconds that the pass takes
    loads: Floats  # [D] seconds that a core of each device works


def features_of(problem: Problem) -> PilotMakespanFeatures:
    """Compute the features of a problem."""
    tasks = tasks_of(problem)
    n, size = tasks.n_tasks, tasks.size
    return PilotMakespanFeatures(
        tasks=tasks,
        after=least_after(tasks),
        least=tasks.work.min(axis=1),
        coming=np.bincount(tasks.target, size, n).astype(np.float64),
        going=np.bincount(tasks.source, size, n).astype(np.float64),
        shortest=float(tasks.work.min()),
    )


def previous_of(tasks: Tasks, schedule: ListSchedule, noise: Floats) -> PreviousSchedule:
    """Features of a schedule; tasks with the earliest latest start are decided first.

    Noise [N], in shares of the span, moves tasks in that order.
    """
    latest, span = latest_starts(tasks, schedule), schedule.finish.max()
    order = by_rank(tasks, span - latest + span * noise)
    cores = np.diff(tasks.core_start)[schedule.place]
    seconds = tasks.work[np.arange(len(order)), schedule.place] / cores
    loads = np.bincount(schedule.place, seconds, tasks.n_devices)
    return PreviousSchedule(order, schedule.place, latest, span, loads)


def staying(before: PreviousSchedule, stays: Bools) -> Ints:
    """Devices of the tasks that stay [S, N], step by step; -1 where they are decided anew."""
    return np.where(stays, before.place[before.order], -1).astype(np.int32)


class ScheduleState(NamedTuple):
    """A partial schedule."""

    place: Ints  # [N] device of every task, -1 while it has none
    start: Floats  # [N]
    finish: Floats  # [N]
    home: Ints  # [U] device of what stays together, -1 while it has none
    used: Floats  # [D] memory
    coming: Floats  # [D] seconds there, in the previous schedule, of tasks not yet decided
    may: Bools  # [D] whether the present task may run there
    ready: Floats  # [D] time at which its inputs are there
    core: Ints  # [D] where it would run
    gap: Ints  # [D] or -1 where it needs none
    begin: Floats  # [D] and when


@kernel
def empty(features: PilotMakespanFeatures, before: PreviousSchedule) -> tuple[ScheduleState, Gaps]:
    """State before the first decision, and free cores."""
    n, d = features.tasks.work.shape
    state = ScheduleState(
        np.full(n, NOWHERE, np.int32),
        np.zeros(n),
        np.zeros(n),
        np.full(len(features.tasks.member_start) - 1, NOWHERE, np.int32),
        np.zeros(d),
        before.loads.copy(),
        np.ones(d, np.bool_),
        np.zeros(d),
        np.zeros(d, np.int32),
        np.zeros(d, np.int32),
        np.zeros(d),
    )
    return state, all_free(features.tasks)


@kernel
def find(features: PilotMakespanFeatures, state: ScheduleState, gaps: Gaps, v: int) -> int:
    """Find when a task could begin on every device; returns how many are open."""
    tasks, count = features.tasks, 0
    find_open(tasks, state.home, state.used, tasks.unit[v], state.may)
    ready_on(tasks, state.place, state.finish, v, state.ready)
    for a in range(len(state.may)):
        state.may[a] = state.may[a] and tasks.work[v, a] < np.inf
        if state.may[a]:
            count += 1
            state.core[a], state.gap[a], state.begin[a] = earliest_on(
                tasks, gaps, a, state.ready[a], tasks.work[v, a], True
            )
    return count


@kernel
def run(
    features: PilotMakespanFeatures,
    before: PreviousSchedule,
    state: ScheduleState,
    gaps: Gaps,
    v: int,
    a: int,
) -> Gaps:
    """Run a task on a device; returns the gaps, which may be a larger copy."""
    tasks, u, was = features.tasks, features.tasks.unit[v], before.place[v]
    give_home(tasks, state.home, state.used, u, a)
    cores = tasks.core_start[was + 1] - tasks.core_start[was]
    state.coming[was] -= tasks.work[v, was] / cores
    state.place[v], state.start[v] = a, state.begin[a]
    state.finish[v] = state.begin[a] + tasks.work[v, a]
    if is_full(gaps, state.core[a]):
        gaps = wider(gaps)
    take(gaps, state.core[a], state.gap[a], state.start[v], state.finish[v], features.shortest)
    return gaps


@kernel
def measure(
    features: PilotMakespanFeatures,
    before: PreviousSchedule,
    state: ScheduleState,
    gaps: Gaps,
    v: int,
    t: int,
    rows: Singles,
    row: Singles,
) -> None:
    """Write features of the open devices [D, 14] and of the step [10], after `find`."""
    tasks, span, d = features.tasks, before.span, len(state.may)
    seconds, least = np.zeros((d, N_DEVICE)), np.full(N_DEVICE, np.inf)
    begin, count, load = np.inf, 0, 0.0
    for a in range(d):
        load += state.coming[a] / d
        if not state.may[a]:
            continue
        count += 1
        begin = min(begin, state.begin[a])
        finish = state.begin[a] + tasks.work[v, a]
        seconds[a, TaskDeviceFeature.FINISH] = finish
        seconds[a, TaskDeviceFeature.FINISH_AND_WAY_TO_THE_END] = finish + features.after[v, a]
        seconds[a, TaskDeviceFeature.READY] = state.ready[a]
        seconds[a, TaskDeviceFeature.WORK] = tasks.work[v, a]
        seconds[a, TaskDeviceFeature.LATER_THAN_ELSEWHERE] = _late(features, before, v, a, finish)
        seconds[a, TaskDeviceFeature.BUSY_UNTIL] = _busy_until(features, gaps, a)
        for f in BESIDE_THE_BEST:
            least[f] = min(least[f], seconds[a, f])
    for a in range(d):
        rows[a] = 0
        if not state.may[a]:
            continue
        for f in BESIDE_THE_BEST:
            rows[a, f] = _share(seconds[a, f] - least[f], span)
        late = seconds[a, TaskDeviceFeature.LATER_THAN_ELSEWHERE]
        rows[a, TaskDeviceFeature.WAIT] = _share(state.begin[a] - state.ready[a], span)
        rows[a, TaskDeviceFeature.LATE] = _share(late, span)
        rows[a, TaskDeviceFeature.COMING_LOAD] = _share(state.coming[a], span)
        rows[a, TaskDeviceFeature.BEFORE] = before.place[v] == a
        rows[a, TaskDeviceFeature.WAY_TO_THE_END] = _share(features.after[v, a], span)
    _homes(features, before, state, v, rows)
    row[TaskStepFeature.SLACK] = _share(before.latest[v] - begin, span)
    row[TaskStepFeature.POSITION] = t / len(state.place)
    row[TaskStepFeature.OUTPUTS] = np.log1p(tasks.out_end[v] - tasks.out_start[v]) / 3
    row[TaskStepFeature.INPUTS] = np.log1p(tasks.in_start[v + 1] - tasks.in_start[v]) / 3
    row[TaskStepFeature.WORK] = _share(features.least[v], span)
    row[TaskStepFeature.SENDING] = _share(features.after[v].min(), span)
    row[TaskStepFeature.TASKS] = np.log(len(state.place)) / 5
    row[TaskStepFeature.DEVICES] = np.log(d) / 3
    row[TaskStepFeature.OPEN] = count / d
    row[TaskStepFeature.LOAD] = _share(load, span)


@kernel
def _share(seconds: float, span: float) -> float:
    return min(MOST, max(-MOST, seconds / span)) if span > 0 else 0.0


@kernel
def _late(
    features: PilotMakespanFeatures, before: PreviousSchedule, v: int, a: int, finish: float
) -> float:
    """Seconds by which the pass would take longer if all else were as before."""
    tasks, late = features.tasks, finish - before.span
    for e in range(tasks.out_start[v], tasks.out_end[v]):
        u = tasks.target[e]
        there = finish + transfer(tasks, e, a, before.place[u])
        late = max(late, there - before.latest[u])
    return late


@kernel
def _busy_until(features: PilotMakespanFeatures, gaps: Gaps, a: int) -> float:
    until = np.inf
    for c in range(features.tasks.core_start[a], features.tasks.core_start[a + 1]):
        until = min(until, gaps.start[c, gaps.size[c] - 1])
    return until


@kernel
def _homes(
    features: PilotMakespanFeatures,
    before: PreviousSchedule,
    state: ScheduleState,
    v: int,
    rows: Singles,
) -> None:
    """Shares of the bytes received and sent whose other end is on each device, or was before.

    Partners are tasks that feed the same tasks; their bytes count as a third share.
    """
    tasks, partners = features.tasks, 0.0
    if features.coming[v] > 0:
        for i in range(tasks.in_start[v], tasks.in_start[v + 1]):
            e = tasks.in_stream[i]
            rows[state.place[tasks.source[e]], TaskDeviceFeature.SHARE_OF_INPUTS_AT_HOME] += (
                tasks.size[e] / features.coming[v]
            )
    for e in range(tasks.out_start[v], tasks.out_end[v]):
        u = tasks.target[e]
        partners += features.coming[u] - tasks.size[e]
        if features.going[v] > 0:
            rows[before.place[u], TaskDeviceFeature.SHARE_OF_OUTPUTS_AT_HOME] += (
                tasks.size[e] / features.going[v]
            )
    if partners > 0:
        for e in range(tasks.out_start[v], tasks.out_end[v]):
            _add_partners(features, before, state, v, tasks.target[e], partners, rows)


@kernel
def _add_partners(
    features: PilotMakespanFeatures,
    before: PreviousSchedule,
    state: ScheduleState,
    v: int,
    u: int,
    total: float,
    rows: Singles,
) -> None:
    tasks = features.tasks
    for i in range(tasks.in_start[u], tasks.in_start[u + 1]):
        e = tasks.in_stream[i]
        w = tasks.source[e]
        if w != v:
            a = state.place[w] if state.place[w] >= 0 else before.place[w]
            rows[a, TaskDeviceFeature.SHARE_OF_PARTNERS_AT_HOME] += tasks.size[e] / total

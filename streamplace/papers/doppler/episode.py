"""Doppler in numba: features of a problem, and its episodes.

Features before the first decision are those of appendix D.1, and the longest paths. As in the
paper, the b-level path of a task is the longest one to an entry, the t-level path the longest one
to an exit; both count computing and sending, and begin with the task itself.

In an episode the next task is chosen, its device, and again until all tasks are placed. The
networks are evaluated before the first step (`DopplerHeads`). SEL's score of a task is fixed for
the episode and only the set of ready tasks changes; PLC's first layer is linear in its inputs,

    score(v, d) = out · LeakyReLU(start_v + Σ over tasks u on d of carried_u + W x_(v,d))

where x are the five `DEVICE_FEATURES` and W is their layer, so that a step costs a few hundred
multiplications. Times are those of a list scheduler that appends: each core runs one task after the
other, and transfers do not wait for one another.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from streamsim.passes.sending import sending_times

from streamplace.learn.numba_kernels.arrays import copy_row, copy_rows
from streamplace.learn.numba_kernels.jit import borrowing_kernel, kernel
from streamplace.learn.numba_kernels.policies import drawn_open
from streamplace.learn.numba_kernels.tasks import (
    TaskColumns,
    find_open,
    free_core,
    give_home,
    tasks_of,
    transfer,
)
from streamplace.model.arrays import ROUNDING, Bools, Floats, Ints, Singles
from streamplace.model.problem import Problem

SLOPE = 0.1
"""Slope of LeakyReLU below 0."""
LIKELIEST = -1.0
TASK_FEATURES = ("computing", "sending in", "sending out", "t-level", "b-level")
DEVICE_FEATURES = ("computing", "inputs' computing", "first start", "last end", "earliest start")
"""Appendix D.2; inputs are the task's inputs that were placed on the device."""
N_TASK, N_DEVICE = len(TASK_FEATURES), len(DEVICE_FEATURES)
FEATURES = [*TASK_FEATURES, *DEVICE_FEATURES]


class DopplerFeatures(NamedTuple):
    """Features of a problem (N tasks, E streams, D devices)."""

    tasks: TaskColumns
    group: Ints  # [D] class of interchangeable devices
    of_task: Floats  # [N, 5] `TASK_FEATURES`, each with mean 0 and deviation 1
    sending: Floats  # [E] mean seconds, with mean 0 and deviation 1
    to_exit: Floats  # [N] seconds of the t-level path
    before: Ints  # [N] next task on the b-level path, -1 at its end
    after: Ints  # [N] next task on the t-level path, -1 at its end
    unit: float  # seconds in which devices are compared, 0 for standard deviations


def features_of(problem: Problem, device_unit: str) -> DopplerFeatures:
    """Compute the features of a problem; ``device_unit`` as in the options."""
    tasks = tasks_of(problem)
    compiled = problem.one_pass
    # of all devices, whether a task may run there or not
    compute = np.ascontiguousarray(compiled.work[:, compiled.devices["type"]]).mean(axis=1)
    sending = _sending(tasks)
    levels = longest_paths(tasks, compute, sending)
    columns = (
        compute,
        np.bincount(tasks.target, sending, tasks.n_tasks),
        np.bincount(tasks.source, sending, tasks.n_tasks),
        levels.to_exit,
        levels.to_entry,
    )
    return DopplerFeatures(
        tasks=tasks,
        group=problem.interchangeable.astype(np.int32),
        of_task=np.stack([standardised(column) for column in columns], axis=1),
        sending=standardised(sending),
        to_exit=levels.to_exit,
        before=levels.before,
        after=levels.after,
        unit=_unit(compute, sending) if device_unit == "seconds" else 0.0,
    )


class Levels(NamedTuple):
    """Longest paths from every task [N]."""

    to_entry: Floats
    before: Ints
    to_exit: Floats
    after: Ints


def standardised(values: NDArray[Any]) -> Floats:
    """Values with mean 0 and deviation 1, zeros where all are alike.

    >>> standardised(np.array([1.0, 3.0])).tolist()
    [-1.0, 1.0]
    """
    spread = values.std() if len(values) else 0.0
    if spread <= ROUNDING * np.abs(values).max(initial=0.0):
        return np.zeros_like(values)
    return np.asarray((values - values.mean()) / spread)


@kernel
def longest_paths(tasks: TaskColumns, compute: Floats, sending: Floats) -> Levels:
    """Longest paths by what tasks compute and streams send; of equal ones the first stream's."""
    n = len(compute)
    to_entry, to_exit = compute.copy(), compute.copy()
    before, after = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    for v in tasks.order:
        for i in range(tasks.in_start[v], tasks.in_start[v + 1]):
            e = tasks.in_stream[i]
            u = tasks.source[e]
            length = compute[v] + sending[e] + to_entry[u]
            if before[v] < 0 or length > to_entry[v]:
                to_entry[v], before[v] = length, u
    for v in tasks.order[::-1]:
        for i in range(tasks.in_start[v], tasks.in_start[v + 1]):
            e = tasks.in_stream[i]
            u = tasks.source[e]
            length = compute[u] + sending[e] + to_exit[v]
            if after[u] < 0 or length > to_exit[u]:
                to_exit[u], after[u] = length, v
    return Levels(to_entry, before, to_exit, after)


@kernel
def members_of_paths(follower: Ints) -> tuple[Ints, Ints]:
    """Pairs (v, u) for every task u on the path that begins with v."""
    n, pairs = len(follower), 0
    for v in range(n):
        u = v
        while u >= 0:
            pairs += 1
            u = follower[u]
    owner, member = np.empty(pairs, np.int32), np.empty(pairs, np.int32)
    pairs = 0
    for v in range(n):
        u = v
        while u >= 0:
            owner[pairs], member[pairs] = v, u
            pairs += 1
            u = follower[u]
    return owner, member


def _sending(tasks: TaskColumns) -> Floats:
    """Seconds that every stream takes [E] in the mean over ordered pairs of devices."""
    d = len(tasks.latency)
    apart = ~np.eye(d, dtype=np.bool_)
    if d == 1:
        return np.zeros(len(tasks.size))
    mean = tasks.latency[apart].mean(), tasks.wire[apart].mean()
    return sending_times(mean[0], tasks.size, mean[1], tasks.fixed_s)


def _unit(compute: Floats, sending: Floats) -> float:
    """Mean seconds of a task that takes time, with its transfers."""
    busy = compute[compute > 0]
    seconds = (busy.mean() if len(busy) else 0.0) + (sending.mean() if len(sending) else 0.0)
    return float(seconds) or 1.0


class DopplerHeads(NamedTuple):
    """Outputs of the networks for a problem (N tasks, H hidden units): tensors, or arrays."""

    score: Any  # [N] SEL's
    start: Any  # [N, H] PLC's first layer, of the task alone
    carried: Any  # [N, H] added to the first layer of its device for later choices
    device_layer: Any  # [5, H] of `DEVICE_FEATURES`
    out: Any  # [H]


class DecisionRules(NamedTuple):
    """Who decides: 1 for the policies, 0 for the rules of the critical path."""

    select: int
    place: int
    taught: int  # 1 if the record holds the critical path's choices, 0 for the actual ones


class EpisodeRecord(NamedTuple):
    """Labelled choices of T = N steps of S episodes; of length 0 where nothing is recorded."""

    ready: Bools  # [S, T, N] tasks that could come next
    task: Ints  # [S, T] the task to choose
    open: Bools  # [S, T, D] devices that this task could go to
    device: Ints  # [S, T] the device to choose
    devices: Singles  # [S, T, D, 5] features of the devices
    done_task: Ints  # [S, T] the task that was placed
    done_device: Ints  # [S, T]


class EpisodeState(NamedTuple):
    """An episode between two steps (N tasks, D devices, K cores, U units)."""

    place: Ints  # [N] -1 where not yet placed
    start: Floats  # [N]
    finish: Floats  # [N]
    waiting: Ints  # [N] inputs that are not yet placed
    ready: Bools  # [N]
    free: Floats  # [K] when each core is free
    load: Floats  # [D] seconds of all tasks there
    tasks: Ints  # [D] how many of them
    home: Ints  # [U] device of every unit, -1 for none
    used: Floats  # [D] bytes, [0] where memory does not limit


class StepBuffers(NamedTuple):
    """Work arrays of a step."""

    open: Bools  # [D]
    plain: Floats  # [D, 5]
    scaled: Singles  # [D, 5]
    carried: Singles  # [D, H]
    score: Singles  # [D]


def new_record(features: DopplerFeatures, episodes: int) -> EpisodeRecord:
    """Empty record of so many episodes."""
    n, d = features.tasks.work.shape
    return EpisodeRecord(
        ready=np.zeros((episodes, n, n), np.bool_),
        task=np.zeros((episodes, n), np.int32),
        open=np.zeros((episodes, n, d), np.bool_),
        device=np.zeros((episodes, n), np.int32),
        devices=np.zeros((episodes, n, d, N_DEVICE), np.float32),
        done_task=np.zeros((episodes, n), np.int32),
        done_device=np.zeros((episodes, n), np.int32),
    )


@kernel
def episodes(
    features: DopplerFeatures,
    heads: DopplerHeads,
    rules: DecisionRules,
    numbers: Floats,
    record: EpisodeRecord,
) -> Ints:
    """Devices [S, N] that all tasks are given in S episodes.

    Of the ``numbers`` [S, N, 2] for the task and the device of every step, one in [0, 1) draws the
    policy's choice, one in [1, 2) any choice, and below 0 the likeliest is taken.
    """
    s, n = numbers.shape[:2]
    d, h = features.tasks.work.shape[1], len(heads.out)
    places = np.empty((s, n), np.int32)
    buffers = StepBuffers(
        np.zeros(d, np.bool_),
        np.zeros((d, N_DEVICE)),
        np.zeros((d, N_DEVICE), np.float32),
        np.zeros((d, h), np.float32),
        np.zeros(d, np.float32),
    )
    for i in range(s):
        state = _begin(features)
        buffers.carried[:] = 0.0
        for t in range(n):
            if rules.select:
                v = _decided(heads.score, state.ready, numbers[i, t, 0])
            else:
                v = _first(heads.score, state.ready)
            if len(record.task):
                judged = _first(features.to_exit, state.ready) if rules.taught else v
                _measure(features, state, buffers, judged)
                copy_row(record.ready[i, t], state.ready)
                record.task[i, t] = judged
                copy_row(record.open[i, t], buffers.open)
                copy_rows(record.devices[i, t], buffers.scaled)
                record.device[i, t] = _soonest(buffers)
            _measure(features, state, buffers, v)
            a = _device(heads, rules.place, buffers, v, numbers[i, t, 1])
            if len(record.task):
                record.done_task[i, t], record.done_device[i, t] = v, a
                if not rules.taught:
                    record.device[i, t] = a
            _put(features, state, buffers, v, a)
            for k in range(h):
                buffers.carried[a, k] += heads.carried[v, k]
        copy_row(places[i], state.place)
    return places


@kernel
def _begin(features: DopplerFeatures) -> EpisodeState:
    tasks = features.tasks
    n, d = tasks.work.shape
    state = EpisodeState(
        np.full(n, -1, np.int32),
        np.zeros(n),
        np.zeros(n),
        (tasks.in_start[1:] - tasks.in_start[:-1]).astype(np.int32),
        np.zeros(n, np.bool_),
        np.zeros(features.tasks.core_start[d]),
        np.zeros(d),
        np.zeros(d, np.int32),
        np.full(len(tasks.member_start) - 1, -1, np.int32),
        np.zeros(len(tasks.room)),
    )
    for v in range(n):
        state.ready[v] = state.waiting[v] == 0
    return state


@borrowing_kernel
def _first(score: Singles | Floats, ready: Bools) -> int:
    """Ready task of the largest score, of equal ones the first."""
    best = -1
    for v in range(len(score)):
        if ready[v] and (best < 0 or score[v] > score[best]):
            best = v
    return best


@kernel
def _decided(score: Singles, is_open: Bools, number: float) -> int:
    """Choice among the open ones; see `episodes`."""
    if number < 1.0:
        return drawn_open(score, is_open, number)
    remaining = int((number - 1.0) * is_open.sum())
    for i in range(len(is_open)):
        if is_open[i]:
            if remaining == 0:
                return i
            remaining -= 1
    return -1


@borrowing_kernel
def _measure(features: DopplerFeatures, state: EpisodeState, buffers: StepBuffers, v: int) -> None:
    """Find the devices that are open for task v, and measure all of them."""
    tasks = features.tasks
    _find_open(features, state, tasks.unit[v], buffers.open)
    for a in range(len(buffers.open)):
        free = state.free[free_core(tasks, state.free, a)]
        inputs, first, last, ready = 0.0, np.inf, 0.0, free
        for i in range(tasks.in_start[v], tasks.in_start[v + 1]):
            e = tasks.in_stream[i]
            u = tasks.source[e]
            b = state.place[u]
            if a == b:
                inputs += tasks.work[u, a]
                first, last = min(first, state.start[u]), max(last, state.finish[u])
                ready = max(ready, state.finish[u])
            else:
                ready = max(ready, state.finish[u] + transfer(tasks, e, b, a))
        buffers.plain[a, 0] = state.load[a]
        buffers.plain[a, 1] = inputs
        buffers.plain[a, 2] = 0.0 if first == np.inf else first
        buffers.plain[a, 3] = last
        buffers.plain[a, 4] = ready
    _compare(features.unit, buffers)


@borrowing_kernel
def _find_open(features: DopplerFeatures, state: EpisodeState, unit: int, is_open: Bools) -> None:
    """Devices that rules allow, of interchangeable empty ones the first; all allowed if none."""
    tasks, d, some = features.tasks, len(is_open), False
    find_open(tasks, state.home, state.used, unit, is_open)
    for a in range(d):
        may = is_open[a] and _allowed(tasks, unit, a)
        if state.home[unit] < 0:
            for b in range(a):
                twins = features.group[a] == features.group[b]
                may = may and not (twins and state.tasks[a] == 0 and state.tasks[b] == 0)
        is_open[a] = may
        some = some or may
    if not some:
        for a in range(d):
            is_open[a] = _allowed(tasks, unit, a)


@borrowing_kernel
def _allowed(tasks: TaskColumns, unit: int, a: int) -> bool:
    """Whether a unit may run on a device, apart from memory and rivals."""
    may: bool = tasks.work[tasks.members[tasks.member_start[unit]], a] < np.inf
    return may


@borrowing_kernel
def _compare(unit: float, buffers: StepBuffers) -> None:
    """Measurements of the devices as differences from their mean, in units or deviations."""
    d = len(buffers.open)
    for f in range(N_DEVICE):
        mean, most = 0.0, 0.0
        for a in range(d):
            mean += buffers.plain[a, f] / d
            most = max(most, abs(buffers.plain[a, f]))
        spread = 0.0
        for a in range(d):
            spread += (buffers.plain[a, f] - mean) ** 2 / d
        scale = unit if unit > 0 else np.sqrt(spread)
        flat = np.sqrt(spread) <= ROUNDING * most
        for a in range(d):
            buffers.scaled[a, f] = 0.0 if flat else (buffers.plain[a, f] - mean) / scale


@borrowing_kernel
def _soonest(buffers: StepBuffers) -> int:
    """Open device with the earliest start."""
    best = -1
    for a in range(len(buffers.open)):
        if buffers.open[a] and (best < 0 or buffers.plain[a, 4] < buffers.plain[best, 4]):
            best = a
    return best


@kernel
def _device(heads: DopplerHeads, learned: int, buffers: StepBuffers, v: int, number: float) -> int:
    """Device that task v goes to."""
    if not learned:
        return _soonest(buffers)
    for a in range(len(buffers.open)):
        total = np.float32(0)
        for k in range(len(heads.out)):
            x = heads.start[v, k] + buffers.carried[a, k]
            for f in range(N_DEVICE):
                x += buffers.scaled[a, f] * heads.device_layer[f, k]
            total += heads.out[k] * (x if x > 0 else np.float32(SLOPE) * x)
        buffers.score[a] = total
    return _decided(buffers.score, buffers.open, number)


@borrowing_kernel
def _put(
    features: DopplerFeatures, state: EpisodeState, buffers: StepBuffers, v: int, a: int
) -> None:
    """Place task v, measured just now, on device a."""
    tasks = features.tasks
    core = free_core(tasks, state.free, a)
    state.place[v], state.ready[v] = a, False
    state.start[v] = buffers.plain[a, 4]
    state.finish[v] = state.start[v] + tasks.work[v, a]
    state.free[core] = state.finish[v]
    state.load[a] += tasks.work[v, a]
    state.tasks[a] += 1
    unit = tasks.unit[v]
    give_home(tasks, state.home, state.used, unit, a)
    for e in range(features.tasks.out_start[v], features.tasks.out_end[v]):
        w = tasks.target[e]
        state.waiting[w] -= 1
        state.ready[w] = state.waiting[w] == 0

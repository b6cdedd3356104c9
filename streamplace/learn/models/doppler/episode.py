"""Episodes: the next task, its device, and again until all tasks are placed.

What the networks say of a problem is known before the first step (`Heads`). SEL's score of a task
is fixed for the episode and only who is ready changes; PLC's first layer is linear in what changes,

    score(v, d) = out · LeakyReLU(start_v + Σ over tasks u on d of carried_u + x_(v,d) · seen)

where x are the five `DEVICE_FEATURES`, so that a step costs a few hundred multiplications. Times
are those of a list scheduler that appends: each core takes one task after the other, transfers
wait for nobody.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from streamsim.jit import borrowing_kernel, kernel
from streamsim.passes.sending import sending_seconds

from streamplace.learn.models.doppler.plan import FLAT, N_DEVICE, Plan
from streamplace.learn.models.giph.walk import drawn
from streamplace.model.arrays import Bools, Floats, Ints

Singles = NDArray[np.float32]

SLOPE = 0.1
"""Of LeakyReLU below 0."""
LIKELIEST = -1.0


class Heads(NamedTuple):
    """What the networks say of a problem (N tasks, H hidden units)."""

    score: Singles  # [N] SEL's
    start: Singles  # [N, H] PLC's first layer, of the task alone
    carried: Singles  # [N, H] what a task adds to its device for later choices
    seen: Singles  # [5, H] of `DEVICE_FEATURES`
    out: Singles  # [H]


class Conduct(NamedTuple):
    """Who decides: 1 where the policies do, 0 where the rules of the critical path do."""

    select: int
    place: int
    taught: int  # 1 where the trail keeps what the critical path would do, 0 what was done


class Trail(NamedTuple):
    """What was judged in T = N steps of S episodes; of length 0 where nobody wants to know."""

    ready: Bools  # [S, T, N] tasks that could come next
    task: Ints  # [S, T] that should
    open: Bools  # [S, T, D] devices that this one could go to
    device: Ints  # [S, T] where it should
    looks: Singles  # [S, T, D, 5] of the devices
    done_task: Ints  # [S, T] what was placed indeed
    done_device: Ints  # [S, T]


class State(NamedTuple):
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


class Desk(NamedTuple):
    """What a step is worked out on."""

    open: Bools  # [D]
    plain: Floats  # [D, 5]
    looks: Singles  # [D, 5]
    carried: Singles  # [D, H]
    score: Singles  # [D]


def new_trail(plan: Plan, episodes: int) -> Trail:
    """Room for what so many episodes see."""
    n, d = plan.base.work.shape
    return Trail(
        np.zeros((episodes, n, n), np.bool_),
        np.zeros((episodes, n), np.int32),
        np.zeros((episodes, n, d), np.bool_),
        np.zeros((episodes, n), np.int32),
        np.zeros((episodes, n, d, N_DEVICE), np.float32),
        np.zeros((episodes, n), np.int32),
        np.zeros((episodes, n), np.int32),
    )


@kernel
def episodes(plan: Plan, heads: Heads, conduct: Conduct, numbers: Floats, trail: Trail) -> Ints:
    """Devices [S, N] that all tasks are given in S episodes.

    Parameters
    ----------
    numbers
        [S, N, 2] for the task and the device of every step: in [0, 1) the policy's choice is drawn
        with it, in [1, 2) any choice is, and below 0 the likeliest is taken.
    """
    s, n = numbers.shape[:2]
    d, h = plan.base.work.shape[1], len(heads.out)
    places = np.empty((s, n), np.int32)
    desk = Desk(
        np.zeros(d, np.bool_),
        np.zeros((d, N_DEVICE)),
        np.zeros((d, N_DEVICE), np.float32),
        np.zeros((d, h), np.float32),
        np.zeros(d, np.float32),
    )
    for i in range(s):
        state = _begin(plan)
        desk.carried[:] = 0.0
        for t in range(n):
            v = _next(plan, heads, conduct.select, state, numbers[i, t, 0])
            if len(trail.task):
                judged = _longest(plan, state) if conduct.taught else v
                _look(plan, state, desk, judged)
                trail.ready[i, t, :] = state.ready
                trail.task[i, t] = judged
                trail.open[i, t, :] = desk.open
                trail.looks[i, t, :, :] = desk.looks
                trail.device[i, t] = _soonest(desk)
            _look(plan, state, desk, v)
            a = _device(heads, conduct.place, desk, v, numbers[i, t, 1])
            if len(trail.task):
                trail.done_task[i, t], trail.done_device[i, t] = v, a
                if not conduct.taught:
                    trail.device[i, t] = a
            _put(plan, state, desk, v, a)
            for k in range(h):
                desk.carried[a, k] += heads.carried[v, k]
        places[i] = state.place
    return places


@kernel
def _begin(plan: Plan) -> State:
    view = plan.base
    n, d = view.work.shape
    state = State(
        np.full(n, -1, np.int32),
        np.zeros(n),
        np.zeros(n),
        (view.in_start[1:] - view.in_start[:-1]).astype(np.int32),
        np.zeros(n, np.bool_),
        np.zeros(plan.core_start[d]),
        np.zeros(d),
        np.zeros(d, np.int32),
        np.full(len(view.allowed), -1, np.int32),
        np.zeros(len(view.room)),
    )
    for v in range(n):
        state.ready[v] = state.waiting[v] == 0
    return state


@kernel
def _next(plan: Plan, heads: Heads, learned: int, state: State, number: float) -> int:
    """Task that comes next."""
    if not learned:
        return _first(heads.score, state.ready)
    return _decided(heads.score, state.ready, number)


@borrowing_kernel
def _first(score: Singles, ready: Bools) -> int:
    best = -1
    for v in range(len(score)):
        if ready[v] and (best < 0 or score[v] > score[best]):
            best = v
    return best


@borrowing_kernel
def _longest(plan: Plan, state: State) -> int:
    """Ready task of the longest path to an exit."""
    best = -1
    for v in range(len(state.ready)):
        if state.ready[v] and (best < 0 or plan.to_exit[v] > plan.to_exit[best]):
            best = v
    return best


@kernel
def _decided(score: Singles, is_open: Bools, number: float) -> int:
    """Choice among what is open; see `episodes`."""
    if number < 1.0:
        return drawn(score, is_open, number)
    left = int((number - 1.0) * is_open.sum())
    for i in range(len(is_open)):
        if is_open[i]:
            if left == 0:
                return i
            left -= 1
    return -1


@borrowing_kernel
def _look(plan: Plan, state: State, desk: Desk, v: int) -> None:
    """Find the devices that are open for task v, and measure all of them."""
    view = plan.base
    _find_open(plan, state, view.unit[v], desk.open)
    for a in range(len(desk.open)):
        free = np.inf
        for c in range(plan.core_start[a], plan.core_start[a + 1]):
            free = min(free, state.free[c])
        inputs, first, last, ready = 0.0, np.inf, 0.0, free
        for i in range(view.in_start[v], view.in_start[v + 1]):
            e = view.in_stream[i]
            u = view.source[e]
            b = state.place[u]
            if a == b:
                inputs += view.work[u, a]
                first, last = min(first, state.start[u]), max(last, state.finish[u])
                ready = max(ready, state.finish[u])
            else:
                latency, wire = view.latency[b, a], view.wire[b, a]
                sending = sending_seconds(latency, view.size[e], wire, view.fixed_s[e])
                ready = max(ready, state.finish[u] + sending)
        desk.plain[a, 0] = state.load[a]
        desk.plain[a, 1] = inputs
        desk.plain[a, 2] = 0.0 if first == np.inf else first
        desk.plain[a, 3] = last
        desk.plain[a, 4] = ready
    _compare(plan.unit, desk)


@borrowing_kernel
def _find_open(plan: Plan, state: State, unit: int, is_open: Bools) -> None:
    """Devices that rules allow, of interchangeable empty ones the first; all allowed if none."""
    view, d, some = plan.base, len(is_open), False
    for a in range(d):
        may = view.allowed[unit, a] and (state.home[unit] == a or state.home[unit] < 0)
        if may and state.home[unit] < 0:
            for i in range(view.rival_start[unit], view.rival_start[unit + 1]):
                may = may and state.home[view.rivals[i]] != a
            if len(view.memory):
                may = may and state.used[a] + view.memory[unit] <= view.room[a]
            for b in range(a):
                twins = plan.group[a] == plan.group[b]
                may = may and not (twins and state.tasks[a] == 0 and state.tasks[b] == 0)
        is_open[a] = may
        some = some or may
    if not some:
        for a in range(d):
            is_open[a] = view.allowed[unit, a]


@borrowing_kernel
def _compare(unit: float, desk: Desk) -> None:
    """Measurements of the devices as differences from their mean, in units or deviations."""
    d = len(desk.open)
    for f in range(N_DEVICE):
        mean, most = 0.0, 0.0
        for a in range(d):
            mean += desk.plain[a, f] / d
            most = max(most, abs(desk.plain[a, f]))
        spread = 0.0
        for a in range(d):
            spread += (desk.plain[a, f] - mean) ** 2 / d
        scale = unit if unit > 0 else np.sqrt(spread)
        flat = np.sqrt(spread) <= FLAT * most
        for a in range(d):
            desk.looks[a, f] = 0.0 if flat else (desk.plain[a, f] - mean) / scale


@borrowing_kernel
def _soonest(desk: Desk) -> int:
    """Open device with the earliest start."""
    best = -1
    for a in range(len(desk.open)):
        if desk.open[a] and (best < 0 or desk.plain[a, 4] < desk.plain[best, 4]):
            best = a
    return best


@kernel
def _device(heads: Heads, learned: int, desk: Desk, v: int, number: float) -> int:
    """Device that task v goes to."""
    if not learned:
        return _soonest(desk)
    for a in range(len(desk.open)):
        total = np.float32(0)
        for k in range(len(heads.out)):
            x = heads.start[v, k] + desk.carried[a, k]
            for f in range(N_DEVICE):
                x += desk.looks[a, f] * heads.seen[f, k]
            total += heads.out[k] * (x if x > 0 else np.float32(SLOPE) * x)
        desk.score[a] = total
    return _decided(desk.score, desk.open, number)


@borrowing_kernel
def _put(plan: Plan, state: State, desk: Desk, v: int, a: int) -> None:
    """Place task v, measured just now, on device a."""
    view, core = plan.base, plan.core_start[a]
    for c in range(core, plan.core_start[a + 1]):
        if state.free[c] < state.free[core]:
            core = c
    state.place[v], state.ready[v] = a, False
    state.start[v] = desk.plain[a, 4]
    state.finish[v] = state.start[v] + view.work[v, a]
    state.free[core] = state.finish[v]
    state.load[a] += view.work[v, a]
    state.tasks[a] += 1
    unit = view.unit[v]
    if state.home[unit] < 0:
        state.home[unit] = a
        if len(view.memory):
            state.used[a] += view.memory[unit]
    for e in range(plan.out_start[v], plan.out_end[v]):
        w = view.target[e]
        state.waiting[w] -= 1
        state.ready[w] = state.waiting[w] == 0

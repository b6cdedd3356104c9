"""Lower bounds of the makespan under any placement, queue and network."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from streamsim.arrays import Bools, Floats
from streamsim.jit import kernel
from streamsim.passes.compiled import Pass
from streamsim.passes.sending import fixed_seconds, sending_seconds

MOST_CELLS = 100_000_000
"""Most streams times pairs of devices for which every link is examined, in tenths of a second."""


class Bounds(NamedTuple):
    """Proven lower bounds of the makespan without noise, in seconds."""

    path: float  # longest path, each operator where it finishes earliest
    work: float  # all work, or that of one class of hardware, over the total speed for it

    @property
    def best(self) -> float:
        """The larger one."""
        return max(self)


def bounds(one_pass: Pass, allowed: ArrayLike | None = None) -> Bounds:
    """Lower bounds of the makespan under any placement and any rules.

    ``path`` is the longest path of earliest finishes F(v, d) of operator v on device d,

        F(v, d) = w(v, d) + max over inputs (u, v) of
                  min over d' of F(u, d') + time from d' to d,

    where very large problems use the time from d' to the nearest other device for all d.

    ``work`` follows from T · Σ n_d g_d ≥ Σ over v of min over d of w(v, d) g_d, which holds for any
    speeds g_d > 0. It is computed over all devices and, for every set of devices to which some
    operators are confined, over those operators alone.

    Parameters
    ----------
    allowed
        Whether an operator may run on a device, shape [N, D]; by default always.

    Examples
    --------
    >>> from streamsim import build_instance
    >>> from streamsim.passes import bounds, compile_pass
    >>> instance = build_instance(rate=[100, 0, 0], seconds=[[1e-3], [5e-3], [5e-3]],
    ...                           source=[0, 0], target=[1, 2], device_type=[0],
    ...                           seconds_per_byte=[[0]])
    >>> bounds(compile_pass(instance))
    Bounds(path=0.006, work=0.011)
    """
    n, d = one_pass.n_operators, one_pass.n_devices
    may = np.ones((n, d), np.bool_) if allowed is None else np.array(allowed, np.bool_)
    if may.shape != (n, d) or not may.any(axis=1).all():
        raise ValueError(f"allow each of {n} operators at least one of {d} devices, shape [N, D]")
    latency, wire = one_pass.links["latency"], one_pass.links["seconds_per_byte"]
    if one_pass.n_streams * d * d <= MOST_CELLS:
        path = _longest_path(one_pass, may, np.array(latency), np.array(wire))
    else:
        path = _longest_path_to_nearest(one_pass, may, *_least_elsewhere(one_pass))
    work = _over_classes(one_pass, one_pass.work.sum(axis=0), may)
    return Bounds(path=float(path), work=float(work))


def _least_elsewhere(one_pass: Pass) -> tuple[Floats, Floats]:
    """Least latency and seconds per byte from each device to another one; ∞ if there is none."""
    home = np.eye(one_pass.n_devices, dtype=np.bool_)
    latency = np.where(home, np.inf, one_pass.links["latency"]).min(axis=1)
    wire = np.where(home, np.inf, one_pass.links["seconds_per_byte"]).min(axis=1)
    return latency, np.where(np.isinf(wire), 0.0, wire)


@kernel
def _longest_path(one_pass: Pass, may: Bools, latency: Floats, wire: Floats) -> float:
    n, d = may.shape
    begin, longest, soonest = np.zeros((n, d)), 0.0, np.empty(d)
    for v in one_pass.order:
        longest = max(longest, _run(one_pass, may, begin, v))
        for e in range(one_pass.operators[v].out_start, one_pass.operators[v].out_end):
            size, target = one_pass.streams[e].size, one_pass.streams[e].target
            fixed_s = fixed_seconds(one_pass, e)
            soonest[:] = begin[v]
            for a in range(d):
                end = begin[v, a]
                if end == np.inf:  # v may not run there
                    continue
                for b in range(d):
                    arrival = end + sending_seconds(latency[a, b], size, wire[a, b], fixed_s)
                    soonest[b] = arrival if arrival < soonest[b] else soonest[b]
            for b in range(d):
                begin[target, b] = max(begin[target, b], soonest[b])
    return longest


@kernel
def _run(one_pass: Pass, may: Bools, begin: Floats, v: int) -> float:
    """Replace the begin of an operator on each device by its end; return the earliest end."""
    soonest = np.inf
    for a in range(begin.shape[1]):
        begin[v, a] += one_pass.work[v, one_pass.devices[a].type] if may[v, a] else np.inf
        soonest = min(soonest, begin[v, a])
    return soonest


@kernel
def _longest_path_to_nearest(one_pass: Pass, may: Bools, latency: Floats, wire: Floats) -> float:
    n, d = may.shape
    begin, longest = np.zeros((n, d)), 0.0
    for v in one_pass.order:
        longest = max(longest, _run(one_pass, may, begin, v))
        for e in range(one_pass.operators[v].out_start, one_pass.operators[v].out_end):
            stream = one_pass.streams[e]
            fixed_s = fixed_seconds(one_pass, e)
            away = np.inf
            for a in range(d):
                sending = sending_seconds(latency[a], stream.size, wire[a], fixed_s)
                away = min(away, begin[v, a] + sending)
            for b in range(d):
                begin[stream.target, b] = max(begin[stream.target, b], min(begin[v, b], away))
    return longest


@kernel
def _over_classes(one_pass: Pass, total: Floats, may: Bools) -> float:
    """Largest ratio of effort to power, over all devices and each set with confined operators.

    ``total`` [C] is the work of all operators on a device of each type, the inverse of its speed.
    """
    n, d = may.shape
    speed, power = np.ones(d), np.empty(d)
    for a in range(d):
        device = one_pass.devices[a]
        if total[device.type] > 0:
            speed[a] = 1.0 / total[device.type]
        power[a] = device.cores * speed[a]
    least = _least_effort(one_pass, speed, may)
    example, effort, count = np.empty(n, np.int64), np.zeros(n), 0  # operators of one class
    for v in range(n):
        k = 0
        while k < count and not (_within(may, example[k], v) and _within(may, v, example[k])):
            k += 1
        if k == count:
            example[count] = v
            count += 1
        effort[k] += least[v]
    longest = effort.sum() / power.sum()
    for c in range(count):
        confined, able = 0.0, 0.0
        for a in range(d):
            able += power[a] if may[example[c], a] else 0.0
        for k in range(count):
            confined += effort[k] if _within(may, example[k], example[c]) else 0.0
        longest = max(longest, confined / able)
    return longest


@kernel
def _within(may: Bools, u: int, v: int) -> bool:
    """Whether operator v may run on every device on which u may."""
    within = True
    for a in range(may.shape[1]):
        within &= may[v, a] or not may[u, a]
    return within


@kernel
def _least_effort(one_pass: Pass, speed: Floats, may: Bools) -> Floats:
    """Least w(v, d) g_d of every operator over the devices that it may run on."""
    n, d = may.shape
    least = np.full(n, np.inf)
    for v in range(n):
        for a in range(d):
            if may[v, a]:
                least[v] = min(least[v], one_pass.work[v, one_pass.devices[a].type] * speed[a])
    return least

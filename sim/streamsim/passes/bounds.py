"""Lower bounds: no placement, queue or network makes a pass shorter than these."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamsim.jit import kernel
from streamsim.passes.compiled import Pass

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Flags = NDArray[np.bool_]


MOST_CELLS = 100_000_000
"""Streams times pairs of devices up to which every link is looked at: some tenths of a second."""


class Bounds(NamedTuple):
    """Proven lower bounds of the makespan without noise, in seconds."""

    path: float  # longest path, each operator where it is soonest done
    work: float  # all work, or that of one class of hardware, over all speed that may do it

    @property
    def best(self) -> float:
        """The larger one."""
        return max(self)


def bounds(one: Pass, allowed: ArrayLike | None = None) -> Bounds:
    """Lower bounds of the makespan under any placement and any rules.

    ``path`` is the longest path of soonest finishes F(v, d) of operator v on device d,

        F(v, d) = w(v, d) + max(release(v), max over inputs (u, v) of
                  min over d' of F(u, d') + time from d' to d),

    where on very large problems the time from d' to the nearest other device stands for all.

    ``work`` rests on T · Σ n_d g_d ≥ Σ over v of min over d of w(v, d) g_d, which holds for any
    speeds g_d > 0; it is taken over all devices, and for every set of devices to which some
    operators are confined over those operators alone.

    Parameters
    ----------
    allowed
        Whether an operator may run on a device, shape [N, D]; by default it may on all.

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
    n, d = one.n_operators, one.n_devices
    may = np.ones((n, d), np.bool_) if allowed is None else np.array(allowed, np.bool_)
    if may.shape != (n, d) or not may.any(axis=1).all():
        raise ValueError(f"allow each of {n} operators at least one of {d} devices, shape [N, D]")
    latency, wire = one.links["latency"], one.links["seconds_per_byte"]
    if one.n_streams * d * d <= MOST_CELLS:
        path = _longest_path(one, may, np.array(latency), np.array(wire))
    else:
        path = _longest_path_to_nearest(one, may, *_least_elsewhere(one))
    return Bounds(path=float(path), work=_work_bound(one, may))


def _least_elsewhere(one: Pass) -> tuple[Floats, Floats]:
    """Least latency and seconds per byte from each device to another one; ∞ if there is none."""
    home = np.eye(one.n_devices, dtype=np.bool_)
    latency = np.where(home, np.inf, one.links["latency"]).min(axis=1)
    wire = np.where(home, np.inf, one.links["seconds_per_byte"]).min(axis=1)
    return latency, np.where(np.isinf(wire), 0.0, wire)


@kernel
def _longest_path(one: Pass, may: Flags, latency: Floats, wire: Floats) -> float:
    d = may.shape[1]
    begin, longest, soonest = _released(one, d), 0.0, np.empty(d)
    for v in one.order:
        longest = max(longest, _run(one, may, begin, v))
        for e in range(one.operators[v].out_start, one.operators[v].out_end):
            size, target = one.streams[e].size, one.streams[e].target
            handling = one.streams[e].tuples * (one.gap + 2.0 * one.overhead)
            soonest[:] = begin[v]
            for a in range(d):  # where v may not run, it never ends
                end = begin[v, a]
                for b in range(d):
                    arrival = end + (latency[a, b] + size * wire[a, b] + handling)
                    soonest[b] = arrival if arrival < soonest[b] else soonest[b]
            for b in range(d):
                begin[target, b] = max(begin[target, b], soonest[b])
    return longest


@kernel
def _released(one: Pass, d: int) -> Floats:
    """When every operator may begin on each device, before its inputs are known."""
    begin = np.empty((len(one.operators), d))
    for v in range(len(begin)):
        begin[v] = one.operators[v].release
    return begin


@kernel
def _run(one: Pass, may: Flags, begin: Floats, v: int) -> float:
    """Turn the begin of an operator on each device into its end; the soonest of these."""
    soonest = np.inf
    for a in range(begin.shape[1]):
        begin[v, a] += one.work[v, one.devices[a].type] if may[v, a] else np.inf
        soonest = min(soonest, begin[v, a])
    return soonest


@kernel
def _longest_path_to_nearest(one: Pass, may: Flags, latency: Floats, wire: Floats) -> float:
    d = may.shape[1]
    begin, longest = _released(one, d), 0.0
    for v in one.order:
        longest = max(longest, _run(one, may, begin, v))
        for e in range(one.operators[v].out_start, one.operators[v].out_end):
            stream = one.streams[e]
            handling = stream.tuples * (one.gap + 2.0 * one.overhead)
            away = np.inf
            for a in range(d):
                away = min(away, begin[v, a] + (latency[a] + stream.size * wire[a] + handling))
            for b in range(d):
                begin[stream.target, b] = max(begin[stream.target, b], min(begin[v, b], away))
    return longest


def _work_bound(one: Pass, may: Flags) -> float:
    """Largest bound by work over the classes of hardware."""
    types = one.devices["type"].astype(np.int32)
    total = one.work.sum(axis=0)
    speed = np.divide(1.0, total, out=np.ones_like(total), where=total > 0)[types]
    return float(_over_classes(one.work, types, speed, one.devices["cores"] * speed, may))


@kernel
def _over_classes(work: Floats, types: Ints, speed: Floats, power: Floats, may: Flags) -> float:
    """Largest of all effort over all power, and of what is confined to some devices over theirs."""
    n, d = may.shape
    least = _least_effort(work, types, speed, may)
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
def _within(may: Flags, u: int, v: int) -> bool:
    """Whether operator v may run on every device on which u may."""
    within = True
    for a in range(may.shape[1]):
        within &= may[v, a] or not may[u, a]
    return within


@kernel
def _least_effort(work: Floats, types: Ints, speed: Floats, may: Flags) -> Floats:
    """Least w(v, d) g_d of every operator over the devices that it may run on."""
    n, d = may.shape
    least = np.full(n, np.inf)
    for v in range(n):
        for a in range(d):
            if may[v, a]:
                least[v] = min(least[v], work[v, types[a]] * speed[a])
    return least

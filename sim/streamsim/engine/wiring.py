"""Wiring: the quantities that all placements of one instance share, compiled once per call."""

from typing import NamedTuple

import numpy as np

from streamsim.arrays import Bools, Floats, Indices, Ints
from streamsim.engine.generators import constant_from, generate
from streamsim.engine.settings import Settings
from streamsim.instance import Instance
from streamsim.topology import group_by

DYNAMIC, UNIFORM, WEIGHTED = range(3)
_POLICIES = {"dynamic": DYNAMIC, "uniform": UNIFORM, "weighted": WEIGHTED}


class Wiring(NamedTuple):
    """Streams into and out of operators, generated tuples, windows and the clock.

    The backlog of the i-th of the S sources is inlet M + i of its operator, an unbounded queue.
    Operators without any input are sources, so that every operator has an inlet.
    """

    out_start: Indices  # [N] first stream out of an operator
    out_end: Indices  # [N] index after the last
    target: Indices  # [M] operator that receives
    inlet_start: Indices  # [N + 1] the inlets of v are inlets[inlet_start[v]:inlet_start[v + 1]]
    inlets: Indices  # [M + S] port by port
    ports: Indices  # [M + S] port of the inlet at the same index
    joins: Bools  # [N] whether an operator takes sets of one tuple from every port
    senders: Indices  # [M + S] sender to the inlet at the same index; for backlogs the source
    sources: Ints  # [S] operators that generate
    generated: Floats  # [S, slices] tuples
    constant_from: int  # first tick from which generated tuples no longer change
    window_of: Ints  # [N] row of `Instance.windows`, or -1
    panes: Ints  # [K] advances that a window spans
    weights: Floats  # [N]

    policy: int  # DYNAMIC, UNIFORM or WEIGHTED
    capacity: float  # tuples per stream, or 0 if capacities follow from the rates
    peak: float  # most tuples that a source generates in a slice, as a multiple of its rate
    ticks: int
    warm_ticks: int
    iterations: int
    dt: float
    slice_seconds: float


def wire(instance: Instance, settings: Settings) -> Wiring:
    """Compile an instance and settings; raise ValueError if they cannot be simulated."""
    if not (instance.rate > 0).any():
        raise ValueError("no operator has a rate; give at least one source a rate above 0")
    both = np.flatnonzero(instance.joins & (instance.rate > 0))
    if len(both):
        raise ValueError(
            f"operator {both[0]} joins its inputs and has a rate; give the rate to a source"
            " that feeds each of its inputs"
        )
    first = np.diff(instance.in_start) == 0
    sources = np.flatnonzero((instance.rate > 0) | first).astype(np.int32)
    of_source = instance.port_start[sources]
    port_start, inlets = group_by(
        np.concatenate((instance.port, of_source)), int(instance.port_start[-1])
    )
    generated = generate(
        sources,
        instance.rate,
        settings.generators,
        settings.slice_seconds,
        settings.ticks * settings.iterations,
    )
    return Wiring(
        out_start=instance.out_start.astype(np.uint32),
        out_end=instance.out_end.astype(np.uint32),
        target=instance.target.astype(np.uint32),
        inlet_start=port_start[instance.port_start].astype(np.uint32),
        inlets=inlets.astype(np.uint32),
        ports=np.concatenate((instance.port, of_source))[inlets].astype(np.uint32),
        joins=instance.joins,
        senders=np.concatenate((instance.source, sources))[inlets].astype(np.uint32),
        sources=sources,
        generated=generated,
        constant_from=constant_from(generated, settings.iterations),
        window_of=_window_of(instance),
        panes=_panes(instance, settings.slice_seconds),
        weights=_weights(instance, settings),
        policy=_POLICIES[settings.policy],
        capacity=0.0 if settings.capacity is None else float(settings.capacity),
        peak=_peak(generated, instance.rate[sources] * settings.slice_seconds),
        ticks=settings.ticks,
        warm_ticks=settings.warm_ticks,
        iterations=int(settings.iterations),
        dt=float(settings.dt),
        slice_seconds=settings.slice_seconds,
    )


def check_placements(instance: Instance, placements: object) -> Ints:
    """Copy placements to contiguous int32 ``[B, N]``; raise ValueError if they are invalid.

    The copy is never read-only, because kernels are compiled for one kind of array.
    """
    batch = np.asarray(placements)
    n, d = instance.n_operators, instance.n_devices
    if batch.ndim != 2 or batch.shape[1] != n or batch.dtype.kind not in "iu":
        raise ValueError(
            f"placements are {batch.dtype} of shape {batch.shape};"
            f" give integers of shape (batch, {n}), one device per operator"
        )
    if batch.size and not 0 <= batch.min() <= batch.max() < d:
        wrong = batch[(batch < 0) | (batch >= d)][0]
        raise ValueError(f"a placement names device {wrong}; devices are numbered 0 to {d - 1}")
    return np.array(batch, np.int32, order="C")


def _weights(instance: Instance, settings: Settings) -> Floats:
    if settings.weights is None:
        return np.ones(instance.n_operators)
    if len(settings.weights) != instance.n_operators:
        raise ValueError(
            f"there are {len(settings.weights)} weights for {instance.n_operators} operators;"
            " give one per operator"
        )
    return np.array(settings.weights, np.float64)


def _peak(generated: Floats, nominal: Floats) -> float:
    """Largest multiple of the nominal rate that a source generates in a slice, at least 1."""
    fed = nominal > 0
    peak = generated[fed].max(axis=1, initial=0.0) / nominal[fed]
    return float(peak.max(initial=1.0))


def _window_of(instance: Instance) -> Ints:
    rows = np.full(instance.n_operators, -1, np.int32)
    rows[instance.windows[:, 0].astype(np.int64)] = np.arange(len(instance.windows))
    return rows


def _panes(instance: Instance, slice_seconds: float) -> Ints:
    for row in instance.windows:
        if row[2] < slice_seconds * (1 - 1e-9):
            raise ValueError(
                f"the window of operator {int(row[0])} advances every {row[2]:g} s, which is"
                f" shorter than a slice of {slice_seconds:g} s; use a smaller dt or more iterations"
            )
    ratio = instance.windows[:, 1] / instance.windows[:, 2]
    return np.maximum(np.floor(ratio + 1e-9), 1).astype(np.int32)

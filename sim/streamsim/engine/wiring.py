"""Wiring: the settings of a run as the core reads them, compiled once per call."""

from typing import NamedTuple

import numpy as np

from streamsim.arrays import Floats, Ints
from streamsim.engine.generators import constant_from, generate
from streamsim.engine.settings import POLICIES, Settings
from streamsim.instance import Instance


class Wiring(NamedTuple):
    """Generated tuples, policy and clock; the core derives the rest from the instance."""

    generated: Floats  # [S, slices] tuples of each source, or operator without inputs
    constant_from: int  # first tick from which generated tuples no longer change
    weights: Floats  # [N]

    policy: int  # index in `POLICIES`
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
    generated = generate(
        sources,
        instance.rate,
        settings.generators,
        settings.slice_seconds,
        settings.ticks * settings.iterations,
    )
    _check_windows(instance, settings.slice_seconds)
    return Wiring(
        generated=generated,
        constant_from=constant_from(generated, settings.iterations),
        weights=_weights(instance, settings),
        policy=POLICIES.index(settings.policy),
        capacity=0.0 if settings.capacity is None else float(settings.capacity),
        peak=_peak(generated, instance.rate[sources] * settings.slice_seconds),
        ticks=settings.ticks,
        warm_ticks=settings.warm_ticks,
        iterations=int(settings.iterations),
        dt=float(settings.dt),
        slice_seconds=settings.slice_seconds,
    )


def check_placements(instance: Instance, placements: object) -> Ints:
    """Convert placements to int32 ``[B, N]``; raise ValueError if they are invalid."""
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
    return batch.astype(np.int32, copy=False)


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


def _check_windows(instance: Instance, slice_seconds: float) -> None:
    for row in instance.windows:
        if row[2] < slice_seconds * (1 - 1e-9):
            raise ValueError(
                f"the window of operator {int(row[0])} advances every {row[2]:g} s, which is"
                f" shorter than a slice of {slice_seconds:g} s; use a smaller dt or more iterations"
            )

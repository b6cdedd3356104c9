"""Fitting: runs that are long enough to measure sustained throughput, and doubts about others."""

from dataclasses import replace
from math import ceil, floor, log10
from typing import Literal, NamedTuple

import numpy as np

from streamsim.arrays import Floats, Ints
from streamsim.engine.runs import SETTLED, Runs, simulate
from streamsim.engine.settings import (
    GivenSettings,
    Settings,
    delays,
    first_ticks,
    max_ticks,
    time_step,
)
from streamsim.instance import Instance

TRIES = 12  # capacities to try, each twice the one before


class Doubt(NamedTuple):
    """Reason to distrust a run: a stream, the setting to change, and a value that works."""

    reason: Literal["settling", "capacity"]
    stream: int  # the affected stream, in the caller's order, or -1
    setting: Literal["duration", "capacity"]
    works: float | None  # None if no value was found


class Fit(NamedTuple):
    """Settings of a run, its measurements, and the reason to distrust them, if any."""

    settings: Settings
    runs: Runs
    doubt: Doubt | None


def fit(instance: Instance, placement: Ints, request: GivenSettings) -> Fit:
    """Choose the settings that the request leaves open, and check whether the run can be trusted.

    The duration is doubled until the input of every operator agrees with the admitted tuples,
    within `streamsim.engine.runs.SETTLED` of its full rate, and the second half of the measured
    window gives the same throughput as all of it. A run is doubtful if the requested duration is
    too short for that, or if the placement carries less with the requested capacity than with
    queues that follow from the rates.

    Examples
    --------
    A hop over a link cannot carry 100,000 tuples/s in queues of 50 tuples and steps of 0.1 s:

    >>> from streamsim.instance import build_instance
    >>> instance = build_instance(rate=[1e5, 0], seconds=[[0], [0]], source=[0], target=[1],
    ...                           device_type=[0, 0], seconds_per_byte=np.zeros((2, 2)))
    >>> fit(instance, np.array([0, 1]), GivenSettings()).runs.relative.round(3).tolist()
    [1.0]
    >>> fit(instance, np.array([0, 1]), GivenSettings(dt=0.1, capacity=50)).doubt
    Doubt(reason='capacity', stream=0, setting='capacity', works=20000.0)
    """
    fitted = _settled(instance, placement, request)
    if request.capacity is None:
        return fitted
    roomy = _settled(instance, placement, replace(request, duration=None, capacity=None))
    long = _settled(instance, placement, replace(request, duration=None))
    if roomy.doubt is not None or (long.doubt is None and _alike(long, roomy)):
        return fitted
    stream, works = _capacity_that_works(instance, placement, request, roomy)
    if long.doubt is not None:
        return fitted._replace(doubt=long.doubt._replace(setting="capacity", works=works))
    return fitted._replace(doubt=Doubt("capacity", stream, "capacity", works))


def _alike(a: Fit, b: Fit) -> bool:
    """Whether two runs measure the same throughput, within `SETTLED`."""
    return abs(float(a.runs.relative[0] - b.runs.relative[0])) <= SETTLED


def _settled(instance: Instance, placement: Ints, request: GivenSettings) -> Fit:
    """Run for the requested duration, or until the measurements have settled."""
    dt = request.dt if request.dt is not None else time_step(instance, placement, request)
    if request.duration is not None:
        fitted = _run(
            instance, placement, Settings(request.duration, dt, 1, request.capacity, request.policy)
        )
        if fitted.doubt is None:
            return fitted
        return fitted._replace(
            doubt=fitted.doubt._replace(works=_long_enough(instance, placement, request))
        )
    limit = max_ticks(instance)
    warm, ticks = first_ticks(instance, placement, dt)
    while True:
        warm, ticks = min(warm, limit // 3), min(ticks, limit)
        fitted = _run(
            instance,
            placement,
            Settings(ticks * dt, dt, 1, request.capacity, request.policy, warm_up=warm * dt),
        )
        if fitted.doubt is None or ticks == limit:
            return fitted
        warm, ticks = 2 * warm, 2 * ticks


def _long_enough(instance: Instance, placement: Ints, request: GivenSettings) -> float | None:
    """Return a duration after which a run has settled, if one is found."""
    fitted = _settled(instance, placement, replace(request, duration=None))
    works = fitted.settings.duration
    for _ in range(TRIES if fitted.doubt is None else 0):
        works = _rounded_up(works)
        if request.dt is not None:
            works = ceil(works / request.dt - 1e-9) * request.dt
        dt = time_step(instance, placement, replace(request, duration=works))
        settings = Settings(works, request.dt or dt, 1, request.capacity, request.policy)
        if _run(instance, placement, settings).doubt is None:
            return works
        works *= 2
    return None


def _run(instance: Instance, placement: Ints, settings: Settings) -> Fit:
    runs = simulate(instance, placement[None, :], settings)
    drift = runs.drift[0]
    if drift.max(initial=0.0) <= SETTLED and _steady(instance, placement, settings, runs):
        return Fit(settings, runs, None)
    grown = runs.grown[0][instance.stream_index]
    part = np.divide(grown, instance.tuples, out=np.zeros_like(grown), where=instance.tuples > 0)
    if part.max(initial=0.0) <= 0.0:
        part = drift[instance.target]
    return Fit(settings, runs, Doubt("settling", _largest_stream(instance, part), "duration", None))


def _steady(instance: Instance, placement: Ints, settings: Settings, runs: Runs) -> bool:
    """Whether the second half of the measured window gives the same throughput as all of it."""
    half = (settings.warm_ticks + settings.ticks) // 2
    later = simulate(instance, placement[None, :], replace(settings, warm_up=half * settings.dt))
    return abs(float(later.relative[0] - runs.relative[0])) <= SETTLED


def _largest_stream(instance: Instance, values: Floats) -> int:
    """Stream with the largest value, in the caller's order; -1 if there are no streams."""
    return int(instance.stream_index[np.argmax(values)]) if len(values) else -1


def _capacity_that_works(
    instance: Instance, placement: Ints, request: GivenSettings, roomy: Fit
) -> tuple[int, float | None]:
    """Return the stream that needs the largest queue, and a capacity that does not limit it."""
    dt = roomy.settings.dt if request.dt is None else request.dt
    remote = placement[instance.source] != placement[instance.target]
    needed = instance.tuples * remote * (2 * dt + delays(instance, placement, dt))
    works = max(float(needed.max(initial=0.0)), 1.0)
    for _ in range(TRIES):
        works = _rounded_up(works)
        run = _settled(instance, placement, replace(request, duration=None, dt=dt, capacity=works))
        if run.doubt is None and _alike(run, roomy):
            return _largest_stream(instance, needed), works
        works *= 2
    return _largest_stream(instance, needed), None


def _rounded_up(value: float) -> float:
    """Round a value up to one of …, 1, 2, 5, 10, 20, …."""
    power = 10.0 ** floor(log10(value) + 1e-9)
    return float(min(step for step in (1, 2, 5, 10) if step * power >= value * (1 - 1e-9)) * power)

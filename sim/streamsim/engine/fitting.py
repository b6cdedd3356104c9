"""Fitting: time step, duration and capacity with which a run measures sustained throughput."""

from dataclasses import dataclass, replace
from math import ceil, floor, inf, lcm, log10
from typing import Literal, NamedTuple

import numpy as np

from streamsim import _core
from streamsim.arrays import Floats, Ints
from streamsim.engine.runs import SETTLED, Runs, simulate
from streamsim.engine.settings import Policy, Randomness, Settings, require_seconds
from streamsim.instance import Instance

COARSEST, FINEST = 0.01, 1e-3  # longest and shortest chosen tick in seconds, unless windows differ
FIRINGS = 10  # ticks between two advances of the window that advances most often
SPAN = 20_000  # ticks in the longest window, so that long windows get longer ticks
WARM, MEASURED = 100, 200  # ticks of the shortest run
MOST_TURNS = 10**8  # turns of operators and streams in the longest run
MOST_LOGGED = 4 * 10**7  # numbers in the log of the longest run
LEAST = 4  # times that all windows advance in the measured window
MANY = 20  # measured multiples of the longest advance if windows never advance at once
TRIES = 12  # capacities to try, each twice the one before
MOST_SECONDS = 1e15  # longest given time, so that products of times are finite
NEAR = 1e-3  # share of the usual step below which a step is not shortened for a capacity


@dataclass(frozen=True, slots=True)
class GivenSettings:
    """Settings given by a user; those that are None follow from the problem."""

    duration: float | None = None
    dt: float | None = None
    capacity: float | None = None
    policy: Policy = "dynamic"
    random: Randomness = "nothing"

    def __post_init__(self) -> None:
        """Reject values that no run can have."""
        dt = 1.0 if self.dt is None else self.dt
        require_seconds("dt", dt, MOST_SECONDS)
        duration = dt if self.duration is None else self.duration
        require_seconds("duration", duration, MOST_SECONDS)
        Settings(duration, duration if self.dt is None else dt, 1, self.capacity, self.policy)


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
    """Choose the settings that were not given, and check whether the run can be trusted.

    The duration is doubled until the input of every operator agrees with the admitted tuples,
    within `streamsim.engine.runs.SETTLED` of its full rate, and the second half of the measured
    window gives the same throughput as all of it. A given duration that is too short for that is
    doubted, and so is a given capacity with which the placement carries less than with queues that
    follow from the rates.

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
    """Run for the given duration, or until the measurements have settled."""
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
    most = most_ticks(instance)
    warm, ticks = first_ticks(instance, placement, dt)
    while True:
        warm, ticks = min(warm, most // 3), min(ticks, most)
        fitted = _run(
            instance,
            placement,
            Settings(ticks * dt, dt, 1, request.capacity, request.policy, warm_up=warm * dt),
        )
        if fitted.doubt is None or ticks == most:
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
    return Fit(settings, runs, Doubt("settling", _callers(instance, part), "duration", None))


def _steady(instance: Instance, placement: Ints, settings: Settings, runs: Runs) -> bool:
    """Whether the second half of the measured window gives the same throughput as all of it."""
    half = (settings.warm_ticks + settings.ticks) // 2
    later = simulate(instance, placement[None, :], replace(settings, warm_up=half * settings.dt))
    return abs(float(later.relative[0] - runs.relative[0])) <= SETTLED


def _callers(instance: Instance, values: Floats) -> int:
    """Stream with the largest value, in the caller's order; -1 if there are no streams."""
    return int(instance.stream_index[np.argmax(values)]) if len(values) else -1


def _capacity_that_works(
    instance: Instance, placement: Ints, request: GivenSettings, roomy: Fit
) -> tuple[int, float | None]:
    """Return the stream that needs the largest queue, and a capacity that does not limit it."""
    dt = roomy.settings.dt if request.dt is None else request.dt
    remote = placement[instance.source] != placement[instance.target]
    needed = instance.tuples * remote * (2 * dt + _delays(instance, placement, dt))
    works = max(float(needed.max(initial=0.0)), 1.0)
    for _ in range(TRIES):
        works = _rounded_up(works)
        run = _settled(instance, placement, replace(request, duration=None, dt=dt, capacity=works))
        if run.doubt is None and _alike(run, roomy):
            return _callers(instance, needed), works
        works *= 2
    return _callers(instance, needed), None


def settings_for(instance: Instance) -> Settings:
    """Settings for batches of placements, which are not checked for having settled.

    Ten seconds of warm-up and twenty seconds of measurement; longer if windows require it.

    Examples
    --------
    >>> from streamsim.instance import build_instance
    >>> instance = build_instance(rate=[1e5, 0], seconds=[[0], [0]], source=[0], target=[1],
    ...                           device_type=[0], seconds_per_byte=[[0]])
    >>> settings = settings_for(instance)
    >>> settings.dt, round(settings.duration, 9), settings.capacity
    (0.1, 30.0, None)
    """
    advance = float(instance.windows[:, 2].min(initial=inf))
    dt = _rounded(min(Settings().dt, advance / FIRINGS))
    most = most_ticks(instance)
    warm, ticks = first_ticks(instance, np.zeros(instance.n_operators, np.int32), dt)
    return Settings(min(ticks, most) * dt, dt, warm_up=min(warm, most // 3) * dt)


def time_step(instance: Instance, placement: Ints, request: GivenSettings) -> float:
    """Choose the seconds per tick; a link's latency and a window's advance take at least a tick.

    The tick is longer if a window or a given duration would otherwise take very many ticks, and
    shorter if a given capacity must hold the tuples of `CAPACITY_TICKS` ticks.
    """
    dt = COARSEST
    under_way = _latencies(instance, placement)
    if (under_way > 0).any():
        dt = min(dt, max(float(under_way[under_way > 0].min()), FINEST))
    advance = float(instance.windows[:, 2].min(initial=inf))
    dt = max(min(dt, advance / FIRINGS), float(instance.windows[:, 1].max(initial=0.0)) / SPAN)
    dt = min(_rounded(dt), advance)
    if request.capacity is not None:
        dt = _short_enough(instance, under_way, dt, request.capacity)
    if request.duration is None:
        return dt
    ticks = max(1, ceil(request.duration / dt - 1e-9))
    return request.duration / min(ticks, most_ticks(instance))


def _short_enough(instance: Instance, under_way: Floats, dt: float, capacity: float) -> float:
    """Shorten a step for streams to hold `CAPACITY_TICKS` ticks of tuples, if one is near."""
    carries = instance.tuples > 0
    seconds = float((capacity / instance.tuples[carries] - under_way[carries]).min(initial=inf))
    short = seconds / _core.CAPACITY_TICKS
    return _rounded(short) if dt * NEAR < short < dt else dt


def _latencies(instance: Instance, placement: Ints) -> Floats:
    """Latency of every stream, 0 if both ends run on one device."""
    return instance.latency[placement[instance.source], placement[instance.target]]


def _delays(instance: Instance, placement: Ints, dt: float) -> Floats:
    """Latencies in seconds, rounded up to whole ticks as in the engine."""
    delays: Floats = np.ceil(_latencies(instance, placement) / dt - 1e-9) * dt
    return delays


def _rounded(seconds: float) -> float:
    """Round a time down to one of …, 1, 2, 5, 10, 20, …."""
    power = 10.0 ** floor(log10(seconds) + 1e-9)
    return float(max(step for step in (1, 2, 5) if step * power <= seconds * (1 + 1e-9)) * power)


def _rounded_up(value: float) -> float:
    """Round a value up to one of …, 1, 2, 5, 10, 20, …."""
    power = 10.0 ** floor(log10(value) + 1e-9)
    return float(min(step for step in (1, 2, 5, 10) if step * power >= value * (1 - 1e-9)) * power)


def first_ticks(instance: Instance, placement: Ints, dt: float) -> tuple[int, int]:
    """Ticks of the warm-up, and of the shortest run that can measure anything.

    During the warm-up, the first tuples pass the longest path and fill the panes of its windows
    twice. The measured window is a multiple of the period after which all windows advance at once
    or, if that is long, many advances.
    """
    latest = np.zeros(instance.n_operators)
    within = np.zeros(instance.n_operators)
    within[instance.windows[:, 0].astype(np.int64)] = (
        instance.windows[:, 1] + instance.windows[:, 2]
    )
    hops = _delays(instance, placement, dt) + dt
    for e in range(instance.n_streams):
        u, v = instance.source[e], instance.target[e]
        latest[v] = max(latest[v], latest[u] + within[u] + hops[e])
    warm = max(WARM, ceil(2 * float((latest + within).max()) / dt))
    cycle = max(common_ticks(instance.windows[:, 2] / dt), 1)
    return warm, warm + 2 * cycle * max(ceil(MEASURED / 2 / cycle), LEAST // 2)


def common_ticks(advances: Floats) -> int:
    """Ticks after which all windows advance at once, at most `MANY` times the longest advance."""
    longest = float(advances.max(initial=0.0))
    whole = np.round(advances).astype(np.int64)
    most = MANY * ceil(longest)
    if not len(advances) or (np.abs(advances - whole) > 1e-6).any():
        return most
    return min(lcm(*whole.tolist()), most)


def most_ticks(instance: Instance) -> int:
    """Ticks of the longest run, limited by its turns and by the size of its log."""
    moving = instance.n_operators + instance.n_streams
    return max(min(MOST_TURNS // moving, MOST_LOGGED // (3 * moving + instance.n_devices)), 600)

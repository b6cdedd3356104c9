"""Settings of a run: duration, time step, capacity and policy, given or chosen for a problem."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil, floor, inf, isfinite, lcm, log10
from typing import Literal, get_args

import numpy as np

from streamsim import _core
from streamsim.arrays import Floats, Ints
from streamsim.engine.generators import Generator
from streamsim.instance import Instance

Policy = Literal["dynamic", "uniform", "weighted"]
POLICIES: tuple[Policy, ...] = get_args(Policy)
Randomness = Literal["nothing", "arrivals", "all"]
RANDOMNESS: tuple[Randomness, ...] = get_args(Randomness)

MAX_TICK, MIN_TICK = 0.01, 1e-3  # seconds of a chosen tick, unless windows require others
FIRINGS = 10  # ticks between two advances of the window that advances most often
SPAN = 20_000  # ticks in the longest window, so that long windows get longer ticks
WARM, MEASURED = 100, 200  # ticks of the shortest run
MAX_TURNS = 10**8  # turns of operators and streams in the longest run
MAX_LOGGED = 4 * 10**7  # numbers in the log of the longest run
MIN_ADVANCES = 4  # times that all windows advance in the measured window
MAX_ADVANCES = 20  # measured multiples of the longest advance if windows never advance at once
MAX_SECONDS = 1e15  # longest given time, so that products of times are finite
NEAR = 1e-3  # share of the usual step below which a step is not shortened for a capacity


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a run, in addition to graph, cluster and placement.

    Parameters
    ----------
    duration : float
        Simulated seconds, a whole number of ticks.
    dt : float
        Length of a tick in seconds.
    iterations : int
        Slices per tick; they cut generation and CPU sharing, not the network.
    capacity : float or None
        Tuples that one stream may hold: queued, waiting to be sent and in flight together. With
        None, every stream may hold the tuples at full rate of several ticks, of its latency and of
        an advance of a window; ``sim/README.md`` has the equation.
    policy : {"dynamic", "uniform", "weighted"}
        How a device shares its CPU: work-conserving round robin, equal fixed shares, or fixed
        shares in proportion to weight × cost.
    warm_up : float or None
        Seconds before the measured window, a whole number of ticks; None is a third of the run.
    generators : mapping from operator to Generator
        Generators of sources; by default `Constant`.
    weights : tuple of float or None
        A weight per operator for the weighted policy; None is 1 for all.

    Examples
    --------
    >>> Settings(duration=6).ticks, Settings(duration=6).warm_ticks
    (60, 20)
    >>> Settings(dt=0)
    Traceback (most recent call last):
    ...
    ValueError: dt is 0; give a finite number of seconds above 0
    """

    duration: float = 30.0
    dt: float = 0.1
    iterations: int = 1
    capacity: float | None = None
    policy: Policy = "dynamic"
    warm_up: float | None = None
    generators: Mapping[int, Generator] = field(default_factory=dict)
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        """Reject values that no run can have."""
        require_seconds("dt", self.dt)
        require_seconds("duration", self.duration)
        _require_whole_ticks("duration", self.duration, self.dt)
        if self.iterations < 1 or self.iterations != int(self.iterations):
            raise ValueError(f"iterations is {self.iterations}; give a whole number of at least 1")
        if self.capacity is not None and not 0 < self.capacity <= inf:
            raise ValueError(f"capacity is {self.capacity}; give a number of tuples above 0")
        if self.policy not in POLICIES:
            raise ValueError(f"policy is {self.policy!r}; choose one of {', '.join(POLICIES)}")
        self._check_warm_up()
        if self.weights is not None and not all(0 <= w < inf for w in self.weights):
            raise ValueError(f"weights are {self.weights}; give finite numbers of at least 0")

    def _check_warm_up(self) -> None:
        if self.warm_up is None:
            return
        if not 0 <= self.warm_up < self.duration:
            raise ValueError(
                f"warm_up is {self.warm_up} s of a run of {self.duration} s;"
                " it must be at least 0 and leave something to measure"
            )
        _require_whole_ticks("warm_up", self.warm_up, self.dt)

    @property
    def ticks(self) -> int:
        """Ticks in the run."""
        return round(self.duration / self.dt)

    @property
    def warm_ticks(self) -> int:
        """Ticks before the measured window."""
        return self.ticks // 3 if self.warm_up is None else round(self.warm_up / self.dt)

    @property
    def slice_seconds(self) -> float:
        """Length of a slice in seconds."""
        return self.dt / self.iterations

    @property
    def measured_seconds(self) -> float:
        """Length of the measured window in seconds."""
        return (self.ticks - self.warm_ticks) * self.dt


def require_seconds(name: str, value: float, longest: float = inf) -> None:
    """Raise ValueError unless a time is finite, above 0 and at most ``longest``."""
    if not (isfinite(value) and 0 < value <= longest):
        limit = "" if longest == inf else f" and at most {longest:g}"
        raise ValueError(f"{name} is {value}; give a finite number of seconds above 0{limit}")


def _require_whole_ticks(name: str, value: float, dt: float) -> None:
    ticks = round(value / dt)
    if abs(value / dt - ticks) > 1e-6 or (ticks == 0 and value > 0):
        raise ValueError(
            f"{name} is {value} s, which is no whole number of ticks of {dt} s;"
            f" make it {max(ticks, 1) * dt:g} s"
        )


@dataclass(frozen=True, slots=True)
class GivenSettings:
    """Settings requested by a user; None stands for a choice by the problem."""

    duration: float | None = None
    dt: float | None = None
    capacity: float | None = None
    policy: Policy = "dynamic"
    random: Randomness = "nothing"

    def __post_init__(self) -> None:
        """Reject values that no run can have."""
        dt = 1.0 if self.dt is None else self.dt
        require_seconds("dt", dt, MAX_SECONDS)
        duration = dt if self.duration is None else self.duration
        require_seconds("duration", duration, MAX_SECONDS)
        Settings(duration, duration if self.dt is None else dt, 1, self.capacity, self.policy)
        if self.random not in RANDOMNESS:
            raise ValueError(f"random is {self.random!r}; choose one of {', '.join(RANDOMNESS)}")


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
    limit = max_ticks(instance)
    warm, ticks = first_ticks(instance, np.zeros(instance.n_operators, np.int32), dt)
    return Settings(min(ticks, limit) * dt, dt, warm_up=min(warm, limit // 3) * dt)


def time_step(instance: Instance, placement: Ints, request: GivenSettings) -> float:
    """Choose the seconds per tick; a link's latency and a window's advance take at least a tick.

    The tick is longer if a window or the requested duration would otherwise take very many ticks,
    and shorter if the requested capacity must hold the tuples of `CAPACITY_TICKS` ticks.
    """
    dt = MAX_TICK
    latency = _latencies(instance, placement)
    if (latency > 0).any():
        dt = min(dt, max(float(latency[latency > 0].min()), MIN_TICK))
    advance = float(instance.windows[:, 2].min(initial=inf))
    dt = max(min(dt, advance / FIRINGS), float(instance.windows[:, 1].max(initial=0.0)) / SPAN)
    dt = min(_rounded(dt), advance)
    if request.capacity is not None:
        dt = _short_enough(instance, latency, dt, request.capacity)
    if request.duration is None:
        return dt
    ticks = max(1, ceil(request.duration / dt - 1e-9))
    return request.duration / min(ticks, max_ticks(instance))


def _short_enough(instance: Instance, latency: Floats, dt: float, capacity: float) -> float:
    """Shorten a step for streams to hold `CAPACITY_TICKS` ticks of tuples, if not by too much."""
    carries = instance.tuples > 0
    seconds = float((capacity / instance.tuples[carries] - latency[carries]).min(initial=inf))
    short = seconds / _core.CAPACITY_TICKS
    return _rounded(short) if dt * NEAR < short < dt else dt


def _latencies(instance: Instance, placement: Ints) -> Floats:
    """Latency of every stream, 0 if both ends run on one device."""
    return instance.latency[placement[instance.source], placement[instance.target]]


def delays(instance: Instance, placement: Ints, dt: float) -> Floats:
    """Latencies in seconds, rounded up to whole ticks as in the engine."""
    delays: Floats = np.ceil(_latencies(instance, placement) / dt - 1e-9) * dt
    return delays


def _rounded(seconds: float) -> float:
    """Round a time down to one of …, 1, 2, 5, 10, 20, …."""
    power = 10.0 ** floor(log10(seconds) + 1e-9)
    return float(max(step for step in (1, 2, 5) if step * power <= seconds * (1 + 1e-9)) * power)


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
    hops = delays(instance, placement, dt) + dt
    for e in range(instance.n_streams):
        u, v = instance.source[e], instance.target[e]
        latest[v] = max(latest[v], latest[u] + within[u] + hops[e])
    warm = max(WARM, ceil(2 * float((latest + within).max()) / dt))
    cycle = max(common_ticks(instance.windows[:, 2] / dt), 1)
    return warm, warm + 2 * cycle * max(ceil(MEASURED / 2 / cycle), MIN_ADVANCES // 2)


def common_ticks(advances: Floats) -> int:
    """Ticks after which all windows advance at once, or `MAX_ADVANCES` of the longest."""
    whole = np.round(advances).astype(np.int64)
    limit = MAX_ADVANCES * ceil(float(advances.max(initial=0.0)))
    if not len(advances) or (np.abs(advances - whole) > 1e-6).any():
        return limit
    return min(lcm(*whole.tolist()), limit)


def max_ticks(instance: Instance) -> int:
    """Ticks of the longest run, limited by its turns and by the size of its log."""
    moving = instance.n_operators + instance.n_streams
    return max(min(MAX_TURNS // moving, MAX_LOGGED // (3 * moving + instance.n_devices)), 600)

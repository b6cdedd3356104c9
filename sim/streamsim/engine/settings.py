"""Settings of a run: duration, resolution and scheduling policy."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Literal, get_args

from streamsim.engine.generators import Generator

Policy = Literal["dynamic", "uniform", "weighted"]
POLICIES: tuple[Policy, ...] = get_args(Policy)
Randomness = Literal["nothing", "arrivals", "all"]
RANDOMNESS: tuple[Randomness, ...] = get_args(Randomness)


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


def require_seconds(name: str, value: float, most: float = inf) -> None:
    """Raise ValueError unless a time is finite, above 0 and at most ``most``."""
    if not (isfinite(value) and 0 < value <= most):
        limit = "" if most == inf else f" and at most {most:g}"
        raise ValueError(f"{name} is {value}; give a finite number of seconds above 0{limit}")


def _require_whole_ticks(name: str, value: float, dt: float) -> None:
    ticks = round(value / dt)
    if abs(value / dt - ticks) > 1e-6 or (ticks == 0 and value > 0):
        raise ValueError(
            f"{name} is {value} s, which is no whole number of ticks of {dt} s;"
            f" make it {max(ticks, 1) * dt:g} s"
        )

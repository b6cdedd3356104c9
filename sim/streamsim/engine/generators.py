"""Generators: the number of tuples that a source generates in each slice of time."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Protocol

import numpy as np

from streamsim.arrays import Floats, Ints


class Generator(Protocol):
    """Generates tuples for one source; tuples that it cannot emit wait in a backlog."""

    def tuples(self, rate: float, step: float, count: int) -> Floats:
        """Tuples generated in each of ``count`` slices of ``step`` s, at nominal ``rate`` per s."""
        ...


@dataclass(frozen=True, slots=True)
class Constant:
    """The nominal rate, always.

    Examples
    --------
    >>> Constant().tuples(rate=100, step=0.1, count=3).tolist()
    [10.0, 10.0, 10.0]
    """

    def tuples(self, rate: float, step: float, count: int) -> Floats:
        """Rate × step in every slice."""
        return np.full(count, rate * step)


@dataclass(frozen=True, slots=True)
class Ramp:
    """A linear rise from ``start`` × the nominal rate to the nominal rate in ``seconds``.

    Examples
    --------
    >>> Ramp(seconds=2).tuples(rate=100, step=1, count=4).tolist()
    [25.0, 75.0, 100.0, 100.0]
    """

    seconds: float
    start: float = 0.0

    def __post_init__(self) -> None:
        """Reject ramps without a length or with a negative start."""
        _require(self.seconds > 0, "the seconds of a ramp", self.seconds, "above 0")
        _require(self.start >= 0, "the start of a ramp", self.start, "of at least 0")

    def tuples(self, rate: float, step: float, count: int) -> Floats:
        """Integral of the ramp over each slice; exactly constant once the ramp is over."""
        edges = np.arange(count + 1) * step
        inside = np.minimum(edges, self.seconds)
        area = self.start * inside + (1 - self.start) * inside**2 / (2 * self.seconds)
        generated = rate * np.diff(area + np.maximum(edges - self.seconds, 0.0))
        generated[edges[:-1] >= self.seconds] = rate * step
        return generated


@dataclass(frozen=True, slots=True)
class Burst:
    """A square wave: ``on`` s at ``high`` × the nominal rate, then ``off`` s at ``low`` × it.

    Examples
    --------
    >>> Burst(on=1, off=2, high=3).tuples(rate=100, step=1, count=4).tolist()
    [300.0, 0.0, 0.0, 300.0]
    """

    on: float
    off: float
    high: float = 1.0
    low: float = 0.0

    def __post_init__(self) -> None:
        """Reject bursts without a length and negative rates."""
        _require(self.on > 0, "the on time of a burst", self.on, "above 0")
        _require(self.off >= 0, "the off time of a burst", self.off, "of at least 0")
        _require(self.high >= 0, "the high of a burst", self.high, "of at least 0")
        _require(self.low >= 0, "the low of a burst", self.low, "of at least 0")

    def tuples(self, rate: float, step: float, count: int) -> Floats:
        """Integral of the square wave over each slice."""
        period = self.on + self.off
        whole, rest = np.divmod(np.arange(count + 1) * step, period)
        on = whole * self.on + np.minimum(rest, self.on)
        off = whole * self.off + np.maximum(rest - self.on, 0.0)
        return rate * step * _tidy(np.diff(self.high * on + self.low * off) / step)


@dataclass(frozen=True, slots=True)
class Replay:
    """Measured rates: ``rates[i]`` tuples/s from i · step to (i + 1) · step s; 0 after the last.

    Source-equivalent throughput still refers to the nominal rate of the source.

    Examples
    --------
    >>> Replay(rates=(10, 30), step=1).tuples(rate=20, step=0.5, count=5).tolist()
    [5.0, 5.0, 15.0, 15.0, 0.0]
    """

    rates: tuple[float, ...]
    step: float

    def __post_init__(self) -> None:
        """Reject empty traces, steps without a length and negative rates."""
        _require(self.step > 0, "the step of a replay", self.step, "above 0")
        _require(len(self.rates) > 0, "the number of rates of a replay", 0, "of at least 1")
        _require(min(self.rates) >= 0, "the lowest rate of a replay", min(self.rates), "at least 0")

    def tuples(self, rate: float, step: float, count: int) -> Floats:
        """Integral of the piecewise constant rates over each slice."""
        times = np.arange(len(self.rates) + 1) * self.step
        total = np.concatenate(([0.0], np.cumsum(np.asarray(self.rates) * self.step)))
        edges = np.interp(np.arange(count + 1) * step, times, total)
        return step * _tidy(np.diff(edges) / step)


def generate(
    sources: Ints, rate: Floats, generators: Mapping[int, Generator], step: float, count: int
) -> Floats:
    """Tuples that each source generates in each slice, ``[len(sources), count]``."""
    strangers = sorted(set(generators) - set(np.flatnonzero(rate > 0).tolist()))
    if strangers:
        raise ValueError(
            f"operator {strangers[0]} has a generator but no rate;"
            " give it a nominal rate above 0 or drop the generator"
        )
    rows = [generators.get(int(v), Constant()).tuples(rate[v], step, count) for v in sources]
    return np.ascontiguousarray(rows, np.float64).reshape(len(sources), count)


def constant_from(generated: Floats, iterations: int) -> int:
    """First tick from which every tick generates exactly the same as the last one."""
    per_tick = generated.reshape(len(generated), -1, iterations)
    changes = np.flatnonzero((per_tick != per_tick[:, -1:]).any(axis=(0, 2)))
    return int(changes[-1]) + 1 if len(changes) else 0


def _tidy(levels: Floats) -> Floats:
    """Remove the rounding errors of differences, so that equal slices are exactly equal."""
    tidy: Floats = np.maximum(np.round(levels, 12), 0.0)
    return tidy


def _require(fine: bool, what: str, value: float, wanted: str) -> None:
    if not (fine and isfinite(value)):
        raise ValueError(f"{what} is {value}; give a finite number {wanted}")

"""Observed runs: latency, queues and settling of many runs, and one run tick by tick."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from streamsim import _core
from streamsim.arrays import Floats, Ints
from streamsim.engine.runs import Runs, Sums, runs_of, source_equivalents
from streamsim.engine.settings import Settings
from streamsim.engine.wiring import Wiring, check_placements, wire
from streamsim.instance import Instance

QUANTILES = (0.5, 0.95, 0.99)
TOLERANCE = 0.01  # share of the final throughput within which a run counts as settled


class Log(NamedTuple):
    """One row per tick; queues and backlogs at its end."""

    queued: Floats  # [T, M] tuples
    transit: Floats  # [T, M] tuples waiting for the link or in flight
    backlog: Floats  # [T, S] tuples
    taken: Floats  # [T, N] tuples
    emitted: Floats  # [T, K] tuples released by windows
    busy: Floats  # [T, D] core seconds
    link: Floats  # [T, M] seconds
    delay: Floats  # [T, 2, N] Σ tuples · latency, since generation and since admission


class Observations(NamedTuple):
    """Measurements of B runs that need a tick-by-tick log, in their measured windows.

    Latencies are seconds, weighted by source-equivalent tuples; nan if nothing arrives.
    """

    runs: Runs
    latency: Floats  # [B] mean, since generation
    latency_quantiles: Floats  # [B, 3] p50, p95, p99
    processing: Floats  # [B] mean latency since admission, without source backlog
    processing_quantiles: Floats  # [B, 3]
    mean_queue: Floats  # [B, M] tuples, in the caller's order
    max_queue: Floats  # [B, M]
    settled: Floats  # [B] seconds after which throughput keeps within 1 % of its level, or nan


class Trace(NamedTuple):
    """One run in each of its T ticks; queues and backlogs at the end of the tick."""

    seconds: Floats  # [T] end of the tick
    throughput: Floats  # [T] source-equivalent tuples/s that arrive at the sinks
    admitted: Floats  # [T] tuples/s that the sources admit
    backlog: Floats  # [T] tuples that wait at the sources
    queued: Floats  # [T, M] tuples at the receiver of each stream, in the caller's order
    transit: Floats  # [T, M] tuples waiting for the link or in flight
    device_utilisation: Floats  # [T, D]
    link_utilisation: Floats  # [T, D, D]
    latency: Floats  # [T] mean seconds since generation of arriving tuples, nan if there are none


def observe(
    instance: Instance, placements: ArrayLike, settings: Settings | None = None
) -> Observations:
    """Simulate like `simulate`, tick by tick, with time stamps on the tuples.

    Examples
    --------
    One hop over a link takes one tick:

    >>> from streamsim.instance import build_instance
    >>> instance = build_instance(rate=[100, 0], seconds=[[0], [0]], source=[0], target=[1],
    ...                           device_type=[0, 0], seconds_per_byte=np.zeros((2, 2)))
    >>> observe(instance, [[0, 0], [0, 1]]).latency.round(6).tolist()
    [0.0, 0.1]
    """
    settings = settings or Settings()
    wiring = wire(instance, settings)
    batch = check_placements(instance, placements)
    logs = (_logged(instance, wiring, placement) for placement in batch)
    return _observed(instance, wiring, settings, batch, logs)


def trace(instance: Instance, placement: ArrayLike, settings: Settings | None = None) -> Trace:
    """Simulate one placement (shape [N]) and keep every tick.

    Examples
    --------
    A sink that processes half its rate, with a queue of at most 20 tuples:

    >>> from streamsim.instance import build_instance
    >>> instance = build_instance(rate=[100, 0], seconds=[[0], [2e-2]], source=[0], target=[1],
    ...                           device_type=[0], seconds_per_byte=[[0]])
    >>> run = trace(instance, [0, 0], Settings(duration=0.4, warm_up=0, capacity=20))
    >>> run.queued[:, 0].tolist(), run.backlog.tolist()
    ([5.0, 10.0, 15.0, 17.5], [0.0, 0.0, 0.0, 2.5])
    """
    settings = settings or Settings()
    wiring = wire(instance, settings)
    place = check_placements(instance, np.asarray(placement)[None])[0]
    return _trace_of(instance, wiring, settings, place, _logged(instance, wiring, place))


def observe_traced(
    instance: Instance, placement: ArrayLike, settings: Settings | None = None
) -> tuple[Observations, Trace]:
    """Simulate one placement (shape [N]) once, and return the results of `observe` and `trace`."""
    settings = settings or Settings()
    wiring = wire(instance, settings)
    batch = check_placements(instance, np.asarray(placement)[None])
    log = _logged(instance, wiring, batch[0])
    observations = _observed(instance, wiring, settings, batch, [log])
    return observations, _trace_of(instance, wiring, settings, batch[0], log)


def _observed(
    instance: Instance, wiring: Wiring, settings: Settings, batch: Ints, logs: Iterable[Log]
) -> Observations:
    count = len(batch)
    sums = _no_sums(instance, wiring, count)
    order, per_tuple = np.argsort(instance.stream_index), source_equivalents(instance)
    means, quantiles = np.empty((2, count)), np.empty((2, count, len(QUANTILES)))
    mean_queue, max_queue = np.empty((2, count, instance.n_streams))
    settled = np.empty(count)
    for b, log in enumerate(logs):
        window = Log(*(column[wiring.warm_ticks :] for column in log))
        _add_up(b, log, window, sums)
        sums.link[b] = _by_link(instance, batch[b], window.link.sum(axis=0))
        for since in range(2):
            means[since, b], quantiles[since, b] = _latencies(window, per_tuple, since)
        queued = window.queued[:, order]
        mean_queue[b], max_queue[b] = queued.mean(axis=0), queued.max(axis=0)
        settled[b] = _settling_time(log.taken @ per_tuple, settings.dt)
    return Observations(
        runs=runs_of(instance, wiring, settings, sums),
        latency=means[0],
        latency_quantiles=quantiles[0],
        processing=means[1],
        processing_quantiles=quantiles[1],
        mean_queue=mean_queue,
        max_queue=max_queue,
        settled=settled,
    )


def _latencies(window: Log, per_tuple: Floats, since: int) -> tuple[float, Floats]:
    """Mean and quantiles of latency since generation (0) or admission (1).

    The tuples that a sink takes in during a tick count as one sample of their mean latency.
    """
    weight = window.taken * per_tuple
    arrived = weight > 0
    latency = window.delay[:, since][arrived] / window.taken[arrived]
    return weighted_quantiles(latency, weight[arrived], QUANTILES)


def weighted_quantiles(
    values: Floats, weights: Floats, levels: tuple[float, ...]
) -> tuple[float, Floats]:
    """Weighted mean and weighted quantiles, each the least value that reaches its level.

    Examples
    --------
    >>> mean, quantiles = weighted_quantiles(
    ...     np.array([3.0, 1.0]), np.array([1.0, 3.0]), (0.5, 0.9)
    ... )
    >>> mean, quantiles.tolist()
    (1.5, [1.0, 3.0])
    """
    if not len(values):
        return np.nan, np.full(len(levels), np.nan)
    order = np.argsort(values)
    mass = np.cumsum(weights[order])
    at = np.searchsorted(mass, np.asarray(levels) * mass[-1] * (1 - 1e-12))
    return float(np.average(values, weights=weights)), values[order[at]]


def _settling_time(arrived: Floats, dt: float) -> float:
    """Seconds after which the throughput of every second is within `TOLERANCE` of the level.

    The level is the mean of the last quarter of the run; nan if the run leaves the level in it.

    Examples
    --------
    >>> _settling_time(np.array([0.0, 0, 1, 1, 1, 1, 1, 1]), dt=1.0)
    2.0
    >>> _settling_time(np.arange(9.0), dt=1.0)
    nan
    """
    ticks = min(max(round(1.0 / dt), 1), len(arrived))
    total = np.concatenate(([0.0], np.cumsum(arrived)))
    means = (total[ticks:] - total[:-ticks]) / ticks
    quarter = max(len(arrived) // 4, ticks)
    level = float(np.mean(arrived[-quarter:]))
    outside = np.flatnonzero(np.abs(means - level) > TOLERANCE * level)
    start = int(outside[-1]) + 1 if len(outside) else 0
    return start * dt if start <= len(arrived) - quarter else np.nan


def _no_sums(instance: Instance, wiring: Wiring, runs: int) -> Sums:
    """Allocate rows of sums."""
    n, d, inlets = instance.n_operators, instance.n_devices, instance.n_streams
    inlets += len(wiring.generated)
    return Sums(
        taken=np.zeros((runs, n)),
        emitted=np.zeros((runs, len(instance.windows))),
        busy=np.zeros((runs, d)),
        link=np.zeros((runs, d, d)),
        opening=np.zeros((runs, inlets)),
        closing=np.zeros((runs, inlets)),
        repeating=np.full(runs, -1.0),
    )


def _add_up(b: int, log: Log, window: Log, sums: Sums) -> None:
    """Compute row b of the sums over the measured window, the end of the log."""
    sums.taken[b] = window.taken.sum(axis=0)
    sums.emitted[b] = window.emitted.sum(axis=0)
    sums.busy[b] = window.busy.sum(axis=0)
    warm = len(log.taken) - len(window.taken)
    sums.opening[b] = _tuples_at(log, warm - 1) if warm else 0.0
    sums.closing[b] = _tuples_at(log, -1)


def _tuples_at(log: Log, tick: int) -> Floats:
    """Tuples in every stream and backlog at the end of a tick."""
    return np.concatenate((log.queued[tick] + log.transit[tick], log.backlog[tick]))


def _trace_of(
    instance: Instance, wiring: Wiring, settings: Settings, place: Ints, log: Log
) -> Trace:
    """Trace of a run from its log."""
    per_tuple = source_equivalents(instance)
    arrived = log.taken @ per_tuple
    order = np.argsort(instance.stream_index)
    generated = wiring.generated.reshape(-1, wiring.ticks, wiring.iterations).sum(axis=(0, 2))
    backlog = log.backlog.sum(axis=1)
    with np.errstate(invalid="ignore"):
        latency = log.delay[:, 0] @ per_tuple / arrived
    return Trace(
        seconds=np.arange(1.0, settings.ticks + 1) * float(settings.dt),
        throughput=arrived / settings.dt,
        admitted=(generated - np.diff(backlog, prepend=0.0)) / settings.dt,
        backlog=backlog,
        queued=log.queued[:, order],
        transit=log.transit[:, order],
        device_utilisation=log.busy / (instance.cores * settings.dt),
        link_utilisation=_by_link(instance, place, log.link) / settings.dt,
        latency=latency,
    )


def _by_link(instance: Instance, place: Ints, seconds: Floats) -> Floats:
    """Sum the seconds of streams ``[…, M]`` by link ``[…, D, D]``."""
    d = instance.n_devices
    links = np.zeros((*seconds.shape[:-1], d * d))
    np.add.at(links.T, place[instance.source] * d + place[instance.target], seconds.T)
    return links.reshape(*seconds.shape[:-1], d, d)


def _logged(instance: Instance, wiring: Wiring, place: Ints) -> Log:
    """Log of one run."""
    return Log(*_core.simulate_logged(instance.core, wiring, place))

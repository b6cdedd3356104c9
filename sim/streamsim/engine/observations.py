"""Observations: latency, queue lengths and settling times of many runs, and their throughput."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from streamsim.arrays import Floats, Ints
from streamsim.engine.equivalents import source_equivalents
from streamsim.engine.loop import Log, Sums
from streamsim.engine.runs import Runs, no_sums, runs_of
from streamsim.engine.settings import Settings
from streamsim.engine.tracing import Trace, by_link, logged, trace_of
from streamsim.engine.wiring import Wiring, check_placements, wire
from streamsim.instance import Instance

QUANTILES = (0.5, 0.95, 0.99)
TOLERANCE = 0.01  # share of the final throughput within which a run counts as settled


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
    logs = (logged(instance, wiring, placement) for placement in batch)
    return _observed(instance, wiring, settings, batch, logs)


def observe_traced(
    instance: Instance, placement: ArrayLike, settings: Settings | None = None
) -> tuple[Observations, Trace]:
    """Simulate one placement (shape [N]) once, and return the results of `observe` and `trace`."""
    settings = settings or Settings()
    wiring = wire(instance, settings)
    log = logged(instance, wiring, placement)
    batch = check_placements(instance, np.asarray(placement)[None])
    observations = _observed(instance, wiring, settings, batch, [log])
    return observations, trace_of(instance, wiring, settings, placement, log)


def _observed(
    instance: Instance, wiring: Wiring, settings: Settings, batch: Ints, logs: Iterable[Log]
) -> Observations:
    count = len(batch)
    order = np.argsort(instance.stream_index)
    sums = no_sums(instance, wiring, count)
    shape = (count, len(QUANTILES))
    seen = Observations(
        runs=runs_of(instance, wiring, settings, sums),
        latency=np.empty(count),
        latency_quantiles=np.empty(shape),
        processing=np.empty(count),
        processing_quantiles=np.empty(shape),
        mean_queue=np.empty((count, instance.n_streams)),
        max_queue=np.empty((count, instance.n_streams)),
        settled=np.empty(count),
    )
    for b, log in enumerate(logs):
        _add_up(b, log, wiring, sums)
        sums.link[b] = by_link(instance, batch[b], log.link[wiring.warm_ticks :].sum(axis=0))
        window = Log(*(column[wiring.warm_ticks :] for column in log))
        seen.latency[b], seen.latency_quantiles[b] = latencies(instance, window, 0)
        seen.processing[b], seen.processing_quantiles[b] = latencies(instance, window, 1)
        seen.mean_queue[b] = window.queued[:, order].mean(axis=0)
        seen.max_queue[b] = window.queued[:, order].max(axis=0)
        arrived = log.taken @ source_equivalents(instance)
        seen.settled[b] = settling_time(arrived, settings.dt)
    return seen._replace(runs=runs_of(instance, wiring, settings, sums))


def latencies(instance: Instance, window: Log, since: int) -> tuple[float, Floats]:
    """Mean and quantiles of latency since generation (0) or admission (1).

    The tuples that a sink takes in during a tick count as one sample of their mean latency.
    """
    weight = window.taken * source_equivalents(instance)
    arrived = weight > 0
    latency = window.delay[:, since][arrived] / window.taken[arrived]
    return weighted_quantiles(latency, weight[arrived], QUANTILES)


def weighted_quantiles(
    values: Floats, weights: Floats, levels: tuple[float, ...]
) -> tuple[float, Floats]:
    """Weighted mean and weighted quantiles, each the least value that reaches its level.

    Examples
    --------
    >>> mean, quantiles = weighted_quantiles(np.array([3.0, 1.0]), np.array([1.0, 3.0]), (0.5, 0.9))
    >>> mean, quantiles.tolist()
    (1.5, [1.0, 3.0])
    """
    if not len(values):
        return np.nan, np.full(len(levels), np.nan)
    order = np.argsort(values)
    mass = np.cumsum(weights[order])
    at = np.searchsorted(mass, np.asarray(levels) * mass[-1] * (1 - 1e-12))
    return float(np.average(values, weights=weights)), values[order[at]]


def settling_time(arrived: Floats, dt: float) -> float:
    """Seconds after which the throughput of every second is within `TOLERANCE` of the level.

    The level is the mean of the last quarter of the run; nan if the run leaves it there.

    Examples
    --------
    >>> settling_time(np.array([0.0, 0, 1, 1, 1, 1, 1, 1]), dt=1.0)
    2.0
    >>> settling_time(np.arange(9.0), dt=1.0)
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


def _add_up(b: int, log: Log, wiring: Wiring, sums: Sums) -> None:
    """Compute row b of the sums over the measured window."""
    warm = wiring.warm_ticks
    sums.taken[b] = log.taken[warm:].sum(axis=0)
    sums.emitted[b] = log.emitted[warm:].sum(axis=0)
    sums.busy[b] = log.busy[warm:].sum(axis=0)
    sums.opening[b] = _held(log, warm - 1) if warm else 0.0
    sums.closing[b] = _held(log, -1)


def _held(log: Log, tick: int) -> Floats:
    """Tuples in every stream and backlog at the end of a tick."""
    return np.concatenate((log.queued[tick] + log.transit[tick], log.backlog[tick]))

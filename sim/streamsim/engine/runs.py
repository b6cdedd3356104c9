"""Runs: simulate many placements, and measure their throughput and whether they have settled."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from streamsim import _core
from streamsim.arrays import Floats
from streamsim.engine.settings import Settings
from streamsim.engine.wiring import Wiring, check_placements, wire
from streamsim.instance import Instance

SETTLED = 0.01  # share of its full rate by which an operator's input may be off in a settled run


class Runs(NamedTuple):
    """Measurements of B runs in their measured windows; seconds without tuples count as zero."""

    throughput: Floats  # [B] source-equivalent tuples/s that arrive at the sinks
    admitted: Floats  # [B] tuples/s that the sources admit
    relative: Floats  # [B] share of the generated tuples
    device_utilisation: Floats  # [B, D] share of all cores
    link_utilisation: Floats  # [B, D, D] share of the time
    backlog: Floats  # [B] tuples that wait at the sources at the end
    repeats_from: Floats  # [B] seconds after which every tick provably repeats, or nan
    drift: Floats  # [B, N] imbalance of an operator's input, as a share of its full rate
    grown: Floats  # [B, M] tuples by which streams have grown, in the caller's order
    sources: Floats  # [B, S] tuples/s that each source admits


class Sums(NamedTuple):
    """Sums over the measured window, one row per run."""

    taken: Floats  # [B, N] tuples
    emitted: Floats  # [B, K] tuples released by windows
    busy: Floats  # [B, D] core seconds
    link: Floats  # [B, D, D] seconds
    opening: Floats  # [B, M + S] tuples in streams, then backlogs, at the start
    closing: Floats  # [B, M + S] tuples in streams, then backlogs, at the end
    repeating: Floats  # [B] first tick that repeats forever, or -1


def simulate(instance: Instance, placements: ArrayLike, settings: Settings | None = None) -> Runs:
    """Simulate every placement on its own, from an empty cluster.

    Parameters
    ----------
    instance : Instance
        Stream graph and cluster.
    placements : int array [B, N]
        Device of every operator.
    settings : Settings, optional
        Duration, time steps, queues and policy.

    Examples
    --------
    The second operator needs two devices' worth of CPU, wherever it runs:

    >>> from streamsim.instance import build_instance
    >>> instance = build_instance(rate=[100, 0], seconds=[[1e-3], [2e-2]], source=[0], target=[1],
    ...                           device_type=[0, 0], seconds_per_byte=np.zeros((2, 2)))
    >>> simulate(instance, [[0, 1]], Settings(capacity=20)).relative.round(6).tolist()
    [0.5]
    """
    return _simulate(instance, placements, settings, jump=True)


def simulate_every_tick(
    instance: Instance, placements: ArrayLike, settings: Settings | None = None
) -> Runs:
    """Simulate like `simulate`, but without skipping ticks that repeat; slower, equal results."""
    return _simulate(instance, placements, settings, jump=False)


def _simulate(
    instance: Instance, placements: ArrayLike, settings: Settings | None, *, jump: bool
) -> Runs:
    settings = settings or Settings()
    wiring = wire(instance, settings)
    batch = check_placements(instance, placements)
    sums = Sums(*_core.simulate(instance.core, wiring, batch, jump))
    return runs_of(instance, wiring, settings, sums)


def runs_of(instance: Instance, wiring: Wiring, settings: Settings, sums: Sums) -> Runs:
    """Rates and utilisations from sums over the measured window."""
    seconds = settings.measured_seconds
    generated = wiring.generated[:, wiring.warm_ticks * wiring.iterations :].sum(axis=1)
    throughput = (sums.taken * source_equivalents(instance)).sum(axis=1) / seconds
    grown = sums.closing - sums.opening
    m = instance.n_streams
    each = (generated - grown[:, m:]) / seconds
    admitted = each.sum(axis=1)
    offered = generated.sum() / seconds
    carried = throughput if measured_at_sinks(instance) else admitted
    relative = carried / offered if offered > 0 else np.ones_like(carried)
    return Runs(
        throughput=throughput,
        admitted=admitted,
        relative=relative,
        device_utilisation=sums.busy / (instance.cores * seconds),
        link_utilisation=sums.link / seconds,
        backlog=sums.closing[:, m:].sum(axis=1),
        repeats_from=np.where(sums.repeating < 0, np.nan, sums.repeating * settings.dt),
        drift=_core.drifts(instance.core, each, sums.taken / seconds, sums.emitted / seconds),
        grown=grown[:, np.argsort(instance.stream_index)],
        sources=each,
    )


def source_equivalents(instance: Instance) -> Floats:
    """Number of source tuples that an input tuple of each sink represents; 0 at other operators.

    At full rate every operator distributes the source tuples that it represents to its streams, in
    proportion to their tuples; ω(v) arrives at v. A sink emits nothing, and each of its λ(v) input
    tuples counts for ω(v) / λ(v). Σ ω over the sinks is Σ R, so a graph that keeps up has a
    throughput of exactly its rate. The sums take one pass over the streams.

    Examples
    --------
    >>> from streamsim.instance import build_instance
    >>> source_equivalents(build_instance(
    ...     rate=[100, 0, 0], seconds=np.zeros((3, 1)), source=[0, 1], target=[1, 2],
    ...     selectivity=[0.5, 0.1], device_type=[0], seconds_per_byte=[[0]])).round(9).tolist()
    [0.0, 0.0, 20.0]
    """
    return _core.source_equivalents(instance.core)


def measured_at_sinks(instance: Instance) -> bool:
    """Whether the tuples at the sinks are proportional to the tuples that the sources emit.

    All flows scale together with one source and linear windows, f(count) = factor · count.
    """
    linear = (instance.windows[:, 3] == 0) & np.isinf(instance.windows[:, 5])
    return int((instance.rate > 0).sum()) == 1 and bool(linear.all())

"""Trace: one run, tick by tick."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from streamsim.arrays import Floats
from streamsim.engine.equivalents import source_equivalents
from streamsim.engine.loop import Log, empty_log, run_logged
from streamsim.engine.settings import Settings
from streamsim.engine.wiring import Wiring, check_placements, wire
from streamsim.instance import Instance


class Trace(NamedTuple):
    """One run in each of its T ticks; queues and backlogs are those at the end of the tick."""

    seconds: Floats  # [T] end of the tick
    throughput: Floats  # [T] source-equivalent tuples/s that arrive at the sinks
    admitted: Floats  # [T] tuples/s that the sources admit
    backlog: Floats  # [T] tuples that wait at the sources
    queued: Floats  # [T, M] tuples at the receiver of each stream, in the caller's order
    transit: Floats  # [T, M] tuples waiting for the link or in flight
    device_utilisation: Floats  # [T, D]
    link_utilisation: Floats  # [T, D, D]
    latency: Floats  # [T] mean seconds since generation of arriving tuples, nan if there are none


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
    log = logged(instance, wiring, placement)
    return trace_of(instance, wiring, settings, placement, log)


def trace_of(
    instance: Instance, wiring: Wiring, settings: Settings, placement: ArrayLike, log: Log
) -> Trace:
    """Trace of a run from its log."""
    per_tuple = source_equivalents(instance)
    arrived = log.taken @ per_tuple
    order = np.argsort(instance.stream_index)
    generated = wiring.generated.reshape(len(wiring.sources), settings.ticks, -1).sum(axis=(0, 2))
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
        link_utilisation=by_link(instance, placement, log.link) / settings.dt,
        latency=latency,
    )


def by_link(instance: Instance, placement: ArrayLike, seconds: Floats) -> Floats:
    """Sum the seconds of streams ``[…, M]`` by link ``[…, D, D]``."""
    place, d = np.asarray(placement), instance.n_devices
    links = np.zeros((*seconds.shape[:-1], d * d))
    np.add.at(links.T, place[instance.source] * d + place[instance.target], seconds.T)
    return links.reshape(*seconds.shape[:-1], d, d)


def logged(instance: Instance, wiring: Wiring, placement: ArrayLike) -> Log:
    """Log of one run."""
    log = empty_log(instance, wiring)
    batch = check_placements(instance, np.asarray(placement)[None])
    run_logged(instance, wiring, batch[0], log)
    return log

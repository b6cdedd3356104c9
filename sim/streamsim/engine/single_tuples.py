"""Times of single tuples, each simulated from queue to queue, event by event.

The loop over ticks moves amounts of tuples, without service times of single tuples. Here a tuple
waits until a core of its device is free, first come first served, and is then processed for
its seconds; it holds network cards and link in turn, and travels for the latency. Alone in the
cluster it takes the seconds of `streamsim.latency`. An operator alone on a device of one core is an
M/D/1 queue if arrivals are random, and an M/M/1 queue if times of service are random as well.
Queues have no limit, so the times exist only while every resource carries its load.
"""

import numpy as np

from streamsim import _core
from streamsim.arrays import Floats, Ints
from streamsim.engine.runs import source_equivalents
from streamsim.engine.settings import RANDOMNESS, Randomness, Settings
from streamsim.engine.wiring import wire
from streamsim.instance import Instance, as_ints
from streamsim.steady import throughput

VISITS = (200_000, 8_000_000, 8_000_000)  # visits of tuples to operators in a run, by randomness
MAX_VISITS = 8_000_000  # visits in a run that lasts longer because of windows
MIN_ADVANCES = 20  # advances of each window in a run


def tuple_times(
    instance: Instance,
    placement: Ints,
    settings: Settings,
    random: Randomness = "nothing",
    *,
    seed: int = 0,
    duration: float | None = None,
) -> Floats | None:
    """Seconds since generation and since admission, and weights, of tuples at sinks, [3, tuples].

    None if a resource is too full to carry the rate, so that queues grow without end, or if windows
    are too long for a run of single tuples.

    Examples
    --------
    >>> from streamsim.instance import build_instance
    >>> instance = build_instance(rate=[1, 0], seconds=[[0], [0.5]], source=[0], target=[1],
    ...                           device_type=[0], seconds_per_byte=[[0]])
    >>> tuple_times(instance, np.array([0, 0], np.int32), Settings())[0].mean()
    np.float64(0.5)
    """
    randomness = RANDOMNESS.index(random)
    visits = float(instance.input_rate.sum())  # per second
    needed = MIN_ADVANCES * float(instance.windows[:, 1:3].max(initial=0.0))
    horizon = max(VISITS[randomness] / visits, needed) if duration is None else duration
    horizon = min(horizon, MAX_VISITS / visits)
    if horizon < needed or throughput(instance, placement[None])[0] < 1.0:
        return None
    times, n = _core.tuple_times(
        instance.core,
        wire(instance, settings),
        as_ints(placement),
        source_equivalents(instance),
        random=randomness,
        seed=int(np.random.default_rng(seed).integers(1, 2**63, 1, np.uint64)[0]),
        horizon=horizon,
        tuples=int(horizon * visits),
    )
    return times[:, :n] if n else None


def mean_service(instance: Instance, placement: Ints) -> float:
    """Mean processing seconds of a tuple on its way to a sink, over all source tuples.

    Examples
    --------
    >>> from streamsim.instance import build_instance
    >>> instance = build_instance(rate=[1, 0], seconds=[[0.25], [0.5]], source=[0], target=[1],
    ...                           device_type=[0], seconds_per_byte=[[0]])
    >>> mean_service(instance, np.array([0, 0], np.int32))
    0.75
    """
    amount, total = instance.rate.copy(), np.zeros(instance.n_operators)
    emitted = np.bincount(instance.source, instance.tuples, instance.n_operators)
    at_sinks = 0.0
    for v in instance.order:
        total[v] += amount[v] * instance.seconds[v, instance.device_type[placement[v]]]
        if emitted[v] == 0.0:
            at_sinks += total[v]
        for e in range(instance.out_start[v], instance.out_end[v]) if emitted[v] else ():
            part, u = instance.tuples[e] / emitted[v], instance.target[e]
            amount[u] += amount[v] * part
            total[u] += total[v] * part
    return float(at_sinks / instance.rate.sum())

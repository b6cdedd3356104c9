"""Small capacities: warnings about queues that are too short for their rates."""

import numpy as np

from streamsim.engine.settings import Settings
from streamsim.instance import Instance


def capacity_warnings(instance: Instance, settings: Settings) -> tuple[str, ...]:
    """Warn about streams whose given capacity is too small for their full rate over a link.

    Tuples stay in the stream from their emission until the receiver's next turn, and for the
    latency, so a remote stream needs a capacity of rate · (2 dt + latency) tuples.

    Examples
    --------
    >>> from streamsim.instance import build_instance
    >>> instance = build_instance(rate=[1000, 0], seconds=[[0], [0]], source=[0], target=[1],
    ...                           device_type=[0], seconds_per_byte=[[0]])
    >>> import textwrap
    >>> print(textwrap.fill(*capacity_warnings(instance, Settings(capacity=150)), width=92))
    capacity 150 is too small for 1 of 1 streams: the stream from operator 0 to operator 1 needs
    200; raise capacity or lower dt
    >>> capacity_warnings(instance, Settings(capacity=200))
    ()
    """
    if settings.capacity is None:
        return ()
    needed = instance.tuples * (2 * settings.dt + instance.latency.max(initial=0.0))
    short = np.flatnonzero(needed > settings.capacity * (1 + 1e-9))
    if not len(short):
        return ()
    worst = short[np.argmax(needed[short])]
    return (
        f"capacity {settings.capacity:g} is too small for {len(short)} of {len(needed)} streams:"
        f" the stream from operator {instance.source[worst]} to operator"
        f" {instance.target[worst]} needs {needed[worst]:g};"
        " raise capacity or lower dt",
    )

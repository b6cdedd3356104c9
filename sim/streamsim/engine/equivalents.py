"""Source-equivalents: the number of source tuples that a tuple at a sink represents."""

import numpy as np

from streamsim.arrays import Floats
from streamsim.instance import Instance
from streamsim.jit import kernel


@kernel
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
    n = len(instance.rate)
    stands_for = instance.rate.copy()
    emitted = np.zeros(n)
    for e in range(len(instance.source)):
        emitted[instance.source[e]] += instance.tuples[e]
    for e in range(len(instance.source)):
        u = instance.source[e]
        if emitted[u] > 0.0:
            part = instance.tuples[e] / emitted[u]
            stands_for[instance.target[e]] += stands_for[u] * part
    for v in range(n):
        ends = emitted[v] == 0.0 and instance.input_rate[v] > 0.0
        stands_for[v] = stands_for[v] / instance.input_rate[v] if ends else 0.0
    return stands_for


def measured_at_sinks(instance: Instance) -> bool:
    """Whether the tuples at the sinks are proportional to those that the sources emit.

    True for one source, because all flows scale together, and linear windows, f(count) = factor ·
    count.
    """
    linear = (instance.windows[:, 3] == 0) & np.isinf(instance.windows[:, 5])
    return int((instance.rate > 0).sum()) == 1 and bool(linear.all())

"""Relative throughput of placements on which some operators cost more than expected.

On every device, any Γ operators need more CPU at the same time, each by the same share of its load
(the budgeted uncertainty of Bertsimas and Sim, 2004). The worst Γ are those with the highest loads.
"""

import numpy as np
from numpy.typing import ArrayLike

from streamsim.arrays import Floats, Ints, Longs
from streamsim.equation import n_resources
from streamsim.instance import Instance, writable
from streamsim.jit import kernel
from streamsim.loads import (
    busiest_core,
    full_rate_loads,
    has_several_cores,
    highest,
    n_constants,
    write_constants,
)
from streamsim.steady import throughput


def robust_throughput(
    instance: Instance, placements: ArrayLike, number: int, error: float, units: ArrayLike
) -> Floats:
    """Relative throughput of each placement in the worst case, in [0, 1].

    Parameters
    ----------
    placements
        Device of every operator, shape [B, N].
    number
        Γ, the number of units on each device that cost more at the same time.
    error
        Share by which they cost more.
    units
        Unit of every operator, shape [N]; the subtasks of one operator are a unit, which costs
        more as a whole.

    Examples
    --------
    >>> from streamsim import build_instance
    >>> instance = build_instance(rate=[100, 0], seconds=[[4e-3], [4e-3]], source=[0], target=[1],
    ...                           payload=[1], device_type=[0, 0],
    ...                           seconds_per_byte=[[0, 1e-6], [1e-6, 0]])
    >>> robust_throughput(instance, [[0, 0], [0, 1]], 1, 1.0, [0, 1])  # 0.4 + 0.4, and 0.4 more
    array([0.83333333, 1.        ])
    """
    batch, unit = writable(placements), np.asarray(units, np.int64)
    order = np.argsort(unit, kind="stable")
    out = throughput(instance, batch)
    constants = np.empty(n_constants(instance))
    number = min(number, len(np.unique(unit)))
    largest = np.empty((instance.n_devices, max(1, number)))
    per_core = has_several_cores(instance)
    _worst_cases(instance, batch, number, error, order, unit, largest, constants, per_core, out)
    return out


@kernel
def _worst_cases(
    instance: Instance,
    placements: Ints,
    number: int,
    error: float,
    order: Longs,
    unit: Longs,
    largest: Floats,
    constants: Floats,
    per_core: bool,
    out: Floats,
) -> None:
    loads = np.empty(n_resources(len(instance.device_type)))
    own = np.zeros(len(instance.device_type))
    for i in range(len(placements)):
        place = placements[i]
        full_rate_loads(instance, place, loads)
        write_constants(instance, place, constants)
        largest[:] = 0.0
        begin = 0
        while begin < len(order):
            end = begin
            while end < len(order) and unit[order[end]] == unit[order[begin]]:
                v = order[end]
                own[place[v]] += error * instance.load[v, instance.device_type[place[v]]]
                end += 1
            for k in range(begin, end):
                d = place[order[k]]
                more, own[d] = own[d], 0.0
                for rank in range(number):
                    if more > largest[d, rank]:
                        more, largest[d, rank] = largest[d, rank], more
            begin = end
        for d in range(len(own)):
            for rank in range(number):
                loads[d] += largest[d, rank]
        worst = max(1.0, highest(loads, constants))
        if per_core and number > 0:
            worst = max(worst, (1.0 + error) * busiest_core(instance, place))
        out[i] = min(out[i], 1.0 / worst)

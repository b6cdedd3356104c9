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
    dearest_core,
    full_rate_loads,
    highest,
    limits_subtasks,
    write_constants,
)
from streamsim.steady import throughput


def robust_throughput(
    instance: Instance, placements: ArrayLike, number: int, error: float, units: ArrayLike
) -> Floats:
    """Relative throughput of each placement in the worst case, in [0, 1].

    On each device any ``number`` (Γ) of units may cost more by the share ``error``. ``units`` [N]
    is the unit of every operator; the subtasks of one are a unit, which costs more as a whole. The
    largest rates of subtasks remain.

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
    number = min(number, len(np.unique(unit)))
    per_core = limits_subtasks(instance)
    _worst_cases(instance, batch, number, error, order, unit, per_core, out)
    return out


@kernel
def _worst_cases(
    instance: Instance,
    placements: Ints,
    number: int,
    error: float,
    order: Longs,
    unit: Longs,
    per_core: bool,
    out: Floats,
) -> None:
    d = len(instance.device_type)
    loads, constants = np.empty(n_resources(d)), np.empty(d if len(instance.constant) else 0)
    own, largest = np.zeros(d), np.empty((d, max(1, number)))
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
                a = place[order[k]]
                more, own[a] = own[a], 0.0
                for rank in range(number):
                    if more > largest[a, rank]:
                        more, largest[a, rank] = largest[a, rank], more
            begin = end
        for a in range(d):
            for rank in range(number):
                loads[a] += largest[a, rank]
        worst = max(1.0, highest(loads, constants))
        if per_core and number > 0:
            worst = max(worst, dearest_core(instance, place, 1.0 + error))
        out[i] = min(out[i], 1.0 / worst)

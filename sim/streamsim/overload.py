"""Share that each source of an overloaded job gets, by rounds that `core/src/overload.rs` defines.

All amounts are shares of full rates. In a round, every operator demands its arriving tuples, as far
as its outputs accept them. Devices distribute CPU among their operators, links and network cards
time among their streams: all get the same level, or less if they demand less. Backward, an operator
that cannot take in everything accepts its inputs up to one level; they wait in queues of equal
times.
"""

import numpy as np
from numpy.typing import ArrayLike

from streamsim import _core
from streamsim.arrays import Floats
from streamsim.instance import Instance, as_ints
from streamsim.loads import limits_subtasks
from streamsim.sources import at_shares
from streamsim.steady import bottleneck, resource_loads, throughput_of


def overloaded_shares(instance: Instance, placement: ArrayLike) -> Floats:
    """Share of its rate that each source gets if all sources offer their full rates, [S]."""
    place = as_ints(placement)
    equal = np.full(len(instance.sources), throughput_of(instance, place))
    if len(equal) < 2 or equal[0] == 1:
        return equal
    at = np.arange(len(place)), instance.device_type[place]
    constant = instance.constant[at] if len(instance.constant) else np.zeros(len(place))
    room = np.maximum(0.0, 1.0 - np.bincount(place, constant, instance.n_devices))
    limits = np.ones(len(place))
    if limits_subtasks(instance):
        limits = 1 / np.maximum(1.0, instance.core_pressure[at])
    shares = _core.overloaded_shares(instance.core, place, room, limits)
    worst = bottleneck(resource_loads(at_shares(instance, shares), place)).load
    return shares / max(1.0, worst)

"""Flows by source: which part of the input of every operator each source causes."""

import numpy as np

from streamsim import _core
from streamsim.arrays import Bools, Floats, Ints
from streamsim.equation import n_resources
from streamsim.instance import Instance
from streamsim.loads import limits_subtasks


def flow_at(instance: Instance, shares: Floats) -> Floats:
    """Fraction of its full input that every operator has with sources at shares [S], shape [N]."""
    return _core.flow_at(instance.core, shares)


def flow_shares(instance: Instance) -> Floats:
    """Fraction of every operator's full input that comes from each source, shape [S, N]."""
    return np.array([flow_at(instance, alone) for alone in np.eye(len(instance.sources))])


def leading_to(instance: Instance, marked: Bools) -> Bools:
    """Whether tuples of each source reach one of the marked operators, shape [S]."""
    return _core.leading_to(instance.core, marked)


def at_shares(instance: Instance, shares: Floats) -> Instance:
    """Return the instance with every source at a share of its rate, [S].

    Windows emit in proportion to their input, as at full rate. Constant loads stay.
    """
    rate = instance.rate.copy()
    rate[instance.sources] *= shares
    flow = flow_at(instance, shares)
    sent = flow[instance.source]
    return instance._replace(
        rate=rate,
        input_rate=instance.input_rate * flow,
        output_rate=instance.output_rate * flow,
        load=instance.load * flow[:, None],
        core_load=instance.core_load * flow[:, None],
        tuples=instance.tuples * sent,
        intake=instance.intake * sent,
        traffic=instance.traffic * sent,
    )


def loads_of_parts(instance: Instance, place: Ints, parts: Floats) -> Floats:
    """Loads by parts [P, N] of the full input of every operator, without constant loads, [P, R].

    The R resources are those of `streamsim.equation`, then the core of every operator.
    """
    n, shared = len(place), n_resources(instance.n_devices)
    loads = np.zeros((len(parts), shared + n))
    for part, row in zip(parts, loads, strict=True):
        sent = part[instance.source]
        with_part = instance._replace(
            load=instance.load * part[:, None],
            tuples=instance.tuples * sent,
            traffic=instance.traffic * sent,
        )
        row[:shared] = _core.full_rate_loads(with_part.core, place)
    if limits_subtasks(instance):
        loads[:, shared:] = parts * instance.core_load[np.arange(n), instance.device_type[place]]
    return loads


def constants_of(instance: Instance, place: Ints) -> Floats:
    """Constant loads of the resources of `loads_of_parts`, [R]."""
    constant = np.zeros(n_resources(instance.n_devices) + len(place))
    if len(instance.constant):
        at = np.arange(len(place)), instance.device_type[place]
        d = instance.n_devices
        constant[:d] = np.bincount(place, instance.constant[at], d)
        if limits_subtasks(instance):
            constant[-len(place) :] = instance.core_constant[at]
    return constant

"""What operators and streams ask of single resources, by the group of sources that they serve."""

import numpy as np
from streamsim import Instance

from streamplace.model.arrays import Floats

Resource = tuple[str | int, ...]


def operator_uses(instance: Instance, v: int, d: int) -> list[tuple[Resource, float]]:
    """Loads of an operator on a device at full rate."""
    kind = instance.device_type[d]
    return [
        (("device", d), float(instance.load[v, kind])),
        (("core", v), float(instance.core_load[v, kind])),
    ]


def stream_uses(instance: Instance, e: int, a: int, b: int) -> list[tuple[Resource, float]]:
    """Loads of a stream between two devices at full rate."""
    if a == b:
        return []
    tuples, traffic = float(instance.tuples[e]), float(instance.traffic[e])
    at_ends = tuples * instance.overhead + traffic * instance.overhead_per_byte
    return [
        (("link", a, b), tuples * instance.gap + traffic * float(instance.seconds_per_byte[a, b])),
        (("egress", a), traffic * float(instance.egress[a])),
        (("ingress", b), traffic * float(instance.ingress[b])),
        (("device", a), at_ends / float(instance.cores[a])),
        (("device", b), at_ends / float(instance.cores[b])),
    ]


def group_shares(instance: Instance) -> tuple[Floats, Floats, Floats]:
    """Shares of each group of sources in operators [N, G] and streams [M, G], and its rate [G].

    Groups are in the order of the checker, which names a group after one of its operators; rates
    are shares of all sources' rate.
    """
    groups, n = instance.n_groups, instance.n_operators
    intake = np.zeros((n, groups))
    rates = np.zeros(groups)
    for s, g in zip(instance.sources.tolist(), instance.group.tolist(), strict=True):
        intake[s, g] += instance.rate[s]
        rates[g] += instance.rate[s]
    streams = np.zeros((instance.n_streams, groups))
    for e in range(instance.n_streams):  # sorted by the position of their source
        u = instance.source[e]
        total = intake[u].sum()
        streams[e] = intake[u] / total if total > 0 else 0.0
        intake[instance.target[e]] += instance.intake[e] * streams[e]
    total = intake.sum(axis=1, keepdims=True)
    shares = np.divide(intake, total, out=np.zeros_like(intake), where=total > 0)
    return shares, streams, rates / rates.sum()

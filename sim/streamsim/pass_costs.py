"""Resource use of one pass: core seconds by device, seconds and bytes on links."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from streamsim import _core
from streamsim.arrays import Floats
from streamsim.instance import Instance, as_ints
from streamsim.steady import throughput


class Spent(NamedTuple):
    """Resource use of one pass under each of B placements."""

    core_seconds: Floats  # [B, D]
    link_seconds: Floats  # [B] latencies included, transfers one after another
    remote_bytes: Floats  # [B] over links

    def priced(self, per_core_second: Floats) -> Floats:
        """Price of all core seconds [B], by device [D]; infinite for a pass that never ends."""
        with np.errstate(invalid="ignore"):
            prices = self.core_seconds @ per_core_second
        return np.where(np.isnan(prices), np.inf, prices)


def pass_seconds(instance: Instance) -> float:
    """Length of one pass: the time in which the fastest source generates one tuple."""
    fastest = float(instance.rate.max(initial=0.0))
    if fastest <= 0:
        raise ValueError("no operator generates tuples; give a source a rate")
    return 1.0 / fastest


def spent(instance: Instance, placements: ArrayLike) -> Spent:
    """Compute the resource use of one pass under each placement [B, N].

    Every stream between two devices is one transfer: the latency, the gap of each tuple and the
    time of all bytes on the slowest of the link and the two network cards. Overhead counts as core
    seconds, at both ends. Constant loads count for the length of a pass at the rate that the
    placement carries; they are infinite if it carries nothing.

    Examples
    --------
    >>> from streamsim import build_instance
    >>> instance = build_instance(rate=[100, 0], seconds=[[1e-3], [5e-3]], source=[0], target=[1],
    ...                           payload=[20_000], device_type=[0, 0],
    ...                           seconds_per_byte=[[0, 1e-6], [1e-6, 0]])
    >>> two = spent(instance, [[0, 1]])
    >>> two.core_seconds.round(6).tolist(), two.link_seconds.round(6).tolist(), two.remote_bytes
    ([[0.001, 0.005]], [0.02], array([20000.]))
    """
    batch = as_ints(placements)
    core, link, sent = _core.pass_costs(instance.core, batch, pass_seconds(instance))
    if len(instance.constant):
        with np.errstate(divide="ignore", invalid="ignore"):
            lasts = pass_seconds(instance) / throughput(instance, batch)
            for v in range(instance.n_operators):
                place = batch[:, v]
                busy = instance.constant[v, instance.device_type[place]]
                constant = np.where(busy > 0, lasts * busy * instance.cores[place], 0.0)
                core[np.arange(len(batch)), place] += constant
    return Spent(core, link, sent)

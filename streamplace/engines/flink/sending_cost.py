"""What tuples between TaskManagers cost: a part per tuple and a part per byte.

The CPU of the threads that send and receive is fitted, over all TaskManagers, by

    cores = per tuple · tuples/s + per byte · bytes/s      of what each sends and receives

Where all send tuples of about one size, the two parts cannot be told apart. Then a tuple is assumed
to cost as much as `BYTES_OF_A_TUPLE` of its bytes.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from streamplace.model.arrays import Floats

BYTES_OF_A_TUPLE = 6.4
DIFFERENT = 2.0
"""Mean sizes of tuples that differ by this factor tell the two parts apart."""


class RemoteFlow(NamedTuple):
    """What a TaskManager sends to others and receives from them, per second."""

    tuples: float
    traffic: float


class SendingCost(NamedTuple):
    """Core seconds that a remote tuple costs at each end, and each of its bytes in addition.

    Attributes
    ----------
    is_split
        Whether the two parts were measured apart; else their ratio is assumed.
    is_assumed
        Whether nothing of it was measured.
    """

    per_tuple: float
    per_byte: float
    is_split: bool = True
    is_assumed: bool = False

    def slower(self, factor: float) -> "SendingCost":
        """Return the costs on cores that are slower by a factor."""
        return self._replace(per_tuple=factor * self.per_tuple, per_byte=factor * self.per_byte)

    def rounded(self) -> "SendingCost":
        """Return the costs in three digits."""
        per_tuple, per_byte = float(f"{self.per_tuple:.3g}"), float(f"{self.per_byte:.3g}")
        return self._replace(per_tuple=per_tuple, per_byte=per_byte)


ASSUMED = SendingCost(5.8e-9 * BYTES_OF_A_TUPLE, 5.8e-9, is_split=False, is_assumed=True)
"""On a whole core, as benchmarks/calibration.py measures it; for clusters where nothing crosses."""


def sending_cost(
    network: Mapping[str, float], flows: Mapping[str, RemoteFlow]
) -> SendingCost | None:
    """Fit the CPU of the network's threads; None where nothing goes to another TaskManager.

    Parameters
    ----------
    network
        TaskManager → cores that its threads take that send and receive.

    Examples
    --------
    >>> flows = {"a": RemoteFlow(1000, 1e5), "b": RemoteFlow(1000, 1e6)}
    >>> fitted = sending_cost({"a": 0.0012, "b": 0.003}, flows)
    >>> round(1e6 * fitted.per_tuple, 3), round(1e9 * fitted.per_byte, 3)
    (1.0, 2.0)
    """
    rows = [(*flow, network.get(device, 0.0)) for device, flow in flows.items() if flow.tuples > 0]
    if not rows:
        return None
    tuples, traffic, cores = np.array(rows, np.float64).T
    sizes = traffic / tuples
    if sizes.min() > 0 and sizes.max() >= DIFFERENT * sizes.min():
        return SendingCost(*_fitted(np.stack([tuples, traffic], axis=1), cores))
    weights = BYTES_OF_A_TUPLE * tuples + traffic
    per_byte = float(cores.sum() / weights.sum())
    return SendingCost(BYTES_OF_A_TUPLE * per_byte, per_byte, is_split=False)


def _fitted(amounts: Floats, cores: Floats) -> tuple[float, float]:
    """Least squares with two factors that are not negative."""
    both = np.linalg.lstsq(amounts, cores, rcond=None)[0]
    if (both >= 0).all():
        return float(both[0]), float(both[1])
    alone = (amounts * cores[:, None]).sum(axis=0) / (amounts**2).sum(axis=0)
    rest = ((cores[:, None] - amounts * alone) ** 2).sum(axis=0)
    return (float(alone[0]), 0.0) if rest[0] <= rest[1] else (0.0, float(alone[1]))

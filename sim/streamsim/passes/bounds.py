"""Lower bounds of the makespan under any placement, queue and network."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from streamsim import _core
from streamsim.passes.compiled import Pass


class Bounds(NamedTuple):
    """Proven lower bounds of the makespan without noise, in seconds."""

    path: float  # longest path, each operator where it finishes earliest
    work: float  # all work, or that of one class of hardware, over the total speed for it

    @property
    def best(self) -> float:
        """The larger one."""
        return max(self)


def bounds(one_pass: Pass, allowed: ArrayLike | None = None) -> Bounds:
    """Lower bounds of the makespan under any placement and any rules.

    ``path`` is the longest path of earliest finishes F(v, d) of operator v on device d,

        F(v, d) = w(v, d) + max over inputs (u, v) of
                  min over d' of F(u, d') + time from d' to d,

    where very large problems use the time from d' to the nearest other device for all d.

    ``work`` follows from T · Σ n_d g_d ≥ Σ over v of min over d of w(v, d) g_d, which holds for any
    speeds g_d > 0. It is computed over all devices and, for every set of devices to which some
    operators are confined, over those operators alone.

    Parameters
    ----------
    allowed
        Whether an operator may run on a device, shape [N, D]; by default always.

    Examples
    --------
    >>> from streamsim import build_instance
    >>> from streamsim.passes import bounds, compile_pass
    >>> instance = build_instance(rate=[100, 0, 0], seconds=[[1e-3], [5e-3], [5e-3]],
    ...                           source=[0, 0], target=[1, 2], device_type=[0],
    ...                           seconds_per_byte=[[0]])
    >>> bounds(compile_pass(instance))
    Bounds(path=0.006, work=0.011)
    """
    n, d = one_pass.n_operators, one_pass.n_devices
    may = np.ones((n, d), np.bool_) if allowed is None else np.array(allowed, np.bool_)
    if may.shape != (n, d) or not may.any(axis=1).all():
        raise ValueError(f"allow each of {n} operators at least one of {d} devices, shape [N, D]")
    return Bounds(*_core.pass_bounds(one_pass.core, may, one_pass.work.sum(axis=0)))

"""Steady state under moves: moving one operator costs its degree plus the resources it changes."""

from typing import Self

from numpy.typing import ArrayLike

from streamsim import _core
from streamsim.instance import Instance, as_ints


class Incremental(_core.Incremental):
    """A placement whose throughput follows every move.

    Examples
    --------
    >>> from streamsim import build_instance
    >>> instance = build_instance(rate=[100, 0], seconds=[[1e-3], [5e-3]], source=[0], target=[1],
    ...                           payload=[20_000], device_type=[0, 0],
    ...                           seconds_per_byte=[[0, 1e-6], [1e-6, 0]])
    >>> placed = Incremental(instance, [0, 1])
    >>> before = placed.throughput
    >>> placed.move(1, 0)
    >>> before, placed.throughput
    (0.5, 1.0)
    >>> placed.undo()
    >>> placed.throughput
    0.5
    """

    def __new__(cls, instance: Instance, placement: ArrayLike) -> Self:
        """Compute the loads of a placement from scratch."""
        return super().__new__(cls, instance.core, as_ints(placement))

"""Packed machines: the types of the machines of a plan, and the subtasks on each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from streamplace.model.arrays import Bools, Floats, Ints
from streamplace.planning.contents import Packing
from streamplace.planning.offers import Catalogue
from streamplace.planning.walk import uses


@dataclass(frozen=True, slots=True, eq=False)
class PackedMachines:
    """Machines and the subtasks on them.

    Attributes
    ----------
    kinds
        [D] type of each machine.
    parallelism
        [N] subtasks of each operator.
    rows
        [D, N] subtasks of each operator on each machine.
    devices
        [D] index of the cluster's device for each machine; None if machines are bought.
    """

    kinds: Ints
    parallelism: Ints
    rows: Ints
    devices: Ints | None = None

    def counts(self, n_types: int) -> tuple[int, ...]:
        """Number of machines of each type."""
        return tuple(np.bincount(self.kinds, minlength=n_types).tolist())


Accept = Callable[[PackedMachines], PackedMachines | None]
"""Returns packed machines that carry the rate, changed if needed; None if they do not."""


def machine_kinds(catalogue: Catalogue, counts: Sequence[int]) -> Ints:
    """Type of each machine, the fastest first, [D]."""
    order = sorted(range(len(counts)), key=lambda t: -catalogue.offers[t].instructions)
    return np.repeat(order, [counts[t] for t in order]).astype(np.int32)


def without_idle(packed: PackedMachines, catalogue: Catalogue) -> PackedMachines:
    """Remove machines without subtasks, except those that ``at_least`` requires."""
    in_use: Bools = np.asarray(packed.rows.any(axis=1))
    for t, offer in enumerate(catalogue.offers):
        same = np.flatnonzero(packed.kinds == t)
        idle = same[~in_use[same]]
        in_use[idle[: max(0, offer.at_least - int(in_use[same].sum()))]] = True
    devices = None if packed.devices is None else packed.devices[in_use]
    return PackedMachines(packed.kinds[in_use], packed.parallelism, packed.rows[in_use], devices)


def largest_use(packing: Packing, packed: PackedMachines) -> Floats:
    """Share of every resource of every machine in use, [D, 6]."""
    return np.asarray(uses(packing, packed.kinds, packed.rows))

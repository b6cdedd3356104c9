"""Slots: the number that the subtasks on a machine need, with or without slot sharing.

If operators share slots, as in Flink, a slot holds at most one subtask of each operator of a slot
sharing group, so a group needs as many slots as its largest operator has subtasks. Without sharing,
every operator is a group of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamplace.model.arrays import Ints, Longs
from streamplace.planning.demand import Demand
from streamplace.planning.offers import Catalogue


@dataclass(frozen=True, slots=True)
class PlanSlots:
    """Number of slots that a plan needs."""

    sharing: bool  # whether operators share slots in the plan
    separate: int  # slots of the job if every subtask has one of its own
    shared: int  # slots of the job if the operators of a slot sharing group share them
    machines: Mapping[str, int]  # most slots in use on a machine of each type

    def __str__(self) -> str:
        return (
            f"The job takes {self.separate} slots if every subtask has its own, and {self.shared} "
            "if operators share slots, as in Flink by default."
        )

    def to_json(self) -> dict[str, Any]:
        """Return the slots as a JSON document."""
        return {
            "sharing": self.sharing,
            "separate": self.separate,
            "shared": self.shared,
            "machines": dict(self.machines),
        }


def slot_groups(demand: Demand, catalogue: Catalogue) -> Ints:
    """Group of operators that share slots, numbered, [N]."""
    if catalogue.slot_sharing:
        return demand.slot_group
    return np.arange(demand.n_operators, dtype=np.int32)


def slots_of(groups: Ints, counts: Ints | Longs) -> Longs:
    """Slots in use on each machine, [D], by ``counts`` subtasks of each operator, [D, N].

    >>> slots_of(np.array([0, 0, 1]), np.array([[2, 3, 4], [0, 1, 0]])).tolist()
    [7, 1]
    """
    most = np.zeros((len(counts), int(groups.max()) + 1), np.int64)
    for v, group in enumerate(groups.tolist()):
        most[:, group] = np.maximum(most[:, group], counts[:, v])
    return np.asarray(most.sum(axis=1))

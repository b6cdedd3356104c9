"""Slots: how many the subtasks on a machine take, each its own or shared by operators.

Where operators share slots, as they do in Flink, a slot holds one subtask of each operator of a
slot sharing group at most. So a group takes as many slots as its largest operator has subtasks.
Without sharing, every operator is a group of its own.
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
    """The slots that a plan takes.

    Attributes
    ----------
    sharing
        Whether the plan is one in which operators share slots.
    separate
        Slots of the job where every subtask has one of its own.
    shared
        Slots of the job where the operators of a slot sharing group share them.
    machines
        Slots on a machine of each type, on the one that has the most.
    """

    sharing: bool
    separate: int
    shared: int
    machines: Mapping[str, int]

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
    """Number the groups of operators that share slots, [N]."""
    if catalogue.slot_sharing:
        return demand.slot_group
    return np.arange(demand.n_operators, dtype=np.int32)


def slots_of(groups: Ints, counts: Ints | Longs) -> Longs:
    """Slots that so many subtasks of each operator, [D, N], take on each machine, [D].

    >>> slots_of(np.array([0, 0, 1]), np.array([[2, 3, 4], [0, 1, 0]])).tolist()
    [7, 1]
    """
    most = np.zeros((len(counts), int(groups.max()) + 1), np.int64)
    for v, group in enumerate(groups.tolist()):
        most[:, group] = np.maximum(most[:, group], counts[:, v])
    return np.asarray(most.sum(axis=1))

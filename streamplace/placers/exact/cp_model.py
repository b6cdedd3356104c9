"""Common part of the CP-SAT models of placements: devices of units, scaling, and constraints.

One Boolean x per unit and device that may run it. Of equal devices the (j+1)-th opens only after
the j-th, along the units in some order. Quantities are rounded to integers so that every bound that
CP-SAT proves for the model holds for the problem.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from streamplace.model.arrays import Floats, Ints
from streamplace.model.memory import most

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

    Choices = dict[int, cp_model.IntVar]

SCALE = 1e8
"""Integer that stands for the cut."""
MOST_GRAINS = 2.0**40
"""Most units in which a device's memory is counted; bytes if it has fewer."""


class PlacementModel:
    """A CP-SAT model of all placements whose value is below a cut."""

    def __init__(self, cut: float, clearance: float) -> None:
        from ortools.sat.python import cp_model

        self.cp = cp_model.CpModel()
        self.scale = SCALE / cut
        # The clearance keeps rounding from admitting the best known placement again.
        self.ceiling = int(cut * (1 - clearance) * self.scale)
        self.x: list[Choices] = []  # for each unit the literal of every device that it may run on

    def unscaled(self, value: float) -> float:
        """Convert an integer of the model back to a value."""
        return value / self.scale

    def choices(self, u: int, devices: Iterable[int]) -> "Choices":
        """Create literals for the devices that a unit may run on; exactly one is true."""
        row = {d: self.cp.new_bool_var(f"x{u},{d}") for d in devices}
        self.cp.add_exactly_one(row.values())
        return row

    def devices(self, value_of: "Callable[[cp_model.IntVar], int]") -> Ints:
        """Device of every unit in a solution."""
        places = [next(d for d, literal in row.items() if value_of(literal)) for row in self.x]
        return np.array(places, np.int32)

    def keep_apart(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Let no device run both units of a pair."""
        for u, w in pairs:
            for d in self.x[u].keys() & self.x[w].keys():
                self.cp.add_at_most_one(self.x[u][d], self.x[w][d])

    def limit_memory(self, sizes: Floats, room: Floats) -> None:
        """Limit the memory of devices; fractions of sizes are rounded down and capacities up."""
        whole = bool((sizes == np.floor(sizes)).all())
        for d in np.flatnonzero(np.isfinite(room)).tolist():
            grain = max(1.0, room[d] / MOST_GRAINS)
            terms = [int(sizes[u] / grain) * x[d] for u, x in enumerate(self.x) if d in x]
            limit = most(room)[d] / grain
            self.cp.add(sum(terms) <= int(limit if whole and grain == 1 else np.ceil(limit)))

    def open_in_order(self, classes: Ints, rows: "Sequence[Choices]") -> None:
        """Open a device only if an earlier row is on the device before it in its class."""
        for c in np.unique(classes):
            devices = np.flatnonzero(classes == c).tolist()
            for before, d in pairwise(devices):
                opened: list[cp_model.IntVar] = []
                for row in rows:
                    if d in row:
                        self.cp.add_bool_or([*opened, ~row[d]])
                    if before in row:
                        opened.append(row[before])

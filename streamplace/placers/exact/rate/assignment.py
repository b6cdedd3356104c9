"""CP-SAT model of a placement: minimises the largest load of any device, core, link or NIC.

One Boolean x per unit and device, one Boolean y per stream and ordered pair of devices, linked by
the flow equations Σ_b y[a, b] = x[source, a] and Σ_a y[a, b] = x[target, b]. Equal devices open
along units in decreasing load. Loads are rounded down.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from streamsim.equation import link_load, nic_load

from streamplace.model.arrays import Floats, Ints
from streamplace.placers.exact.rate.units import Units, unit_handling
from streamplace.placers.exact.solver import Effort, PlacementModel, solve_model

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

    from streamplace.placers.exact.solver import Choices

CLEARANCE = 5e-7
MOST_BOOLEANS = 100_000


class AssignmentBound(NamedTuple):
    """Placement found, if any, and a lower bound of the largest load."""

    place: Ints | None
    least: float


class Goal(NamedTuple):
    """Limits of the search for a placement, and its start."""

    full: Floats  # [D] limit of CPU loads, at most the cut
    cut: float  # limit of all loads
    least: float  # load below which placements are not distinguished
    hint: Ints  # [U] placement to start from


def too_large(units: Units) -> bool:
    """Whether the model is too large to solve in any useful time."""
    d = units.n_devices
    return units.n_units * d + len(units.source) * d * d > MOST_BOOLEANS


def solve(units: Units, goal: Goal, effort: Effort) -> AssignmentBound:
    """Search for the placement with the least peak load below the cut."""
    model = AssignmentModel(units, goal)
    solution = solve_model(model.cp, effort)
    if solution.infeasible:
        return AssignmentBound(None, model.unscaled(model.ceiling))
    least, value_of = model.unscaled(solution.bound), solution.value_of
    if value_of is None:
        return AssignmentBound(None, least)
    return AssignmentBound(model.devices(value_of), least)


class AssignmentModel(PlacementModel):
    """The CP-SAT model of all placements with loads below a cut."""

    def __init__(self, units: Units, goal: Goal) -> None:
        super().__init__(goal.cut, CLEARANCE)
        self.units = units
        floor = min(self.whole(goal.least), self.ceiling)
        self.peak = self.cp.new_int_var(floor, self.ceiling, "peak")
        self.x = [self._unit_choices(u, goal) for u in range(units.n_units)]
        self.y = [self._flows(e) for e in range(len(units.source))]
        usual = np.where(np.isinf(units.load), 0.0, units.load).mean(axis=1)
        order = np.argsort(-usual, kind="stable").tolist()
        self.open_in_order(units.classes, [self.x[u] for u in order])
        self._limit_devices(goal)
        self._limit_network()
        self.limit_memory(units.memory, units.room)
        self.keep_apart(map(tuple, units.apart.tolist()))
        self.cp.minimize(self.peak)

    def whole(self, load: float) -> int:
        """Load as an integer, rounded down, at most the ceiling + 1."""
        return min(int(load * self.scale), self.ceiling + 1)

    def _unit_choices(self, u: int, goal: Goal) -> "Choices":
        units = self.units
        open_to = (units.load[u] < goal.full) & (units.core[u] < goal.cut)
        row = self.choices(u, np.flatnonzero(open_to).tolist())
        for d, literal in row.items():
            self.cp.add_hint(literal, int(goal.hint[u] == d))
            if units.core[u, d] > units.load[u, d]:
                self.cp.add(self.whole(units.core[u, d]) * literal <= self.peak)
        return row

    def _flows(self, e: int) -> dict[tuple[int, int], "cp_model.IntVar"]:
        source, target = (self.x[ends[e]] for ends in (self.units.source, self.units.target))
        y = {(a, b): self.cp.new_bool_var(f"y{e},{a},{b}") for a in source for b in target}
        for a, literal in source.items():
            self.cp.add(sum(y[a, b] for b in target) == literal)
        for b, literal in target.items():
            self.cp.add(sum(y[a, b] for a in source) == literal)
        return y

    def _limit_devices(self, goal: Goal) -> None:
        from ortools.sat.python import cp_model

        units = self.units
        for d in range(units.n_devices):
            terms = [self.whole(units.load[u, d]) * x[d] for u, x in enumerate(self.x) if d in x]
            for e, y in enumerate(self.y) if units.handles else ():
                tax = self.whole(unit_handling(units, units.tuples[e], units.traffic[e], d))
                terms += [tax * y[a, b] for a, b in y if a != b and d in (a, b)]
            load = cp_model.LinearExpr.sum(terms)
            self.cp.add(load <= self.peak)
            if goal.full[d] < goal.cut:
                self.cp.add(load <= int(np.ceil(goal.full[d] * self.scale)))

    def _limit_network(self) -> None:
        units = self.units
        loads: dict[tuple[str, int, int], list[tuple[int, cp_model.IntVar]]] = {}
        for e, y in enumerate(self.y):
            traffic, tuples = units.traffic[e], units.tuples[e]
            for (a, b), literal in y.items():
                if a != b:
                    costs = {
                        ("link", a, b): link_load(
                            traffic, tuples, units.seconds_per_byte[a, b], units.gap
                        ),
                        ("egress", a, -1): nic_load(traffic, units.egress[a]),
                        ("ingress", b, -1): nic_load(traffic, units.ingress[b]),
                    }
                    for resource, load in costs.items():
                        loads.setdefault(resource, []).append((self.whole(load), literal))
        for terms in loads.values():
            if any(load for load, _ in terms):
                self.cp.add(sum(load * literal for load, literal in terms if load) <= self.peak)

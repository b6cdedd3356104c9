"""CP-SAT: models of placements, and runs that an interrupt stops at once.

In a model there is one Boolean x per unit and device that may run it. Of equal devices the (j+1)-th
opens only after the j-th, along the units in some order. Quantities are rounded to integers so that
every bound that CP-SAT proves for the model holds for the problem.

The model of the peak load minimises the largest load of any device, core, link or NIC. It also has
one Boolean y per stream and ordered pair of devices, linked by the flow equations
Σ_b y[a, b] = x[source, a] and Σ_a y[a, b] = x[target, b]. Equal devices open along units in
decreasing load. Loads are rounded down.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from streamsim.loads import flow_loads, handling

from streamplace.model.arrays import Floats, Ints
from streamplace.model.memory import with_slack
from streamplace.placers.exact.units import Units
from streamplace.placers.meter import Meter

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

    Choices = dict[int, cp_model.IntVar]

POLL_SECONDS = 0.1
SECONDS_PER_EVALUATION = 1e-6
"""Deterministic seconds that count as one evaluation."""
SCALE = 1e8
"""Integer that stands for the cut."""
MAX_GRAINS = 2.0**40
"""Most units in which a device's memory is counted; bytes if it has fewer."""
ITERATIONS = 1000
"""Limit for a linear program, per row and column; plans of 1000 operators take less than one."""
PEAK_CLEARANCE = 5e-7
MAX_PEAK_BOOLEANS = 100_000
"""Clearance of the model of the peak load, and its most Booleans; more take too long to solve."""


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
            grain = max(1.0, room[d] / MAX_GRAINS)
            terms = [int(sizes[u] / grain) * x[d] for u, x in enumerate(self.x) if d in x]
            limit = with_slack(room)[d] / grain
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


class Effort(NamedTuple):
    """Limits of a solver run; deterministic seconds measure work instead of time."""

    seconds: float | None
    deterministic: float | None
    workers: int
    seed: int


class Solution(NamedTuple):
    """Result of a solver run."""

    infeasible: bool
    bound: float
    value_of: "Callable[[cp_model.IntVar], int] | None"
    """Value of a variable in the best solution; None if none was found."""
    work: float
    """Deterministic seconds of the run."""


def effort_of(meter: Meter, seed: int, workers: int, most: float = inf) -> Effort:
    """Remaining budget, at most ``most`` seconds; deterministic if evaluations are limited."""
    seconds, evaluations = meter.seconds, meter.evaluations
    if evaluations is not None:
        return Effort(seconds, min(evaluations * SECONDS_PER_EVALUATION, most), 1, seed)
    left = most if seconds is None else min(seconds, most)
    return Effort(None if left == inf else left, None, workers, seed)


def new_solver() -> Any:
    """Return an empty linear program."""
    from ortools.linear_solver import pywraplp

    return pywraplp.Solver.CreateSolver("GLOP")


def is_solved(solver: Any) -> bool:
    """Solve a linear program; return whether its optimum was found.

    GLOP may repeat the same steps for ever if coefficients are nearly 0, so they are limited.
    """
    limit = ITERATIONS * (solver.NumConstraints() + solver.NumVariables())
    solver.SetSolverSpecificParametersAsString(f"max_number_of_iterations: {limit}")
    return bool(solver.Solve() == solver.OPTIMAL)


def solve_model(model: "cp_model.CpModel", effort: Effort) -> Solution:
    """Solve a model within the limits."""
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    parameters = solver.parameters
    parameters.num_workers = effort.workers
    parameters.random_seed = effort.seed % 2**31
    parameters.catch_sigint_signal = False
    if effort.seconds is not None:
        parameters.max_time_in_seconds = effort.seconds
    if effort.deterministic is not None:
        parameters.max_deterministic_time = effort.deterministic
    status: list[cp_model.CpSolverStatus] = []
    thread = threading.Thread(target=lambda: status.append(solver.solve(model)), daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(POLL_SECONDS)
    except BaseException:
        solver.stop_search()
        thread.join()
        raise
    has_solution = status[0] in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    return Solution(
        status[0] == cp_model.INFEASIBLE,
        solver.best_objective_bound,
        solver.value if has_solution else None,
        solver.response_proto.deterministic_time,
    )


def is_too_large(units: Units) -> bool:
    """Whether the model is too large to solve in any useful time."""
    d = units.n_devices
    return units.n_units * d + len(units.source) * d * d > MAX_PEAK_BOOLEANS


class AssignmentModel(PlacementModel):
    """The CP-SAT model of all placements with loads below a cut.

    CPU loads are below ``full`` [D], which is at most the cut. Placements with loads below
    ``least`` are not distinguished, and ``hint`` [U] is the one to start from.
    """

    def __init__(self, units: Units, full: Floats, cut: float, least: float, hint: Ints) -> None:
        super().__init__(cut, PEAK_CLEARANCE)
        self.units, self._full, self._cut = units, full, cut
        floor = min(self.whole(least), self.ceiling)
        self.peak = self.cp.new_int_var(floor, self.ceiling, "peak")
        self.x = [self._unit_choices(u, int(hint[u])) for u in range(units.n_units)]
        self.y = [self._flows(e) for e in range(len(units.source))]
        usual = np.where(np.isinf(units.load), 0.0, units.load).mean(axis=1)
        order = np.argsort(-usual, kind="stable").tolist()
        self.open_in_order(units.classes, [self.x[u] for u in order])
        self._limit_devices()
        self._limit_network()
        self.limit_memory(units.memory, units.room)
        self.keep_apart(map(tuple, units.apart.tolist()))
        self.cp.minimize(self.peak)

    def solved(self, effort: Effort) -> tuple[Ints | None, float]:
        """Return the placement found, if any, and a lower bound of the largest load."""
        solution = solve_model(self.cp, effort)
        if solution.infeasible:
            return None, self.unscaled(self.ceiling)
        value_of = solution.value_of
        place = None if value_of is None else self.devices(value_of)
        return place, self.unscaled(solution.bound)

    def whole(self, load: float) -> int:
        """Load as an integer, rounded down, at most the ceiling + 1."""
        return min(int(load * self.scale), self.ceiling + 1)

    def _unit_choices(self, u: int, hint: int) -> "Choices":
        units = self.units
        open_to = (units.load[u] < self._full) & (units.core[u] < self._cut)
        row = self.choices(u, np.flatnonzero(open_to).tolist())
        for d, literal in row.items():
            self.cp.add_hint(literal, int(hint == d))
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

    def _limit_devices(self) -> None:
        from ortools.sat.python import cp_model

        units = self.units
        for d in range(units.n_devices):
            terms = [self.whole(units.load[u, d]) * x[d] for u, x in enumerate(self.x) if d in x]
            for e, y in enumerate(self.y) if units.handles else ():
                tax = self.whole(handling(units.platform, units.tuples[e], units.traffic[e], d))
                terms += [tax * y[a, b] for a, b in y if a != b and d in (a, b)]
            load = cp_model.LinearExpr.sum(terms)
            self.cp.add(load <= self.peak)
            if self._full[d] < self._cut:
                self.cp.add(load <= int(np.ceil(self._full[d] * self.scale)))

    def _limit_network(self) -> None:
        units = self.units
        loads: dict[tuple[str, int, int], list[tuple[int, cp_model.IntVar]]] = {}
        for e, y in enumerate(self.y):
            flow = units.tuples[e], units.traffic[e]
            for (a, b), literal in y.items():
                if a != b:
                    resources = ("link", a, b), ("egress", a, -1), ("ingress", b, -1)
                    costs = flow_loads(units.platform, *flow, a, b)
                    for resource, load in zip(resources, costs, strict=True):
                        loads.setdefault(resource, []).append((self.whole(load), literal))
        for terms in loads.values():
            if any(load for load, _ in terms):
                self.cp.add(sum(load * literal for load, literal in terms if load) <= self.peak)

"""Configuration program: whether machines can be filled by whole contents, by column generation.

A column is the contents of one machine of a type. The master program fills so many machines of each
type with columns, in fractions, so that every operator is held once; pricing looks for a column
that helps, and its bound is a cut where there is none (Gilmore and Gomory 1961; the bound is
Farley's 1990, for numbers of machines).
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from streamplace.model.arrays import Floats
from streamplace.planning.cuts import Cut
from streamplace.planning.linear import new_solver
from streamplace.planning.pricing import price
from streamplace.planning.relaxation import Relaxation, exact

ROUNDS = 60
NODES = 64
"""Boxes that pricing looks at for each type of machine."""
ENOUGH = 1e-6


class Columns:
    """Contents of machines that were worth something, by type."""

    def __init__(self, relaxation: Relaxation) -> None:
        self._relaxation = relaxation
        self._columns: list[tuple[int, Floats]] = []

    def cut(self, counts: Sequence[int], stop: Callable[[], bool]) -> Cut | None:
        """Return a cut that excludes these numbers of machines; None where there is none."""
        for _ in range(ROUNDS):
            missing, worth, rent = self._master(counts)
            if missing <= ENOUGH or stop():
                return None
            priced = [
                price(self._relaxation, t, worth, NODES, stop)
                for t in range(self._relaxation.n_types)
            ]
            cut = Cut(tuple(p.bound for p in priced), exact(worth), "contents")
            if not cut.holds(tuple(counts)):
                return cut
            helpful = [
                (t, contents)
                for t, p in enumerate(priced)
                for contents in p.contents
                if counts[t] and float(contents @ worth) > rent[t] + ENOUGH
            ]
            if not helpful:
                return None
            self._columns += helpful
        return None

    def _master(self, counts: Sequence[int]) -> tuple[float, Floats, Floats]:
        """Shares that are missing, the worth of each operator, and the rent of each type."""
        solver, n = new_solver(), self._relaxation.demand.n_operators
        cover = [solver.Constraint(1.0, 1.0) for _ in range(n)]
        limits = [solver.Constraint(-solver.infinity(), float(count)) for count in counts]
        for row in cover:
            for sign in (1.0, -1.0):
                self._variable(solver, [(row, sign)], 1.0)
        for t, contents in self._columns:
            held = [(cover[v], float(contents[v])) for v in np.flatnonzero(contents).tolist()]
            self._variable(solver, [*held, (limits[t], 1.0)], 0.0)
        solver.Objective().SetMinimization()
        if solver.Solve() != solver.OPTIMAL:
            return 0.0, np.zeros(n), np.zeros(len(counts))
        worth = np.array([row.dual_value() for row in cover])
        rent = np.array([-row.dual_value() for row in limits])
        return solver.Objective().Value(), worth, rent

    def _variable(self, solver: Any, rows: list[tuple[Any, float]], cost: float) -> None:
        variable = solver.NumVar(0.0, solver.infinity(), "")
        solver.Objective().SetCoefficient(variable, cost)
        for row, coefficient in rows:
            row.SetCoefficient(variable, coefficient)

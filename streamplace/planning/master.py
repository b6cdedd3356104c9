"""Master program of column generation: covers all operators by fractions of columns.

A column is the contents of one machine of a type. Gaps and surpluses are penalised, so that the
program is always feasible (Gilmore and Gomory 1961).
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from streamplace.model.arrays import Floats
from streamplace.planning.linear import covering_rows, new_solver


class MasterSolution(NamedTuple):
    """Cost of the columns and penalties, and the dual values.

    Attributes
    ----------
    worth
        Dual value of a unit of each operator, [N].
    rent
        Dual value of a machine of each type, if their numbers are limited, [T].
    """

    cost: float
    worth: Floats
    rent: Floats


def solve_master(
    amounts: Sequence[float],
    columns: Iterable[tuple[int, Sequence[float]]],
    prices: Sequence[float],
    penalty: float,
    counts: Sequence[int] | None = None,
) -> MasterSolution:
    """Cover these amounts of every operator at least cost.

    Parameters
    ----------
    columns
        Type of machine and contents of each column.
    prices
        Price of a machine of each type.
    penalty
        Price of a missing or surplus unit.
    counts
        Most machines of each type; by default any number.
    """
    solver = new_solver()
    cover = covering_rows(solver, amounts, penalty)
    limits = [solver.Constraint(-solver.infinity(), float(count)) for count in counts or ()]
    for t, contents in columns:
        column = solver.NumVar(0.0, solver.infinity(), "")
        solver.Objective().SetCoefficient(column, float(prices[t]))
        for v in np.flatnonzero(contents).tolist():
            cover[v].SetCoefficient(column, float(contents[v]))
        if limits:
            limits[t].SetCoefficient(column, 1.0)
    solver.Objective().SetMinimization()
    if solver.Solve() != solver.OPTIMAL:
        return MasterSolution(0.0, np.zeros(len(cover)), np.zeros(len(limits)))
    return MasterSolution(solver.Objective().Value(), _duals(cover), -_duals(limits))


def _duals(rows: list[Any]) -> Floats:
    return np.array([row.dual_value() for row in rows])

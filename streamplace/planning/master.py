"""Master program of column generation: all operators are held by contents of machines, in parts.

A column is the contents of one machine of a type. Whatever is held too little or too much is
penalised, so that the program is always feasible (Gilmore and Gomory 1961).
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from streamplace.model.arrays import Floats
from streamplace.planning.linear import covering_rows, new_solver


class MasterSolution(NamedTuple):
    """Cost of the columns and of what is missing, and the dual values.

    Attributes
    ----------
    worth
        What a unit of each operator is worth, [N].
    rent
        What a machine of each type is worth beside its price, where their numbers are given, [T].
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
    """Hold so much of every operator at least cost.

    Parameters
    ----------
    columns
        Type and contents of machines.
    prices
        Price of a machine of each type.
    penalty
        Price of a unit that is missing or too much.
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

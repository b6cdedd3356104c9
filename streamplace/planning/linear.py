"""Linear programs over the relaxed contents of machines, solved by OR-tools' GLOP.

No proof relies on the solver: its dual values only serve as multipliers of `Polytope.most`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from streamplace.model.arrays import Floats
from streamplace.planning.relaxation import Polytope

PENALTY = 1000.0
"""Penalty for exceeding the resources by 100 %, as a multiple of all operators' worth."""


class Optimum(NamedTuple):
    """Best contents of a machine, and the multipliers of the rows."""

    value: float
    shares: Floats  # [N]
    multipliers: Floats  # one for each row


class Separation(NamedTuple):
    """Whether numbers of machines can hold all operators, in fractional shares."""

    missing: float  # sum of missing and surplus shares; 0 if all operators fit
    worth: Floats  # prices of the operators for a cut that excludes these numbers, [N]


def best_contents(polytope: Polytope, worth: Floats) -> Optimum:
    """Return the contents with the largest worth.

    Resources may be exceeded at a penalty, so that every box has an optimum; its value is negative
    if no contents within the box fit.
    """
    solver = new_solver()
    variables, rows = _block(solver, polytope, 1.0)
    for v in range(polytope.n_operators):
        solver.Objective().SetCoefficient(variables[v], float(worth[v]))
    exceeded = solver.NumVar(0.0, solver.infinity(), "")
    solver.Objective().SetCoefficient(exceeded, -PENALTY * float(np.abs(worth).sum()))
    for row, facts in zip(rows, polytope.rows, strict=True):
        if facts.limit > 0:
            row.SetCoefficient(exceeded, -1.0)
    solver.Objective().SetMaximization()
    if solver.Solve() != solver.OPTIMAL:
        return Optimum(-np.inf, polytope.low[: polytope.n_operators], np.zeros(len(rows)))
    shares = np.array([x.solution_value() for x in variables[: polytope.n_operators]])
    multipliers = np.array([max(0.0, row.dual_value()) for row in rows])
    return Optimum(solver.Objective().Value(), shares, multipliers)


def cheapest_worth(
    polytopes: Sequence[Polytope], prices: Floats, at_least: Floats, at_most: Floats
) -> Floats:
    """Dual price of each operator in the cheapest fractional plan, [N]."""
    solver = new_solver()
    counts = [solver.NumVar(float(a), float(b), "") for a, b in zip(at_least, at_most, strict=True)]
    blocks = [
        _block(solver, polytope, count)[0]
        for polytope, count in zip(polytopes, counts, strict=True)
    ]
    for count, price in zip(counts, prices, strict=True):
        solver.Objective().SetCoefficient(count, float(price))
    return _covered(solver, blocks, polytopes[0].n_operators, float(10 * prices.sum())).worth


def separate(polytopes: Sequence[Polytope], counts: Sequence[int]) -> Separation:
    """Test whether these numbers of machines can hold all operators in fractional shares."""
    solver = new_solver()
    blocks = [
        _block(solver, polytope, float(count))[0]
        for polytope, count in zip(polytopes, counts, strict=True)
        if count
    ]
    return _covered(solver, blocks, polytopes[0].n_operators, 1.0)


def _covered(solver: Any, blocks: list[list[Any]], n: int, penalty: float) -> Separation:
    """Solve with every operator held once; missing and surplus shares cost the penalty."""
    cover = covering_rows(solver, [1.0] * n, penalty)
    for v, row in enumerate(cover):
        for block in blocks:
            row.SetCoefficient(block[v], 1.0)
    solver.Objective().SetMinimization()
    if solver.Solve() != solver.OPTIMAL:
        return Separation(0.0, np.zeros(n))
    return Separation(solver.Objective().Value(), np.array([row.dual_value() for row in cover]))


def covering_rows(solver: Any, amounts: Sequence[float], penalty: float) -> list[Any]:
    """Rows that require these amounts of every operator; gap and surplus cost the penalty."""
    cover = []
    for amount in amounts:
        row = solver.Constraint(float(amount), float(amount))
        for sign in (1.0, -1.0):
            gap = solver.NumVar(0.0, solver.infinity(), "")
            row.SetCoefficient(gap, sign)
            solver.Objective().SetCoefficient(gap, penalty)
        cover.append(row)
    return cover


def _block(solver: Any, polytope: Polytope, count: Any) -> tuple[list[Any], list[Any]]:
    """Variables and rows of a number of machines, which may be a variable itself."""
    fixed = isinstance(count, float)
    highest = solver.infinity()
    variables = [
        solver.NumVar(
            float(low) * count if fixed else 0.0, float(high) * count if fixed else highest, ""
        )
        for low, high in zip(polytope.low, polytope.high, strict=True)
    ]
    limits = [(row.coefficients, row.limit) for row in polytope.rows]
    if not fixed:
        limits += [({j: 1.0}, float(high)) for j, high in enumerate(polytope.high)]
    rows = []
    for coefficients, limit in limits:
        row = solver.Constraint(-highest, limit * count if fixed else 0.0)
        for j, a in coefficients.items():
            row.SetCoefficient(variables[j], a)
        if not fixed:
            row.SetCoefficient(count, -limit)
        rows.append(row)
    return variables, rows


def new_solver() -> Any:
    """Return an empty linear program."""
    from ortools.linear_solver import pywraplp

    return pywraplp.Solver.CreateSolver("GLOP")

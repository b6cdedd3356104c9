"""Running CP-SAT so that an interrupt stops it at once."""

import threading
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from streamplace.placers.meter import Meter

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

POLL_SECONDS = 0.1


SECONDS_PER_EVALUATION = 1e-6
"""Deterministic seconds that count as one evaluation."""


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


def solve_model(model: "cp_model.CpModel", effort: Effort) -> Solution:
    """Solve a model within the limits."""
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    status = _run(solver, model, effort)
    has_solution = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    return Solution(
        status == cp_model.INFEASIBLE,
        solver.best_objective_bound,
        solver.value if has_solution else None,
        solver.response_proto.deterministic_time,
    )


def _run(
    solver: "cp_model.CpSolver", model: "cp_model.CpModel", effort: Effort
) -> "cp_model.CpSolverStatus":
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
    return status[0]

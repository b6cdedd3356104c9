"""m-SCT: m-ETF that reserves a core for the favourite successor of its last task."""

import numpy as np

from streamplace.model.arrays import Ints
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.exact.cpsat import is_solved, new_solver
from streamplace.placers.registry import Budget, Found, placer
from streamplace.placers.scheduled import best_answer
from streamplace.scheduling.lists import start_soonest
from streamplace.scheduling.ranks import upward
from streamplace.scheduling.tasks import Tasks, mean_sendings, mean_work, tasks_of

FAVOURITE = 0.1
"""Relaxed choice x below which a stream may lead to a favourite (Baechi)."""
MAX_STREAMS = 200_000


@placer("sct", objectives=("makespan",))
def sct(problem: Problem, objective: Objective, *, seed: int, budget: Budget) -> Found:
    """Small Communication Time with memory: devices wait for favourite successors.

    Hanen and Munier (1995); with memory, m-SCT of Baechi (Jeon et al., 2020). A linear programme
    chooses at most one favourite successor for each task, and lets each be the favourite of one:
    with x(u, v) = 0 for favourites, which find their input in place,

        minimise T  with  s(v) ≥ s(u) + w̄(u) + c̄(u, v) · x(u, v),  T ≥ s(v) + w̄(v),
        Σ over v of (1 - x(u, v)) ≤ 1,  Σ over u of (1 - x(u, v)) ≤ 1.

    The schedule is that of m-ETF, but the core that ran u is reserved for the favourite of u until
    that could start elsewhere.
    """
    tasks = tasks_of(problem)
    schedule = start_soonest(tasks, upward(tasks), favourites(tasks))
    return best_answer(problem, objective, [schedule])


def favourites(tasks: Tasks) -> Ints:
    """Favourite successor of every task, -1 for none; very large graphs have none."""
    favourite = np.full(tasks.n_tasks, -1, np.int32)
    if not 0 < len(tasks.source) <= MAX_STREAMS:
        return favourite
    relaxed = _relaxed(tasks)
    for e in np.argsort(relaxed, kind="stable").tolist():
        u, v = tasks.source[e], tasks.target[e]
        before = tasks.source[tasks.in_streams[tasks.in_start[v] : tasks.in_start[v + 1]]]
        if relaxed[e] < FAVOURITE and favourite[u] < 0 and v not in favourite[before]:
            favourite[u] = v
    return favourite


def _relaxed(tasks: Tasks) -> np.ndarray:
    """Relaxed choices x of all streams in the linear programme."""
    work, sending = mean_work(tasks), mean_sendings(tasks)
    unit = float(work.mean() + sending.mean()) or 1.0
    solver = new_solver()
    end = solver.NumVar(0.0, solver.infinity(), "")
    s = [solver.NumVar(0.0, solver.infinity(), "") for _ in work]
    x = [solver.NumVar(0.0, 1.0, "") for _ in sending]
    for e, (u, v) in enumerate(zip(tasks.source.tolist(), tasks.target.tolist(), strict=True)):
        solver.Add(s[v] >= s[u] + work[u] / unit + sending[e] / unit * x[e])
    for v in range(len(work)):
        solver.Add(end >= s[v] + work[v] / unit)
        out = x[tasks.out_start[v] : tasks.out_end[v]]
        into = [x[e] for e in tasks.in_streams[tasks.in_start[v] : tasks.in_start[v + 1]]]
        for streams in (out, into):
            if len(streams) > 1:
                solver.Add(sum(streams) >= len(streams) - 1)
    solver.Minimize(end)
    is_solved(solver)  # any choices will do
    return np.array([variable.solution_value() for variable in x])

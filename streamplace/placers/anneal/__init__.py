"""Anneal: local search guided by the loads of resources.

For the throughput, moves of single operators, swaps, and moves of neighbourhoods (a chain, a
branch) are accepted or rejected by an energy of the loads (`core/src/anneal/walk.rs`), as the
temperature falls. Large graphs are searched level by level, from a few hundred groups of operators
down to operators (`throughput`). The shortest pass has an annealing of its own, over devices and
order (`makespan`). For any other objective the search starts from placements for a related
objective and climbs by plain evaluation (`generic`).

If METIS with every number of parts is cheap for the budget, the search starts from its best
placement; limited evaluations count one for each number of parts. So even on a busy machine the
result is never worse than METIS.
"""

from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.meter import Meter
from streamplace.placers.portfolio import metis_start
from streamplace.placers.registry import Budget, Found, placer


@placer("anneal")
def anneal(
    problem: Problem,
    objective: Objective,
    *,
    seed: int,
    budget: Budget,
    start: tuple[Placement, ...] = (),
) -> Found:
    """Local search with moves, swaps and neighbourhood moves, level by level on large graphs.

    Parameters
    ----------
    start
        Placements to begin with instead; the answer is never worse than any of them. If
        moves cost time, the present placement is one of them.
    """
    for placement in start:
        problem.check(placement)
    if objective.relocation is not None and objective.plain.unit != "s":
        from streamplace.placers.few_moves import few_moves

        return few_moves(problem, objective, seed, budget)
    if objective.relocation is not None:
        start = (objective.relocation.stay(problem), *start)
    if objective.usual_kind == "pass":
        from streamplace.placers.anneal.makespan import MAX_TASKS, reschedule, shortest

        if problem.n_operators > MAX_TASKS:
            return reschedule(problem, objective, start, seed, Meter(budget))
        return shortest(problem, objective, start, seed, Meter(budget))
    if objective.usual_kind != "rate":
        from streamplace.placers.anneal.generic import best_by

        return best_by(problem, objective, start, seed, budget)
    from streamplace.placers.anneal.throughput import maximise

    meter = Meter(budget)
    start = start or metis_start(problem, objective, seed, budget, meter)
    return maximise(problem, start, seed, meter)

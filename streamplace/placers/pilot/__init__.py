"""Pilot: our own policies place at once; the rest of the budget goes into sampling and search.

For a graph that runs for ever a policy walks through the operators (`walking`); for one pass
another one rebuilds schedules (`rebuilding`). Both have weights that fit any graph and any cluster.
"""

from pathlib import Path

from streamplace.errors import SettingError
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.pilot.plan import Plan
from streamplace.placers.portfolio import metis_to_begin_with
from streamplace.placers.registry import PLACERS, Budget, Found, Improvement, Placer, placer
from streamplace.placers.stopwatch import now


@placer("pilot")
def pilot(
    problem: Problem,
    objective: Objective,
    *,
    seed: int,
    budget: Budget,
    weights: str = "",
    walks: int = 2,
    looks: int = 3,
    samples: int | None = None,
    refine: str = "anneal",
) -> Found:
    """Learned policy for any cluster, at once; then refined by search within the budget.

    Parameters
    ----------
    weights
        File of trained weights; those that come with streamplace where empty.
    walks
        Times that the policy begins, each time at another operator; for the makespan, once with
        the best of four schedules, HEFT's among them, whatever is asked for.
    looks
        Times that it goes through the operators of a walk, deciding about each anew.
    samples
        Placements drawn from the policy besides the likeliest ones; the best of all goes on. By
        default 30 where evaluations are counted (for the makespan, 1000), and none where seconds
        are: search needs less.
    refine
        Placer that goes on from there, or ``none``.
    """
    from streamplace.io.weights import shipped

    if min(looks, walks) < 1 or (samples is not None and samples < 0):
        raise SettingError(
            f"walks={walks}, looks={looks}, samples={samples}; walks and looks are at least 1, "
            "samples 0"
        )
    if refine != "none" and "start" not in PLACERS[refine].defaults():
        raise SettingError(f"placer {refine!r} cannot go on from a placement; refine by anneal")
    start, file = now(), Path(weights) if weights else None
    plan = Plan(walks, looks, samples)
    if objective.quantity == "makespan":
        from streamplace.placers.pilot.rebuilding import rebuild

        path = file or shipped("pilot-makespan")
        found, tried = rebuild(problem, objective, path, plan, seed, budget)
        others: tuple[Placement, ...] = ()
    else:
        from streamplace.placers.pilot.walking import walk

        found, tried = walk(problem, objective, file or shipped("pilot"), plan, seed, budget)
        others = metis_to_begin_with(problem, objective, seed, budget)
    if refine == "none" or _spent(budget, objective, now() - start, tried):
        return found
    refiner = PLACERS[refine].with_options(start=(found.placement, *others))
    left = _left(budget, now() - start, tried)
    return _refined(found, refiner, problem, objective, seed, left)


def _spent(budget: Budget, objective: Objective, seconds: float, evaluations: int) -> bool:
    """Whether nothing remains; of throughput, which is quickly evaluated, the least work does."""
    if budget.evaluations is not None and budget.evaluations <= evaluations:
        return True
    late = budget.seconds is not None and budget.seconds <= seconds
    return late and objective.name != "throughput"


def _left(budget: Budget, seconds: float, evaluations: int) -> Budget:
    """What remains of a budget, be it a moment."""
    return Budget(
        None if budget.seconds is None else max(budget.seconds - seconds, 1e-6),
        None if budget.evaluations is None else budget.evaluations - evaluations,
    )


def _refined(
    found: Found, refiner: Placer, problem: Problem, objective: Objective, seed: int, budget: Budget
) -> Found:
    """Let another placer go on from what was found."""
    result = refiner.place(problem, objective, seed=seed, budget=budget)
    first = found.trace[-1]
    later = [
        Improvement(first.seconds + step.seconds, step.value, first.evaluations + step.evaluations)
        for step in result.trace
        if objective.better(step.value, first.value)
    ]
    return Found(result.placement, result.bound, (first, *later))

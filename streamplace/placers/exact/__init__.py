"""Exact: the best placement, proven, or the best found with a proven bound.

The throughput is min(1, 1 / peak), where the peak is the largest load of any device, link, NIC or
core; `prover` minimises it. For the pass see `makespan`.
"""

from streamplace.errors import OptionError
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.registry import Budget, Found, placer


@placer("exact", objectives=("throughput", "makespan"))
def exact(
    problem: Problem,
    objective: Objective,
    *,
    seed: int,
    budget: Budget,
    workers: int = 1,
    start: tuple[Placement, ...] = (),
) -> Found:
    """Prove the best placement, or give the best found and a bound when the budget ends.

    If a placement of up to 200 operators keeps up, the rest of the budget goes to lowering the load
    of its fullest resource.

    Parameters
    ----------
    workers
        Threads of CP-SAT, the last resort. One under a limit of evaluations, so that the answer
        depends on the seed alone.
    start
        Placements to begin with; the answer is never worse than any of them.
    """
    if not 1 <= workers <= 256:
        raise OptionError(f"workers is {workers}; it must be between 1 and 256")
    if objective.kind == "pass":
        from streamplace.placers.exact.makespan import prove_shortest

        return prove_shortest(problem, objective, start, seed, budget, workers)
    from streamplace.placers.exact.throughput import prove_throughput, settled
    from streamplace.placers.meter import Meter

    meter = Meter(budget)
    found = prove_throughput(problem, objective, start, seed, meter, workers)
    return settled(problem, objective, found, seed, None if meter.late else meter.part(1.0))

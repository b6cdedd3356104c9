"""Quality of placers under a budget of evaluations instead of seconds.

Run ``python benchmarks/few_evaluations.py``: every fifth test graph of the standard benchmark, mean
relative throughput by number of evaluations.
"""

import numpy as np
from studies import test_problems

from streamplace import Problem
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.registry import PLACERS, Budget

EVALUATIONS = (10, 100, 1000, 3000, 10_000)


def main() -> None:
    """Print one row per rate and number of evaluations."""
    for rate in (1e4, 2e4):
        problems = test_problems(rate)[::5]
        for evaluations in EVALUATIONS:
            budget = Budget(seconds=None, evaluations=evaluations)
            row = "".join(
                f"  {name} {mean_value(name, problems, budget):.3f}"
                for name in ("random", "anneal", "metis-oracle, then anneal", "pilot", "auto")
            )
            print(f"{rate:,.0f} tuples/s, {evaluations:6,} evaluations:{row}", flush=True)


def mean_value(name: str, problems: list[Problem], budget: Budget) -> float:
    """Mean relative throughput of a placer within a budget."""
    objective = OBJECTIVES["throughput"]
    if name in PLACERS:
        placer = PLACERS[name]
        return float(np.mean([placer.place(p, objective, budget=budget).value for p in problems]))
    return float(np.mean([after_metis(problem, budget) for problem in problems]))


def after_metis(problem: Problem, budget: Budget) -> float:
    """Value of the best of METIS's placements, searched on from."""
    objective, calls = OBJECTIVES["throughput"], problem.n_devices
    first = PLACERS["metis-oracle"].place(problem, objective)
    left = Budget(None, max(1, (budget.evaluations or 0) - calls))
    search = PLACERS["anneal"].with_options(start=(first.placement,))
    return search.place(problem, objective, budget=left).value


if __name__ == "__main__":
    main()

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
                for name in ("random", "anneal", "pilot", "auto")
            )
            print(f"{rate:,.0f} tuples/s, {evaluations:6,} evaluations:{row}", flush=True)


def mean_value(name: str, problems: list[Problem], budget: Budget) -> float:
    """Mean relative throughput of a placer within a budget."""
    placer, objective = PLACERS[name], OBJECTIVES["throughput"]
    return float(np.mean([placer.place(p, objective, budget=budget).value for p in problems]))


if __name__ == "__main__":
    main()

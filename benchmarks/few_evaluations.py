"""Quality of placers under a budget of evaluations instead of seconds.

Run ``python benchmarks/few_evaluations.py``: mean relative throughput by number of evaluations, on
graphs of the standard topologies that are in no training and no test split.
"""

import numpy as np

from streamplace import Cluster, Problem
from streamplace.families.branched import Branched, branched
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.registry import PLACERS, Budget

EVALUATIONS = (10, 100, 1000, 3000, 10_000)
COPIES, SEED = 3, 77


def main() -> None:
    """Print one row per rate and number of evaluations."""
    graphs = [*branched(Branched(copies=COPIES), SEED)]
    for rate in (1e4, 2e4):
        problems = [Problem(graph.at_rate(rate), Cluster.uniform(5)) for graph in graphs]
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

"""A placer of your own: register it with a decorator, then use it by name like any other."""

import numpy as np

from streamplace import Placement, Problem, place
from streamplace.families.branched import Branched
from streamplace.families.registry import FAMILIES
from streamplace.objectives.registry import Objective
from streamplace.placers.registry import Budget, placer


@placer("least-busy")
def least_busy(problem: Problem, objective: Objective, *, seed: int, budget: Budget) -> Placement:
    """Give every operator, heaviest first, to the device that has least to do."""
    busy = np.zeros(problem.n_devices)
    devices = np.empty(problem.n_operators, np.int32)
    for v in np.argsort(-problem.load.mean(axis=1), kind="stable"):
        after = busy + problem.load[v]
        devices[v] = np.argmin(after)
        busy[devices[v]] = after[devices[v]]
    return problem.placement(problem.repaired(devices))


family = FAMILIES["branched"]
graphs = list(family.generate(Branched(branches=3, depth=4, devices=3, copies=50), seed=0))
for name in ("round-robin", "least-busy", "metis-oracle"):
    values = [place(graph, placer=name).value for graph in graphs]
    print(f"{name:15} {np.mean(values):.3f}")

"""Relative throughput: the share of their rates at which all sources can run at once."""

from streamplace.model.arrays import Floats, Ints
from streamplace.model.problem import Problem
from streamplace.objectives.registry import objective
from streamplace.objectives.throughput.explain import explain
from streamplace.objectives.throughput.loads import picture


@objective(
    "throughput", sense="max", explain=explain, picture=picture, limit=1.0, kind="rate", quick=True
)
def throughput(problem: Problem, placements: Ints) -> Floats:
    """Relative throughput, 0 to 1: share of their rates at which all sources can run at once."""
    from streamsim import throughput as steady_throughput

    return steady_throughput(problem.instance, placements)

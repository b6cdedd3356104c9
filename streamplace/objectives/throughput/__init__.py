"""Relative throughput: the share of the sources' rate that the placed graph carries."""

from streamplace.model.arrays import Floats, Ints
from streamplace.model.problem import Problem
from streamplace.objectives.registry import objective
from streamplace.objectives.throughput.explain import explain
from streamplace.objectives.throughput.loads import picture


@objective(
    "throughput", sense="max", explain=explain, picture=picture, limit=1.0, kind="rate", quick=True
)
def throughput(problem: Problem, placements: Ints) -> Floats:
    """Relative throughput in the steady state, 0 to 1 (max–min fair between sources)."""
    from streamsim import throughput as steady_throughput

    return steady_throughput(problem.instance, placements)

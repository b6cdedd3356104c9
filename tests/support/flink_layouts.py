"""Candidates for a job in closed cases, by name."""

from streamplace.engines.flink.decide.candidates import (
    Candidate,
    Question,
    candidates,
)
from streamplace.placers.registry import Budget

BUDGET = Budget(evaluations=2000)


def found_for(question: Question, budget: Budget = BUDGET) -> dict[str, Candidate]:
    """Name → candidate."""
    return {one.name: one for one in candidates(question, budget)}


def best_rate(question: Question, budget: Budget = BUDGET) -> float:
    """Tuples/s of the best candidate."""
    return max(one.predicted.value for one in found_for(question, budget).values())

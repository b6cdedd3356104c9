"""The verdict on a result: its value, its distance from the best possible, and the bottleneck."""

from streamplace.model.report import percent
from streamplace.objectives.explanation import Explanation
from streamplace.objectives.registry import Objective
from streamplace.placers.registry import Result

PROVEN = 1e-6
"""A value this close to its bound, as a share of it, is the best possible."""


def gap(result: Result) -> float | None:
    """How far a value is from its bound, in the objective's unit; None without a bound."""
    return None if result.bound is None else abs(result.value - result.bound)


def proven(value: float, bound: float | None) -> bool:
    """Whether a value meets its bound, or is better by rounding."""
    return bound is not None and abs(value - bound) <= PROVEN * abs(bound)


def verdict(result: Result, explanation: Explanation) -> str:
    """One sentence."""
    if result.bound is None:
        return explanation.verdict
    if proven(result.value, result.bound):
        return f"the best possible, proven; {explanation.verdict}"
    low, high = sorted((result.value, result.bound))
    if low <= 0:
        return explanation.verdict
    return f"{percent(low / high)} of the best possible at least; {explanation.verdict}"


def bound_in_words(objective: Objective, result: Result) -> str | None:
    """The bound in one sentence, with the gap where there is one; None without a bound."""
    if result.bound is None:
        return None
    bound = f"Bound: no placement is better than {objective.format(result.bound)}"
    if proven(result.value, result.bound):
        return bound
    return f"{bound} (gap {objective.format(abs(result.value - result.bound))})"

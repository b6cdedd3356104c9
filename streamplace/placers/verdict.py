"""The verdict on a placement: its distance from the best possible value, and its bottleneck."""

from streamplace.model.report import percent
from streamplace.objectives.explanation import Explanation
from streamplace.objectives.registry import Objective

PROVEN = 1e-6
"""Relative distance from the bound within which a value counts as the best possible."""


def proven(value: float, bound: float | None) -> bool:
    """Whether a value meets its bound up to rounding."""
    return bound is not None and abs(value - bound) <= PROVEN * abs(bound)


def verdict(value: float, bound: float | None, explanation: Explanation) -> str:
    """Verdict in one sentence."""
    if bound is None:
        return explanation.verdict
    if proven(value, bound):
        return f"the best possible, proven; {explanation.verdict}"
    if min(value, bound) <= 0:
        return explanation.verdict
    if value < bound:
        return f"at least {percent(value / bound)} of the best possible; {explanation.verdict}"
    return f"at most {percent(value / bound - 1)} above the best possible; {explanation.verdict}"


def bound_in_words(objective: Objective, value: float, bound: float | None) -> str | None:
    """The bound in one sentence, with the gap if there is one; None without a bound."""
    if bound is None:
        return None
    text = f"Bound: no placement is better than {objective.format(bound)}"
    if proven(value, bound):
        return text
    return f"{text} (gap {objective.format(abs(value - bound))})"

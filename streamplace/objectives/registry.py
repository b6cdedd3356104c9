"""Objectives: a batch of placements in, one number each out."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from streamplace.model.columns import Ints
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.registry import Registry

Sense = Literal["max", "min"]
Evaluate = Callable[[Problem, Ints], NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class Objective:
    """Something to maximise or minimise.

    Attributes
    ----------
    evaluate
        Values [B] of a batch of placements [B, N] given as device rows.
    """

    name: str
    sense: Sense
    summary: str
    evaluate: Evaluate

    def value(self, problem: Problem, placement: Placement) -> float:
        """Value of one placement."""
        return float(self.evaluate(problem, placement.index[None, :])[0])

    def better(self, a: float, b: float) -> bool:
        """Whether value a is strictly better than value b."""
        return a > b if self.sense == "max" else a < b

    def best(self, values: NDArray[np.float64]) -> int:
        """Position of the best value, the first of equals."""
        return int(np.argmax(values) if self.sense == "max" else np.argmin(values))


OBJECTIVES: Registry[Objective] = Registry("streamplace.objectives", "objective")


def objective(name: str, *, sense: Sense) -> Callable[[Evaluate], Evaluate]:
    """Register an objective; the first line of the docstring describes it."""

    def register(evaluate: Evaluate) -> Evaluate:
        summary = (evaluate.__doc__ or "").strip().splitlines()[0]
        OBJECTIVES.add(name, Objective(name, sense, summary, evaluate))
        return evaluate

    return register

"""Every placer on every tiny problem."""

import itertools
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from problems import PROBLEMS
from streamsim import throughput

from streamplace.errors import PlacementError
from streamplace.model import Problem
from streamplace.model.arrays import Ints
from streamplace.objectives.registry import OBJECTIVES, Objective
from streamplace.placers import stopwatch
from streamplace.placers.meter import Meter
from streamplace.placers.registry import PLACERS, Budget
from streamplace.placers.result import Result

QUESTIONS = ("throughput", "makespan")
SEED, EVALUATIONS = 7, 300


VARIED = (
    "constrained",
    "tagged",
    "little memory and rules",
    "heterogeneous",
    "many sources",
    "joined",
)
"""Problems with names in sets, devices that differ, several sources and joins."""


def question(placer: str) -> Objective:
    """The first of the two questions that a placer can answer."""
    return next(OBJECTIVES[name] for name in QUESTIONS if PLACERS[placer].judges(OBJECTIVES[name]))


def answer(
    placer: str, problem: str, objective: str, evaluations: int = EVALUATIONS
) -> Result | PlacementError:
    """Result of a placer within a number of evaluations, or why it has none."""
    budget = Budget(seconds=None, evaluations=evaluations)
    try:
        return PLACERS[placer].place(
            PROBLEMS[problem], OBJECTIVES[objective], seed=SEED, budget=budget
        )
    except PlacementError as error:
        return error


first_answer = cache(answer)
"""What `answer` said first in this process."""


def devices(result: Result | PlacementError) -> list[int] | str:
    """Device of every operator, or why there is no placement; to be compared across processes."""
    return result.placement.index.tolist() if isinstance(result, Result) else str(result)


def placed(
    placer: str,
    problem: Problem,
    evaluations: int = 3000,
    seed: int = 0,
    objective: Objective = OBJECTIVES["throughput"],
    **options: Any,
) -> Result:
    """Place within a number of evaluations."""
    budget = Budget(None, evaluations)
    return (
        PLACERS[placer].with_options(**options).place(problem, objective, seed=seed, budget=budget)
    )


def all_legal(problem: Problem) -> Ints:
    """All placements that the rules allow."""
    every = np.array(list(np.ndindex((problem.n_devices,) * problem.n_operators)), np.int32)
    return every[problem.legal(every)]


def best_of_all(problem: Problem) -> float:
    """Highest throughput of all legal placements."""
    return float(throughput(problem.instance, all_legal(problem)).max())


def make_busy(patch: pytest.MonkeyPatch) -> None:
    """Let more than any budget pass between two looks at the clock."""
    looks = itertools.count()
    patch.setattr(stopwatch, "clock", lambda: 1e7 * next(looks))


def interrupt(patch: pytest.MonkeyPatch, after: int, error: type[BaseException]) -> None:
    """Let the first search that spends so many evaluations be interrupted, once."""
    spend, spent = Meter.spend, list[int]()

    def interrupted(meter: Meter, evaluations: int) -> None:
        spend(meter, evaluations)
        if meter.spent > after and not spent:
            spent.append(meter.spent)
            raise error from KeyboardInterrupt()

    patch.setattr(Meter, "spend", interrupted)


def counted(rows: list[int]) -> Objective:
    """Throughput that notes how many placements it is asked about."""
    throughput = OBJECTIVES["throughput"]

    def evaluate(problem: Problem, placements: Any) -> Any:
        rows.append(len(placements))
        return throughput.evaluate(problem, placements)

    return replace(throughput, evaluate=evaluate)

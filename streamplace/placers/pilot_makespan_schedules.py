"""Schedules rebuilt by a policy, valued by what is asked for."""

from collections.abc import Iterator
from itertools import chain
from math import inf
from pathlib import Path

from streamplace.learn.models.pilot_makespan.features import PilotMakespanFeatures, features_of
from streamplace.learn.models.pilot_makespan.placing import first_schedules, trained
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.meter import Meter
from streamplace.placers.registry import Budget, Found
from streamplace.placers.scheduled import judged
from streamplace.scheduling.insertion import Schedule
from streamplace.scheduling.lists import placed
from streamplace.scheduling.ranks import by_rank, upward


def rebuilt(
    problem: Problem,
    objective: Objective,
    weights: Path,
    looks: int,
    samples: int,
    seed: int,
    budget: Budget,
) -> tuple[Found, int]:
    """Best of first schedules, greedy looks and samples, and how many were tried."""
    features, trial = features_of(problem), Trial(problem, objective, Meter(budget, 1))
    first = chain(_present(problem, objective, features), first_schedules(features))
    policy = trained(weights)
    for _ in policy.schedules(features, first, trial.worth, looks, samples, seed):
        if not trial.meter.chunk(1):
            break
    return trial.found(), trial.meter.spent


class Trial:
    """The best of the schedules that were tried."""

    def __init__(self, problem: Problem, objective: Objective, meter: Meter) -> None:
        self._problem, self._objective, self.meter = problem, objective, meter
        self._best: Placement | None = None
        self._least = inf

    def worth(self, schedule: Schedule) -> float:
        """Value of a schedule's placement, kept if none was better."""
        placement, value = judged(self._problem, self._objective, schedule)
        self.meter.spend(1)
        if self._best is None or value < self._least:
            self._best, self._least = placement, value
            self.meter.note(value)
        return value

    def found(self) -> Found:
        """Return the best, and when it was found."""
        assert self._best is not None
        return Found(self._best, trace=tuple(self.meter.trace))


def _present(
    problem: Problem, objective: Objective, features: PilotMakespanFeatures
) -> Iterator[Schedule]:
    """Where the way to a placement counts, the present one."""
    if objective.relocation is not None:
        order = by_rank(features.tasks, upward(features.tasks))
        yield placed(features.tasks, order, objective.relocation.stay(problem).index)

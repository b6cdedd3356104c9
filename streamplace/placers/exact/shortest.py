"""The shortest pass, proven: search for a schedule, then for a proof that none is shorter.

1. Annealing, for the schedule to beat.
2. Windows below its makespan, which by themselves prove many that communication dominates.
3. CP-SAT on what the windows leave, for the rest of the budget.

Schedules here know no contention in the network, and may let a core wait. What is proven of them
holds for every network and every queue, since those only take longer; the value is the simulator's.
"""

import numpy as np

from streamplace.model.columns import Ints
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.exact.solving import Effort, solved
from streamplace.placers.exact.timetable import CLEARANCE, Model, Timetable, too_large
from streamplace.placers.exact.windows import Windows, windows_below
from streamplace.placers.meter import Meter
from streamplace.placers.registry import PLACERS, Budget, Found
from streamplace.placers.scheduling.tasks import Tasks, tasks_of

SEARCH_SHARE, SEARCH_SECONDS, SEARCH_EVALUATIONS = 0.3, 2.0, 100_000
"""What the annealing gets: this share of the budget, and at most so much."""
SECONDS_PER_EVALUATION = 1e-6
PROVEN = 1e-9


def prove_shortest(
    problem: Problem, objective: Objective, seed: int, budget: Budget, workers: int
) -> Found:
    """Best schedule found, and a makespan that none is below."""
    meter = Meter(budget, 0)
    first = PLACERS["anneal"].place(problem, objective, seed=seed, budget=_part_of(budget))
    meter.spend(max((step.evaluations for step in first.trace), default=1))
    proof = Proof(problem, objective, first.placement, first.value, meter)
    proof.least = first.bound or 0.0
    proof.improve(seed, workers)
    trace = (*first.trace, *meter.trace[1:])
    return Found(proof.placement, min(proof.least, proof.value), trace)


def _part_of(budget: Budget) -> Budget:
    seconds, evaluations = budget.seconds, budget.evaluations
    if seconds is not None:
        seconds = min(seconds * SEARCH_SHARE, SEARCH_SECONDS)
    if evaluations is not None:
        evaluations = min(max(1, int(evaluations * SEARCH_SHARE)), SEARCH_EVALUATIONS)
    elif seconds is None:
        evaluations = SEARCH_EVALUATIONS
    return Budget(seconds, evaluations)


class Proof:
    """The best schedule so far, its makespan, and one that no schedule is below."""

    def __init__(
        self,
        problem: Problem,
        objective: Objective,
        placement: Placement,
        value: float,
        meter: Meter,
    ) -> None:
        self._problem, self._objective, self._meter = problem, objective, meter
        self.placement, self.value, self.least = placement, value, 0.0
        meter.note(value)

    def improve(self, seed: int, workers: int) -> None:
        """Exclude, and solve what is left."""
        tasks = tasks_of(self._problem)
        windows = windows_below(tasks, self.value * (1 - PROVEN))
        if np.isinf(windows.path):
            self.least = self.value
            return
        self.least = max(self.least, windows.path)
        if self._meter.over or too_large(tasks, windows) or self._done():
            return
        self._solve(tasks, windows, seed, workers)

    def _done(self) -> bool:
        return self.value <= self.least * (1 + PROVEN)

    def _solve(self, tasks: Tasks, windows: Windows, seed: int, workers: int) -> None:
        model = Model(tasks, windows, self._problem.interchangeable, self.value)
        answer = solved(model.cp, self._effort(seed, workers))
        if answer.infeasible:
            self.least = max(self.least, self.value * (1 - CLEARANCE))
            return
        self.least = max(self.least, model.unscaled(answer.bound))
        if answer.value_of is not None:
            self._offer(model.timetable(answer.value_of))

    def _offer(self, timetable: Timetable) -> None:
        """Take a schedule if it is better, served in its order."""
        priority = np.empty(len(timetable.start))
        priority[_by_start(self._problem, timetable)] = -np.arange(len(priority))
        place = self._problem.placement(timetable.place, priority)
        value = self._objective.value(self._problem, place)
        if self._objective.better(value, self.value):
            self.placement, self.value = place, value
            self._meter.note(value)

    def _effort(self, seed: int, workers: int) -> Effort:
        evaluations = self._meter.evaluations
        if evaluations is None:
            return Effort(self._meter.seconds, None, workers, seed)
        return Effort(self._meter.seconds, evaluations * SECONDS_PER_EVALUATION, 1, seed)


def _by_start(problem: Problem, timetable: Timetable) -> Ints:
    position = np.empty(problem.n_operators, np.int64)
    position[problem.graph.order] = np.arange(problem.n_operators)
    return np.lexsort((position, timetable.start)).astype(np.int32)

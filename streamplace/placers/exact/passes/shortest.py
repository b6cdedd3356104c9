"""The shortest pass, proven: search for a schedule, then for a proof that none is shorter.

1. Annealing, for the schedule to beat.
2. Stage by stage, where a pass is one short pass after the other.
3. Windows below its makespan, which by themselves prove many that communication dominates.
4. CP-SAT on what the windows leave, for the rest of the budget.

Schedules here know no contention in the network, and may let a core wait, as devices do that hold
an order. What is proven of them holds for every network and every queue, since those only take
longer; the value is the simulator's.
"""

from collections.abc import Sequence

import numpy as np

from streamplace.model.arrays import Ints
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.anneal.passes.shortest import PassPlan, judge_plan, plan_from
from streamplace.placers.exact.passes.stages import prove_stages, stages_of, unruled
from streamplace.placers.exact.passes.timetable import (
    CLEARANCE,
    MOST_BOOLEANS,
    Timetable,
    TimetableModel,
    n_booleans,
)
from streamplace.placers.exact.passes.windows import Windows, windows_below
from streamplace.placers.exact.solver import effort_of, solve_model
from streamplace.placers.incumbent import Incumbent
from streamplace.placers.meter import Meter
from streamplace.placers.registry import PLACERS, Budget, Found
from streamplace.scheduling.ranks import by_rank, upward
from streamplace.scheduling.tasks import Tasks, tasks_of

QUICK_SECONDS, QUICK_EVALUATIONS = 0.05, 10_000
"""A first search, after which most small problems are proven by their windows."""
LONG_SHARE, LONG_SECONDS, LONG_EVALUATIONS = 0.3, 3.0, 300_000
"""The second one gets this share of what is left, and at most so much."""
QUICKLY_EXCLUDED = 300
"""Up to so many tasks windows take no time to speak of."""
PROVEN = 1e-9
CLOSED = 5e-7
"""Of stages: each is proven up to a share of `CLEARANCE`."""


def prove_shortest(
    problem: Problem,
    objective: Objective,
    start: Sequence[Placement],
    seed: int,
    budget: Budget,
    workers: int,
) -> Found:
    """Best schedule found, and a makespan that none is below."""
    proof = Proof(problem, objective, start, seed, Meter(budget, QUICK_EVALUATIONS))
    proof.search(Budget(QUICK_SECONDS, QUICK_EVALUATIONS), 1.0)
    if not (proof.by_stages(workers) or proof.by_windows()):
        proof.search(Budget(LONG_SECONDS, LONG_EVALUATIONS), LONG_SHARE)
        if not proof.by_windows():
            proof.by_solver(workers)
    best = proof.best
    return best.answer(best.solution, min(proof.least, best.value))


class Proof:
    """The best schedule so far, its makespan, and one that no schedule is below."""

    def __init__(
        self,
        problem: Problem,
        objective: Objective,
        start: Sequence[Placement],
        seed: int,
        meter: Meter,
    ) -> None:
        self._problem, self._objective, self._seed = problem, objective, seed
        self._tasks = tasks_of(problem)
        self._start = tuple(start)
        self.best = Incumbent[Placement](objective.better, meter)
        self.meter, self.least = meter, 0.0

    def search(self, most: Budget, share: float) -> None:
        """Anneal for a share of what is left, and no more than so much."""
        part = self.meter.part(share) or Budget(None, 1)
        search = PLACERS["anneal"].with_options(start=self._start)
        result = search.place(
            self._problem, self._objective, seed=self._seed, budget=_within(part, most)
        )
        self._offer(result.placement, result.value)
        self.meter.spend(max((step.evaluations for step in result.trace), default=1))
        self.least = max(self.least, result.bound or 0.0)
        self._seed += 1

    def by_windows(self) -> bool:
        """Exclude what cannot be; whether that, or the bound, proves the best schedule."""
        if self.meter.late and self._tasks.n_tasks > QUICKLY_EXCLUDED:
            return False
        self._windows = windows_below(self._tasks, self.best.value * (1 - PROVEN))
        self.least = max(self.least, min(self._windows.path, self.best.value))
        return self.best.value <= self.least * (1 + PROVEN)

    def by_stages(self, workers: int) -> bool:
        """Prove stage by stage, where there are stages; whether that proves the best schedule."""
        tasks = unruled(self._tasks)
        stages = None if self.meter.late else stages_of(tasks)
        if stages is None:
            return False
        rank = by_rank(tasks, upward(tasks))
        start = plan_from(self._problem, tasks, rank, self.best.solution)
        classes = self._problem.interchangeable
        answer = prove_stages(tasks, stages, classes, start, self._seed, self.meter, workers)
        self.least = max(self.least, answer.least)
        for plan in answer.plans:
            self._take(PassPlan(plan.order, self._problem.repaired(plan.place)))
        return self.best.value <= self.least * (1 + CLOSED)

    def by_solver(self, workers: int) -> None:
        """Let CP-SAT use what is left of the budget."""
        if not self.meter.late and n_booleans(self._tasks, self._windows) <= MOST_BOOLEANS:
            self._solve(self._tasks, self._windows, self._seed, workers)

    def _offer(self, placement: Placement, value: float) -> None:
        """Take a schedule if it is better."""
        if self.best.offer(placement, value):
            self._start = (placement,)

    def _take(self, plan: PassPlan) -> None:
        """Take a plan if it is better, its order held or not."""
        self._offer(*judge_plan(self._problem, self._objective, self._tasks, plan))

    def _solve(self, tasks: Tasks, windows: Windows, seed: int, workers: int) -> None:
        model = TimetableModel(tasks, windows, self._problem.interchangeable, self.best.value)
        answer = solve_model(model.cp, effort_of(self.meter, seed, workers))
        if answer.infeasible:
            self.least = max(self.least, self.best.value * (1 - CLEARANCE))
            return
        self.least = max(self.least, model.unscaled(answer.bound))
        if answer.value_of is not None:
            timetable = model.timetable(answer.value_of)
            self._take(PassPlan(_by_start(self._problem, timetable), timetable.place))


def _within(part: Budget, most: Budget) -> Budget:
    """Return the part, but no more than so many seconds or, where it has none, evaluations."""
    assert most.seconds is not None
    assert most.evaluations is not None
    if part.seconds is not None:
        return Budget(min(part.seconds, most.seconds), part.evaluations)
    return Budget(None, min(part.evaluations or most.evaluations, most.evaluations))


def _by_start(problem: Problem, timetable: Timetable) -> Ints:
    position = np.empty(problem.n_operators, np.int64)
    position[problem.graph.order] = np.arange(problem.n_operators)
    return np.lexsort((position, timetable.finish, timetable.start)).astype(np.int32)

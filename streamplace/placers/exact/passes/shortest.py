"""The shortest pass, proven: search for a schedule, then for a proof that none is shorter.

1. Annealing finds the schedule to beat.
2. Stages are proven one by one, if the pass splits into stages.
3. Windows below its makespan suffice as a proof for many passes dominated by communication.
4. CP-SAT solves the problem within the windows, for the rest of the budget.

Schedules here have no contention in the network and may let cores wait, like devices that hold an
order. Their bounds hold for every network and queue, since contention only takes longer; values are
those of the simulator.
"""

from collections.abc import Sequence

from streamplace.model.arrays import ROUNDING
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.anneal.makespan import PassPlan, judge_plan, plan_from
from streamplace.placers.exact.passes.stages import prove_stages, stages_of, unruled
from streamplace.placers.exact.passes.timetable import (
    CLEARANCE,
    MOST_BOOLEANS,
    TimetableModel,
    n_booleans,
)
from streamplace.placers.exact.passes.windows import windows_below
from streamplace.placers.exact.solver import effort_of, solve_model
from streamplace.placers.incumbent import Incumbent, SearchInterrupt, handing_on
from streamplace.placers.meter import Meter
from streamplace.placers.registry import PLACERS, Budget, Found
from streamplace.placers.scheduled import planned_order
from streamplace.scheduling.ranks import by_rank, upward
from streamplace.scheduling.tasks import tasks_of

QUICK_SECONDS, QUICK_EVALUATIONS = 0.05, 10_000
"""Limits of the first search, after which windows prove most small problems."""
LONG_SHARE, LONG_SECONDS, LONG_EVALUATIONS = 0.3, 3.0, 300_000
"""Share of the remaining budget for the second search, and its limits."""
QUICKLY_EXCLUDED = 300
"""Most tasks for which windows take negligible time."""
CLOSED = 5e-7
"""Relative tolerance of proofs by stages, each of which is exact up to `CLEARANCE`."""


def prove_shortest(
    problem: Problem,
    objective: Objective,
    start: Sequence[Placement],
    seed: int,
    budget: Budget,
    workers: int,
) -> Found:
    """Return the best schedule found, and a lower bound of the makespan."""
    proof = Proof(problem, objective, start, seed, Meter(budget, QUICK_EVALUATIONS))
    proof.search(Budget(QUICK_SECONDS, QUICK_EVALUATIONS), 1.0)
    with handing_on(proof.found):
        if not (proof.by_stages(workers) or proof.by_windows()):
            proof.search(Budget(LONG_SECONDS, LONG_EVALUATIONS), LONG_SHARE)
            if not proof.by_windows():
                proof.by_solver(workers)
    return proof.found()


class Proof:
    """The best schedule so far, and a lower bound of the makespan."""

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

    def found(self) -> Found:
        """Answer of a proof that ends now."""
        return self.best.answer(self.best.solution, min(self.least, self.best.value))

    def search(self, most: Budget, share: float) -> None:
        """Anneal for a share of the remaining budget, at most ``most``."""
        part = self.meter.part(share) or Budget(None, 1)
        search = PLACERS["anneal"].with_options(start=self._start)
        try:
            result = search.place(
                self._problem, self._objective, seed=self._seed, budget=_within(part, most)
            )
        except SearchInterrupt as stop:
            found = stop.best.placement
            self._offer(found, self._objective.value(self._problem, found))
            raise
        self._offer(result.placement, result.value)
        self.meter.spend(max((step.evaluations for step in result.trace), default=1))
        self.least = max(self.least, result.bound or 0.0)
        self._seed += 1

    def by_windows(self) -> bool:
        """Compute windows; return whether they, or the bound, prove the best schedule."""
        if self.meter.late and self._tasks.n_tasks > QUICKLY_EXCLUDED:
            return False
        self._windows = windows_below(self._tasks, self.best.value * (1 - ROUNDING))
        self.least = max(self.least, min(self._windows.path, self.best.value))
        return self.best.value <= self.least * (1 + ROUNDING)

    def by_stages(self, workers: int) -> bool:
        """Prove stage by stage, if possible; return whether that proves the best schedule."""
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
        """Run CP-SAT for the rest of the budget."""
        if self.meter.late or n_booleans(self._tasks, self._windows) > MOST_BOOLEANS:
            return
        classes = self._problem.interchangeable
        model = TimetableModel(self._tasks, self._windows, classes, self.best.value)
        answer = solve_model(model.cp, effort_of(self.meter, self._seed, workers))
        if answer.infeasible:
            self.least = max(self.least, self.best.value * (1 - CLEARANCE))
            return
        self.least = max(self.least, model.unscaled(answer.bound))
        if answer.value_of is not None:
            timetable = model.timetable(answer.value_of)
            if self._problem.legal(timetable.place[None])[0]:  # the model rounds memory
                self._take(PassPlan(planned_order(self._problem, timetable), timetable.place))

    def _offer(self, placement: Placement, value: float) -> None:
        """Keep a schedule if it is better."""
        if self.best.offer(placement, value):
            self._start = (placement,)

    def _take(self, plan: PassPlan) -> None:
        """Keep a plan if it is better, with its order held or as priorities."""
        self._offer(*judge_plan(self._problem, self._objective, self._tasks, plan))


def _within(part: Budget, most: Budget) -> Budget:
    """Limit the part by the seconds of ``most`` or, without a time limit, by its evaluations."""
    assert most.seconds is not None
    assert most.evaluations is not None
    if part.seconds is not None:
        return Budget(min(part.seconds, most.seconds), part.evaluations)
    return Budget(None, min(part.evaluations or most.evaluations, most.evaluations))

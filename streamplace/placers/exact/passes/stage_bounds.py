"""Bounds of a stage by the devices of its cut tasks: lower bounds and best schedules."""

import numpy as np

from streamplace.model.arrays import Floats, Ints
from streamplace.placers.anneal.passes.moves import BEST
from streamplace.placers.anneal.passes.shortest import (
    PassPlan,
    anneal_plans,
    best_plan,
    listed_plans,
)
from streamplace.placers.exact.passes.timetable import CLEARANCE, TimetableModel, n_booleans
from streamplace.placers.exact.passes.windows import Windows, windows_below
from streamplace.placers.exact.solver import SECONDS_PER_EVALUATION, effort_of, solve_model
from streamplace.placers.meter import Meter
from streamplace.scheduling.ranks import least_after
from streamplace.scheduling.stages import Stage, least_by_work
from streamplace.scheduling.tasks import Tasks

MOVES_PER_TASK, FIRST_SECONDS, GROWTH = 20, 0.1, 4
"""Effort of the first round, and growth from round to round."""
MOST_BOOLEANS = 500
"""Most Booleans of a model in the first round; more take too long to build. Grows alike."""
ROUNDING = 1e-9
ANY = -1
"""Stands for the device of a missing cut task."""


class StageBounds:
    """Bounds in seconds of a stage whose cut tasks are on two fixed devices.

    ``high`` is that of ``plan``, the best schedule; ∞ before there is one.
    """

    def __init__(self, tasks: Tasks, low: float, classes: Ints) -> None:
        self._tasks, self._classes, self._rounds = tasks, classes, 0
        self._after = least_after(tasks)
        self.low, self.high = low, np.inf
        self.plan: PassPlan | None = None

    def improve(self, seed: int, meter: Meter, workers: int) -> None:
        """Search, compute windows, and solve, with more effort than the last time."""
        growth = GROWTH**self._rounds
        self._rounds += 1
        plans = [] if self.plan is None else [self.plan]
        if growth == 1:
            plans += listed_plans(self._tasks, self._after)
        moves = MOVES_PER_TASK * self._tasks.n_tasks * growth
        self.search(plans, moves, seed, meter)
        windows = windows_below(self._tasks, self.high * (1 - ROUNDING))
        self._raise(windows.path)
        if self.low < self.high and n_booleans(self._tasks, windows) <= MOST_BOOLEANS * growth:
            self._solve(windows, seed, meter, growth, workers)

    def search(self, plans: list[PassPlan], moves: int, seed: int, meter: Meter) -> None:
        """Anneal from some plans."""
        own, nothing = Meter(meter.up_to(moves), 1), np.zeros((0, 0))
        annealing = anneal_plans(self._tasks, plans, self._after, nothing, self.low, seed, own)
        meter.spend(own.spent)
        if annealing.numbers[BEST] < self.high:
            self.high = float(annealing.numbers[BEST])
            self.plan = best_plan(annealing)

    def _solve(self, windows: Windows, seed: int, meter: Meter, growth: int, workers: int) -> None:
        effort = effort_of(meter, seed, workers, FIRST_SECONDS * growth)
        if effort.seconds == 0:
            return
        model = TimetableModel(self._tasks, windows, self._classes, self.high)
        answer = solve_model(model.cp, effort)
        meter.spend(int(answer.work / SECONDS_PER_EVALUATION))
        if answer.infeasible:
            self._raise(self.high * (1 - CLEARANCE))
            return
        self._raise(model.unscaled(answer.bound))
        if answer.value_of is not None:
            place, start, finish = model.timetable(answer.value_of)
            order = np.lexsort((finish, start)).astype(np.int32)
            self.search([PassPlan(order, place)], 1, seed, meter)

    def _raise(self, least: float) -> None:
        """Raise the bound, at most to the time of the best schedule."""
        self.low = max(self.low, min(least, self.high))


class BoundsTable:
    """Bounds of a stage for each pair of devices on which it may begin [A] and end [B].

    ``low`` [A, B] are lower bounds in seconds, ``high`` [A, B] the seconds of the best schedules.
    """

    def __init__(self, stage: Stage, classes: Ints) -> None:
        devices = range(stage.tasks.n_devices)
        self.stage, self._classes = stage, classes
        self._first = tuple(devices) if stage.begins else (ANY,)
        self._last = tuple(devices) if stage.ends else (ANY,)
        paths = np.array([self._paths(first) for first in self._first])
        self.low = np.maximum(paths, least_by_work(stage))
        self.high = np.full(self.low.shape, np.inf)
        self._bounds: dict[tuple[int, int], StageBounds] = {}

    def take(self, plan: PassPlan, meter: Meter) -> None:
        """Offer a schedule to the bounds of its cut tasks' devices."""
        a = int(plan.place[0]) if self.stage.begins else 0
        b = int(plan.place[-1]) if self.stage.ends else 0
        self._pair_bounds(a, b).search([plan], 1, 0, meter)
        self.high[a, b] = self._pair_bounds(a, b).high

    def improve(self, a: int, b: int, seed: int, meter: Meter, workers: int) -> None:
        """Improve the bounds of a pair of devices, with more effort than the last time."""
        bounds = self._pair_bounds(a, b)
        bounds.improve(seed, meter, workers)
        self.low[a, b], self.high[a, b] = bounds.low, bounds.high

    def _pair_bounds(self, a: int, b: int) -> StageBounds:
        if (a, b) not in self._bounds:
            first, last = self._first[a], self._last[b]
            classes = self._classes.copy()
            for device in {first, last} - {ANY}:  # no longer interchangeable with others
                classes[device] = len(classes) + device
            tasks = self.stage.between(first, last)
            self._bounds[a, b] = StageBounds(tasks, float(self.low[a, b]), classes)
        return self._bounds[a, b]

    def plan(self, a: int, b: int) -> PassPlan:
        """Best schedule of a pair of devices."""
        plan = self._bounds[a, b].plan
        assert plan is not None
        return plan

    def _paths(self, first: int) -> Floats:
        """Lower bounds in seconds from a first device to the end on every last device."""
        windows = windows_below(self.stage.between(first, ANY), np.inf)
        if not self.stage.ends:
            return np.array([windows.path])
        return np.asarray(windows.head[-1] + windows.work[-1])

"""A stage of a pass between two devices: what it takes at least, and what a schedule takes."""

import numpy as np

from streamplace.model.arrays import Floats, Ints
from streamplace.placers.anneal.passes.moves import BEST
from streamplace.placers.anneal.passes.shortest import Plan, annealed, best_plan, listed_plans
from streamplace.placers.exact.passes.timetable import CLEARANCE, Model, size
from streamplace.placers.exact.passes.windows import Windows, windows_below
from streamplace.placers.exact.solver import SECONDS_PER_EVALUATION, effort_of, solved
from streamplace.placers.meter import Meter
from streamplace.scheduling.ranks import least_after
from streamplace.scheduling.stages import Stage, least_by_work
from streamplace.scheduling.tasks import Tasks

MOVES_PER_TASK, FIRST_SECONDS, GROWTH = 20, 0.1, 4
"""Effort of a first look; every further one has so many times as much."""
MOST_BOOLEANS = 500
"""A model with more takes longer to write down than the rest of a first look; this grows, too."""
ROUNDING = 1e-9
ANY = -1
"""The device of a waist that is not there."""


class Leg:
    """A stage whose waists are on two devices.

    Attributes
    ----------
    low
        No schedule is below.
    high
        Of ``plan``; ∞ before the first look.
    """

    def __init__(self, tasks: Tasks, low: float, classes: Ints) -> None:
        self._tasks, self._classes, self._looks = tasks, classes, 0
        self._after = least_after(tasks)
        self.low, self.high = low, np.inf
        self.plan: Plan | None = None

    def look(self, seed: int, meter: Meter, workers: int) -> None:
        """Search, exclude, and solve; longer than the last time."""
        growth = GROWTH**self._looks
        self._looks += 1
        plans = [] if self.plan is None else [self.plan]
        if growth == 1:
            plans += listed_plans(self._tasks, self._after)
        moves = MOVES_PER_TASK * self._tasks.n_tasks * growth
        self.search(plans, moves, seed, meter)
        windows = windows_below(self._tasks, self.high * (1 - ROUNDING))
        self._raise(windows.path)
        if self.low < self.high and size(self._tasks, windows) <= MOST_BOOLEANS * growth:
            self._solve(windows, seed, meter, growth, workers)

    def search(self, plans: list[Plan], moves: int, seed: int, meter: Meter) -> None:
        """Anneal from some plans."""
        own, nothing = Meter(meter.up_to(moves), 1), np.zeros((0, 0))
        found = annealed(self._tasks, plans, self._after, nothing, self.low, seed, own)
        meter.spend(own.spent)
        if found.numbers[BEST] < self.high:
            self.high = float(found.numbers[BEST])
            self.plan = best_plan(found)

    def _solve(self, windows: Windows, seed: int, meter: Meter, growth: int, workers: int) -> None:
        effort = effort_of(meter, seed, workers, FIRST_SECONDS * growth)
        if effort.seconds == 0:
            return
        model = Model(self._tasks, windows, self._classes, self.high)
        answer = solved(model.cp, effort)
        meter.spend(int(answer.work / SECONDS_PER_EVALUATION))
        if answer.infeasible:
            self._raise(self.high * (1 - CLEARANCE))
            return
        self._raise(model.unscaled(answer.bound))
        if answer.value_of is not None:
            place, start, finish = model.timetable(answer.value_of)
            order = np.lexsort((finish, start)).astype(np.int32)
            self.search([Plan(order, place)], 1, seed, meter)

    def _raise(self, least: float) -> None:
        """No schedule is below this, nor below the known one where this is above it."""
        self.low = max(self.low, min(least, self.high))


class Legs:
    """A stage, for each of the devices that it may begin on [A] and end on [B].

    Attributes
    ----------
    low
        [A, B] seconds that no schedule is below.
    high
        [A, B] seconds of the known ones.
    """

    def __init__(self, stage: Stage, classes: Ints) -> None:
        devices = range(stage.tasks.n_devices)
        self.stage, self._classes = stage, classes
        self._first = tuple(devices) if stage.begins else (ANY,)
        self._last = tuple(devices) if stage.ends else (ANY,)
        paths = np.array([self._paths(first) for first in self._first])
        self.low = np.maximum(paths, least_by_work(stage))
        self.high = np.full(self.low.shape, np.inf)
        self._legs: dict[tuple[int, int], Leg] = {}

    def take(self, plan: Plan, meter: Meter) -> None:
        """Take note of a schedule."""
        a = int(plan.place[0]) if self.stage.begins else 0
        b = int(plan.place[-1]) if self.stage.ends else 0
        self._leg(a, b).search([plan], 1, 0, meter)
        self.high[a, b] = self._leg(a, b).high

    def look(self, a: int, b: int, seed: int, meter: Meter, workers: int) -> None:
        """Look into a pair of devices, longer than the last time."""
        leg = self._leg(a, b)
        leg.look(seed, meter, workers)
        self.low[a, b], self.high[a, b] = leg.low, leg.high

    def _leg(self, a: int, b: int) -> Leg:
        if (a, b) not in self._legs:
            first, last = self._first[a], self._last[b]
            classes = self._classes.copy()
            for device in {first, last} - {ANY}:  # these differ from their likes
                classes[device] = len(classes) + device
            tasks = self.stage.between(first, last)
            self._legs[a, b] = Leg(tasks, float(self.low[a, b]), classes)
        return self._legs[a, b]

    def plan(self, a: int, b: int) -> Plan:
        """Schedule of a pair of devices that was looked into."""
        plan = self._legs[a, b].plan
        assert plan is not None
        return plan

    def _paths(self, first: int) -> Floats:
        """Least seconds from a first device to the end on every last one."""
        windows = windows_below(self.stage.between(first, ANY), np.inf)
        if not self.stage.ends:
            return np.array([windows.path])
        return np.asarray(windows.head[-1] + windows.work[-1])

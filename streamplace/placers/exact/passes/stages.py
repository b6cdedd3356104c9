"""The shortest pass, stage by stage.

For every stage and any two devices of its cut tasks there are two times: a lower bound, and the
time of the best known schedule. The shortest path through all stages by bounds is a bound of the
pass; the shortest path by schedules is a schedule of the pass. The stages on the path of the bound
are searched and solved with growing effort until bound and schedule agree there: then no schedule
is shorter.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from streamplace.model.arrays import ROUNDING, Floats, Ints
from streamplace.placers.anneal.schedules import BEST
from streamplace.placers.anneal.makespan import (
    PassPlan,
    anneal_plans,
    best_plan,
    listed_plans,
    plan_of,
)
from streamplace.placers.exact.passes.timetable import CLEARANCE, TimetableModel, n_booleans
from streamplace.placers.exact.passes.windows import Windows, windows_below
from streamplace.placers.exact.solver import SECONDS_PER_EVALUATION, effort_of, solve_model
from streamplace.placers.meter import Meter
from streamplace.scheduling.insertion import NOWHERE
from streamplace.scheduling.ranks import after_predecessors, by_rank, least_after
from streamplace.scheduling.stages import Slack, Stage, Stages, least_by_work
from streamplace.scheduling.tasks import Tasks

FEW_TASKS, MOST_TASKS = 100, 200
"""Preferred and largest number of tasks of a stage; omissions are better than larger stages."""
MOST_IN_ALL, MOST_PAIRS, MOST_CELLS = 30_000, 100_000, 100_000_000
"""Limits of tasks, of stages times pairs of devices, and of tasks times devices cubed."""
NEAR = 1 + 2 * CLEARANCE
"""Factor within which two times count as equal."""
MOVES_PER_TASK, FIRST_SECONDS, GROWTH = 20, 0.1, 4
"""Effort of the first round, and growth from round to round."""
MOST_BOOLEANS = 500
"""Most Booleans of a model in the first round; more take too long to build. Grows alike."""
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
        own = Meter(meter.up_to(moves), 1)
        annealing = anneal_plans(self._tasks, plans, self._after, self.low, seed, own)
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
            by_time = np.lexsort((finish, start)).astype(np.int32)
            order = after_predecessors(self._tasks, by_time)
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


class StagesProof(NamedTuple):
    """Lower bound of a pass from its stages, and schedules."""

    least: float
    plans: tuple[PassPlan, ...]
    """Schedules of all tasks; one of them may be better than the initial plan."""


def unruled(tasks: Tasks) -> Tasks:
    """Remove the limits of memory and the separations, which concern all stages.

    A bound for the tasks without these rules also holds with them.
    """
    nothing, nobody = np.zeros(0), np.zeros(0, np.int32)
    starts = np.zeros(len(tasks.member_start), np.int32)
    return tasks._replace(memory=nothing, room=nothing, rivals=nobody, rival_start=starts)


def stages_of(tasks: Tasks) -> Stages | None:
    """Split a pass into stages that can be proven one by one; None if that is impossible."""
    pairs = tasks.n_devices**2
    if tasks.n_tasks > MOST_IN_ALL or tasks.n_tasks * tasks.n_devices * pairs > MOST_CELLS:
        return None
    slack = _slack(tasks)
    stages = Stages.of(tasks, FEW_TASKS, slack)
    if stages is None and tasks.n_tasks > 2 * FEW_TASKS:  # no stage has more than half of all
        stages = Stages.of(tasks, MOST_TASKS, slack)
    return None if stages is None or len(stages.stages) * pairs > MOST_PAIRS else stages


def prove_stages(
    tasks: Tasks,
    stages: Stages,
    classes: Ints,
    start: PassPlan,
    seed: int,
    meter: Meter,
    workers: int,
) -> StagesProof:
    """Improve the stages, from a plan, until the budget ends or the best pass is proven."""
    tables, by_content = [], {}
    for stage in stages.stages:
        key = _content(stage)
        if key not in by_content:
            by_content[key] = BoundsTable(stage, classes)
        by_content[key].take(start.within(stage), meter)
        tables.append(by_content[key])
    while True:
        least, path = _shortest_path([table.low for table in tables])
        left = [
            (table, a, b)
            for table, (a, b) in zip(tables, pairwise(path), strict=True)
            if table.high[a, b] > table.low[a, b] * NEAR
        ]
        if not left or meter.late:
            break
        for table, a, b in dict.fromkeys(left):
            table.improve(a, b, seed, meter, workers)
            if meter.late:
                break
    _, path = _shortest_path([table.high for table in tables])
    plans = [table.plan(a, b) for table, (a, b) in zip(tables, pairwise(path), strict=True)]
    return StagesProof(least, _whole(tasks, stages, plans))


def _slack(tasks: Tasks) -> Slack:
    """Slack of tasks and streams, each task on its best device."""
    windows = windows_below(tasks, np.inf)
    done, left = windows.head + windows.work, windows.work + windows.tail
    through = (done + windows.tail).min(axis=1)
    path = max(float(through.max()), np.finfo(np.float64).tiny)
    along = done.min(axis=1)[tasks.source] + left.min(axis=1)[tasks.target]
    return Slack(1 - through / path, 1 - along / path)


def _content(stage: Stage) -> tuple[object, ...]:
    """Key that equal stages share."""
    return stage.begins, stage.ends, *(part.tobytes() for part in stage.tasks)


def _shortest_path(tables: list[Floats]) -> tuple[float, list[int]]:
    """Length of the shortest path through tables of lengths [A, B], and its entries."""
    so_far, came = np.zeros(1), []
    for table in tables:
        total = so_far[:, None] + table
        came.append(total.argmin(axis=0))
        so_far = total.min(axis=0)
    path = [int(so_far.argmin())]
    for before in reversed(came):
        path.append(int(before[path[-1]]))
    return float(so_far.min()), path[::-1]


def _whole(tasks: Tasks, stages: Stages, plans: list[PassPlan]) -> tuple[PassPlan, PassPlan]:
    """Plans for all tasks; omitted ones go to their first successor's device, or finish earliest.

    One plan runs omitted tasks just before their first successor, the other as early as possible.
    """
    n, outside = tasks.n_tasks, ~stages.inside
    when, place = np.full(n, float(n)), np.full(n, NOWHERE, np.int32)
    home = np.full(len(tasks.member_start) - 1, NOWHERE, np.int32)
    count = 0
    for stage, plan in zip(stages.stages, plans, strict=True):
        when[stage.rows[plan.order]] = np.arange(count, count + len(plan.order))
        place[stage.rows] = plan.place
        count += len(plan.order)
    home[tasks.unit[stages.inside]] = place[stages.inside]
    backwards = tasks.order[::-1]
    for v in backwards[outside[backwards]]:
        takers, unit = tasks.target[tasks.out_start[v] : tasks.out_end[v]], tasks.unit[v]
        if len(takers):
            first = takers[when[takers].argmin()]
            when[v] = when[first]
            together = tasks.members[tasks.member_start[unit] : tasks.member_start[unit + 1]]
            if home[unit] == NOWHERE and np.isfinite(tasks.work[together, place[first]]).all():
                home[unit] = place[first]
        place[v] = home[unit]
    late = by_rank(tasks, -when)
    soon = plan_of(tasks, late, place)
    return PassPlan(late, soon.place), soon

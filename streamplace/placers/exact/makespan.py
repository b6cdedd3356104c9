"""The shortest pass, proven: search for a schedule, then for a proof that none is shorter.

1. Annealing finds the schedule to beat.
2. Stages are proven one by one, if the pass splits into stages.
3. Windows below its makespan suffice as a proof for many passes dominated by communication.
4. CP-SAT solves the problem within the windows, for the rest of the budget.

Schedules here have no contention in the network and may let cores wait, like devices that hold an
order. Their bounds hold for every network and queue, since contention only takes longer; values are
those of the simulator.

*Windows* are the times at which a task can run on a device in a pass shorter than a cut. A task on
a device has a *head*, its earliest start there, and a *tail*, the least time after it; both follow
paths through the graph over the devices that are not excluded. If head, work and tail reach the
cut, the task cannot run there; if they do for the two ends of a stream, this pair of devices is
excluded. Each exclusion raises heads and tails of others.

*Stages.* For every stage and any two devices of its cut tasks there are two times: a lower bound,
and the time of the best known schedule. The shortest path through all stages by bounds is a bound
of the pass; the shortest path by schedules is a schedule of the pass. The stages on the path of the
bound are searched and solved with growing effort until bound and schedule agree there: then no
schedule is shorter.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from streamsim import _core

from streamplace.model.arrays import ROUNDING, Floats, Ints
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.anneal.makespan import (
    PassPlan,
    anneal_plans,
    best_plan,
    judge_plan,
    listed_plans,
    plan_from,
    plan_of,
)
from streamplace.placers.exact.cpsat import (
    SCALE,
    SECONDS_PER_EVALUATION,
    PlacementModel,
    effort_of,
    solve_model,
)
from streamplace.placers.incumbent import Incumbent, SearchInterrupt, interruptible
from streamplace.placers.meter import ENDLESS, Meter, Remaining
from streamplace.placers.registry import PLACERS, Budget, Found
from streamplace.placers.scheduled import planned_order
from streamplace.scheduling.insertion import NOWHERE, ListSchedule
from streamplace.scheduling.ranks import after_predecessors, by_rank, least_after, upward
from streamplace.scheduling.stages import Slack, Stage, Stages, least_by_work
from streamplace.scheduling.tasks import Tasks, tasks_of, transfer

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

    from streamplace.placers.exact.cpsat import Choices

QUICK_SECONDS, QUICK_EVALUATIONS = 0.05, 10_000
"""Limits of the first search, after which windows prove most small problems."""
LONG_SHARE, LONG_SECONDS, LONG_EVALUATIONS = 0.3, 3.0, 300_000
"""Share of the remaining budget for the second search, and its limits."""
MAX_QUICK_TASKS = 300
"""Most tasks for which windows take negligible time."""
CLOSED = 5e-7
"""Relative tolerance of proofs by stages, each of which is exact up to `CLEARANCE`."""
CLEARANCE = 1e-7
MAX_BOOLEANS = 150_000
"""Clearance of the model of a timetable, and its most Booleans; more take too long to solve."""
PREFERRED_TASKS, MAX_TASKS = 100, 200
"""Preferred and largest number of tasks of a stage; omissions are better than larger stages."""
MAX_PASS_TASKS, MAX_PAIRS, MAX_CELLS = 30_000, 100_000, 100_000_000
"""Limits of tasks, of stages times pairs of devices, and of tasks times devices cubed."""
NEAR = 1 + 2 * CLEARANCE
"""Factor within which two times count as equal."""
MOVES_PER_TASK, FIRST_SECONDS, GROWTH = 20, 0.1, 4
"""Effort of the first round, and growth from round to round."""
FIRST_BOOLEANS = 500
"""Most Booleans of a model in the first round; more take too long to build. Grows alike."""
ANY = -1
"""Stands for the device of a missing cut task."""


def prove_shortest(
    problem: Problem,
    objective: Objective,
    start: Sequence[Placement],
    seed: int,
    budget: Budget,
    workers: int,
) -> Found:
    """Return the best schedule found, and a lower bound of the makespan."""
    proof = Proof(problem, objective, start, seed, Meter(budget))
    proof.search(QUICK_SECONDS, QUICK_EVALUATIONS, 1.0)
    with interruptible(proof.found):
        if not (proof.by_stages(workers) or proof.by_windows()):
            proof.search(LONG_SECONDS, LONG_EVALUATIONS, LONG_SHARE)
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

    def search(self, seconds: float, evaluations: int, share: float) -> None:
        """Anneal for a share of the remaining budget, at most so many seconds.

        Without a limit of time, at most so many evaluations.
        """
        part = self.meter.part(share) or Budget(None, 1)
        if part.seconds is not None:
            part = Budget(min(part.seconds, seconds), part.evaluations)
        else:
            part = Budget(None, min(part.evaluations or evaluations, evaluations))
        search = PLACERS["anneal"].with_options(start=self._start)
        try:
            result = search.place(self._problem, self._objective, seed=self._seed, budget=part)
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
        meter, is_quick = self.meter, self._tasks.n_tasks <= MAX_QUICK_TASKS
        if meter.late and not (is_quick and meter.seconds != 0):
            return False
        cut = self.best.value * (1 - ROUNDING)
        self._windows = windows_below(self._tasks, cut, meter.remaining)
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
        least, plans = prove_stages(tasks, stages, classes, start, self._seed, self.meter, workers)
        self.least = max(self.least, least)
        for plan in plans:
            self._take(PassPlan(plan.order, self._problem.repaired(plan.place)))
        return self.best.value <= self.least * (1 + CLOSED)

    def by_solver(self, workers: int) -> None:
        """Run CP-SAT for the rest of the budget."""
        if self.meter.late or n_booleans(self._tasks, self._windows) > MAX_BOOLEANS:
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


class Windows(NamedTuple):
    """Heads, tails and work of tasks on devices, infinite on excluded devices."""

    head: Floats  # [N, D] earliest start
    tail: Floats  # [N, D] least seconds after the finish
    work: Floats  # [N, D] infinite where excluded

    @property
    def path(self) -> float:
        """Lower bound of the makespan; infinite if no schedule is below the cut."""
        through = self.head + self.work + self.tail
        return float(through.min(axis=1).max())


def windows_below(tasks: Tasks, cut: float, remaining: Remaining = ENDLESS) -> Windows:
    """Exclude devices until nothing changes; a task loses all if no schedule is below the cut.

    If the time ends before, heads and tails are less than they could be.
    """
    return Windows(*_core.windows_below(tasks.core, cut, remaining))


class TimetableModel(PlacementModel):
    """The CP-SAT model of all schedules with a makespan below a cut."""

    def __init__(self, tasks: Tasks, windows: Windows, classes: Ints, cut: float) -> None:
        super().__init__(cut, CLEARANCE)
        self._tasks, self._windows = tasks, windows
        floor = min(self._whole(windows.path), self.ceiling)
        self.makespan = self.cp.new_int_var(floor, self.ceiling, "makespan")
        self.x = [self._unit_choices(u) for u in range(len(tasks.member_start) - 1)]
        self.start = [self._start_of(v) for v in range(tasks.n_tasks)]
        self._run_one_by_one()
        for e in range(len(tasks.source)):
            self._send(e)
        self.keep_apart(
            (u, w)
            for u in range(len(tasks.member_start) - 1)
            for w in tasks.rivals[tasks.rival_start[u] : tasks.rival_start[u + 1]].tolist()
            if u < w
        )
        self.limit_memory(tasks.memory, tasks.room)
        self.open_in_order(classes, self.x)
        self.cp.minimize(self.makespan)

    def timetable(self, value_of: "Callable[[cp_model.IntVar], int]") -> ListSchedule:
        """Schedule of a solution."""
        place = self.devices(value_of)[self._tasks.unit]
        start = np.array([value_of(s) for s in self.start])
        work = [self._whole(self._tasks.work[v, a]) for v, a in enumerate(place)]
        return ListSchedule(place, start / self.scale, (start + np.array(work)) / self.scale)

    def _whole(self, time: float) -> int:
        return int(min(time * self.scale, 4 * SCALE))

    def _of(self, v: int) -> "Choices":
        return self.x[self._tasks.unit[v]]

    def _unit_choices(self, u: int) -> "Choices":
        members = self._tasks.members[self._tasks.member_start[u] : self._tasks.member_start[u + 1]]
        open_to = np.isfinite(self._windows.work[members]).all(axis=0)
        return self.choices(u, np.flatnonzero(open_to).tolist())

    def _start_of(self, v: int) -> "cp_model.IntVar":
        """Create the start of a task, within the window of its device."""
        head, work, tail = (part[v] for part in self._windows)
        row = self._of(v)
        first = min(self._whole(head[a]) for a in row)
        start = self.cp.new_int_var(first, self.ceiling, f"s{v}")
        self.cp.add(start >= sum(self._whole(head[a]) * x for a, x in row.items()))
        after = sum((self._whole(work[a]) + self._whole(tail[a])) * x for a, x in row.items())
        self.cp.add(start + after <= self.makespan)
        return start

    def _run_one_by_one(self) -> None:
        """Limit the number of tasks that a device runs at once to its cores."""
        tasks = self._tasks
        on: dict[int, list[cp_model.IntervalVar]] = {}
        for v in range(tasks.n_tasks):
            for a, x in self._of(v).items():
                work = self._whole(tasks.work[v, a])
                if work:
                    interval = self.cp.new_optional_fixed_size_interval_var(
                        self.start[v], work, x, f"i{v},{a}"
                    )
                    on.setdefault(a, []).append(interval)
        for a, intervals in on.items():
            cores = int(tasks.core_start[a + 1] - tasks.core_start[a])
            if cores == 1:
                self.cp.add_no_overlap(intervals)
            elif len(intervals) > cores:
                self.cp.add_cumulative(intervals, [1] * len(intervals), cores)

    def _send(self, e: int) -> None:
        """Let the receiver of a stream start after its arrival."""
        tasks, windows = self._tasks, self._windows
        u, v = int(tasks.source[e]), int(tasks.target[e])
        senders, receivers = self._of(u), self._of(v)
        worked = sum(self._whole(tasks.work[u, a]) * x for a, x in senders.items())
        if tasks.unit[u] == tasks.unit[v]:
            self.cp.add(self.start[v] >= self.start[u] + worked)
            return
        y: dict[tuple[int, int], cp_model.IntVar] = {}
        sending = []
        for a in senders:
            for b in receivers:
                seconds = transfer(tasks, e, a, b)
                before = windows.head[u, a] + windows.work[u, a] + seconds
                if before + windows.work[v, b] + windows.tail[v, b] > self.unscaled(self.ceiling):
                    continue
                y[a, b] = self.cp.new_bool_var(f"y{e},{a},{b}")
                if self._whole(seconds):
                    sending.append(self._whole(seconds) * y[a, b])
        for a, x in senders.items():
            self.cp.add(sum(y[a, b] for b in receivers if (a, b) in y) == x)
        for b, x in receivers.items():
            self.cp.add(sum(y[a, b] for a in senders if (a, b) in y) == x)
        self.cp.add(self.start[v] >= self.start[u] + worked + sum(sending))


def n_booleans(tasks: Tasks, windows: Windows) -> int:
    """Upper bound of the model's Booleans."""
    n_devices = np.isfinite(windows.work).sum(axis=1)
    return int((n_devices[tasks.source] * n_devices[tasks.target]).sum() + n_devices.sum())


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
        windows = windows_below(self._tasks, self.high * (1 - ROUNDING), meter.remaining)
        self._raise(windows.path)
        if self.low < self.high and n_booleans(self._tasks, windows) <= FIRST_BOOLEANS * growth:
            self._solve(windows, seed, meter, growth, workers)

    def search(self, plans: list[PassPlan], moves: int, seed: int, meter: Meter) -> None:
        """Anneal from some plans."""
        stage_meter = Meter(meter.up_to(moves))
        annealing = anneal_plans(self._tasks, plans, self._after, self.low, seed, stage_meter)
        meter.spend(stage_meter.spent)
        if annealing.best < self.high:
            self.high = annealing.best
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
    if tasks.n_tasks > MAX_PASS_TASKS or tasks.n_tasks * tasks.n_devices * pairs > MAX_CELLS:
        return None
    slack = _slack(tasks)
    stages = Stages.of(tasks, PREFERRED_TASKS, slack)
    if stages is None and tasks.n_tasks > 2 * PREFERRED_TASKS:  # no stage has more than half of all
        stages = Stages.of(tasks, MAX_TASKS, slack)
    return None if stages is None or len(stages.stages) * pairs > MAX_PAIRS else stages


def prove_stages(
    tasks: Tasks,
    stages: Stages,
    classes: Ints,
    start: PassPlan,
    seed: int,
    meter: Meter,
    workers: int,
) -> tuple[float, tuple[PassPlan, ...]]:
    """Improve the stages, from a plan, until the budget ends or the best pass is proven.

    Returns a lower bound of the pass, and schedules of all tasks that may be better than the plan.
    """
    tables, by_content = [], {}
    for stage in stages.stages:
        key = stage.begins, stage.ends, *(part.tobytes() for part in stage.tasks)
        if key not in by_content:
            by_content[key] = BoundsTable(stage, classes)
        by_content[key].take(start.within(stage), meter)
        tables.append(by_content[key])
    while True:
        least, path = _shortest_path([table.low for table in tables])
        open_tables = [
            (table, a, b)
            for table, (a, b) in zip(tables, pairwise(path), strict=True)
            if table.high[a, b] > table.low[a, b] * NEAR
        ]
        if not open_tables or meter.late:
            break
        for table, a, b in dict.fromkeys(open_tables):
            table.improve(a, b, seed, meter, workers)
            if meter.late:
                break
    _, path = _shortest_path([table.high for table in tables])
    plans = [table.plan(a, b) for table, (a, b) in zip(tables, pairwise(path), strict=True)]
    return least, _whole(tasks, stages, plans)


def _slack(tasks: Tasks) -> Slack:
    """Slack of tasks and streams, each task on its best device."""
    windows = windows_below(tasks, np.inf)
    before, after = windows.head + windows.work, windows.work + windows.tail
    through = (before + windows.tail).min(axis=1)
    path = max(float(through.max()), np.finfo(np.float64).tiny)
    along = before.min(axis=1)[tasks.source] + after.min(axis=1)[tasks.target]
    return Slack(1 - through / path, 1 - along / path)


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
    n, outside = tasks.n_tasks, ~stages.included
    when, place = np.full(n, float(n)), np.full(n, NOWHERE, np.int32)
    home = np.full(len(tasks.member_start) - 1, NOWHERE, np.int32)
    count = 0
    for stage, plan in zip(stages.stages, plans, strict=True):
        when[stage.rows[plan.order]] = np.arange(count, count + len(plan.order))
        place[stage.rows] = plan.place
        count += len(plan.order)
    home[tasks.unit[stages.included]] = place[stages.included]
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

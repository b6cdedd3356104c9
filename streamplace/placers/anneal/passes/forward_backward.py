"""Large graphs: repeated scheduling in the order of the best schedule's latest starts.

From the last task backward, each task of a schedule gets its latest start that keeps the makespan.
Tasks with early latest starts come first in the next schedule. The amount of look-ahead changes
from one schedule to the next, and a little noise disturbs the order (forward-backward improvement,
with devices chosen again).

If the pass splits into stages, these are searched one by one after every amount of look-ahead was
tried. All stages in turn get a short search, then all a longer one.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

import numpy as np

from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.anneal.passes.shortest import (
    MOST_TASKS,
    PassPlan,
    anneal_plans,
    best_plan,
    judge_plan,
    listed_plans,
    plan_from,
)
from streamplace.placers.incumbent import Incumbent, handing_on
from streamplace.placers.meter import Meter
from streamplace.placers.registry import Found
from streamplace.placers.scheduled import Judged, judge_schedule
from streamplace.scheduling.insertion import NOWHERE, insert_all, latest_starts, plain_choice
from streamplace.scheduling.lists import looking
from streamplace.scheduling.ranks import by_rank, least_after, upward
from streamplace.scheduling.stages import Stage, Stages, least_by_work
from streamplace.scheduling.tasks import Tasks, tasks_of

LOOKS = (1.0, 0.5, 0.0, 0.75, 0.25)
"""Amounts of look-ahead, as shares of the least time to the end, in turn."""
NOISE = (0.0, 0.002, 0.01)
"""Noise in the order, as shares of the makespan, in turn."""
MOST_CELLS = 2_000_000_000
"""Most streams times pairs of devices for which schedules look ahead."""
FIRST_MOVES, GROWTH = 1000, 2
"""Moves of the first search of a stage, and growth from one search to the next."""


def reschedule(
    problem: Problem, objective: Objective, start: Sequence[Placement], seed: int, meter: Meter
) -> Found:
    """Make schedules until the budget ends, and return the best."""
    from streamplace.objectives.makespan.timeline import least_makespan

    search = BoundedSearch(objective, least_makespan(problem), meter)
    tasks = tasks_of(problem)
    stages = None if objective.relocation is not None else Stages.of(tasks, MOST_TASKS)
    given = (Judged(placement, objective.value(problem, placement)) for placement in start)
    schedules: Iterator[Judged] = chain(given, _schedules(problem, objective, tasks, seed))
    if stages is not None:
        search.bound = max(search.bound, _least(stages))
        schedules = islice(schedules, len(start) + len(LOOKS))
    with handing_on(lambda: None if search.best.empty else search.answer()):
        if search.take_all(schedules) and stages is not None:
            rank = by_rank(tasks, upward(tasks))
            plan = plan_from(problem, tasks, rank, search.best.solution)
            plans = _improved(stages, plan, seed, meter)
            search.take_all(judge_plan(problem, objective, tasks, plan) for plan in plans)
    return search.answer()


class BoundedSearch:
    """The best placement so far, and a lower bound of the makespan."""

    def __init__(self, objective: Objective, bound: float, meter: Meter) -> None:
        self.best = Incumbent[Placement](objective.better, meter)
        self.bound, self._meter = bound, meter

    def take_all(self, answers: Iterable[Judged]) -> bool:
        """Keep the best of the answers; False if the budget ended or the bound was met."""
        for placement, value in answers:
            self._meter.spend(1)
            self.best.offer(placement, value)
            if self._meter.over or self.best.value <= self.bound * (1 + 1e-12):
                return False
        return True

    def answer(self) -> Found:
        """Return the best placement with the bound."""
        return self.best.answer(self.best.solution, self.bound)


def _schedules(problem: Problem, objective: Objective, tasks: Tasks, seed: int) -> Iterator[Judged]:
    """Yield placements of schedules without end."""
    rng = np.random.default_rng(seed)
    looks = LOOKS if len(tasks.source) * tasks.n_devices**2 <= MOST_CELLS else (0.0,)
    after = least_after(tasks) if len(looks) > 1 else np.zeros((0, 0))
    rank, least, best = upward(tasks), np.inf, None
    number = 0
    while True:
        order = by_rank(tasks, rank)
        for look in looks:
            choice = looking(look * after) if look else plain_choice(len(order), True)
            schedule = insert_all(tasks, order, choice)
            yield judge_schedule(problem, objective, schedule)
            if schedule.complete and (best is None or schedule.finish.max() < least):
                best, least = schedule, float(schedule.finish.max())
        if best is not None:
            number += 1
            noise = NOISE[number % len(NOISE)] * least * rng.random(len(rank))
            rank = least - latest_starts(tasks, best) + noise


def _improved(stages: Stages, plan: PassPlan, seed: int, meter: Meter) -> Iterator[PassPlan]:
    """Yield a plan that is no worse after every round through the stages, until the budget ends.

    The devices of cut tasks are kept, so that an improvement of one stage improves the pass.
    """
    parts = [plan.within(stage) for stage in stages.stages]
    moves = FIRST_MOVES
    while not meter.over:
        for i, (stage, part) in enumerate(zip(stages.stages, parts, strict=True)):
            if meter.over:
                break
            own = Meter(meter.up_to(moves), 1)
            parts[i] = _search_stage(stage, part, moves == FIRST_MOVES, seed, own)
            meter.spend(own.spent)
        yield _whole(stages, parts, len(plan.order))
        moves *= GROWTH


def _search_stage(stage: Stage, part: PassPlan, first: bool, seed: int, meter: Meter) -> PassPlan:
    """Search a stage with its cut tasks on fixed devices."""
    begin = int(part.place[0]) if stage.begins else NOWHERE
    tasks = stage.between(begin, int(part.place[-1]) if stage.ends else NOWHERE)
    after = least_after(tasks)
    plans = [part, *(listed_plans(tasks, after) if first else ())]
    least = float(after[0, begin]) if stage.begins else 0.0
    return best_plan(anneal_plans(tasks, plans, after, least, seed, meter))


def _whole(stages: Stages, parts: list[PassPlan], n: int) -> PassPlan:
    place = np.full(n, NOWHERE, np.int32)
    orders = []
    for stage, part in zip(stages.stages, parts, strict=True):
        place[stage.rows] = part.place
        orders.append(stage.rows[part.order[int(stage.begins) :]])
    return PassPlan(np.concatenate(orders), place)


def _least(stages: Stages) -> float:
    """Lower bound of the makespan, in seconds: the sum of the stages' bounds by work."""
    return float(sum(least_by_work(stage).min() for stage in stages.stages))

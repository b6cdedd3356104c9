"""Shortest pass: annealing of devices and order together, from several schedules.

A round cools from hot to cold. The first round is short, for small graphs split into several parts,
and each further round is twice as long, whatever the budget. Rounds alternate between the best
schedule so far and, hotter, the next of the initial schedules. Devices hold the order of the best
schedule or use it as priorities, whichever is better. The search times schedules exactly if the
network is free. Contention is left to the simulator, which evaluates the resulting placements.

Large graphs are scheduled again and again in the order of the best schedule's latest starts
(forward-backward improvement, with devices chosen again): from the last task backward, each task
gets its latest start that keeps the makespan, and tasks with early latest starts come first in the
next schedule. The amount of look-ahead changes from one schedule to the next, and a little noise
disturbs the order. If the pass splits into stages, these are searched one by one after every amount
of look-ahead was tried. All stages in turn get a short search, then all a longer one.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple, Self

import numpy as np
from streamsim import _core

from streamplace.model.arrays import Floats, Ints
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.makespan import least_makespan
from streamplace.objectives.registry import Objective
from streamplace.placers.anneal.walk import ENOUGH
from streamplace.placers.incumbent import Incumbent, interruptible
from streamplace.placers.meter import Meter
from streamplace.placers.registry import Found
from streamplace.placers.scheduled import Judged, judge_schedule
from streamplace.scheduling.insertion import (
    NOWHERE,
    ListSchedule,
    insert_all,
    latest_starts,
    plain_choice,
)
from streamplace.scheduling.lists import placed, quick_lists, quickest_device, with_lookahead
from streamplace.scheduling.ranks import by_rank, by_start, least_after, priorities_of, upward
from streamplace.scheduling.stages import Stage, Stages, least_by_work
from streamplace.scheduling.tasks import Tasks, tasks_of

MAX_TASKS = 3000
"""Most tasks; with more, a move, which times all later tasks, is too slow (`reschedule`)."""
FIRST_ROUND = 1000
"""Moves of the first round, and of the first search of a stage."""
WARM, HOT, COLD = 0.015, 0.3, 0.001
"""Temperatures, as shares of the makespan at the start of a round."""
A_TASK, WARMEST, PARTS = 1.2, 0.08, 4
"""First temperature of a small graph, as a multiple of a task's share of the makespan; its limit;
and the number of parts of the first round. The fewer the tasks, the more a move changes."""
LOOKS = (1.0, 0.5, 0.0, 0.75, 0.25)
"""Amounts of look-ahead, as shares of the least time to the end, in turn."""
NOISE = (0.0, 0.002, 0.01)
"""Noise in the order, as shares of the makespan, in turn."""
MAX_CELLS = 2_000_000_000
"""Most streams times pairs of devices for which schedules look ahead."""


class PassPlan(NamedTuple):
    """An order of all tasks, and their devices."""

    order: Ints
    place: Ints

    def within(self, stage: Stage) -> Self:
        """Restrict the plan to the tasks of a stage."""
        local = np.full(len(self.order), -1, np.int32)
        local[stage.rows] = np.arange(len(stage.rows))
        order = local[self.order]
        return self._replace(order=order[order >= 0], place=self.place[stage.rows])


def shortest(
    problem: Problem, objective: Objective, start: Sequence[Placement], seed: int, meter: Meter
) -> Found:
    """Search until the budget ends or the bound is met."""
    tasks = tasks_of(problem)
    after = least_after(tasks)
    plans = list(first_plans(problem, objective, tasks, after, start))
    bound = least_makespan(problem)
    relocation, moving = objective.relocation, np.zeros((0, 0))
    if relocation is not None:  # cost of every task on every device, in seconds per pass
        moving = relocation.seconds(problem) / relocation.passes
    anneal = _prepared(tasks, plans, after, moving, seed)

    def best() -> Found:
        judged = judge_plan(problem, objective, tasks, best_plan(anneal), anneal.best)
        for placement in start:  # its own order may be better than that of the plan
            value = objective.value(problem, placement)
            if objective.better(value, judged.value):
                judged = Judged(placement, value)
                meter.note(value)
        return Found(judged.placement, bound, tuple(meter.trace))

    with interruptible(best):
        _improve(anneal, plans, bound, meter)
    return best()


def anneal_plans(
    tasks: Tasks, plans: list[PassPlan], after: Floats, bound: float, seed: int, meter: Meter
) -> _core.Annealing:
    """Search from these plans, where moving tasks costs nothing."""
    anneal = _prepared(tasks, plans, after, np.zeros((0, 0)), seed)
    _improve(anneal, plans, bound, meter)
    return anneal


def _improve(anneal: _core.Annealing, plans: list[PassPlan], bound: float, meter: Meter) -> None:
    """Search in rounds until the budget ends or the bound is met."""
    meter.note(anneal.best)
    is_whole, rounds = True, _rounds(plans)
    while is_whole:
        steps, plan, hot = next(rounds)
        anneal.restart(*(best_plan(anneal) if plan is None else plan))
        heat, cooling = hot * anneal.current, (COLD / hot) ** (1 / steps)
        try:
            is_whole = anneal.run(steps, heat, cooling, bound * ENOUGH, meter.remaining)
        finally:
            meter.follow(anneal.take_notes())


def first_plans(
    problem: Problem, objective: Objective, tasks: Tasks, after: Floats, start: Sequence[Placement]
) -> Iterator[PassPlan]:
    """Yield initial plans: those of ``start``, of list schedulers, and all tasks on one device.

    If relocation counts, also HEFT's plan for the tasks that have to move, while all others stay.
    """
    rank = by_rank(tasks, upward(tasks))
    for placement in start:
        yield plan_from(problem, tasks, rank, placement)
    yield from listed_plans(tasks, after)
    if objective.relocation is not None:
        schedule = placed(tasks, rank, objective.relocation.rows(problem))
        if schedule.complete:
            yield PassPlan(order_of(tasks, schedule), schedule.place)
    together = problem.repaired(np.full(problem.n_operators, quickest_device(tasks), np.int32))
    yield plan_of(tasks, rank, together)


def listed_plans(tasks: Tasks, after: Floats) -> Iterator[PassPlan]:
    """Yield plans of list schedulers."""
    for schedule in quick_lists(tasks, after):
        if schedule.complete:
            yield PassPlan(order_of(tasks, schedule), schedule.place)


def plan_from(problem: Problem, tasks: Tasks, rank: Ints, placement: Placement) -> PassPlan:
    """Plan of a placement, in the order of rank if it has no order."""
    if placement.queue == "order" and placement.priority is not None:
        from streamsim.passes import merged_order

        order = merged_order(problem.one_pass, placement.index, placement.priority)
        return PassPlan(order, placement.index)
    order = rank if placement.priority is None else by_rank(tasks, placement.priority)
    return plan_of(tasks, order, placement.index)


def plan_of(tasks: Tasks, order: Ints, place: Ints) -> PassPlan:
    """Plan of a placement whose cores prefer tasks that come first in an order.

    Tasks at -1 go to the device where they finish earliest.
    """
    schedule = placed(tasks, order, place)
    whole = np.where(place < 0, schedule.place, place).astype(np.int32)
    return PassPlan(order_of(tasks, schedule), whole)


def order_of(tasks: Tasks, schedule: ListSchedule) -> Ints:
    """Tasks by start, those of no duration first; `planned_order` sorts all by their finish."""
    return by_start(tasks, schedule.start, schedule.finish > schedule.start)


def best_plan(anneal: _core.Annealing) -> PassPlan:
    """The best schedule of a search."""
    return PassPlan(*anneal.best_plan)


def with_priorities(problem: Problem, plan: PassPlan) -> Placement:
    """Placement with the order of a plan as priorities."""
    return problem.placement(plan.place, priorities_of(plan.order))


def with_order(problem: Problem, tasks: Tasks, plan: PassPlan) -> Placement:
    """Placement whose devices hold the order of a plan; sorted by start for several cores."""
    order = plan.order
    if tasks.core_start[-1] > tasks.n_devices:
        start = _core.start_times(tasks.core, order, plan.place)
        order = order[np.argsort(start[order], kind="stable")]
    return problem.placement(plan.place, priorities_of(order), "order")


def judge_plan(
    problem: Problem, objective: Objective, tasks: Tasks, plan: PassPlan, enough: float = -np.inf
) -> Judged:
    """Placement of a plan, with its order as priorities or held, whichever is better.

    If priorities reach the value ``enough``, the other is not tried.
    """
    eager = with_priorities(problem, plan)
    value = objective.value(problem, eager)
    if value <= enough * ENOUGH:
        return Judged(eager, value)
    waiting = with_order(problem, tasks, plan)
    planned = objective.value(problem, waiting)
    return Judged(waiting, planned) if objective.better(planned, value) else Judged(eager, value)


def _prepared(
    tasks: Tasks, plans: list[PassPlan], after: Floats, moving: Floats, seed: int
) -> _core.Annealing:
    """Build a search that has visited all plans."""
    least = np.where(np.isinf(tasks.work), np.inf, after).min(axis=1)
    anneal = _core.Annealing(tasks.core, least, moving, seed % 2**64)
    for plan in plans:
        anneal.restart(*plan)
    return anneal


def _rounds(plans: list[PassPlan]) -> Iterator[tuple[int, PassPlan | None, float]]:
    """Yield the length of each round, its start (None for the best so far) and temperature."""
    hot = float(np.clip(A_TASK / len(plans[0].order), WARM, WARMEST))
    first = PARTS if hot > WARM else 1
    for _ in range(first):
        yield FIRST_ROUND // first, None, hot
    steps, number = FIRST_ROUND, 0
    while True:
        steps *= 2
        yield steps, plans[number % len(plans)], HOT
        steps *= 2
        number += 1
        yield steps, None, WARM


def reschedule(
    problem: Problem, objective: Objective, start: Sequence[Placement], seed: int, meter: Meter
) -> Found:
    """Make schedules until the budget ends, and return the best."""
    best = Incumbent[Placement](objective.better, meter)
    bound = least_makespan(problem)
    tasks = tasks_of(problem)
    stages = None if objective.relocation is not None else Stages.of(tasks, MAX_TASKS)
    starts = (Judged(placement, objective.value(problem, placement)) for placement in start)
    schedules: Iterator[Judged] = chain(starts, _schedules(problem, objective, tasks, seed))
    if stages is not None:
        bound = max(bound, float(sum(least_by_work(stage).min() for stage in stages.stages)))
        schedules = islice(schedules, len(start) + len(LOOKS))

    def take_all(answers: Iterable[Judged]) -> bool:
        """Keep the best of the answers; False if the budget ended or the bound was met."""
        for placement, value in answers:
            meter.spend(1)
            best.offer(placement, value)
            if meter.over or best.value <= bound * ENOUGH:
                return False
        return True

    with interruptible(lambda: None if best.empty else best.answer(best.solution, bound)):
        if take_all(schedules) and stages is not None:
            rank = by_rank(tasks, upward(tasks))
            plan = plan_from(problem, tasks, rank, best.solution)
            plans = _improved(stages, plan, seed, meter)
            take_all(judge_plan(problem, objective, tasks, plan) for plan in plans)
    return best.answer(best.solution, bound)


def _schedules(problem: Problem, objective: Objective, tasks: Tasks, seed: int) -> Iterator[Judged]:
    """Yield placements of schedules without end."""
    rng = np.random.default_rng(seed)
    amounts = LOOKS if len(tasks.source) * tasks.n_devices**2 <= MAX_CELLS else (0.0,)
    after = least_after(tasks) if len(amounts) > 1 else np.zeros((0, 0))
    rank, least, best = upward(tasks), np.inf, None
    number = 0
    while True:
        order = by_rank(tasks, rank)
        for amount in amounts:
            choice = with_lookahead(amount * after) if amount else plain_choice(len(order), True)
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
    moves = FIRST_ROUND
    while not meter.over:
        for i, (stage, part) in enumerate(zip(stages.stages, parts, strict=True)):
            if meter.over:
                break
            part_meter = Meter(meter.up_to(moves))
            parts[i] = _search_stage(stage, part, moves == FIRST_ROUND, seed, part_meter)
            meter.spend(part_meter.spent)
        yield _whole(stages, parts, len(plan.order))
        moves *= 2


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

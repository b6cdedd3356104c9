"""Pilot: a learned policy places first; the rest of the budget goes to sampling and search.

For the makespan, a policy of its own rebuilds schedules.
"""

from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np

from streamplace.errors import OptionError
from streamplace.learn.models.pilot.model import ROLLOUTS, SWEEPS
from streamplace.model.arrays import Ints
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.incumbent import Incumbent, best_row, check_refiner, interruptible, refined
from streamplace.placers.meter import Meter
from streamplace.placers.portfolio import metis_start
from streamplace.placers.registry import Budget, Found, placer
from streamplace.placers.scheduled import judge_schedule
from streamplace.placers.stopwatch import now
from streamplace.scheduling.insertion import ListSchedule
from streamplace.scheduling.lists import placed
from streamplace.scheduling.ranks import by_rank, upward

SAMPLES = 30
MAX_SAMPLES, SAMPLED_SHARE = 900, 0.9
"""Most schedules to draw, and their share of the evaluations; search needs only a few of these."""


@placer("pilot")
def pilot(
    problem: Problem,
    objective: Objective,
    *,
    seed: int,
    budget: Budget,
    weights: str = "",
    rollouts: int = ROLLOUTS,
    sweeps: int = SWEEPS,
    samples: int | None = None,
    refine: str = "anneal",
) -> Found:
    """Learned policy for any cluster; search refines its placement within the budget.

    For the makespan it is `pilot-makespan`.

    Parameters
    ----------
    weights
        File of trained weights; by default the weights that come with streamplace.
    rollouts
        Number of rollouts, each from another operator; for the makespan one.
    sweeps
        Sweeps of a rollout; each but the first places every operator again, given all others.
    samples
        Placements drawn from the policy besides the likeliest ones; the best of all goes on. By
        default 30 where evaluations are counted (for the makespan most of these), and none where
        seconds are: search needs less.
    refine
        Placer that refines the best placement, or ``none``.
    """
    if min(sweeps, rollouts) < 1 or (samples or 0) < 0:
        raise OptionError(
            f"rollouts={rollouts}, sweeps={sweeps}, samples={samples}; rollouts and sweeps are "
            "at least 1, samples 0"
        )
    check_refiner(refine)
    case = problem, objective, seed, budget
    if objective.kind == "pass":
        return _rebuilt(*case, weights, sweeps, samples, refine)
    from streamplace.learn.model_weights import shipped
    from streamplace.learn.models.pilot.placing import trained

    if samples is None:
        samples = SAMPLES if budget.evaluations is not None else 0
    start = now()
    policy = trained(Path(weights) if weights else shipped("pilot"))
    most = rollouts * sweeps + samples if budget.evaluations is None else budget.evaluations
    greedy = policy.rollouts(problem, min(sweeps, most))
    rows = _within(budget, greedy, min(rollouts, -(-most // sweeps)))
    rows = rows[:most]
    if (left := min(samples, most - len(rows))) > 0:
        rows = np.concatenate([rows, policy.sampled(problem, left, seed)])
    answer = best_row(problem, objective, rows, start)
    return refined(answer, start, len(rows), refine, *case, partial(metis_start, *case))


def _within(budget: Budget, rollouts: Iterator[Ints], most: int) -> Ints:
    """Placements of at most ``most`` rollouts within the time budget; at least one rollout.

    A rollout is not begun when less time remains than the last one took.
    """
    start, rows = now(), [next(rollouts)]
    took = now() - start
    while len(rows) < most and (budget.seconds is None or now() - start + took <= budget.seconds):
        begin = now()
        rows.append(next(rollouts))
        took = now() - begin
    return np.concatenate(rows)


@placer("pilot-makespan", objectives=("makespan",))
def pilot_makespan(
    problem: Problem,
    objective: Objective,
    *,
    seed: int,
    budget: Budget,
    weights: str = "",
    sweeps: int = 3,
    samples: int | None = None,
    refine: str = "anneal",
) -> Found:
    """Learned policy that rebuilds schedules; search refines the best within the budget.

    Parameters
    ----------
    weights
        File of trained weights; by default the weights that come with streamplace.
    sweeps
        Times that the best schedule is rebuilt with the likeliest device for every task.
    samples
        Schedules rebuilt in part, with devices drawn from the policy; the best of all goes on. By
        default nine tenths of the evaluations, but no more than 900; none where seconds are
        counted, for search needs less.
    refine
        Placer that refines the best placement, or ``none``.
    """
    if sweeps < 1 or (samples or 0) < 0:
        raise OptionError(f"sweeps={sweeps}, samples={samples}; sweeps are at least 1, samples 0")
    check_refiner(refine)
    return _rebuilt(problem, objective, seed, budget, weights, sweeps, samples, refine)


def _rebuilt(
    problem: Problem,
    objective: Objective,
    seed: int,
    budget: Budget,
    weights: str,
    sweeps: int,
    samples: int | None,
    refine: str,
) -> Found:
    """Best of initial schedules, greedy rebuilds and samples, refined."""
    from streamplace.learn.model_weights import shipped
    from streamplace.learn.models.pilot_makespan.features import features_of
    from streamplace.learn.models.pilot_makespan.placing import first_schedules, trained

    if samples is None:
        samples = min(MAX_SAMPLES, int(SAMPLED_SHARE * (budget.evaluations or 0)))
    start = now()
    features, meter = features_of(problem), Meter(budget, 1)
    policy = trained(Path(weights) if weights else shipped("pilot-makespan"))
    best = Incumbent[Placement](objective.better, meter)

    def value_of(schedule: ListSchedule) -> float:
        """Evaluate a schedule's placement, and keep it if it is the best."""
        placement, value = judge_schedule(problem, objective, schedule)
        meter.spend(1)
        best.offer(placement, value)
        return value

    first = first_schedules(features)
    if objective.relocation is not None:
        order = by_rank(features.tasks, upward(features.tasks))
        present = objective.relocation.stay(problem).index
        first = chain([placed(features.tasks, order, present)], first)
    with interruptible(lambda: None if best.empty else best.answer(best.solution)):
        for _ in policy.schedules(features, first, value_of, sweeps, samples, seed):
            if not meter.chunk(1):
                break
    answer = best.answer(best.solution)
    return refined(answer, start, meter.spent, refine, problem, objective, seed, budget)

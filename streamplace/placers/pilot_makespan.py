"""Pilot for the makespan: a policy rebuilds schedules, then search uses the remaining budget."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from streamplace.errors import SettingError
from streamplace.learn.models.pilot_makespan.features import PilotMakespanFeatures, features_of
from streamplace.learn.models.pilot_makespan.placing import first_schedules, trained
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.incumbent import Incumbent, check_refiner, handing_on, refined
from streamplace.placers.meter import Meter
from streamplace.placers.registry import Budget, Found, placer
from streamplace.placers.scheduled import judge_schedule
from streamplace.placers.stopwatch import now
from streamplace.scheduling.insertion import ListSchedule
from streamplace.scheduling.lists import placed
from streamplace.scheduling.ranks import by_rank, upward

MOST_SAMPLES, SAMPLED = 900, 0.9
"""Most schedules to draw, and their share of the evaluations; search needs only a few of these."""


@placer("pilot-makespan", objectives=("makespan",))
def pilot_makespan(
    problem: Problem,
    objective: Objective,
    *,
    seed: int,
    budget: Budget,
    weights: str = "",
    looks: int = 3,
    samples: int | None = None,
    refine: str = "anneal",
) -> Found:
    """Learned policy that rebuilds schedules; search refines the best within the budget.

    Parameters
    ----------
    weights
        File of trained weights; those that come with streamplace where empty.
    looks
        Times that the best schedule is rebuilt with the likeliest device for every task.
    samples
        Schedules rebuilt in part, with devices drawn from the policy; the best of all goes on. By
        default nine tenths of the evaluations, but no more than 900; none where seconds are
        counted, for search needs less.
    refine
        Placer that goes on from there, or ``none``.
    """
    from streamplace.learn.loading import shipped

    if looks < 1 or (samples or 0) < 0:
        raise SettingError(f"looks={looks}, samples={samples}; looks are at least 1, samples 0")
    check_refiner(refine)
    if samples is None:
        samples = min(MOST_SAMPLES, int(SAMPLED * (budget.evaluations or 0)))
    start = now()
    path = Path(weights) if weights else shipped("pilot-makespan")
    answer, tried = rebuild_schedules(problem, objective, path, looks, samples, seed, budget)
    return refined(answer, start, tried, refine, problem, objective, seed, budget)


def rebuild_schedules(
    problem: Problem,
    objective: Objective,
    weights: Path,
    looks: int,
    samples: int,
    seed: int,
    budget: Budget,
) -> tuple[Found, int]:
    """Best of initial schedules, greedy rebuilds and samples, and the number of schedules."""
    features, meter = features_of(problem), Meter(budget, 1)
    best = Incumbent[Placement](objective.better, meter)

    def value_of(schedule: ListSchedule) -> float:
        """Evaluate a schedule's placement, and keep it if it is the best."""
        placement, value = judge_schedule(problem, objective, schedule)
        meter.spend(1)
        best.offer(placement, value)
        return value

    first = chain(_present(problem, objective, features), first_schedules(features))
    policy = trained(weights)
    with handing_on(lambda: None if best.empty else best.answer(best.solution)):
        for _ in policy.schedules(features, first, value_of, looks, samples, seed):
            if not meter.chunk(1):
                break
    return best.answer(best.solution), meter.spent


def _present(
    problem: Problem, objective: Objective, features: PilotMakespanFeatures
) -> Iterator[ListSchedule]:
    """Schedule of the present placement, if the objective includes relocation from it."""
    if objective.relocation is not None:
        order = by_rank(features.tasks, upward(features.tasks))
        yield placed(features.tasks, order, objective.relocation.stay(problem).index)

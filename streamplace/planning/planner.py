"""``plan``: the cheapest machines, parallelisms and placement for a rate, with a proven bound."""

import logging
from collections.abc import Callable

from streamplace.errors import DefectError, ProblemError
from streamplace.model.cluster import Cluster
from streamplace.model.graph import StreamGraph
from streamplace.model.messages import quoted
from streamplace.placers.meter import Meter
from streamplace.planning.bounds import CostBound, proven_bound
from streamplace.planning.improving import with_fewer_subtasks, with_most_room
from streamplace.planning.naming import result_of, step_of
from streamplace.planning.offers import Catalogue
from streamplace.planning.packed import PackedMachines, without_idle
from streamplace.planning.problem import PlanProblem
from streamplace.planning.refusals import check_offers, check_tags, refusal, slow_operator
from streamplace.planning.result import PlanResult, PlanStep, PlanSteps
from streamplace.planning.search import STEPS, PlanSearch
from streamplace.planning.settings import USUAL_SETTINGS, PlanSettings
from streamplace.planning.steps import (
    HIGHEST,
    largest_rate,
    neighbours,
    packed_at,
    promised_rate,
    rate_of,
)
from streamplace.planning.verification import contradictions

LOG = logging.getLogger(__name__)

PROOF = 0.4
"""Share of the time budget for the bound."""
SEARCH = 0.85
"""Share of the time budget after which the search ends if neighbouring steps follow."""
CHEAPEST = 0.95
"""Share of the search for cheaper machines; the rest improves the plan on its machines."""
CHEAPER = 0.93
"""Share of the time budget after which the step with one machine less ends."""


def planned(
    graph: StreamGraph, machines: Catalogue | Cluster, settings: PlanSettings = USUAL_SETTINGS
) -> PlanResult:
    """Return the cheapest plan for the rate of a graph, and a bound of the cost of every plan.

    The machines of a cluster cost 1 each, so that the plan uses few of them.

    Raises
    ------
    ProblemError
        When no machines carry the rate; the message names the resource.
    DefectError
        When the plan fails its own check, which is a defect of streamplace.
    """
    problem, meter = PlanProblem.of(graph, machines, settings), Meter(settings.budget, 1)
    check_tags(problem)
    if slow_operator(problem):
        raise ProblemError(refusal(problem, None))
    check_offers(problem)
    bound = proven_bound(problem.demand, problem.catalogue, _ended(meter, PROOF))
    if bound is None:
        raise ProblemError(refusal(problem, None))
    packings = _cheapest(problem, bound, meter)
    if not packings:
        raise ProblemError(refusal(problem, bound))
    for packed in packings:
        steps = _steps(problem, packed, meter)
        result = result_of(problem, packed, bound, steps)
        reasons = list(contradictions(problem, result))
        if not reasons:
            return result
        LOG.error("a plan for %s failed its check: %s", graph.name, "; ".join(reasons))
    raise DefectError(
        f"the plan for {quoted(graph.name)} was refused, because it failed its check: "
        f"{reasons[0]}; this is a defect of streamplace, please report it with the graph, the "
        f"machines and seed {settings.seed}"
    )


def planned_most(
    graph: StreamGraph, machines: Catalogue | Cluster, settings: PlanSettings = USUAL_SETTINGS
) -> PlanResult:
    """Return a plan for the highest rate for which one is found.

    Raises
    ------
    ProblemError
        When no rate with a plan is found, or no number of machines limits the rate.
    """
    problem = PlanProblem.of(graph, machines, settings)
    check_tags(problem)
    rate = promised_rate(problem.at_rate(HIGHEST))
    if not rate:
        raise ProblemError(refusal(problem, None))
    if rate >= HIGHEST:
        raise ProblemError(
            f"the machines carry any rate of {quoted(graph.name)}, so there is no highest one; "
            "give a rate"
        )
    return planned(graph.at_rate(rate), machines, settings)


def _cheapest(problem: PlanProblem, bound: CostBound, meter: Meter) -> list[PackedMachines]:
    """Search for the cheapest machines; return them improved, and as they were found.

    If the search finds none, pack as a refusal does, which would otherwise promise this rate.
    """
    share = SEARCH if problem.cluster is None else 1.0
    stop, moves = _ended(meter, share * CHEAPEST), problem.settings.budget.evaluations
    search = PlanSearch(problem, stop, moves)
    cheapest = search.run(bound)
    if cheapest is None and search.offer(packed_at(problem)):
        search.shrink(STEPS)
        cheapest = search.best
    if cheapest is None:
        return []
    packed = cheapest
    for improve in (with_fewer_subtasks, with_most_room):
        packed = improve(problem, packed, search.walked, _ended(meter, share))
        packed = without_idle(packed, problem.catalogue)
    return [packed, cheapest]


def _steps(problem: PlanProblem, packed: PackedMachines, meter: Meter) -> PlanSteps:
    """Return the steps with one machine less and one more, if machines are bought."""
    if problem.cluster is not None:
        return None, None
    less, more = neighbours(problem, packed)
    return (
        _step(problem, less, 0.0, _ended(meter, CHEAPER)),
        _step(problem, more, rate_of(problem, packed), _ended(meter, 1.0)),
    )


def _step(
    problem: PlanProblem, counts: tuple[int, ...] | None, least: float, stop: Callable[[], bool]
) -> PlanStep | None:
    """Return the step of these numbers of machines, with a rate of at least ``least``.

    None if the time is over before any rate is known.
    """
    if counts is None:
        return None
    rate, packed = largest_rate(problem, counts, stop)
    if packed is None and not least and stop():
        return None
    return step_of(problem.catalogue, counts, max(rate, least))


def _ended(meter: Meter, share: float) -> Callable[[], bool]:
    """Return a function that tells whether a share of the time budget is used up."""
    whole = meter.seconds

    def ended() -> bool:
        left = meter.seconds
        return left is not None and whole is not None and left <= (1 - share) * whole

    return ended

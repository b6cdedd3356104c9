"""Rates: the largest rate that machines carry, and the highest rate for which a plan is found."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import chain
from math import exp, inf, log, sqrt

import numpy as np

from streamplace.model.arrays import Floats
from streamplace.model.cluster import MAX_DEVICES
from streamplace.model.devices import SLACK
from streamplace.model.units import floor_digits
from streamplace.placers.meter import Meter
from streamplace.placers.registry import Budget
from streamplace.placers.stopwatch import now
from streamplace.planning.bounds import proven_bound
from streamplace.planning.cuts import item_cuts, resource_cuts
from streamplace.planning.demand import Demand
from streamplace.planning.deployment import deployed, fullest_link, has_loops
from streamplace.planning.offers import Offer
from streamplace.planning.packing import (
    CORE,
    CPU,
    EGRESS,
    INGRESS,
    PackedMachines,
    Packing,
    packing_of,
    renumbered,
    uses,
)
from streamplace.planning.parallelism import parallelism_on_fastest
from streamplace.planning.problem import PlanProblem
from streamplace.planning.search import PlanSearch

FLOWING = (CPU, CORE, EGRESS, INGRESS)
"""Resources whose use grows with the rate."""
MIN_RATE, MAX_RATE = 1e-9, 1e12
"""Smallest and largest rate to try for any graph, in tuples/s."""
DIVISIONS = 20
"""Most divisions of the rate by four until one is carried."""
PROBES = 10
"""Rates to try between the largest that was carried and the smallest that was not."""
CLOSE = 1e-4
"""Share by which these two rates may differ at the end."""
PROMISE_SEARCH_SHARE = 0.5
"""Share of the budget for the search of a rate; the rest is for a trial of the rounded rate."""
PROBE_STEPS = 2_000
"""Moves of the annealing runs that find the rate that machines carry."""
HALVINGS = 60
"""Steps of a bisection, after which it is exact up to rounding."""
MANY_MACHINES = 2_000
"""Most machines to pack in the search for a possible rate, unless more are needed."""
MACHINES_PER_SECOND, LIMITED_FACTOR, MANY_OPERATORS = 50, 4, 20
"""Machines of each offer for every second of a budget, or in all without one; how many times as
many if their number is limited; and operators beyond which they are fewer in proportion. Filling
limited ones takes a tenth of the budget, and a search for the highest rate fills them often."""


def rate_of(problem: PlanProblem, packed: PackedMachines) -> float:
    """Rate at which the first resource is full but for the headroom; infinite if none is used.

    The output of a window grows no faster than the rate, so this is not an overestimate.
    """
    packing = packing_of(problem.demand, problem.catalogue, packed.parallelism)
    use = growing_use(problem.demand, packing, packed)
    if problem.is_linked:
        link = fullest_link(deployed(problem, packed))
        use = max(use, 0.0 if link is None else link.use)
    rate = problem.rate / use if use else inf
    if has_loops(problem.demand, packed.parallelism):
        rate = _rate_apart(problem, packed, rate)
    return rate


def _rate_apart(problem: PlanProblem, packed: PackedMachines, upper: float) -> float:
    """Rate up to ``upper`` at which the first resource is full if partners are apart."""
    load = deployed(problem, packed).load_apart
    rate = min(upper, problem.rate / load) if load else upper
    if problem.demand.is_proportional or not load:
        return rate
    # Messages and constant loads grow less than the rate, so the load at the problem's rate may
    # overestimate the carried rate: compute the load at the estimate until it fits.
    for _ in range(HALVINGS):
        estimate = min(rate, problem.rate_limit)
        load = deployed(problem.at_rate(estimate), packed).load_apart
        if load <= 1 + SLACK or estimate <= problem.rate:
            break
        rate = max(problem.rate, estimate / load)
    return rate


def growing_use(demand: Demand, packing: Packing, packed: PackedMachines) -> float:
    """Inverse of the multiple of the rate at which the first machine is full.

    If all CPU grows with the rate, it is the use of the fullest resource. Constant loads and
    messages grow less; bisection then finds the multiple. A machine that constant loads alone fill
    limits only the operators on it.
    """
    if demand.is_proportional:
        return float(uses(packing, packed.kinds, packed.rows)[:, FLOWING].max())

    idle = use_at(demand, packing, packed, 0.0)[:, FLOWING]
    if idle.max() > 1 + SLACK:
        return inf
    full = np.maximum(idle, 1.0)

    def fits(times: float) -> bool:
        return bool((use_at(demand, packing, packed, times)[:, FLOWING] <= full).all())

    low, high = 0.0, 1.0
    while fits(high):
        low, high = high, 2 * high
        if min(high, high * demand.graph.source_rate) > MAX_RATE:
            return 0.0
    times = _bisected(low, high, fits)
    return 1 / times if times else inf


def use_at(demand: Demand, packing: Packing, packed: PackedMachines, times: float) -> Floats:
    """Share of every resource of every machine in use at a multiple of the rate, [D, 6]."""
    needed = times * demand.flowing + demand.constant
    needed += demand.of_messages(packing.parallelism, times)
    at = packing._replace(
        instructions=needed,
        at_max_rate=times * packing.at_max_rate,
        tuples=times * packing.tuples,
        bits=times * packing.bits,
    )
    return uses(at, packed.kinds, packed.rows)


def affordable(problem: PlanProblem) -> PlanProblem:
    """Return the same problem with no more machines of each offer than its budget can fill."""
    seconds, offers = problem.settings.budget.seconds or 1.0, problem.catalogue.offers
    fewer_by = max(1.0, problem.demand.n_operators / MANY_OPERATORS)
    number = int(MACHINES_PER_SECOND * seconds / fewer_by) + 1
    fewer = tuple(replace(o, at_most=max(o.at_least, _fillable(o, number))) for o in offers)
    if problem.cluster is not None or fewer == offers:
        return problem
    return replace(problem, catalogue=replace(problem.catalogue, offers=fewer))


def _fillable(offer: Offer, number: int) -> int:
    return number if offer.at_most == MAX_DEVICES else min(offer.at_most, LIMITED_FACTOR * number)


def largest_rate(
    problem: PlanProblem, meter: Meter, counts: tuple[int, ...] | None = None, upper: float = inf
) -> tuple[float, PackedMachines | None]:
    """Return the largest rate for which a packing is found, and the packing; 0 if there is none.

    ``counts`` are the numbers of machines of each type, by default those of `_ample_numbers`.
    ``upper`` is the first rate to try, unless the resources exclude it. No other rate is tried when
    less than twice the time of the last packing remains: a higher rate takes longer.
    """
    limit = _highest_rate(problem)

    def pack(rate: float) -> tuple[float, PackedMachines | None]:
        at = problem.at_rate(rate)
        at = at if counts else at.with_useful_offers()
        packed = packed_at(at, meter, counts)
        if packed is None:
            return 0.0, None
        carried = min(rate_of(at, packed), limit) if at.after_loss is None else rate
        return carried, renumbered(packed, at.catalogue, problem.catalogue)

    high = rate_not_excluded(problem, counts, min(upper, limit))
    slightly_less = () if counts else (high / (1 + CLOSE),)
    for rate in (high, *slightly_less, *(high / 4**i for i in range(1, DIVISIONS))):
        if rate < MIN_RATE:
            return 0.0, None
        # Once the budget is over, first fit alone is tried, on fewer machines at every rate.
        if meter.seconds == 0 and rate in slightly_less:
            continue
        low, best = pack(rate)
        if best is not None:
            break
    else:
        return 0.0, None
    high, took = min(high, 4 * rate), 0.0
    for _ in range(PROBES):
        rest = meter.seconds
        if meter.over or high <= low * (1 + CLOSE) or (rest is not None and rest < 2 * took):
            break
        middle, start = sqrt(low * high), now()
        carried, packed = pack(middle)
        if packed is None:
            high = middle
        else:
            low, best, took = max(carried, low), packed, now() - start
    return low, best


def promised_rate(problem: PlanProblem, meter: Meter) -> float:
    """Return a rate of six digits, up to that of the problem, for which a plan is found.

    A search may fail at a rate between two rates at which it succeeds. The last resort of `planned`
    therefore tries the rounded rate, so that `planned` cannot refuse it.
    """
    part = Meter(meter.some(PROMISE_SEARCH_SHARE), 1)
    rate, _ = largest_rate(problem, part, upper=problem.rate)
    meter.spend(part.spent)
    for share in (1.0, 1 - CLOSE, 1 - 10 * CLOSE, 1 - 100 * CLOSE, 0.5):
        candidate = float(floor_digits(Fraction(share * rate)))
        if candidate < MIN_RATE:
            break
        if packed_at(problem.at_rate(candidate).with_useful_offers()) is not None:
            return candidate
    return 0.0


def highest_found(problem: PlanProblem, meter: Meter) -> tuple[float, PackedMachines | None]:
    """Return the highest rate of six digits for which machines are found, and these; 0 if none."""
    for at in (problem.at_rate(_highest_rate(problem)), problem):
        rate, packed = largest_rate(at, meter, upper=at.rate)
        rate = float(floor_digits(Fraction(rate)))
        if packed is not None and rate >= MIN_RATE:
            return rate, packed
    return 0.0, None


def packed_at(
    problem: PlanProblem, meter: Meter | None = None, counts: tuple[int, ...] | None = None
) -> PackedMachines | None:
    """Pack the operators of a problem onto machines without minimising the cost."""
    meter = meter or Meter(Budget())  # without a clock, the outcome is always the same
    numbers = counts or _ample_numbers(problem)
    if numbers is None:
        return None
    search = PlanSearch(problem, lambda: meter.remaining, meter.evaluations)
    packed = search.pack(numbers, PROBE_STEPS)
    meter.spend(search.moves)
    return None if packed is None else search.trimmed(packed)


def _highest_rate(problem: PlanProblem) -> float:
    """Largest rate to try; it has six digits."""
    return min(MAX_RATE, float(floor_digits(Fraction(problem.rate_limit))))


def rate_not_excluded(problem: PlanProblem, counts: tuple[int, ...] | None, upper: float) -> float:
    """Largest rate up to ``upper`` that neither total resources nor core speeds exclude."""
    numbers = counts or tuple(offer.at_most for offer in problem.catalogue.offers)

    def is_possible(rate: float) -> bool:
        return _is_possible(problem.at_rate(rate), numbers)

    if is_possible(upper):
        return upper
    return exp(_bisected(log(MIN_RATE), log(upper), lambda x: is_possible(exp(x))))


def _is_possible(problem: PlanProblem, counts: tuple[int, ...]) -> bool:
    """Whether neither the total resources of these machines nor their cores exclude the rate."""
    demand, catalogue = problem.demand, problem.catalogue
    if not parallelism_on_fastest(demand, catalogue, counts).all():
        return False
    cuts = chain(resource_cuts(demand, catalogue), item_cuts(demand, catalogue))
    return all(cut.holds(counts) for cut in cuts)


def _ample_numbers(problem: PlanProblem) -> tuple[int, ...] | None:
    """Return four times the cheapest numbers of machines that the quickest bound allows, or None.

    If these are more than `MANY_MACHINES`, return only that many, or twice the cheapest numbers.
    Other types stand in for a type with too few machines, as in a cluster, or with cores that are
    too slow for an operator.
    """
    bound = proven_bound(
        problem.demand, problem.catalogue, lambda: True, after_loss=problem.after_loss
    )
    if bound is None:
        return None
    least = sum(bound.counts)
    limit = max(MANY_MACHINES, min(2 * least, MAX_DEVICES))
    times = min(Fraction(4), Fraction(limit, max(1, least)))
    offers, numbers = problem.catalogue.offers, [int(times * count) for count in bound.counts]
    exceeds_offers = any(n > offer.at_most for n, offer in zip(numbers, offers, strict=True))
    if exceeds_offers or not _is_possible(problem, tuple(numbers)):
        numbers = [max(1, sum(numbers))] * len(offers)
    counts = tuple(
        min(offer.at_most, max(offer.at_least, n)) for n, offer in zip(numbers, offers, strict=True)
    )
    counts = counts if sum(counts) <= limit else bound.counts
    return counts if sum(counts) <= MAX_DEVICES else None


def _bisected(low: float, high: float, fits: Callable[[float], bool]) -> float:
    """Return the largest number that fits, between one that does and one that does not."""
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low

"""``plan``: the cheapest machines, parallelisms and placement for a rate, with a proven bound."""

from collections.abc import Callable
from fractions import Fraction
from math import inf

import numpy as np

from streamplace.errors import ProblemError, SettingError
from streamplace.model.graph import StreamGraph
from streamplace.model.messages import quoted
from streamplace.placers.meter import Meter
from streamplace.placers.registry import Budget
from streamplace.planning.bounds import CostBound, proven_bound
from streamplace.planning.contents import allowed
from streamplace.planning.cuts import least_parallelism
from streamplace.planning.demand import Demand, demand_of
from streamplace.planning.headroom import Headroom
from streamplace.planning.naming import result_of, step_of
from streamplace.planning.offers import Catalogue
from streamplace.planning.result import PlanResult, PlanStep, PlanSteps
from streamplace.planning.search import PackedMachines, PlanSearch

USUAL = Budget(10.0)
NONE = Headroom()
USUAL_ERROR = 0.15
"""Share by which operators cost more than measured: nine of ten predictions are within it."""
PROOF = 0.4
"""Share of the time that the bound may take."""
PROBES = 12
"""Halvings of the interval in which the largest rate lies."""
STEP_PROBES = 7
"""Halvings for plans of one machine less or more."""
PROBE_STEPS = 2_000
"""Moves of the walks that ask what machines carry."""


def planned(
    graph: StreamGraph,
    catalogue: Catalogue,
    *,
    headroom: Headroom = NONE,
    robust: int = 0,
    error: float = USUAL_ERROR,
    seed: int = 0,
    budget: Budget = USUAL,
    neighbours: bool = True,
) -> PlanResult:
    """Return the cheapest plan for the rate of a graph, and a bound of the cost of every plan.

    Parameters
    ----------
    headroom
        What is to be possible beside the rate, for which a share of every resource stays free.
    robust
        Operators on each machine that may cost more than the graph says at the same time, Γ.
    error
        Share by which they may cost more.
    neighbours
        Whether to ask as well what one machine less and one more carry.

    Raises
    ------
    ProblemError
        When no machines carry the rate; the message names the resource.
    """
    if robust < 0 or not 0 <= error < inf:
        raise SettingError(f"robust is {robust} and error {error:g}; they must be 0 or more")
    free = headroom.share(graph, catalogue)
    demand = demand_of(graph.at_rate(graph.source_rate / (1 - free)), error, robust)
    check_tags(demand, catalogue)
    if _slow_operator(demand, catalogue):
        raise ProblemError(_refusal(graph, demand, catalogue, None, seed))
    check_offers(demand, catalogue)
    meter = Meter(budget, 1)
    half = _ended(meter, PROOF)
    bound = proven_bound(demand, catalogue, half)
    search = PlanSearch(demand, catalogue, seed, _ended(meter, 1.0), budget.evaluations)
    packed = None if bound is None else search.run(bound)
    if bound is None or packed is None:
        raise ProblemError(_refusal(graph, demand, catalogue, bound, seed))
    steps: PlanSteps = (None, None)
    if neighbours:
        steps = neighbouring_steps(graph, demand, catalogue, packed, seed)
    return result_of(graph, demand, catalogue, packed, bound, steps, headroom=free, seed=seed)


def check_tags(demand: Demand, catalogue: Catalogue) -> None:
    """Raise ProblemError for an operator whose tags no offer has."""
    runs = allowed(demand, catalogue)
    for v, required in enumerate(demand.requires):
        if not runs[:, v].any():
            tags = ", ".join(sorted(required))
            raise ProblemError(
                f"operator {quoted(demand.name[v])} requires {tags}, which no offer has; add the "
                "tags to an offer"
            )


def check_offers(demand: Demand, catalogue: Catalogue) -> None:
    """Raise ProblemError for an offer that can run no operator."""
    runs = allowed(demand, catalogue)
    for t, offer in enumerate(catalogue.offers):
        fits = [
            v
            for v in np.flatnonzero(runs[t]).tolist()
            if least_parallelism(demand, v, offer.core_speed)
            and _stores(demand, v, float(offer.memory))
        ]
        if not fits:
            raise ProblemError(
                f"offer {quoted(offer.name)} can never be used: no operator of "
                f"{quoted(demand.graph.name)} fits on it at this rate; remove the offer"
            )


def _stores(demand: Demand, v: int, memory: float) -> bool:
    """Whether the smallest subtask of an operator fits into memory."""
    most = int(demand.most[v])
    return demand.memory[v] <= memory * (most or 4096)


def _ended(meter: Meter, share: float) -> Callable[[], bool]:
    """Whether a share of the time is over."""
    whole = meter.seconds

    def ended() -> bool:
        left = meter.seconds
        return left is not None and whole is not None and left <= (1 - share) * whole

    return ended


def _refusal(
    graph: StreamGraph, demand: Demand, catalogue: Catalogue, bound: CostBound | None, seed: int
) -> str:
    """Say why no machines carry a rate, and which rate they do carry."""
    rate = graph.source_rate
    largest = largest_rate(graph, demand, catalogue, seed)
    carried = f"the largest rate with a plan is {largest:.6g} tuples/s"
    slow = _slow_operator(demand, catalogue)
    if slow:
        return f"no offers carry {rate:.6g} tuples/s: {slow}; {carried}"
    if bound is None:
        return (
            f"no offers carry {rate:.6g} tuples/s: {_short_resource(demand, catalogue)}; {carried}"
        )
    return (
        f"no plan for {rate:.6g} tuples/s was found within the budget, and none is excluded; raise "
        f"the budget or at_most ({carried})"
    )


def _slow_operator(demand: Demand, catalogue: Catalogue) -> str:
    """Say which operator no core is fast enough for; an empty text where all find one."""
    runs = allowed(demand, catalogue)
    for v, name in enumerate(demand.name):
        speeds = [o.core_speed for t, o in enumerate(catalogue.offers) if runs[t, v]]
        if not least_parallelism(demand, v, max(speeds)):
            share = Fraction(1, int(demand.most[v]))
            return (
                f"with max_parallelism {demand.most[v]}, the busiest subtask of operator "
                f"{quoted(name)} needs at least {float(share) * demand.heaviest[v] / 1e6:.6g} "
                f"MIPS, and the fastest core has {max(speeds) / 1e6:.6g}"
            )
    return ""


def _short_resource(demand: Demand, catalogue: Catalogue) -> str:
    """Say which resource all machines together have too little of."""
    offers = catalogue.offers
    for word, unit, need, rooms in (
        ("CPU", "MIPS", demand.instructions.sum() / 1e6, [o.instructions / 1e6 for o in offers]),
        ("memory", "bytes", demand.memory.sum(), [float(o.memory) for o in offers]),
    ):
        room = sum(r * o.at_most for r, o in zip(rooms, offers, strict=True))
        if need > room:
            heaviest = demand.instructions if word == "CPU" else demand.memory
            name = quoted(demand.name[int(np.argmax(heaviest))])
            return (
                f"the operators need {need:.6g} {unit} of {word}, most of it {name}, and all "
                f"machines together have {room:.6g}"
            )
    return "the network cards, slots or memory of all machines together are too small"


def neighbouring_steps(
    graph: StreamGraph, demand: Demand, catalogue: Catalogue, packed: PackedMachines, seed: int
) -> PlanSteps:
    """What the plan carries without its cheapest machine, and with one more of the cheapest."""
    offers, counts = catalogue.offers, packed.counts(len(catalogue.offers))
    by_price = sorted(range(len(offers)), key=lambda t: offers[t].price)
    less = next((t for t in by_price if counts[t] > offers[t].at_least), None)
    more = next((t for t in by_price if counts[t] < offers[t].at_most), None)
    steps: list[PlanStep | None] = []
    for kind, change, top in ((less, -1, 1.0), (more, 1, 2.0)):
        if kind is None or sum(counts) + change == 0:
            steps.append(None)
            continue
        changed = tuple(n + change * (t == kind) for t, n in enumerate(counts))

        def carries(factor: float, machines: tuple[int, ...] = changed) -> bool:
            search = PlanSearch(demand.at_rate(factor), catalogue, seed)
            return search.pack(machines, PROBE_STEPS) is not None

        rate = _largest(carries, top, STEP_PROBES) * graph.source_rate
        steps.append(step_of(catalogue, changed, rate))
    return steps[0], steps[1]


def largest_rate(graph: StreamGraph, demand: Demand, catalogue: Catalogue, seed: int) -> float:
    """Return the largest rate for which the cheapest machines were found, and some more."""

    def carries(factor: float) -> bool:
        slower = demand.at_rate(factor)
        bound = proven_bound(slower, catalogue, lambda: True)
        if bound is None:
            return False
        counts = [
            min(offer.at_most, max(offer.at_least, 4 * count))
            for offer, count in zip(catalogue.offers, bound.counts, strict=True)
        ]
        search = PlanSearch(slower, catalogue, seed)
        return search.pack(counts, PROBE_STEPS) is not None

    return _largest(carries, 1.0, PROBES) * graph.source_rate


def _largest(carries: Callable[[float], bool], top: float, probes: int) -> float:
    """Return the largest factor of the rate, up to ``top``, that is carried, by bisection."""
    low, high = 0.0, top
    for _ in range(probes):
        middle = (low + high) / 2
        if carries(middle):
            low = middle
        else:
            high = middle
    return low

"""``plan``: the cheapest machines, parallelisms and placement for a rate, with a proven bound.

The planner proves a bound, searches, improves the plan that it finds, and checks the result. Its
notes state its assumptions. A refusal gives the reason why no machines carry a rate, and a rate for
which a plan was found.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from math import inf, isfinite
from typing import NamedTuple

import numpy as np

from streamplace.display.assumptions import NO_CPU, of_memory, of_payload
from streamplace.display.report import duration
from streamplace.errors import DefectError, ProblemError
from streamplace.model.arrays import Floats, Longs
from streamplace.model.cluster import MAX_DEVICES, Cluster
from streamplace.model.devices import SLACK
from streamplace.model.graph import StreamGraph
from streamplace.model.message_text import quoted
from streamplace.model.operators import MAX_SUBTASKS
from streamplace.model.units import digits, exact_digits, floor_digits, format_bytes
from streamplace.objectives.survives import Loss
from streamplace.placers.meter import Meter, Remaining
from streamplace.placers.stopwatch import now
from streamplace.planning.bounds import CostBound, proven_bound
from streamplace.planning.cuts import MARGIN, ResourceNeed, item_cuts, resource_needs
from streamplace.planning.demand import (
    Demand,
    least_need,
    least_share,
    slot_groups,
    slots_of,
    subtask_speeds,
)
from streamplace.planning.deployment import PlannedDeployment, deployed, fullest_link
from streamplace.planning.enumeration import Enumeration, is_small
from streamplace.planning.offers import Catalogue, Prices
from streamplace.planning.packing import (
    CORE,
    CPU,
    EGRESS,
    INGRESS,
    MEMORY,
    RESOURCES,
    SLOTS,
    PackedMachines,
    Packing,
    allowed,
    capacities,
    packing_of,
    renumbered,
    uses,
)
from streamplace.planning.parallelism import parallelism_on_fastest, streams_between
from streamplace.planning.problem import USUAL_SETTINGS, PlannerSettings, PlanProblem
from streamplace.planning.rates import (
    CLOSE,
    FLOWING,
    MIN_RATE,
    affordable,
    growing_use,
    highest_found,
    largest_rate,
    packed_at,
    promised_rate,
    rate_not_excluded,
    rate_of,
    use_at,
)
from streamplace.planning.result import PlanLimit, PlanResult, PlanSlots
from streamplace.planning.rules import each_left_out, words_of
from streamplace.planning.search import STEPS, PlanSearch
from streamplace.planning.survival import losses_of
from streamplace.planning.verification import contradictions

PROOF_SHARE = 0.4
"""Share of the time budget for the bound."""
LARGE, LATE = 200, 1.1
"""Operators or machines above which a note tells if the search took this multiple of its budget."""
SEARCH_SHARE = 0.93
"""Share of the budget for the search; in the rest, the planner tries one machine less."""
CHEAPEST_SHARE = 0.95
"""Part of the search's time for cheaper machines; the rest improves the plan on its machines."""
IN_VAIN_SHARE = 0.7
"""Share of the time budget for a search that finds no plan; in the rest, its refusal looks for a
possible rate."""
MAX_BLAMED = 20
"""Most rules that a refusal tries to leave out."""
HIGHEST_SHARE, CHECKS, MIN_SECONDS = 0.4, 6, 1e-3
"""Share of the budget for the highest rate, before the search for its plan; time of the description
and check of the plan, which no clock ends, in deployments; least seconds of the search."""


def planned(
    graph: StreamGraph, machines: Catalogue | Cluster, settings: PlannerSettings = USUAL_SETTINGS
) -> PlanResult:
    """Return the cheapest plan for the rate of a graph, and a bound of the cost of every plan.

    The machines of a cluster cost 1 each, so that the plan uses few of them.
    """
    return _planned(graph, machines, settings, now(), settings.budget.seconds)


def _planned(
    graph: StreamGraph,
    machines: Catalogue | Cluster,
    settings: PlannerSettings,
    start: float,
    seconds: float | None,
    known: PackedMachines | None = None,
) -> PlanResult:
    """Return a plan as part of a search that started at a time, with a budget of these seconds.

    ``known`` are machines that carry the rate, for a search that finds none.
    """
    problem = PlanProblem.of(graph, machines, settings)
    meter = Meter(settings.budget)
    useful = problem.with_useful_offers()
    bound = _bound(problem, meter)
    if known is not None:
        known = renumbered(known, problem.catalogue, useful.catalogue)
    cheapest = _Cheapest(None, None, False)
    if bound is not None:
        cheapest = _cheapest(useful, bound, meter, known)
    if cheapest.bound is None or cheapest.packed is None:
        raise ProblemError(refusal(problem, cheapest.bound, meter, is_over=cheapest.is_over))
    fewest, notes = _with_fewer_machines(useful, cheapest.packed, meter)
    took, budget = now() - start, seconds or inf
    if max(problem.demand.n_operators, len(fewest.kinds)) > LARGE and took > LATE * budget:
        late = f"The search took {duration(took)} instead of {duration(budget)}"
        notes = (f"{late}, because there are so many operators or machines.", *notes)
    result = result_of(useful, fewest, cheapest.bound)
    result = replace(result, notes=(*notes, *result.notes))
    reason = next(contradictions(problem, result), None)
    if reason is None:
        return result
    raise DefectError(
        f"the plan for {quoted(graph.name)} was refused, because it failed its check: "
        f"{reason}; this is a defect of streamplace, please report it with the graph, the "
        f"machines and seed {settings.seed}"
    )


def planned_most(
    graph: StreamGraph, machines: Catalogue | Cluster, settings: PlannerSettings = USUAL_SETTINGS
) -> PlanResult:
    """Return a plan for the highest tried rate for which one is found."""
    start = now()
    problem, meter = PlanProblem.of(graph, machines, settings), Meter(settings.budget, 1)
    reduced = affordable(problem)
    part = Meter(meter.some(HIGHEST_SHARE), 1)
    rate, packed = highest_found(reduced, part)
    meter.spend(part.spent)
    if not rate:
        raise ProblemError(refusal(problem, _bound(problem, meter), meter, is_over=meter.late))
    rate, packed, took = _checkable(reduced, rate, packed, meter)
    notes = []
    if reduced is not problem:
        number = max(offer.at_most for offer in reduced.catalogue.offers)
        notes = [
            f"In this budget, the highest rate was sought with at most {number} machines a type."
        ]
    if part.late:
        notes.append(
            "The budget ended the search for the highest rate; a larger one may find more."
        )
    budget, seconds = meter.some(1.0), settings.budget.seconds
    if budget.seconds is not None:
        budget = replace(budget, seconds=max(MIN_SECONDS, budget.seconds - CHECKS * took))
    rest = replace(settings, budget=budget)
    result = _planned(graph.at_rate(rate), machines, rest, start, seconds, packed)
    result = replace(result, notes=(*notes, *result.notes))
    if not isfinite(result.carries):
        raise ProblemError(
            f"the machines carry any rate of {quoted(graph.name)}, so there is no highest one; "
            "give a rate"
        )
    return result


def _checkable(
    problem: PlanProblem, rate: float, packed: PackedMachines | None, meter: Meter
) -> tuple[float, PackedMachines | None, float]:
    """Return a rate, machines that carry it, and the seconds of one deployment.

    The rate is halved until the time suffices for the deployments of a check, or runs out.
    """
    while packed is not None:
        start = now()
        deployed(problem.at_rate(rate), packed)
        took, rest = now() - start, meter.seconds
        if not rest or CHECKS * took < rest:
            return rate, packed, took
        lower = float(floor_digits(Fraction(rate / 2)))
        smaller = packed_at(problem.at_rate(lower), meter) if lower >= MIN_RATE else None
        if smaller is None:
            return rate, packed, took
        rate, packed = lower, smaller
    return rate, packed, 0.0


def _bound(problem: PlanProblem, meter: Meter) -> CostBound | None:
    """Bound of the cost of every plan; None if it is proven that there is no plan."""
    if not parallelism_on_fastest(problem.demand, problem.catalogue).all():
        return None  # no core is fast enough for some operator
    if problem.cluster is None and not problem.useful_offers:
        raise ProblemError(
            f"offer {quoted(problem.catalogue.offers[0].name)} can never be used: no operator of "
            f"{quoted(problem.graph.name)} fits on it at this rate; add a larger one"
        )
    useful = problem.with_useful_offers()
    stop, after_loss = _ended(meter, PROOF_SHARE), useful.after_loss
    return proven_bound(useful.demand, useful.catalogue, stop, after_loss=after_loss)


class _Cheapest(NamedTuple):
    """The cheapest machines found, and a bound of the cost of all machines that carry the rate."""

    packed: PackedMachines | None  # None if none were found
    bound: CostBound | None  # None if it is proven that there is no plan
    is_over: bool  # whether the budget ended the search


def _cheapest(
    problem: PlanProblem, bound: CostBound, meter: Meter, known: PackedMachines | None
) -> _Cheapest:
    """Search for the cheapest machines; try all plans of a small problem if that proves nothing.

    If the search finds none, try the packing by which an error message finds a possible rate, so
    that it cannot name the refused rate.
    """
    share = SEARCH_SHARE if problem.cluster is None else 1.0
    whole, in_vain = _part(meter, share * CHEAPEST_SHARE), _part(meter, IN_VAIN_SHARE)

    def remaining() -> Remaining:
        return in_vain() if search.best is None else whole()

    moves = None if meter.evaluations is None else int(share * meter.evaluations)
    max_streams = inf
    if known is not None and meter.seconds is not None:
        max_streams = float(streams_between(problem.demand, known.parallelism))
    search = PlanSearch(problem, remaining, moves, max_streams)
    cheapest, is_over = search.run(bound), search.is_over
    cost, unit = search.cost, Prices.of(problem.catalogue).unit
    if is_small(problem) and (cost is None or cost * unit > bound.value):
        cheaper, raised = Enumeration(problem, search.accept, search.is_late).run(bound, cost)
        if raised is None:
            return _Cheapest(None, None, is_over)
        search.offer(cheaper)
        cheapest, bound = search.best, raised
    if cheapest is None and search.offer(known or packed_at(problem)):
        search.shrink(STEPS)
        cheapest = search.best
    packed = cheapest
    for improve in (search.with_fewer_subtasks, search.with_highest_rate):
        if packed is not None:
            packed = search.trimmed(improve(packed, _ended(meter, share)))
    meter.spend(search.moves)
    return _Cheapest(packed, bound, is_over)


def _with_fewer_machines(
    problem: PlanProblem, packed: PackedMachines, meter: Meter
) -> tuple[PackedMachines, tuple[str, ...]]:
    """Leave out machines of the cheapest possible types one by one, as long as the rest is enough.

    Also return a note on the rate that one machine less carries.
    """
    if problem.cluster is not None or problem.after_loss is not None or meter.late:
        return packed, ()
    offers, rest = problem.catalogue.offers, Meter(meter.some(1.0))
    priced = (t for t, offer in enumerate(offers) if offer.price)
    by_price = sorted(priced, key=lambda t: offers[t].price)
    while True:
        counts = packed.counts(len(offers))
        less = next((t for t in by_price if counts[t] > offers[t].at_least), None)
        if less is None or sum(counts) == 1 or rest.over:
            return packed, ()
        fewer = tuple(n - (t == less) for t, n in enumerate(counts))
        rate, smaller = largest_rate(problem, rest, fewer)
        if smaller is None:
            return packed, ()
        if rate_of(problem, smaller) < problem.rate * (1 - SLACK):
            excluded = rate_not_excluded(problem, fewer, problem.rate)
            if rest.over and rate * (1 + CLOSE) < excluded:  # found in a search that was cut short
                return packed, ()
            cost = Prices.of(problem.catalogue).per_hour(fewer)
            carries = f"{digits(problem.with_reserve(rate), 6)} tuples/s for {cost:g} per hour"
            one = problem.catalogue.family(offers[less].name)
            return packed, (f"With one {one} less, a plan carries {carries}.",)
        packed = smaller


def _part(meter: Meter, share: float) -> Callable[[], Remaining]:
    """Return a function that returns the remaining seconds of a share of the time budget."""
    rest = (1 - share) * (meter.seconds or 0.0)

    def remaining() -> Remaining:
        budget = meter.remaining
        if budget.seconds is None:
            return budget
        return budget._replace(seconds=max(0, budget.seconds - rest))

    return remaining


def _ended(meter: Meter, share: float) -> Callable[[], bool]:
    """Return a function that tells whether a share of the time budget is used up."""
    remaining = _part(meter, share)
    return lambda: remaining().seconds == 0


def result_of(problem: PlanProblem, packed: PackedMachines, bound: CostBound) -> PlanResult:
    """Return the plan of packed machines, with names in place of numbers."""
    catalogue, graph = problem.catalogue, problem.graph
    deployment = deployed(problem, packed)
    unreserved, at_rate = problem, deployment
    if problem.reserved:  # the reserve is free, so the use is that of the rate itself
        unreserved = replace(problem, reserved=0.0)
        at_rate = deployed(unreserved, packed)
    demand = unreserved.demand
    packing = packing_of(demand, catalogue, packed.parallelism)
    use = uses(packing, packed.kinds, packed.rows)
    if at_rate.is_apart:
        use = np.maximum(use, _simulated_use(at_rate, packed))
    counts = packed.counts(len(catalogue.offers))
    names, slots = _machines(problem, packed, deployment.cluster.devices.name)
    limit = _limit(demand, packed, packing, names, use)
    machines, prices = dict.fromkeys(names, 1), dict[str, float]()
    if problem.cluster is None:
        numbers = Counter[str]()
        for offer, n in zip(catalogue.offers, counts, strict=True):
            numbers[catalogue.family(offer.name)] += n
            prices[catalogue.family(offer.name)] = float(offer.price)
        machines = {name: n for name, n in numbers.items() if n}
    elif problem.is_priced:
        price_of = problem.cluster.devices.price[packed.devices]
        prices = dict(zip(names, price_of.tolist(), strict=True))
    if problem.is_linked:
        link = fullest_link(at_rate)
        fullest = limit.use if demand.is_proportional else growing_use(demand, packing, packed)
        limit = limit if link is None or link.use <= fullest else link
    losses: tuple[Loss, ...] = ()
    if problem.after_loss is not None:
        devices = np.arange(len(packed.kinds)) if packed.devices is None else packed.devices
        losses = losses_of(problem, deployment, devices.astype(np.int32))
    notes, rules = [], problem.settings.constraints
    if problem.after_loss is not None and rules is not None and rules.pin:
        pins = ", ".join(f"{name} to {place}" for name, place in rules.pin.items())
        notes.append(f"Pins do not count after the loss of their machine: {pins}.")
    if assumed := "; ".join(_assumed(problem)):
        notes.append(f"Assumed: {assumed}.")
    return PlanResult(
        graph=deployment.expansion.original.at_rate(graph.source_rate),
        rate=graph.source_rate,
        headroom=problem.reserved,
        cost=Prices.of(catalogue).per_hour(counts),
        bound=bound.value,
        bounds=bound.by_strength,
        machines=machines,
        parallelism=dict(zip(demand.name, packed.parallelism.tolist(), strict=True)),
        cluster=deployment.cluster,
        placement=deployment.placement,
        limit=limit,
        free=_free(packing.capacity[packed.kinds], use),
        carries=problem.with_reserve(rate_of(problem, packed)),
        seed=problem.settings.seed,
        slots=slots,
        prices=prices,
        alone=catalogue.alone if problem.cluster is None else frozenset(names),
        errors=problem.settings.errors,
        reserves=problem.reserves,
        survives=problem.settings.survives,
        losses=losses,
        notes=tuple(notes),
    )


def _simulated_use(deployment: PlannedDeployment, packed: PackedMachines) -> Floats:
    """Share of every resource of every machine in use in the simulator, [D, 6], or 0."""
    loads, use = deployment.loads, np.zeros((len(packed.kinds), len(RESOURCES)))
    machines = np.arange(len(use)) if packed.devices is None else packed.devices
    columns = {CPU: loads.devices, CORE: loads.cores, EGRESS: loads.egress, INGRESS: loads.ingress}
    for resource, load in columns.items():
        use[:, resource] = load[machines]
    return use


def _machines(
    problem: PlanProblem, packed: PackedMachines, devices: tuple[str, ...]
) -> tuple[tuple[str, ...], PlanSlots]:
    """Names of the machines in order, and the slots of the job and of machines or their types."""
    demand, catalogue = problem.demand, problem.catalogue
    slots = slots_of(slot_groups(demand, catalogue), packed.rows)
    if packed.devices is None:
        names = devices
        largest = dict[str, int]()
        for t, offer in enumerate(catalogue.offers):
            name, in_use = catalogue.family(offer.name), slots[packed.kinds == t]
            if len(in_use):
                largest[name] = max(largest.get(name, 0), int(in_use.max()))
    else:
        names = tuple(devices[d] for d in packed.devices.tolist())
        largest = dict(zip(names, slots.tolist(), strict=True))
    separate = int(packed.parallelism.sum())
    shared = int(slots_of(demand.slot_group, packed.parallelism[None])[0])
    return names, PlanSlots(catalogue.slot_sharing, separate, shared, largest)


def _limit(
    demand: Demand, packed: PackedMachines, packing: Packing, names: tuple[str, ...], use: Floats
) -> PlanLimit:
    """Return the resource that is full first if the rate grows."""
    flowing = np.zeros(use.shape[1])
    flowing[list(FLOWING)] = 1  # memory and slots in use do not grow with the rate
    full = use
    if not demand.is_proportional:
        inverse = growing_use(demand, packing, packed)
        if inverse > 0:
            full = use_at(demand, packing, packed, 1 / inverse)
            full *= full > use_at(demand, packing, packed, 0.0)  # constant loads alone limit none
    growing = full * flowing if (use[:, FLOWING] > 0).any() else use
    machine, resource = np.unravel_index(int(np.argmax(growing)), use.shape)
    share = packed.rows[machine] / packed.parallelism
    busiest = packing.most[:, 1]
    waiting = packing.at_max_rate * packing.capacity[packed.kinds[machine], CORE]
    per_core = packing.instructions / packing.cores
    needs = {
        "cpu": packing.instructions * share,
        "core": np.maximum(per_core, waiting) * busiest * (share > 0),
        "memory": demand.memory * share,
        "slots": packed.rows[machine].astype(np.float64),
        "egress": np.bincount(demand.source, demand.bits, demand.n_operators) * share,
        "ingress": np.bincount(demand.target, demand.bits, demand.n_operators) * share,
    }
    name = RESOURCES[resource]
    v = int(np.argmax(needs[name]))
    if name == "core" and waiting[v] > per_core[v]:
        name = "max_rate"
    return PlanLimit(name, names[machine], demand.name[v], float(use[machine, resource]))


def _free(capacity: Floats, use: Floats) -> dict[str, float]:
    """Free share of each resource, over all machines that limit it."""
    free = {}
    for r, name in enumerate(RESOURCES):
        limited = np.isfinite(capacity[:, r])
        if r != CORE and limited.any():
            used = (use[limited, r] * capacity[limited, r]).sum()
            free[name] = float(1 - used / capacity[limited, r].sum())
    return free


def _assumed(problem: PlanProblem) -> Iterator[str]:
    """Costs and limits that neither the graph nor the machines state."""
    graph, offers = problem.graph, problem.catalogue.offers
    memory = of_memory(graph, is_limited=any(isfinite(float(offer.memory)) for offer in offers))
    yield from filter(None, [memory])
    if not (graph.charged_ipt.any() or graph.operators.constant.any()):
        yield NO_CPU
    yield from of_payload(graph)


def refusal(problem: PlanProblem, bound: CostBound | None, meter: Meter, *, is_over: bool) -> str:
    """Reason why no machines carry a rate, and the largest rate for which a plan was found.

    ``is_over`` tells whether the budget ended the search, so that a larger one may help.
    """
    demand, catalogue = problem.demand, problem.with_useful_offers().catalogue
    rate = f"{digits(problem.rate, 6)} tuples/s"
    if problem.after_loss is not None:
        rate += f" with survives>={exact_digits(problem.settings.survives)}"
    is_timed = problem.settings.budget.seconds is not None
    promised = promised_rate(affordable(problem) if is_timed else problem, meter)
    carried = (
        f"a plan was found for up to {digits(promised, 6)} tuples/s"
        if promised
        else "no smaller rate with a plan was found either"
    )
    if problem.settings.errors is not None:
        carried += f", where the plan is to hold with {problem.settings.errors.words}"
    nothing = "no offers carry" if problem.cluster is None else "the cluster does not carry"
    reason = slow_operator(problem)
    if reason or bound is None:
        reason = reason or _short_after_loss(problem) or _short_resource(demand, catalogue)
        return f"{nothing} {rate}: {reason}{_blamed(problem, meter)}; {carried}"
    within, budget = (" within the budget", "raise the budget, ") if is_over else ("", "")
    missed = f"no plan was found{within} for {rate}, but one may exist; "
    if problem.cluster is not None:
        return (
            f"{missed}the machines or the links between them may be too slow; {budget}add "
            f"machines, or lower the rate ({carried})"
        )
    limited = any(offer.at_most < MAX_DEVICES for offer in catalogue.offers)
    more = "raise at_most, " if limited else ""
    return f"{missed}{budget}{more}add larger machines, or lower the rate ({carried})"


def _short_after_loss(problem: PlanProblem) -> str:
    """Clause about the machine whose loss leaves too little; empty if all carry too little."""
    demand, catalogue = problem.after_loss, problem.with_useful_offers().catalogue
    if demand is None or proven_bound(problem.demand, catalogue) is None:
        return ""
    for offer in sorted(catalogue.offers, key=lambda offer: -offer.instructions):
        fewer = replace(offer, at_most=offer.at_most - 1, at_least=0) if offer.at_most > 1 else None
        others = (fewer if o is offer else o for o in catalogue.offers)
        rest = tuple(o for o in others if o is not None)
        lost = f"after the loss of one {catalogue.family(offer.name)}"
        if not rest:
            return f"{lost}, no machine is left"
        less = replace(catalogue, offers=rest)
        if proven_bound(demand, less) is None:
            return f"{lost}, {_short_resource(demand, less)}"
    return ""


def _blamed(problem: PlanProblem, meter: Meter) -> str:
    """Clause about a rule without which the rate is not excluded; empty if there is none."""
    rules = problem.settings.constraints
    if rules is None or not problem.rules:
        return ""
    for words, fewer in islice(each_left_out(rules), MAX_BLAMED):
        try:
            other = problem.with_constraints(fewer)
            if not slow_operator(other) and _bound(other, meter) is not None:
                return f", under {words}"
        except ProblemError:
            continue
    return ""


def slow_operator(problem: PlanProblem) -> str:
    """Clause about an operator for which no core is fast enough; empty if there is none."""
    demand, catalogue = problem.demand, problem.catalogue
    subtasks = parallelism_on_fastest(demand, catalogue)
    if subtasks.all():
        return ""
    v = int(np.argmin(subtasks != 0))
    name, parallelism = quoted(demand.name[v]), int(demand.parallelism_limit[v])
    if not parallelism:
        return f"operator {name} needs more than {MAX_SUBTASKS} subtasks"
    limit = "parallelism" if demand.keeps[v] else "max_parallelism"
    busiest = f"with {limit} {parallelism}, the busiest subtask of operator {name}"
    waiting = least_share(demand, v, parallelism) * float(demand.at_max_rate[v])
    if waiting > 1:
        rate = float(demand.graph.operators.max_rate[v])
        return (
            f"{busiest} would read {digits(waiting * rate, 6)} tuples/s, and its max_rate is "
            f"{digits(rate, 6)}"
        )
    fastest = float(subtask_speeds(demand, catalogue)[allowed(demand, catalogue)[:, v], v].max())
    need = least_need(demand, v, parallelism, fastest)
    cores = "core has" if demand.graph.operators.cores[v] == 1 else "cores for it have"
    return (
        f"{busiest} needs at least {_mips(need)}, and the fastest {cores} "
        f"{digits(fastest / 1e6, 6)}"
    )


def _mips(instructions: float) -> str:
    """Format instructions per second as a speed in MIPS."""
    return f"{digits(instructions / 1e6, 6)} MIPS"


def _short_resource(demand: Demand, catalogue: Catalogue) -> str:
    """Clause about a resource of which all machines together have too little."""
    offers, capacity = catalogue.offers, capacities(catalogue)
    needs = resource_needs(demand, catalogue)
    for need in sorted(needs, key=lambda need: -len(need.tags)):
        columns = zip(capacity[:, need.resource].tolist(), offers, need.runs, strict=True)
        available = sum(c * offer.at_most for c, offer, runs in columns if runs)
        if need.total > float(MARGIN) * available:
            return _too_little(demand, catalogue, need, available)
    every = tuple(offer.at_most for offer in offers)
    for cut in item_cuts(demand, catalogue):
        if not cut.holds(every):
            word = "CPU" if cut.origin == "cpu items" else "memory"
            return (
                f"all machines together have enough {word}, but the parts of operators that "
                "cannot be divided do not fit on them"
            )
    return "CPU, memory, slots and network cards of all machines together do not suffice at once"


def _too_little(demand: Demand, catalogue: Catalogue, need: ResourceNeed, available: float) -> str:
    """Clause about a need that exceeds the capacity of all machines."""
    which, machines = "the operators", "all machines"
    if need.tags:
        which += f" that {words_of(need.tags)}"
        machines += " that may run them"
    resources: dict[int, tuple[Floats | Longs, Callable[[float], str]]] = {
        CPU: (demand.instructions, lambda speed: f"{_mips(speed)} of CPU"),
        MEMORY: (demand.memory, lambda size: f"{format_bytes(size)} of memory"),
        SLOTS: (parallelism_on_fastest(demand, catalogue), lambda number: f"{number:.6g} slots"),
    }
    needed, text = resources[need.resource]
    name = quoted(demand.name[int((needed * need.rows).argmax())])
    return (
        f"{which} need {text(float(need.total))}, most of it {name}, and {machines} together have "
        f"{text(available)}"
    )

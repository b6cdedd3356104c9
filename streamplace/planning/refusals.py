"""Refusals: messages on why no machines carry a rate, and which rate they do carry."""

from operator import itemgetter

import numpy as np

from streamplace.errors import ProblemError
from streamplace.model.cluster import MOST_DEVICES
from streamplace.model.expansion import MOST_SUBTASKS
from streamplace.model.messages import quoted
from streamplace.model.units import digits, format_bytes
from streamplace.planning.bounds import CostBound
from streamplace.planning.contents import allowed, capacities
from streamplace.planning.cuts import (
    ROOM,
    ResourceNeed,
    item_cuts,
    least_subtasks,
    resource_needs,
)
from streamplace.planning.demand import ALL_TO_ALL, Demand
from streamplace.planning.offers import Catalogue
from streamplace.planning.problem import PlanProblem
from streamplace.planning.rates import promised_rate
from streamplace.planning.search import MOST_AT_FIRST
from streamplace.planning.subtasks import least_need, least_parallelism, least_share

LARGE_RESERVE = 2
"""Multiple of the rate from which a refusal names the reserve first."""


def check_tags(problem: PlanProblem) -> None:
    """Raise ProblemError for an operator whose tags no offer has."""
    demand, catalogue = problem.demand, problem.catalogue
    runs = allowed(demand, catalogue)
    for v, required in enumerate(demand.requires):
        if not runs[:, v].any():
            tags = ", ".join(sorted(required))
            raise ProblemError(
                f"operator {quoted(demand.name[v])} requires {tags}, which no offer has; add the "
                "tags to an offer"
            )


def check_offers(problem: PlanProblem) -> None:
    """Raise ProblemError if no offer can run any operator at this rate."""
    if problem.cluster is None and not problem.useful_offers():
        raise ProblemError(
            f"offer {quoted(problem.catalogue.offers[0].name)} can never be used: no operator of "
            f"{quoted(problem.graph.name)} fits on it at this rate; add a larger one"
        )


def refusal(problem: PlanProblem, bound: CostBound | None, is_over: bool = False) -> str:
    """Reason why no machines carry a rate, and the largest rate for which a plan was found.

    ``is_over`` tells whether a larger budget may help.
    """
    demand, catalogue = problem.demand, problem.with_useful_offers().catalogue
    asked = f"{digits(problem.rate, 6)} tuples/s{_large_reserve(problem)}"
    promised = promised_rate(problem)
    carried = (
        f"a plan was found for up to {digits(promised, 6)} tuples/s"
        if promised
        else "no smaller rate with a plan was found either"
    )
    if problem.settings.errors is not None:
        carried += f", where the plan is to hold with {problem.settings.errors.words}"
    nothing = "no offers carry" if problem.cluster is None else "the cluster does not carry"
    slow = slow_operator(problem)
    if slow:
        return f"{nothing} {asked}: {slow}; {carried}"
    if bound is None:
        return f"{nothing} {asked}: {_short_resource(demand, catalogue)}; {carried}"
    streams = _least_streams(demand, catalogue)
    if streams > MOST_AT_FIRST:
        return (
            f"no plan was found for {asked}: it has at least {streams:.0f} streams between "
            f"subtasks, and at most {MOST_AT_FIRST} are tried; give faster cores, or lower the "
            f"rate ({carried})"
        )
    within, budget = (" within the budget", "raise the budget, ") if is_over else ("", "")
    missed = f"no plan was found{within} for {asked}, and none is excluded; "
    if problem.cluster is not None:
        return (
            f"{missed}the machines or the links between them may be too slow; {budget}add "
            f"machines, or lower the rate ({carried})"
        )
    if sum(bound.counts) > MOST_DEVICES:
        return (
            f"no plan was found for {asked}: the cheapest machines that may carry it are "
            f"{sum(bound.counts)}, and a plan has at most {MOST_DEVICES}; add larger ones "
            f"({carried})"
        )
    limited = any(offer.at_most < MOST_DEVICES for offer in catalogue.offers)
    more = "raise at_most, " if limited else ""
    return f"{missed}{budget}{more}add larger machines, or lower the rate ({carried})"


def _least_streams(demand: Demand, catalogue: Catalogue) -> float:
    """Number of streams between subtasks that every plan has."""
    least = least_subtasks(demand, catalogue).astype(np.float64)
    sender, receiver = least[demand.source], least[demand.target]
    every = np.where(demand.joined == ALL_TO_ALL, sender * receiver, np.maximum(sender, receiver))
    return float(every.sum())


def _large_reserve(problem: PlanProblem) -> str:
    """Clause about the reserve that makes the plan large; empty if no reserve does."""
    reason, factor = max(problem.reserves.items(), key=itemgetter(1), default=("", 1.0))
    if factor < LARGE_RESERVE:
        return ""
    return f", where room for {digits(factor, 3)} times as much is reserved for {reason}"


def slow_operator(problem: PlanProblem) -> str:
    """Clause about an operator for which no core is fast enough; empty if there is none."""
    demand, catalogue = problem.demand, problem.catalogue
    runs = allowed(demand, catalogue)
    for v, name in enumerate(demand.name):
        speeds = [o.core_speed for t, o in enumerate(catalogue.offers) if runs[t, v]]
        if not least_parallelism(demand, v, max(speeds)):
            if not demand.most[v]:
                return f"operator {quoted(name)} needs more than {MOST_SUBTASKS} subtasks"
            limit = "parallelism" if demand.keeps[v] else "max_parallelism"
            most = int(demand.most[v])
            busiest = f"with {limit} {most}, the busiest subtask of operator {quoted(name)}"
            waiting = least_share(demand, v, most) * float(demand.at_max_rate[v])
            if waiting > 1:
                rate = float(demand.graph.operators.max_rate[v])
                return (
                    f"{busiest} would read {digits(waiting * rate, 6)} tuples/s, and its "
                    f"max_rate is {digits(rate, 6)}"
                )
            need = least_need(demand, v, most, max(speeds))
            return (
                f"{busiest} needs at least {_mips(need)}, and the fastest core has "
                f"{digits(max(speeds) / 1e6, 6)}"
            )
    return ""


def _mips(instructions: float) -> str:
    """Format instructions per second as a speed in MIPS."""
    return f"{digits(instructions / 1e6, 6)} MIPS"


def _short_resource(demand: Demand, catalogue: Catalogue) -> str:
    """Clause about a resource of which all machines together have too little."""
    offers, capacity = catalogue.offers, capacities(catalogue)
    needs = resource_needs(demand, catalogue)
    for need in sorted(needs, key=lambda need: -len(need.tags)):
        each = zip(capacity[:, need.resource].tolist(), offers, need.runs, strict=True)
        room = sum(c * offer.at_most for c, offer, runs in each if runs)
        if need.total > float(ROOM) * room:
            return _too_little(demand, catalogue, need, room)
    every = tuple(offer.at_most for offer in offers)
    for cut in item_cuts(demand, catalogue):
        if not cut.holds(every):
            word = "CPU" if cut.origin == "cpu items" else "memory"
            return (
                f"all machines together have enough {word}, but the parts of operators that "
                "cannot be divided do not fit on them"
            )
    return "CPU, memory, slots and network cards of all machines together do not suffice at once"


def _too_little(demand: Demand, catalogue: Catalogue, need: ResourceNeed, room: float) -> str:
    """Clause about a need that is larger than the room of all machines for it."""
    which, machines = "the operators", "all machines"
    if need.tags:
        which += f" that require {', '.join(sorted(need.tags))}"
        machines += " that may run them"
    if need.origin == "slots":
        least = least_subtasks(demand, catalogue) * need.rows
        return (
            f"{which} need {need.total} slots, most of them {quoted(demand.name[least.argmax()])}, "
            f"and {machines} together have {room:.6g}"
        )
    is_cpu = need.origin == "cpu"
    heaviest, told = (demand.instructions, _mips) if is_cpu else (demand.memory, format_bytes)
    word = "CPU" if is_cpu else "memory"
    name = quoted(demand.name[int((heaviest * need.rows).argmax())])
    return (
        f"{which} need {told(float(need.total))} of {word}, most of it {name}, and {machines} "
        f"together have {told(room)}"
    )

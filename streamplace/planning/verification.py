"""Verification: checks a plan with the model and simulator that the rest of streamplace uses.

Everything is recomputed from the returned graph, cluster and placement. The check is independent of
the search, which packs contents: it expands the plan to subtasks.
"""

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from math import isfinite

import numpy as np
from streamsim import bottleneck, resource_loads, throughput_of

from streamplace.errors import StreamplaceError
from streamplace.model.expansion import Expansion, expand
from streamplace.model.graph import StreamGraph
from streamplace.model.problem import Problem
from streamplace.model.units import digits
from streamplace.planning.demand import slot_groups, slots_of
from streamplace.planning.deployment import TOLERANCE, PlannedDeployment
from streamplace.planning.offers import exact_price, offer_of
from streamplace.planning.problem import PlanProblem
from streamplace.planning.result import PlanResult
from streamplace.planning.survival import losses_of

EXACT = Fraction(1, 10**12)
"""Relative tolerance of costs, which are floats."""
RATE_TOLERANCE = 1e-6
"""Relative tolerance of the rate that a plan carries."""
FULL = 1 + 10 * TOLERANCE
"""Largest load of a machine that is not overloaded."""


def contradictions(problem: PlanProblem, result: PlanResult) -> Iterator[str]:
    """Yield a message for each property that a plan claims but does not have."""
    yield from _of_parallelism(problem, result)
    try:
        subtasks = expand(result.graph.at_rate(problem.with_reserve(result.rate)))
        rules = subtasks.constraints(problem.constraints_on(result.cluster))
        placing = Problem(subtasks.graph, result.cluster, rules, known=result.placement)
        placing.check(result.placement)
    except StreamplaceError as error:
        yield str(error)
        return
    place = result.placement.index
    share = throughput_of(placing.instance, place)
    if share < 1 - TOLERANCE:
        spare = " and the headroom" if problem.reserved else ""
        yield f"it carries {share:.6%} of the rate{spare}"
    # The share is the mean over all tuples, so it hardly shows a source that emits few of them.
    fullest = bottleneck(resource_loads(placing.instance, place))
    if fullest.load > FULL:
        yield f"a {fullest.kind} is {fullest.load:.6%} full"
    yield from _of_losses(problem, result, subtasks)
    yield from _of_rates(subtasks.graph)
    yield from _of_slots(problem, result, subtasks)
    yield from _of_machines(problem, result)
    if isfinite(result.carries):
        rate_limit = problem.with_reserve(problem.rate_limit)
        full = expand(result.graph.at_rate(min(result.carries, rate_limit))).graph
        at_most = Problem(full, result.cluster, known=result.placement)
        reached = throughput_of(at_most.instance, place)
        short = result.carries < problem.with_reserve(result.rate) * (1 - RATE_TOLERANCE)
        if reached < 1 - RATE_TOLERANCE or short:
            yield f"it says that it carries {digits(result.carries, 6)} tuples/s, and does not"


def _of_parallelism(problem: PlanProblem, result: PlanResult) -> Iterator[str]:
    """Check the rates of the sources and the limits of parallelisms."""
    before, after = problem.graph.operators, result.graph.operators
    if before.name != after.name or not np.allclose(before.rate, after.rate, rtol=1e-9, atol=0):
        yield "its graph has other operators or rates"
        return
    if result.parallelism != dict(zip(after.name, after.parallelism.tolist(), strict=True)):
        yield "its graph has other parallelisms"
    if (problem.demand.parallelism_limit != after.parallelism)[problem.demand.keeps].any():
        yield "it does not keep the parallelism of the graph"
    limited = before.max_parallelism > 0
    if (after.parallelism[limited] > before.max_parallelism[limited]).any():
        yield "it has more subtasks than max_parallelism allows"


def _of_losses(problem: PlanProblem, result: PlanResult, subtasks: Expansion) -> Iterator[str]:
    """Check the share carried after the loss of each machine."""
    if problem.after_loss is None:
        return
    names = result.cluster.devices.name
    fleet = result.machines if problem.cluster is not None else names
    devices = np.array([names.index(name) for name in fleet], np.int32)
    deployment = PlannedDeployment(subtasks, result.cluster, result.placement)
    losses = losses_of(problem, deployment, devices)
    carried = losses[0].relative_throughput
    if losses != result.losses or carried < problem.settings.survives * (1 - TOLERANCE):
        yield f"after the loss of {losses[0].device}, it carries {carried:.6%} of the rate"


def _of_rates(subtasks: StreamGraph) -> Iterator[str]:
    """Check that no subtask reads more than its operator's ``max_rate``."""
    max_rates = subtasks.operators.largest_rates()
    share = subtasks.input_rate / max_rates
    s = int(np.argmax(share))
    if share[s] > FULL:
        yield (
            f"{subtasks.operators.name[s]} would read {share[s]:.6%} of the "
            f"{digits(float(max_rates[s]), 6)} tuples/s that a subtask reads at most"
        )


def _of_slots(problem: PlanProblem, result: PlanResult, subtasks: Expansion) -> Iterator[str]:
    """Check the slots of every bought machine."""
    if problem.cluster is not None:
        return
    catalogue = problem.catalogue
    slots_of_offer = {offer.name: float(offer.slots) for offer in catalogue.offers}
    names = result.cluster.devices.name
    offers = [offer_of(name, catalogue.alone) for name in names]
    limits = np.array([slots_of_offer.get(name, np.inf) for name in offers], np.float64)
    groups = slot_groups(problem.demand, catalogue)
    if (slots_of(groups, subtasks.fold(result.placement).T) > limits).any():
        yield "a machine has too few slots"


def _of_machines(problem: PlanProblem, result: PlanResult) -> Iterator[str]:
    """Check the numbers of machines, their cost, and the bound."""
    if problem.cluster is not None:
        names = problem.cluster.devices.name
        used = {names[d] for d in result.placement.index.tolist()}
        listed = set(result.machines)
        spares = listed - used if problem.after_loss is not None else set()
        if result.cluster is not problem.cluster or used != listed - spares:
            yield "it does not list exactly the machines on which subtasks run"
        cost = Fraction(len(result.machines))
        if problem.is_priced:
            price = problem.cluster.devices.price
            cost = sum(
                (exact_price(float(price[names.index(name)])) for name in result.machines),
                Fraction(0),
            )
    else:
        catalogue = problem.catalogue
        numbers = Counter(offer_of(name, catalogue.alone) for name in result.cluster.devices.name)
        if numbers != Counter(result.machines):
            yield "its cluster has other machines than it lists"
        for offer in catalogue.whole:
            if not offer.at_least <= numbers[offer.name] <= offer.at_most:
                yield f"it has {numbers[offer.name]} machines of {offer.name}"
        prices = {offer.name: exact_price(offer.price) for offer in catalogue.whole}
        cost = sum((prices[name] * n for name, n in numbers.items()), Fraction(0))
    if abs(Fraction(result.cost) - cost) > EXACT * cost:
        yield f"it says that it costs {result.cost:g}, and costs {float(cost):g}"
    if result.bound > cost * (1 + EXACT):
        yield f"it costs {float(cost):g}, less than its bound of {float(result.bound):g}"

"""The highest throughput, proven by the least peak load from a first placement.

With several sources rates are max–min fair, which the peak load does not determine; see
`several_sources`.
"""

from dataclasses import replace

import numpy as np
from streamsim import throughput_of

from streamplace.model.arrays import ROUNDING, Ints
from streamplace.model.least_peak import least_times
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.exact.prover import MOVES, Prover
from streamplace.placers.exact.several_sources import LEAST_RATE, FairIncumbent, prove_sources
from streamplace.placers.exact.units import units_of
from streamplace.placers.incumbent import handing_on
from streamplace.placers.meter import Meter
from streamplace.placers.registry import PLACERS, Budget, Found, Placer

SMALL, LARGE = 200, 2_000
"""Operators up to which any first placement is good enough, and beyond which proofs are skipped."""
FIRST_SHARE = 0.5
"""Share of the remaining budget for each placer that finds a first placement of a large graph."""
MOST_CELLS = 20_000_000
MOST_PROOFS = 50
"""Most provers in sequence, each with a better placement than the one before."""
LEAST_LOAD = 1e-3
"""Load of the fullest resource below which it does not matter."""
CLEARLY = 1e-7
"""Share by which a placement beside constant loads must be faster to be looked for."""


def prove_throughput(
    problem: Problem,
    objective: Objective,
    start: tuple[Placement, ...],
    seed: int,
    meter: Meter,
    workers: int,
) -> Found:
    """Return the best placement found, and an upper bound of the throughput."""
    begin = _first(problem, objective, start, seed, meter)
    first = begin[problem.first_operator]
    prover = Prover(units_of(problem), first, meter, seed, workers)
    tractable = problem.n_operators <= LARGE
    tractable &= problem.n_operators * problem.n_devices**2 <= MOST_CELLS
    several = problem.instance.n_groups > 1
    prove = prover.prove_quickly if several else prover.prove
    if tractable:
        with handing_on(lambda: _interrupted(problem, prover.place, prover.least)):
            prove()
    if several and prover.peak > 1:
        meter.trace.clear()
        fair = FairIncumbent(problem, objective, meter)
        fair.judge(np.stack((prover.place, first)))  # the peak limits only the slowest source
        return prove_sources(fair, prover, meter, seed, tractable)
    best, least = prover.place, prover.least
    if len(problem.instance.constant):
        least = max(least, least_times(problem))
        if tractable:
            best, least = _prove_constants(problem, best, least, meter, seed, workers)
    place = problem.canonical(best[problem.unit])
    if len(problem.instance.constant) or not objective.usual:  # the search compared peaks alone
        both = np.stack((place, begin))
        values = objective.evaluate(problem, both)
        place = both[objective.best(values)]
        meter.trace.clear()
        meter.note(float(values[objective.best(values)]))
    return Found(problem.placement(place), min(1.0, 1 / least), tuple(meter.trace))


def prove(
    problem: Problem,
    objective: Objective,
    *,
    seed: int,
    budget: Budget,
    start: tuple[Placement, ...] = (),
) -> Found:
    """Best placement and bound, whatever the load of the fullest resource."""
    return prove_throughput(problem, objective, start, seed, Meter(budget, MOVES), 1)


PROOF = Placer("exact", "The proof of `exact` alone.", prove)
"""Not registered: `auto` calls it, and lowers the load of its own best placement."""


def settled(
    problem: Problem, objective: Objective, found: Found, seed: int, budget: Budget | None
) -> Found:
    """Of small graphs that keep up, lower the load of the fullest resource, or bound it.

    Quick methods only: few users wait for this alone. Beside constant loads there is no bound, as
    those of the search are not the loads that users see.
    """
    is_small = problem.n_operators <= SMALL and objective.usual
    if budget is None or not is_small or objective.value(problem, found.placement) < 1:
        return found
    first = found.placement.index[problem.first_operator]
    prover = Prover(units_of(problem), first, Meter(budget, 1), seed, 1, enough=LEAST_LOAD)
    prover.prove_quickly()
    placement = found.placement
    if not np.array_equal(prover.place, first):
        placement = problem.placement(problem.canonical(prover.place[problem.unit]))
    least = prover.least if prover.least > LEAST_LOAD else 0.0
    shown = None if len(problem.instance.constant) else least
    return replace(found, placement=placement, least_load=shown)


def _interrupted(problem: Problem, place: Ints, least: float) -> Found:
    """Answer of an interrupted search; the peak bounds the throughput of one group of sources."""
    bound = min(1.0, 1 / least) if problem.instance.n_groups == 1 else None
    return Found(problem.placement(problem.canonical(place[problem.unit])), bound)


def _prove_constants(
    problem: Problem, best: Ints, least: float, meter: Meter, seed: int, workers: int
) -> tuple[Ints, float]:
    """Best placement of the units with constant loads, and a lower bound of the peak pressure.

    They are no worse than ``best`` and ``least``.

    A prover does not know constant loads. They are therefore multiplied by an aim and added to the
    loads: a placement has a slowdown of at most the aim if and only if its peak is at most the aim
    (Dinkelbach 1967). A lower bound of the peaks that is above the aim bounds the slowdown as well.

    The aim is clearly below the slowdown of the best placement so far: constant loads that fill a
    device by themselves make a peak of the aim, and slow nothing down. It is at most twice the
    lower bound, as peaks tell nothing about loads that are much smaller.
    """
    with handing_on(lambda: _interrupted(problem, best, least)):
        value = throughput_of(problem.instance, best[problem.unit])
        for _ in range(MOST_PROOFS):
            aim = min((1 - CLEARLY) / max(value, LEAST_RATE), 2 * least)
            if aim <= least:
                break
            prover = Prover(units_of(problem, aim), best, meter, seed, workers)
            prover.prove()
            refuted = prover.least > aim * (1 + ROUNDING)
            if refuted:
                least = prover.least
            reached = throughput_of(problem.instance, prover.place[problem.unit])
            if reached > value:
                best, value = prover.place, reached
            elif not refuted:
                break
    return best, least


def _first(
    problem: Problem, objective: Objective, start: tuple[Placement, ...], seed: int, meter: Meter
) -> Ints:
    """Best of ``start``; without any a legal placement, of large graphs by other placers."""
    for placement in start:
        problem.check(placement)
    if start:
        batch = np.stack([placement.index for placement in start])
        return np.asarray(batch[objective.best(objective.evaluate(problem, batch))])
    tries = []
    for name, most in (("metis-oracle", problem.n_devices), ("anneal", None)):
        part = meter.part(FIRST_SHARE)
        if problem.n_operators <= SMALL or part is None:
            continue
        if part.evaluations is not None:
            part = Budget(part.seconds, min(part.evaluations, most or part.evaluations))
        tries.append(PLACERS[name].place(problem, objective, seed=seed, budget=part))
        meter.spend(part.evaluations or 0)
    if not tries:
        return problem.repaired(np.zeros(problem.n_operators, np.int32))
    return max(tries, key=lambda result: result.value).placement.index

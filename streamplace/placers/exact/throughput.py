"""The highest throughput, proven by the least peak load from a first placement."""

from dataclasses import replace

import numpy as np
from streamsim import throughput_of
from streamsim.instance import with_constants_as_loads
from streamsim.sources import at_shares

from streamplace.model.arrays import ROUNDING, Bools, Floats, Ints
from streamplace.model.coarsening import level_with
from streamplace.model.least_peak import least_times
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.source_levels import share_beside, source_levels
from streamplace.objectives.registry import Objective
from streamplace.placers.anneal.throughput import with_lower_peak
from streamplace.placers.exact.prover import Prover
from streamplace.placers.exact.units import units_of, units_with
from streamplace.placers.incumbent import interruptible
from streamplace.placers.meter import Meter
from streamplace.placers.registry import PLACERS, Budget, Found, Placer

SMALL, LARGE = 200, 2_000
"""Operators up to which any first placement is good enough, and beyond which proofs are skipped."""
FIRST_SHARE = 0.5
"""Share of the remaining budget for each placer that finds a first placement of a large graph."""
MAX_CELLS = 20_000_000
MAX_PROOFS = 50
"""Most provers in sequence, each with a better placement than the one before."""
MIN_LOAD = 1e-3
"""Load of the fullest resource below which it does not matter."""
MIN_RATE = 1e-9
"""Throughput below which a placement counts as carrying nothing, and none is looked for."""
CLOSE = 1e-7
"""Share by which the slowdown of sources beside others may exceed its bound."""
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
    tractable = _is_tractable(problem)
    if tractable:
        with interruptible(lambda: _interrupted(problem, prover.place, prover.least)):
            prover.prove()
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
    return prove_throughput(problem, objective, start, seed, Meter(budget), 1)


PROOF = Placer("exact", "The proof of `exact` alone.", prove)
"""Not registered: `auto` calls it, and lowers the load of its own best placement."""


def settled(
    problem: Problem, objective: Objective, found: Found, seed: int, budget: Budget | None
) -> Found:
    """Lower the load of the fullest resource if a small graph keeps up, and bound it.

    Quick methods only: few users wait for this alone. Beside constant loads there is no bound, as
    the loads of the search are not those in reports. If sources are stuck, raise the others.
    """
    if budget is None or not objective.usual:
        return found
    if objective.value(problem, found.placement) < 1:
        return _with_higher_levels(problem, found, seed, Meter(budget))
    if problem.n_operators > SMALL:
        return found
    first = found.placement.index[problem.first_operator]
    prover = Prover(units_of(problem), first, Meter(budget), seed, 1, enough=MIN_LOAD)
    prover.prove_quickly()
    placement = found.placement
    if not np.array_equal(prover.place, first):
        placement = problem.placement(problem.canonical(prover.place[problem.unit]))
    least = prover.least if prover.least > MIN_LOAD else 0.0
    shown = None if len(problem.instance.constant) else least
    return replace(found, placement=placement, least_load=shown)


def _interrupted(problem: Problem, place: Ints, least: float) -> Found:
    """Answer of an interrupted search."""
    placement = problem.placement(problem.canonical(place[problem.unit]))
    return Found(placement, min(1.0, 1 / least))


def _is_tractable(problem: Problem) -> bool:
    cells = problem.n_operators * problem.n_devices**2
    return problem.n_operators <= LARGE and cells <= MAX_CELLS


def _with_higher_levels(problem: Problem, found: Found, seed: int, meter: Meter) -> Found:
    """Where sources are stuck, look for the highest share of the others, level by level."""
    place, bounds = found.placement.index, list[float]()
    free = np.ones(len(problem.instance.sources), np.bool_)
    held = np.zeros(len(free))
    while len(levels := source_levels(problem, place)) > len(bounds) + 1:
        stuck, level = levels[len(bounds)], levels[len(bounds) + 1]
        now = np.isin(problem.instance.sources, stuck.sources)
        held[now], free = stuck.share, free & ~now
        if len(level.stuck) or level.share >= 1:
            bounds.append(level.share)
            continue
        place, bound = _raised(problem, place, held, free, seed, meter)
        bounds.append(bound)
        if level.share <= bound / (1 + CLOSE):
            break
    placement = problem.placement(problem.canonical(place))
    return replace(found, placement=placement, levels=tuple(bounds)) if bounds else found


def _raised(
    problem: Problem, best: Ints, held: Floats, free: Bools, seed: int, meter: Meter
) -> tuple[Ints, float]:
    """Placement with the highest share of the free sources [S] that is found, and a bound of it.

    The others are held at shares [S]. Whether a slowdown of the free ones by at most an aim is
    possible is decided as in `_prove_constants`, with the held shares multiplied by the aim. Aims
    between the bounds of the slowdown bring them together, also if held sources fill a resource.
    """
    instance, least = problem.instance, 1.0
    fixed = instance
    if len(instance.constant):  # a device that these exceed carries no source that is free
        constants = np.minimum(instance.constant, 1.0), np.minimum(instance.core_constant, 1.0)
        fixed = instance._replace(constant=constants[0], core_constant=constants[1])
    aim, slowdown = 1.0, 1 / max(MIN_RATE, share_beside(instance, best, held, free))
    while slowdown > least * (1 + CLOSE) and not meter.over:
        loads = with_constants_as_loads(at_shares(fixed, np.where(free, 1.0, aim * held)), aim)
        place = best[problem.first_operator]
        if _is_tractable(problem):
            prover = Prover(units_with(problem, loads), place, meter, seed, 1, enough=aim)
            prover.prove()
            place = prover.place
            if prover.least > aim * (1 + ROUNDING):
                least = prover.least
        else:
            part = Meter(meter.some(FIRST_SHARE))
            place = with_lower_peak(level_with(problem, loads), place, seed, part, aim)
            meter.spend(part.spent)
        reached = 1 / max(MIN_RATE, share_beside(instance, place[problem.unit], held, free))
        if reached < slowdown:
            best, slowdown = place[problem.unit], reached
        elif least < aim:  # the search has given up
            break
        aim = (least * slowdown) ** 0.5
    return best, 1 / least


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
    with interruptible(lambda: _interrupted(problem, best, least)):
        value = throughput_of(problem.instance, best[problem.unit])
        for _ in range(MAX_PROOFS):
            aim = min((1 - CLEARLY) / max(value, MIN_RATE), 2 * least)
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

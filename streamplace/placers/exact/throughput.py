"""The highest throughput, proven by the least peak load from a first placement.

With several sources rates are max–min fair, which the peak load does not determine. If there are
few placements, all are tried; otherwise a local search finds a good one, and a linear programme
bounds it: no operator can use more than its best device, or a core of it, and all together no more
than all devices.
"""

import operator
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from streamsim import throughput
from streamsim.equation import n_resources
from streamsim.filling import flow_shares

from streamplace.model.arrays import ROUNDING, Floats, Ints
from streamplace.model.least_peak import least_times
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.exact.peak_bounds import powers
from streamplace.placers.exact.prover import MOVES, SLICE, SLICE_CELLS, Prover
from streamplace.placers.exact.units import Units, are_legal, units_of
from streamplace.placers.incumbent import Incumbent, handing_on
from streamplace.placers.meter import Meter
from streamplace.placers.registry import PLACERS, Budget, Found

SMALL, LARGE = 200, 2_000
"""Operators up to which any first placement is good enough, and beyond which proofs are skipped."""
FIRST_SHARE = 0.5
"""Share of the remaining budget for each placer that finds a first placement of a large graph."""
MOST_CELLS = 20_000_000
MOST_PROOFS = 50
"""Most provers in sequence, each with a better placement than the one before."""
LEAST_RATE = 1e-9
"""Throughput below which a placement counts as carrying nothing."""
CLEARLY = 1e-7
"""Share by which a placement beside constant loads must be faster to be looked for."""
MOST_PLACEMENTS = 200_000
MOST_SHARES = 2_000_000
KICK = 3
MOST_PRESSURE = 1e12
"""Largest pressure of constant loads that the solver receives."""


def prove_throughput(
    problem: Problem,
    objective: Objective,
    start: tuple[Placement, ...],
    seed: int,
    budget: Budget,
    workers: int,
) -> Found:
    """Return the best placement found, and an upper bound of the throughput."""
    meter = Meter(budget, MOVES)
    units, unit = units_of(problem)
    begin = _best_of(problem, objective, start)
    if begin is None:
        begin = _first(problem, objective, seed, meter)
    first = begin[np.unique(unit, return_index=True)[1]]
    prover = Prover(units, first, meter, seed, workers)
    tractable = problem.n_operators <= LARGE
    tractable &= problem.n_operators * problem.n_devices**2 <= MOST_CELLS
    several = problem.instance.n_groups > 1
    prove = prover.try_full_rate if several else prover.prove
    if tractable:
        with handing_on(lambda: _interrupted(problem, unit, prover.place, prover.least)):
            prove()
    if several and prover.peak > 1:
        return _prove_sources(problem, objective, unit, first, prover, meter, seed)
    best, least = prover.place, prover.least
    if len(problem.instance.constant):
        provers = partial(Prover, meter=meter, seed=seed, workers=workers)
        best, least = _prove_constants(problem, unit, prover, provers if tractable else None)
    place = problem.canonical(best[unit])
    if len(problem.instance.constant) or not objective.usual:  # the search compared peaks alone
        both = np.stack((place, begin))
        values = objective.evaluate(problem, both)
        place = both[objective.best(values)]
        meter.trace.clear()
        meter.note(float(values[objective.best(values)]))
    return Found(problem.placement(place), min(1.0, 1 / least), tuple(meter.trace))


def _interrupted(problem: Problem, unit: Ints, place: Ints, least: float) -> Found:
    """Answer of an interrupted search; the peak bounds the throughput of one group of sources."""
    bound = min(1.0, 1 / least) if problem.instance.n_groups == 1 else None
    return Found(problem.placement(problem.canonical(place[unit])), bound)


def _prove_constants(
    problem: Problem, unit: Ints, prover: Prover, provers: Callable[..., Prover] | None
) -> tuple[Ints, float]:
    """Best placement of the units with constant loads, and a lower bound of the peak pressure.

    A prover does not know constant loads. They are therefore multiplied by an aim and added to the
    loads: a placement has a slowdown of at most the aim if and only if its peak is at most the aim
    (Dinkelbach 1967). A lower bound of the peaks that is above the aim bounds the slowdown as well.

    The aim is clearly below the slowdown of the best placement so far: constant loads that fill a
    device by themselves make a peak of the aim, and slow nothing down. It is at most twice the
    lower bound, as peaks tell nothing about loads that are much smaller.
    """
    best, least = prover.place, max(prover.least, least_times(problem))
    if provers is None:
        return best, least
    with handing_on(lambda: _interrupted(problem, unit, best, least)):
        value = float(throughput(problem.instance, best[unit][None])[0])
        for _ in range(MOST_PROOFS):
            aim = min((1 - CLEARLY) / max(value, LEAST_RATE), 2 * least)
            if aim <= least:
                break
            units, _ = units_of(problem, aim)
            prover = provers(units, best)
            prover.prove()
            refuted = prover.least > aim * (1 + ROUNDING)
            if refuted:
                least = prover.least
            reached = float(throughput(problem.instance, prover.place[unit][None])[0])
            if reached > value:
                best, value = prover.place, reached
            elif not refuted:
                break
    return best, least


def _prove_sources(
    problem: Problem,
    objective: Objective,
    unit: Ints,
    first: Ints,
    prover: Prover,
    meter: Meter,
    seed: int,
) -> Found:
    """Prove or bound the throughput if sources reach different rates.

    The prover lowers the peak, which limits only the slowest source, so that its placement may be
    worse than the ``first`` one.
    """
    units = prover.units
    meter.trace.clear()
    best = BatchIncumbent(problem, objective, unit, meter)
    best.judge(np.stack((prover.place, first)))

    def answer(bound: float | None = None) -> Found:
        return best.answer(problem.placement(problem.canonical(best.solution[unit])), bound)

    with handing_on(answer):
        if units.n_units * np.log(units.n_devices) <= np.log(MOST_PLACEMENTS):
            whole = _try_all(units, best)
        else:
            whole = False
            _climb(units, best, np.random.default_rng(seed))
    return answer(best.value if whole else max(_rate_bound(problem, units, unit), best.value))


def _best_of(problem: Problem, objective: Objective, start: tuple[Placement, ...]) -> Ints | None:
    """Devices of the best of some placements; None if there are none."""
    for placement in start:
        problem.check(placement)
    if not start:
        return None
    batch = np.stack([placement.index for placement in start])
    return np.asarray(batch[objective.best(objective.evaluate(problem, batch))])


def _first(problem: Problem, objective: Objective, seed: int, meter: Meter) -> Ints:
    """Legal placement to start from; for large graphs, the result of other placers."""
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


class BatchIncumbent(Incumbent[Ints]):
    """The best placement of the units so far by the objective, from batches of placements."""

    def __init__(self, problem: Problem, objective: Objective, unit: Ints, meter: Meter) -> None:
        super().__init__(operator.gt, meter)
        self._problem, self._objective, self._unit = problem, objective, unit
        graph, d = problem.graph, problem.n_devices
        cells = n_resources(d) + graph.n_operators + graph.n_streams
        self._batch = max(1, min(SLICE, SLICE_CELLS // cells))

    def judge(self, places: Ints) -> tuple[Ints, float]:
        """Evaluate legal placements of the units [B, U]; return the best of these and its value."""
        values = self._objective.evaluate(self._problem, places[:, self._unit])
        self.meter.spend(len(places))
        i = int(np.argmax(values))
        self.offer(places[i].copy(), values[i])
        return places[i], float(values[i])

    def affordable(self, places: Ints) -> Iterator[Ints]:
        """Divide placements into batches that are judged in little time, until the budget ends."""
        while size := self.meter.chunk(min(len(places), self._batch)):
            yield places[:size]
            places = places[size:]


def _try_all(units: Units, best: BatchIncumbent) -> bool:
    """Evaluate every legal placement within the budget; return whether that was all of them."""
    n, d = units.n_units, units.n_devices
    digits = d ** np.arange(n)  # placements are numbers in base D
    for start in range(0, d**n, SLICE):
        numbers = np.arange(start, min(start + SLICE, d**n))
        batch = (numbers[:, None] // digits % d).astype(np.int32)
        legal = batch[are_legal(units, batch)]
        tried = 0
        for places in best.affordable(legal):
            best.judge(places)
            tried += len(places)
        if tried < len(legal):
            return False
    return True


def _climb(units: Units, best: BatchIncumbent, rng: np.random.Generator) -> None:
    """Move single units while that helps, then move some at random and repeat."""
    meter = best.meter
    now, value = best.judge(best.solution[None, :])
    while not meter.over and best.value < 1:
        step, step_value = _best_move(units, now, best)
        if step_value > value:
            now, value = step, step_value
            continue
        kicked = best.solution.copy()
        some = rng.integers(units.n_units, size=min(KICK, units.n_units))
        kicked[some] = rng.integers(units.n_devices, size=len(some))
        if not meter.over and are_legal(units, kicked[None, :])[0]:
            now, value = best.judge(kicked[None, :])


def _rate_bound(problem: Problem, units: Units, unit: Ints) -> float:
    """Relative throughput that no placement exceeds."""
    instance = problem.instance
    sources = instance.sources
    if len(sources) * problem.n_operators > MOST_SHARES:
        return 1.0
    shares, types = flow_shares(instance).T, instance.device_type
    open_to = np.isfinite(units.load)[unit]
    power, _ = powers(units)
    work = np.where(open_to, instance.load[:, types] * power, np.inf).min(axis=1)
    together = work @ shares / power.sum()
    pressure = np.maximum(instance.pressure, instance.core_pressure)[:, types]
    least = np.where(open_to, pressure, np.inf).min(axis=1)
    alone = shares * np.minimum(least, MOST_PRESSURE)[:, None]
    weight = instance.rate[sources] / instance.rate.sum()
    return _programme(weight, np.vstack((together, alone)))


def _programme(weight: Floats, use: Floats) -> float:
    """Upper bound of max weight·x with use·x ≤ 1 and 0 ≤ x ≤ 1, valid for any solver precision.

    For any prices y ≥ 0 of the resources, Σ y + Σ max(0, weight - y·use) is an upper bound.
    """
    from ortools.linear_solver import pywraplp

    use = np.unique(use[use.sum(axis=1) > 0], axis=0)
    solver = pywraplp.Solver.CreateSolver("GLOP")
    x = [solver.NumVar(0.0, 1.0, "") for _ in weight]
    rows = [solver.Add(sum(c * v for c, v in zip(row, x, strict=True)) <= 1) for row in use]
    solver.Maximize(sum(c * v for c, v in zip(weight, x, strict=True)))
    solver.Solve()
    price = np.array([max(0.0, row.dual_value()) for row in rows])
    return float(min(1.0, price.sum() + np.maximum(0.0, weight - price @ use).sum()))


def _best_move(units: Units, place: Ints, best: BatchIncumbent) -> tuple[Ints, float]:
    """Best of the legal placements that differ in one unit, and its value; within the budget."""
    n, d = units.n_units, units.n_devices
    size = max(1, SLICE_CELLS // (n * d))
    step, value = place, -np.inf
    for start in range(0, n, size):
        moved = np.arange(start, min(start + size, n))
        moves = np.repeat(place[None, :], len(moved) * d, axis=0)
        moves[np.arange(len(moves)), np.repeat(moved, d)] = np.tile(np.arange(d), len(moved))
        for tried in best.affordable(moves[are_legal(units, moves)]):
            reached, reached_value = best.judge(tried)
            if reached_value > value:
                step, value = reached, reached_value
    return step, value

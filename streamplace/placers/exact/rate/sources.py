"""Several sources: the best placement found, and a bound by a linear programme.

Rates are max–min fair, which the peak load does not determine. If there are few placements, all are
tried; otherwise a local search finds a good one, and a linear programme bounds it: no operator can
use more than its best device, or a core of it, and all together no more than all devices.
"""

import operator
from collections.abc import Iterator

import numpy as np
from streamsim.equation import n_resources
from streamsim.filling import flow_shares

from streamplace.model.arrays import Floats, Ints
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.exact.rate.bounds import powers
from streamplace.placers.exact.rate.units import Units, are_legal
from streamplace.placers.incumbent import Incumbent
from streamplace.placers.meter import Meter

MOST_PLACEMENTS = 200_000
BATCH, BATCH_CELLS = 20_000, 20_000_000
"""Most placements between two readings of the clock, and most cells that they touch."""
MOVED_CELLS = 10_000_000
"""Most placements times units that are made at once."""
MOST_SHARES = 2_000_000
KICK = 3
MOST_PRESSURE = 1e12
"""Largest pressure of constant loads that the solver receives."""


class BatchIncumbent(Incumbent[Ints]):
    """The best placement of the units so far by the objective, from batches of placements."""

    def __init__(self, problem: Problem, objective: Objective, unit: Ints, meter: Meter) -> None:
        super().__init__(operator.gt, meter)
        self._problem, self._objective, self._unit = problem, objective, unit
        graph, d = problem.graph, problem.n_devices
        cells = n_resources(d) + graph.n_operators + graph.n_streams
        self._batch = max(1, min(BATCH, BATCH_CELLS // cells))

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


def try_all(units: Units, best: BatchIncumbent) -> bool:
    """Evaluate every legal placement within the budget; return whether that was all of them."""
    for batch in _all_placements(units):
        legal = batch[are_legal(units, batch)]
        tried = 0
        for places in best.affordable(legal):
            best.judge(places)
            tried += len(places)
        if tried < len(legal):
            return False
    return True


def few(units: Units) -> bool:
    """Whether there are few enough placements to try all of them."""
    return units.n_units * np.log(units.n_devices) <= np.log(MOST_PLACEMENTS)


def climb(units: Units, best: BatchIncumbent, rng: np.random.Generator) -> None:
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


def bound(problem: Problem, units: Units, unit: Ints) -> float:
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


def _all_placements(units: Units) -> Iterator[Ints]:
    """All placements as numbers in base D, batch by batch."""
    n, d = units.n_units, units.n_devices
    digits = d ** np.arange(n)
    for start in range(0, d**n, BATCH):
        numbers = np.arange(start, min(start + BATCH, d**n))
        yield (numbers[:, None] // digits % d).astype(np.int32)


def _best_move(units: Units, place: Ints, best: BatchIncumbent) -> tuple[Ints, float]:
    """Best of the legal placements that differ in one unit, and its value; within the budget."""
    step, value = place, -np.inf
    for moves in _moves(units, place):
        for tried in best.affordable(moves):
            reached, reached_value = best.judge(tried)
            if reached_value > value:
                step, value = reached, reached_value
    return step, value


def _moves(units: Units, place: Ints) -> Iterator[Ints]:
    """All legal placements that differ in one unit, batch by batch; each includes ``place``."""
    n, d = units.n_units, units.n_devices
    size = max(1, MOVED_CELLS // (n * d))
    for start in range(0, n, size):
        moved = np.arange(start, min(start + size, n))
        moves = np.repeat(place[None, :], len(moved) * d, axis=0)
        moves[np.arange(len(moves)), np.repeat(moved, d)] = np.tile(np.arange(d), len(moved))
        yield moves[are_legal(units, moves)]

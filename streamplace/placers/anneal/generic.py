"""Objectives without a search of their own: start from the best by related ones, and climb.

The climb evaluates batches of neighbours. For the fewest devices that sustain a throughput, it
starts from increasing numbers of devices, each searched by the throughput.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain

import numpy as np

from streamplace.errors import StreamplaceError
from streamplace.model.arrays import ROUNDING, Ints
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.registry import OBJECTIVES, Condition, Objective
from streamplace.placers.incumbent import Incumbent, SearchInterrupt, interruptible
from streamplace.placers.meter import Meter
from streamplace.placers.registry import PLACERS, Budget, Found

BATCH = 32
MAX_CHANGES = 4
"""Most operators (or colocated groups) in which a neighbour differs."""
PATIENCE = 30
"""Batches without a better neighbour before the climb jumps away from the best placement."""
JUMP = 0.2
"""Share of the operators that a jump moves."""
SEARCHED = ("rate", "pass")
"""Kinds of objectives that have a search of their own."""
SHARE = 0.3
"""Share of the remaining budget for a search by another objective."""
SHARE_OF_NUMBER = 0.5
"""Share of the remaining budget for each number of devices."""


def rate_to_sustain(objective: Objective) -> Condition | None:
    """Return the condition on the rate, if the objective is the fewest devices that sustain it."""
    if objective.base is None or objective.base.kind != "devices" or len(objective.conditions) != 1:
        return None
    (condition,) = objective.conditions
    rate = condition.objective
    return condition if rate.usual_kind == "rate" and condition.sense == "max" else None


def min_devices(
    problem: Problem, condition: Condition, seed: int, meter: Meter
) -> Placement | None:
    """Placement on the fewest devices found to sustain the throughput; None if none do.

    The search for the highest throughput runs on all devices, so that there is a result, then on
    the strongest device alone, on the two strongest, and so on, starting at the fewest that their
    CPU allows.
    """
    strongest = _strongest(problem)

    def sustaining(devices: list[str], part: Budget) -> Placement | None:
        try:
            fewer = _confined(problem, devices)
            result = PLACERS["anneal"].place(fewer, condition.objective, seed=seed, budget=part)
        except StreamplaceError:  # constraints that need other devices
            return None
        meter.spend(part.evaluations or 0)
        enough = result.value >= condition.limit * (1 - ROUNDING)
        return problem.placement(result.placement.index) if enough else None

    whole = sustaining(strongest, meter.part(SHARE_OF_NUMBER) or Budget(None, 1))
    for k in range(
        least_devices_by_cpu(problem, condition.limit), problem.n_devices + (whole is None)
    ):
        if whole is not None and meter.late:
            break
        few = sustaining(strongest[:k], meter.some(SHARE_OF_NUMBER))
        if few is not None or meter.late:
            return few or whole
    return whole


def least_devices_by_cpu(problem: Problem, limit: float) -> int:
    """Lower bound of the number of devices whose CPU sustains a relative throughput."""
    if limit <= 0:
        return 1
    limit *= 1 - ROUNDING  # which is enough
    instance = problem.instance
    share = instance.load[:, instance.device_type]  # of every device, per operator
    strength = 1 / np.maximum(share.sum(axis=0), 1e-300)
    need = limit * share
    if len(instance.constant):
        need = need + instance.constant[:, instance.device_type]
    least = (need * strength).min(axis=1).sum()
    power = np.cumsum(np.sort(strength)[::-1])
    return min(int(np.searchsorted(power, least * (1 - ROUNDING))) + 1, problem.n_devices)


def _strongest(problem: Problem) -> list[str]:
    """Devices by falling strength, pinned ones first."""
    instance, names = problem.instance, problem.cluster.devices.name
    work = instance.full_load.sum(axis=0)[instance.device_type]
    pinned = set(problem.constraints.pin.values())
    order = sorted(range(problem.n_devices), key=lambda d: (names[d] not in pinned, work[d], d))
    return [names[d] for d in order]


def _confined(problem: Problem, devices: list[str]) -> Problem:
    """Return the same problem on some of the devices."""
    old = problem.constraints
    allowed = {
        name: old.allowed.get(name, frozenset(devices)) & frozenset(devices)
        for name in problem.graph.operators.name
    }
    return replace(problem, constraints=replace(old, allowed=allowed))


def best_by(
    problem: Problem, objective: Objective, start: Sequence[Placement], seed: int, budget: Budget
) -> Found:
    """Search for the best placement by any objective, under any conditions."""
    meter = Meter(budget)
    condition = rate_to_sustain(objective)
    if condition is not None:
        with _by_another_objective():
            few = min_devices(problem, condition, seed, meter)
        answer = climb(problem, objective, start if few is None else (*start, few), seed, meter)
        by_cpu = float(least_devices_by_cpu(problem, condition.limit))
        return replace(answer, bound=max(by_cpu, objective.bound(problem) or by_cpu))
    with _by_another_objective():
        guides = _guides(problem, objective, seed, meter)
    return climb(problem, objective, (*start, *guides), seed, meter)


@contextmanager
def _by_another_objective() -> Iterator[None]:
    """Let Ctrl-C hand on the placement of another search without its bound of other values."""
    try:
        yield
    except SearchInterrupt as stop:
        raise SearchInterrupt(Found(stop.best.placement)) from stop


def _either_way(problem: Problem, placement: Placement) -> Iterator[Placement]:
    """Yield a placement and, if devices hold its order, the same with priorities instead."""
    yield placement
    if placement.queue == "order":
        yield problem.placement(placement.index, placement.priority)


def _guides(
    problem: Problem, objective: Objective, seed: int, meter: Meter
) -> tuple[Placement, ...]:
    """Best placements by the objective's guide, and by the quantities that its conditions limit."""
    limited = [condition.objective for condition in objective.conditions]
    names = dict.fromkeys(
        [objective.guide, *(each.quantity for each in limited if each.kind in SEARCHED)]
    )
    placements = []
    for name in filter(None, names):
        part = meter.part(SHARE)
        if part is not None and OBJECTIVES[name].refuses(problem) is None:
            result = PLACERS["anneal"].place(problem, OBJECTIVES[name], seed=seed, budget=part)
            meter.spend(part.evaluations or 0)
            placements.append(result.placement)
    return tuple(placements)


def climb(
    problem: Problem, objective: Objective, start: Sequence[Placement], seed: int, meter: Meter
) -> Found:
    """Move to the best of every batch of neighbours if it is no worse; jump when stuck.

    Neighbours have no order, so the answer may also be a placement of ``start`` with its own.
    """
    rng = np.random.default_rng(seed)
    together = problem.repaired(np.zeros(problem.n_operators, np.int32))
    batch = np.stack([placement.index for placement in start] or [together])
    values = objective.evaluate(problem, batch)
    current, current_value = batch[objective.best(values)], float(values[objective.best(values)])
    best = Incumbent[Ints](objective.better, meter)
    best.offer(current, current_value)

    def answer() -> Found:
        reached, reached_value = problem.placement(best.solution), best.value
        ordered = start if objective.ordered else ()
        for placement in chain.from_iterable(_either_way(problem, each) for each in ordered):
            value = objective.value(problem, placement)
            if objective.better(value, reached_value):
                reached, reached_value = placement, value
        meter.note(reached_value)
        return best.answer(reached)

    stuck, bound = 0, objective.bound(problem)
    bound = objective.limit if bound is None else bound
    with interruptible(answer):
        while (bound is None or objective.better(bound, best.value)) and (
            size := meter.chunk(BATCH)
        ):
            neighbours = _neighbours(problem, current, rng)[:size]
            values = objective.evaluate(problem, neighbours)
            meter.spend(size)
            i = objective.best(values)
            stuck = 0 if objective.better(values[i], current_value) else stuck + 1
            if not objective.better(current_value, values[i]):
                current, current_value = neighbours[i], float(values[i])
            best.offer(current, current_value)
            if stuck > PATIENCE:
                moves = rng.random(problem.n_operators) < JUMP
                anywhere = rng.integers(problem.n_devices, size=problem.n_operators)
                current, stuck = problem.repaired(np.where(moves, anywhere, best.solution)), 0
                current_value = float(objective.evaluate(problem, current[None])[0])
    return answer()


def _neighbours(problem: Problem, place: Ints, rng: np.random.Generator) -> Ints:
    """Batch of placements that differ from ``place`` in a few operators."""
    n_changes = rng.integers(1, MAX_CHANGES, size=BATCH, endpoint=True)
    batch = np.tile(place, (BATCH, 1))
    for row, n in zip(batch, n_changes, strict=True):
        row[rng.integers(problem.n_operators, size=n)] = rng.integers(problem.n_devices)
    return problem.repaired(batch)

"""The finest level of a problem, its first placements, and a bound that costs nothing."""

from collections.abc import Sequence

import numpy as np
from streamsim.steady import is_plain

from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.rules import Rules
from streamplace.placers.anneal.level import Ints, Level, contracted, operators_level
from streamplace.placers.anneal.walk import peak_of

RUNS = (1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 91, 128, 181, 256)
FEWEST_IN_RUNS = 64
FEW_UNITS = 2000
"""Up to this many units, repairing a placement one by one is cheap."""


def finest_level(problem: Problem) -> Level:
    """Level of one unit per operator, or per colocated group, under the problem's rules."""
    instance, rules = problem.instance, problem.rules
    level = operators_level(instance, is_plain(instance), bool(instance.cores.max() > 1))
    return level if rules is None else _ruled(level, rules)


def first_place(problem: Problem, level: Level, start: Sequence[Placement]) -> Ints:
    """Device of every unit: the best of the given placements and of a few obvious ones."""
    if problem.rules is None:
        given = [placement.index for placement in start]
        return best_place(level, given + obvious_places(level))
    given = [placement.index[problem.rules.first_operator] for placement in start]
    return best_place(level, given + _legal_places(level, problem.rules))


def best_place(level: Level, candidates: Sequence[Ints]) -> Ints:
    """Return the first candidate of the lowest peak."""
    places = [np.array(place, np.int32) for place in candidates]
    return places[int(np.argmin([peak_of(level, place) for place in places]))]


def obvious_places(level: Level) -> list[Ints]:
    """All units on the fastest device; on large levels also equal runs on 2, 3, … devices."""
    totals = np.maximum(level.load.sum(axis=0)[level.device_type], 1e-300)
    if level.n_units <= FEWEST_IN_RUNS:
        return [np.full(level.n_units, np.argmin(totals), np.int32)]
    devices = np.argsort(totals, kind="stable").astype(np.int32)
    weight = level.load.mean(axis=1) + 1e-300
    middle = (np.cumsum(weight) - weight / 2) / weight.sum()
    places = []
    for k in (*(n for n in RUNS if n < len(devices)), len(devices)):
        ends = np.cumsum(1 / totals[devices[:k]])
        run = np.minimum(np.searchsorted(ends / ends[-1], middle), k - 1)
        places.append(devices[run])
    return places


def least_peak(problem: Problem, level: Level) -> float:
    """Peak that no placement can be below: of the heaviest unit, and of all CPU loads together.

    With weights y_d that add up to 1, the peak is at least Σ_d y_d L_d ≥ Σ_u min_d y_d load(u, d).
    The weights are in proportion to the power of the devices, which makes this the mean load where
    all operators run faster on faster devices by the same factor.
    """
    types = level.device_type
    alone = level.load[:, types]
    if len(level.core):
        alone = np.maximum(alone, level.core[:, types])
    if problem.rules is not None:
        alone = np.where(level.allowed[level.kind], alone, np.inf)
    heaviest = float(alone.min(axis=1).max())
    whole = level.load.sum(axis=0)[types]
    if not (whole > 0).all():
        return heaviest
    weight = 1 / whole
    shares = level.load[:, types] * (weight / weight.sum())
    return max(heaviest, float(shares.min(axis=1).sum()))


def _legal_places(level: Level, rules: Rules) -> list[Ints]:
    """Return the rules' own example and, where that is cheap, the obvious places made legal."""
    if rules.n_units > FEW_UNITS:
        return [rules.witness]
    first = rules.first_operator
    return [
        rules.witness,
        *(rules.repaired(place[rules.unit])[first] for place in obvious_places(level)),
    ]


def _ruled(level: Level, rules: Rules) -> Level:
    """Colocated operators as one unit, under the rules of the units."""
    units = contracted(level, rules.unit.astype(np.int32), rules.n_units)
    rows, kind = np.unique(rules.allowed, axis=0, return_inverse=True)
    both = np.concatenate((rules.apart, rules.apart[:, ::-1]))
    both = both[np.argsort(both[:, 0], kind="stable")]
    start = np.zeros(0, np.int64)
    if len(both):
        start = np.zeros(rules.n_units + 1, np.int64)
        np.cumsum(np.bincount(both[:, 0], minlength=rules.n_units), out=start[1:])
    return units._replace(
        allowed=np.ascontiguousarray(rows),
        kind=kind.ravel().astype(np.int32),
        rival_start=start,
        rival=np.ascontiguousarray(both[:, 1], np.int32),
        ruled=True,
    )

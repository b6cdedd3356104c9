"""ODRP's integer program, re-implemented: replication and placement at once (Cardellini 2017).

Every operator chooses one multiset U of machines, which holds a machine for each of its replicas; a
stream chooses one pair (U, V). The program is exact for the machines that it is given, and grows
with the square of the number of multisets, so it is for a few machines and replicas. HiGHS solves
it, by OR-tools. Tuples are divided among replicas evenly, as in the paper: key groups are left out.
"""

from itertools import combinations_with_replacement, pairwise
from typing import Any, NamedTuple

import numpy as np

from streamplace.planning.demand import Demand
from streamplace.planning.offers import Offer
from streamplace.planning.parallelism import least_parallelism

Multiset = tuple[int, ...]


class OdrpAnswer(NamedTuple):
    """Cost of the machines in use, and whether it is proven to be the least; nan without answer."""

    cost: float
    proven: bool


def odrp(
    demand: Demand, offer: Offer, machines: int, overhead: float, seconds: float
) -> OdrpAnswer:
    """Return the least cost on at most so many machines of one type."""
    from ortools.linear_solver import pywraplp

    solver = pywraplp.Solver.CreateSolver("HIGHS")
    solver.SetTimeLimit(int(1000 * seconds))
    sets = [_multisets(demand, v, offer, machines) for v in range(demand.n_operators)]
    if not all(sets):
        return OdrpAnswer(float("nan"), False)
    chosen = [{u: solver.BoolVar("") for u in each} for each in sets]
    for choice in chosen:
        solver.Add(sum(choice.values()) == 1)
    used = [solver.BoolVar("") for _ in range(machines)]
    for first, second in pairwise(used):
        solver.Add(first >= second)
    for resource in _uses(solver, demand, offer, chosen, overhead, machines):
        for m, use in enumerate(resource):
            solver.Add(use <= used[m])
    solver.Minimize(offer.price * sum(used))
    status = solver.Solve()
    if status not in (solver.OPTIMAL, solver.FEASIBLE):
        return OdrpAnswer(float("nan"), False)
    return OdrpAnswer(solver.Objective().Value(), status == solver.OPTIMAL)


def _uses(
    solver: Any,
    demand: Demand,
    offer: Offer,
    chosen: list[dict[Multiset, Any]],
    overhead: float,
    machines: int,
) -> tuple[list[Any], list[Any], list[Any]]:
    """Share of the CPU and of the network card, out and in, that each machine uses."""
    cpu, sent, taken = ([0.0] * machines for _ in range(3))
    for v, choice in enumerate(chosen):
        for u, x in choice.items():
            for m, share in _shares(u).items():
                cpu[m] += demand.instructions[v] / offer.instructions * share * x
    for e, (a, b) in enumerate(zip(demand.source, demand.target, strict=True)):
        work = overhead * offer.core_speed * demand.tuples[e] / offer.instructions
        for (u, w), y in _pairs(solver, chosen[a], chosen[b]).items():
            for m in {*u, *w}:
                f, g = _shares(u).get(m, 0.0), _shares(w).get(m, 0.0)
                out, into = f * (1 - g), g * (1 - f)
                cpu[m] += work * (out + into) * y
                sent[m] += demand.bits[e] / offer.egress * out * y
                taken[m] += demand.bits[e] / offer.ingress * into * y
    return cpu, sent, taken


def _multisets(demand: Demand, v: int, offer: Offer, machines: int) -> list[Multiset]:
    """Machines of the replicas: from the fewest that the cores allow to one more than machines."""
    least = least_parallelism(demand, v, offer.core_speed)
    most = max(least, machines)
    if demand.parallelism_limit[v]:
        most = min(most, int(demand.parallelism_limit[v]))
    return [
        u
        for p in range(least, most + 1)
        for u in combinations_with_replacement(range(machines), p)
        if least
    ]


def _shares(u: Multiset) -> dict[int, float]:
    numbers, counts = np.unique(u, return_counts=True)
    return dict(zip(numbers.tolist(), (counts / len(u)).tolist(), strict=True))


def _pairs(solver: Any, source: dict[Multiset, Any], target: dict[Multiset, Any]) -> dict[Any, Any]:
    """Variables of the pairs of multisets, whose sums are those of the ends."""
    pairs = {(u, w): solver.NumVar(0.0, 1.0, "") for u in source for w in target}
    for u, x in source.items():
        solver.Add(sum(pairs[u, w] for w in target) == x)
    for w, x in target.items():
        solver.Add(sum(pairs[u, w] for u in source) == x)
    return pairs

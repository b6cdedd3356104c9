"""Relaxation: the contents that fit on one machine, as linear inequalities.

The variables are the share f(v) of each operator's tuples on the machine, and for each stream the
part w(e) of it that stays local; streams whose parts are not those of their ends are left out. For
shuffles w = f(u) · f(v), which McCormick's inequalities bound from above on the box of the shares;
for forward streams w = min(f(u), f(v)).

OR-tools' GLOP solves linear programs over them. No proof relies on the solver: its dual values only
serve as multipliers of `Polytope.most`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from streamplace.model.arrays import Floats
from streamplace.model.devices import SLACK
from streamplace.planning.cuts import ROOM
from streamplace.planning.demand import (
    ALL_TO_ALL,
    Demand,
    busiest_share,
    least_parallelism,
    slot_groups,
)
from streamplace.planning.offers import Catalogue
from streamplace.planning.packing import CORE, CPU, EGRESS, INGRESS, MEMORY, SLOTS, capacities

DIGITS = 40
"""Binary digits to which multipliers are rounded, so that fractions stay short."""
LITTLE = 1e-3
"""Share of all tuples by which the relaxation may overestimate local streams."""
NARROW = 1e-3
"""Width below which boxes are not split."""
PENALTY = 1000.0
"""Penalty for exceeding the resources by 100 %, as a multiple of all operators' worth."""


class Box(NamedTuple):
    """Least and most share of each operator on one machine."""

    low: Floats  # [N]
    high: Floats  # [N]


class Inequality(NamedTuple):
    """Σ coefficients · variables ≤ limit."""

    coefficients: Mapping[int, float]
    limit: float


@dataclass(frozen=True, slots=True, eq=False)
class Polytope:
    """Contents that fit on a machine within a box: rows, and limits of the variables."""

    n_operators: int
    rows: tuple[Inequality, ...]
    low: Floats
    high: Floats

    def most(self, worth: Floats, multipliers: Floats) -> Fraction:
        """Return an upper bound of Σ worth · share, by weak duality, in exact fractions.

        For any multipliers y ≥ 0 of the rows A f ≤ b, the worth of contents is at most
        y · b + Σ over variables of max(low · r, high · r), where r = worth − y · A. Limits such as
        a third are not floats, so they are taken slightly wider.
        """
        y = [_rounded(value) for value in multipliers]
        rest = [Fraction(0)] * len(self.low)
        for v in range(self.n_operators):
            rest[v] = _rounded(float(worth[v]))
        total = Fraction(0)
        for multiplier, row in zip(y, self.rows, strict=True):
            if multiplier:
                total += multiplier * Fraction(row.limit)
                for j, a in row.coefficients.items():
                    rest[j] -= multiplier * Fraction(a)
        for j, r in enumerate(rest):
            if r > 0:
                total += r * Fraction(float(self.high[j])) * ROOM
            elif r < 0:
                total += r * Fraction(float(self.low[j])) / ROOM
        return total


class Relaxation:
    """Relaxations of the contents of every type of machine."""

    def __init__(self, demand: Demand, catalogue: Catalogue) -> None:
        self.demand = demand
        self._capacity = capacities(catalogue) * float(ROOM)
        ways = self._capacity[:, [EGRESS, INGRESS]]
        self._network = catalogue.handles or bool(np.isfinite(ways).any())
        per_tuple, per_bit = catalogue.handling
        self._per_tuple, self._per_bit = per_tuple * float(ROOM), per_bit * float(ROOM)
        self.whole_groups = np.array(
            [demand.pieces(v) for v in range(demand.n_operators)], np.int64
        )
        self._instructions, self._memory = demand.least_instructions, demand.least_memory
        self._slots = _least_slots(demand, catalogue)
        self._sharing = _sharing(demand, catalogue)
        self.boxes = [self._box(demand, catalogue, t) for t in range(len(catalogue.offers))]

    @property
    def n_types(self) -> int:
        """Number of types of machines."""
        return len(self.boxes)

    def polytope(self, kind: int, box: Box | None = None) -> Polytope:
        """Return the polytope of a type of machine, with shares in a box."""
        demand, n = self.demand, self.demand.n_operators
        low, high = box or self.boxes[kind]
        room = self._capacity[kind]
        handles = self._per_tuple[kind] > 0 or self._per_bit[kind] > 0
        network = handles or np.isfinite(room[[EGRESS, INGRESS]]).any()
        even = (demand.tuples > 0) & ~demand.uneven
        streams = np.flatnonzero(even).tolist() if network else []
        shared = np.full(len(self._sharing) if np.isfinite(room[SLOTS]) else 0, 2.0)
        rows = [
            *self._local_rows(streams, low, high),
            *self._resource_rows(kind, streams),
            *self._slot_rows(kind, n + len(streams)),
        ]
        ends = [(demand.source[e], demand.target[e]) for e in streams]
        local = [min(high[u], high[v]) for u, v in ends]
        return Polytope(
            n,
            tuple(rows),
            np.r_[low, np.zeros(len(streams)), 0 * shared],
            np.r_[high, np.array(local), shared],
        )

    def loosest(self, box: Box, shares: Floats) -> int:
        """Return the operator to branch on so that local streams are bounded better.

        -1 if the relaxation overestimates them by little.
        """
        demand = self.demand
        u, v = demand.source, demand.target
        a, b = shares[u], shares[v]
        local = np.minimum(
            box.high[v] * a + box.low[u] * (b - box.high[v]),
            box.high[u] * b + box.low[v] * (a - box.high[u]),
        )
        shuffled = (demand.joined == ALL_TO_ALL) & ~demand.uneven
        off = np.where(shuffled, demand.tuples * (local - a * b), 0.0)
        if not self._network or off.sum() <= LITTLE * demand.tuples.sum():
            return -1
        e = int(np.argmax(off))
        width, chosen = max((box.high[x] - box.low[x], x) for x in (int(u[e]), int(v[e])))
        groups = int(self.whole_groups[chosen])
        return chosen if width > (1.5 / groups if groups else NARROW) else -1

    def _resource_rows(self, kind: int, streams: list[int]) -> list[Inequality]:
        demand, n, room = self.demand, self.demand.n_operators, self._capacity[kind]
        cost = self._per_tuple[kind] * demand.tuples + self._per_bit[kind] * demand.bits
        cpu, egress, ingress = self._instructions.copy(), np.zeros(n), np.zeros(n)
        for e in streams:
            u, v = demand.source[e], demand.target[e]
            cpu[u] += cost[e]
            cpu[v] += cost[e]
            egress[u] += demand.bits[e]
            ingress[v] += demand.bits[e]
        ways = (
            (CPU, cpu, -2 * cost),
            (MEMORY, self._memory, None),
            (EGRESS, egress, -demand.bits),
            (INGRESS, ingress, -demand.bits),
        )
        return [
            _scaled(need, None if local is None else local[streams], room[r])
            for r, need, local in ways
            if np.isfinite(room[r])
        ]

    def _slot_rows(self, kind: int, first: int) -> list[Inequality]:
        """Limit of slots, with one variable for each group of operators that share slots.

        A group takes no fewer slots than any of its operators.
        """
        room = self._capacity[kind][SLOTS]
        if not np.isfinite(room):
            return []
        need = self._slots / room
        slots = dict(enumerate(need.tolist()))
        rows = []
        for i, group in enumerate(self._sharing, first):
            rows += [Inequality({v: slots.pop(v), i: -1.0}, 0.0) for v in group]
            slots[i] = 1.0
        return [Inequality(slots, 1.0), *rows]

    def _local_rows(self, streams: list[int], low: Floats, high: Floats) -> list[Inequality]:
        """Upper bounds of the parts of streams that stay local (McCormick)."""
        demand, rows = self.demand, []
        for i, e in enumerate(streams):
            u, v, w = int(demand.source[e]), int(demand.target[e]), demand.n_operators + i
            if demand.joined[e] != ALL_TO_ALL:
                rows += [Inequality({w: 1.0, u: -1.0}, 0.0), Inequality({w: 1.0, v: -1.0}, 0.0)]
                continue
            for a, b in ((u, v), (v, u)):
                top, bottom = float(high[b]), float(low[a])
                rows.append(Inequality({w: 1.0, a: -top, b: -bottom}, -bottom * top))
        return rows

    def _box(self, demand: Demand, catalogue: Catalogue, kind: int) -> Box:
        offer, room = catalogue.offers[kind], self._capacity[kind]
        high = np.ones(demand.n_operators)
        for need, r in (
            (self._instructions, CPU),
            (self._memory, MEMORY),
            (self._slots, SLOTS),
        ):
            with np.errstate(divide="ignore"):
                high = np.minimum(high, np.where(need > 0, room[r] / need, 1.0))
        for v in range(demand.n_operators):
            runs = demand.requires[v] <= offer.tags
            if not runs or not least_parallelism(demand, v, float(room[CORE])):
                high[v] = 0.0
        groups = np.maximum(self.whole_groups, 1)
        whole = np.floor(high * groups * (1 + SLACK)) / groups
        return Box(np.zeros(demand.n_operators), np.where(self.whole_groups > 0, whole, high))


def _scaled(need: Floats, local: Floats | None, room: float) -> Inequality:
    values = need if local is None else np.r_[need, local]
    return Inequality({j: float(values[j] / room) for j in np.flatnonzero(values).tolist()}, 1.0)


def _least_slots(demand: Demand, catalogue: Catalogue) -> Floats:
    """Least slots for the whole of each operator, [N]: 1 / share of its busiest subtask.

    If the parallelism does not divide the key groups, this is less than the number of subtasks: of
    two subtasks with two and one of three groups, the first holds two thirds in one slot.
    """
    fastest = max(offer.core_speed for offer in catalogue.offers)
    shares = [
        busiest_share(demand, v, max(1, least_parallelism(demand, v, fastest)))
        for v in range(demand.n_operators)
    ]
    return 1 / np.array(shares)


def _sharing(demand: Demand, catalogue: Catalogue) -> list[list[int]]:
    """Groups of several operators that share slots."""
    groups = slot_groups(demand, catalogue)
    members = [np.flatnonzero(groups == group).tolist() for group in np.unique(groups)]
    return [group for group in members if len(group) > 1]


def exact(worth: Floats) -> Fraction:
    """Total worth of all operators, rounded as `Polytope.most` rounds it."""
    return sum((_rounded(float(value)) for value in worth), Fraction(0))


def _rounded(value: float) -> Fraction:
    return Fraction(round(value * 2**DIGITS), 2**DIGITS)


class Optimum(NamedTuple):
    """Best contents of a machine, and the multipliers of the rows."""

    value: float
    shares: Floats  # [N]
    multipliers: Floats  # one for each row


class Separation(NamedTuple):
    """Whether numbers of machines can hold all operators, in fractional shares."""

    missing: float  # sum of missing and surplus shares; 0 if all operators fit
    worth: Floats  # prices of the operators for a cut that excludes these numbers, [N]


def best_contents(polytope: Polytope, worth: Floats) -> Optimum:
    """Return the contents with the largest worth.

    Resources may be exceeded at a penalty, so that every box has an optimum; its value is negative
    if no contents within the box fit.
    """
    solver = new_solver()
    variables, rows = _block(solver, polytope, 1.0)
    for v in range(polytope.n_operators):
        solver.Objective().SetCoefficient(variables[v], float(worth[v]))
    exceeded = solver.NumVar(0.0, solver.infinity(), "")
    solver.Objective().SetCoefficient(exceeded, -PENALTY * float(np.abs(worth).sum()))
    for row, facts in zip(rows, polytope.rows, strict=True):
        if facts.limit > 0:
            row.SetCoefficient(exceeded, -1.0)
    solver.Objective().SetMaximization()
    if solver.Solve() != solver.OPTIMAL:
        return Optimum(-np.inf, polytope.low[: polytope.n_operators], np.zeros(len(rows)))
    shares = np.array([x.solution_value() for x in variables[: polytope.n_operators]])
    multipliers = np.array([max(0.0, row.dual_value()) for row in rows])
    return Optimum(solver.Objective().Value(), shares, multipliers)


def cheapest_worth(polytopes: Sequence[Polytope], catalogue: Catalogue) -> Floats:
    """Dual price of each operator in the cheapest fractional plan, [N]."""
    solver, offers = new_solver(), catalogue.offers
    counts = [solver.NumVar(float(o.at_least), float(o.at_most), "") for o in offers]
    blocks = [
        _block(solver, polytope, count)[0]
        for polytope, count in zip(polytopes, counts, strict=True)
    ]
    for count, offer in zip(counts, offers, strict=True):
        solver.Objective().SetCoefficient(count, float(offer.price))
    penalty = float(10 * np.array([offer.price for offer in offers]).sum())
    return _covered(solver, blocks, polytopes[0].n_operators, penalty).worth


def separate(polytopes: Sequence[Polytope], counts: Sequence[int]) -> Separation:
    """Test whether these numbers of machines can hold all operators in fractional shares."""
    solver = new_solver()
    blocks = [
        _block(solver, polytope, float(count))[0]
        for polytope, count in zip(polytopes, counts, strict=True)
        if count
    ]
    return _covered(solver, blocks, polytopes[0].n_operators, 1.0)


class MasterSolution(NamedTuple):
    """Cost of the columns and penalties, and the dual values."""

    cost: float
    worth: Floats  # dual value of a unit of each operator, [N]
    rent: Floats  # dual value of a machine of each type, if their numbers are limited, [T]


def solve_master(
    amounts: Sequence[float],
    columns: Iterable[tuple[int, Sequence[float]]],
    prices: Sequence[float],
    penalty: float,
    counts: Sequence[int] | None = None,
) -> MasterSolution:
    """Cover these amounts of every operator at least cost, with at most ``counts`` machines.

    A column is a type of machine and contents. Missing and surplus units cost the penalty.
    """
    solver = new_solver()
    cover = _covering_rows(solver, amounts, penalty)
    limits = [solver.Constraint(-solver.infinity(), float(count)) for count in counts or ()]
    for t, contents in columns:
        column = solver.NumVar(0.0, solver.infinity(), "")
        solver.Objective().SetCoefficient(column, float(prices[t]))
        for v in np.flatnonzero(contents).tolist():
            cover[v].SetCoefficient(column, float(contents[v]))
        if limits:
            limits[t].SetCoefficient(column, 1.0)
    solver.Objective().SetMinimization()
    if solver.Solve() != solver.OPTIMAL:
        return MasterSolution(0.0, np.zeros(len(cover)), np.zeros(len(limits)))
    return MasterSolution(solver.Objective().Value(), _duals(cover), -_duals(limits))


def _covered(solver: Any, blocks: list[list[Any]], n: int, penalty: float) -> Separation:
    """Solve with every operator held once; missing and surplus shares cost the penalty."""
    cover = _covering_rows(solver, [1.0] * n, penalty)
    for v, row in enumerate(cover):
        for block in blocks:
            row.SetCoefficient(block[v], 1.0)
    solver.Objective().SetMinimization()
    if solver.Solve() != solver.OPTIMAL:
        return Separation(0.0, np.zeros(n))
    return Separation(solver.Objective().Value(), _duals(cover))


def _duals(rows: list[Any]) -> Floats:
    return np.array([row.dual_value() for row in rows])


def _covering_rows(solver: Any, amounts: Sequence[float], penalty: float) -> list[Any]:
    """Rows that require these amounts of every operator; gap and surplus cost the penalty."""
    cover = []
    for amount in amounts:
        row = solver.Constraint(float(amount), float(amount))
        for sign in (1.0, -1.0):
            gap = solver.NumVar(0.0, solver.infinity(), "")
            row.SetCoefficient(gap, sign)
            solver.Objective().SetCoefficient(gap, penalty)
        cover.append(row)
    return cover


def _block(solver: Any, polytope: Polytope, count: Any) -> tuple[list[Any], list[Any]]:
    """Variables and rows of a number of machines, which may be a variable itself."""
    fixed = isinstance(count, float)
    highest = solver.infinity()
    variables = [
        solver.NumVar(
            float(low) * count if fixed else 0.0, float(high) * count if fixed else highest, ""
        )
        for low, high in zip(polytope.low, polytope.high, strict=True)
    ]
    limits = [(row.coefficients, row.limit) for row in polytope.rows]
    if not fixed:
        limits += [({j: 1.0}, float(high)) for j, high in enumerate(polytope.high)]
    rows = []
    for coefficients, limit in limits:
        row = solver.Constraint(-highest, limit * count if fixed else 0.0)
        for j, a in coefficients.items():
            row.SetCoefficient(variables[j], a)
        if not fixed:
            row.SetCoefficient(count, -limit)
        rows.append(row)
    return variables, rows


def new_solver() -> Any:
    """Return an empty linear program."""
    from ortools.linear_solver import pywraplp

    return pywraplp.Solver.CreateSolver("GLOP")

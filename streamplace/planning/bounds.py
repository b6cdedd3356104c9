"""Lower bounds of the cost of every plan, from the cheapest relaxation to the strongest.

The bounds leave out messages between subtasks, which depend on the parallelism. Without this cost
they are lower, so they remain valid.

The contents of one machine are relaxed to linear inequalities. Their variables are the share f(v)
of each operator's tuples on the machine, and the part w(e) of each stream that stays local; uneven
streams (`Demand.uneven`) are left out. For shuffles w = f(u) · f(v), which
McCormick's inequalities bound from above on the box of the shares; for forward streams
w = min(f(u), f(v)). Rules tighten this: for operators that must not share a machine,
Σ f / (largest share) ≤ 1; colocated operators hold parts of subtasks in one proportion y, so that f
is between multiples of y. OR-tools' GLOP solves linear programs over these inequalities. No proof
relies on the solver: its dual values only serve as multipliers of `Polytope.upper_bound`.

The strongest bound is a configuration linear program by column generation, which decides whether
machines can hold a job. A column is the contents of one machine of a type. The master program fills
the machines of each type with fractions of columns so that every operator is held once. Gaps and
surpluses are penalised, so that it is always feasible. Pricing looks for a column that improves the
master; if there is none, its bound is a cut (Gilmore and Gomory 1961; the bound is that of
Farley 1990, for numbers of machines).

Pricing is a branch and bound on the linear relaxation. A node is a box of shares. It is split where
the share of an operator is not a whole number of key groups, or where the relaxation keeps more of
a stream on the machine than the shares of its ends allow. The open nodes at the end prove the
bound.
"""

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from streamplace.model.arrays import Floats
from streamplace.model.devices import SLACK
from streamplace.placers.exact.cpsat import is_solved, new_solver
from streamplace.planning.cuts import (
    MARGIN,
    Cut,
    ExactCut,
    cheapest_counts,
    item_cuts,
    least_cost,
    resource_cuts,
    rule_cuts,
)
from streamplace.planning.demand import (
    ALL_TO_ALL,
    Demand,
    busiest_share,
    slot_groups,
    subtask_speeds,
)
from streamplace.planning.offers import Catalogue, Prices
from streamplace.planning.packing import CPU, EGRESS, INGRESS, MEMORY, SLOTS, capacities
from streamplace.planning.parallelism import least_parallelism

STRENGTHS = ("resources", "items", "network", "contents")
"""Relaxations, from the cheapest to the strongest."""
MAX_CUTS = 40
"""Cuts that the network and the contents may each add."""
MAX_PRICINGS = 60
"""Master programs that are solved for one cut."""
NODES = 64
"""Branch-and-bound nodes that pricing explores for each type of machine at first."""
MAX_NODES = 8_000
"""Nodes in total after which pricing does not restart with more of them."""
NO_GAP, NO_GAIN = 1e-7, 1e-6
"""Shares of operators that count as 0, in separation and in the master program."""
MIN_HIGH = 1e-6
"""Largest share below which the relaxation lets an operator meet any other on a machine."""
WHOLE = 1e-6
"""Tolerance within which a number of key groups is whole."""
DIGITS = 40
"""Binary digits of multipliers, few enough for short fractions."""
MAX_OVERESTIMATE = 1e-3
"""Share of all tuples up to which the relaxation may overestimate local streams."""
MIN_WIDTH = 1e-3
"""Width below which boxes are not split."""
PENALTY = 1000.0
"""Penalty for exceeding the resources by 100 %, as a multiple of all operators' worth."""


class Box(NamedTuple):
    """Least and largest share of each operator on one machine."""

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

    def upper_bound(self, worth: Floats, multipliers: Floats) -> Fraction:
        """Return an upper bound of Σ worth · share, by weak duality, in exact fractions.

        For any multipliers y ≥ 0 of the rows A f ≤ b, the worth of contents is at most
        y · b + Σ over variables of max(low · r, high · r), where r = worth − y · A. Limits are
        slightly widened, because those such as a third are not floats.
        """
        y = [_rounded(value) for value in multipliers]
        reduced_worth = [Fraction(0)] * len(self.low)
        for v in range(self.n_operators):
            reduced_worth[v] = _rounded(float(worth[v]))
        total = Fraction(0)
        for multiplier, row in zip(y, self.rows, strict=True):
            if multiplier:
                total += multiplier * Fraction(row.limit)
                for j, a in row.coefficients.items():
                    reduced_worth[j] -= multiplier * Fraction(a)
        for j, r in enumerate(reduced_worth):
            if r > 0:
                total += r * Fraction(float(self.high[j])) * MARGIN
            elif r < 0:
                total += r * Fraction(float(self.low[j])) / MARGIN
        return total


class Relaxation:
    """Relaxations of the contents of every type of machine."""

    def __init__(self, demand: Demand, catalogue: Catalogue) -> None:
        self.demand = demand
        self._capacity = capacities(catalogue) * float(MARGIN)
        self._network = catalogue.network_matters
        per_tuple, per_bit = catalogue.handling
        self._per_tuple, self._per_bit = per_tuple * float(MARGIN), per_bit * float(MARGIN)
        self.whole_groups = np.array(
            [demand.pieces(v) for v in range(demand.n_operators)], np.int64
        )
        self._instructions, self._memory = demand.least_instructions, demand.least_memory
        self._slots = _least_slots(demand, catalogue)
        self._sharing = _sharing(demand, catalogue)
        self._parts = [{v: demand.part_range(v) for v in unit} for unit in demand.units]
        self.boxes = [self._box(demand, catalogue, t) for t in range(len(catalogue.offers))]

    @property
    def n_types(self) -> int:
        """Number of types of machines."""
        return len(self.boxes)

    def polytope(self, kind: int, box: Box | None = None) -> Polytope:
        """Return the polytope of a type of machine, with shares in a box."""
        demand, n = self.demand, self.demand.n_operators
        low, high = box or self.boxes[kind]
        capacity = self._capacity[kind]
        handles = self._per_tuple[kind] > 0 or self._per_bit[kind] > 0
        network = handles or np.isfinite(capacity[[EGRESS, INGRESS]]).any()
        even = (demand.tuples > 0) & ~demand.uneven
        streams = np.flatnonzero(even).tolist() if network else []
        shared = np.full(len(self._sharing) if np.isfinite(capacity[SLOTS]) else 0, 2.0)
        rows = [
            *self._local_rows(streams, low, high),
            *self._resource_rows(kind, streams),
            *self._slot_rows(kind, n + len(streams)),
            *self._apart_rows(high),
            *self._unit_rows(n + len(streams) + len(shared)),
        ]
        parts = np.array(self._largest_parts(high))
        ends = [(demand.source[e], demand.target[e]) for e in streams]
        local = [min(high[u], high[v]) for u, v in ends]
        return Polytope(
            n,
            tuple(rows),
            np.r_[low, np.zeros(len(streams)), 0 * shared, 0 * parts],
            np.r_[high, np.array(local), shared, parts],
        )

    def loosest(self, box: Box, shares: Floats) -> int:
        """Return the operator to divide for a tighter bound of local streams; -1 if it is tight."""
        demand = self.demand
        u, v = demand.source, demand.target
        a, b = shares[u], shares[v]
        local = np.minimum(
            box.high[v] * a + box.low[u] * (b - box.high[v]),
            box.high[u] * b + box.low[v] * (a - box.high[u]),
        )
        shuffled = (demand.joined == ALL_TO_ALL) & ~demand.uneven
        excess = np.where(shuffled, demand.tuples * (local - a * b), 0.0)
        if not self._network or excess.sum() <= MAX_OVERESTIMATE * demand.tuples.sum():
            return -1
        e = int(np.argmax(excess))
        width, chosen = max((box.high[x] - box.low[x], x) for x in (int(u[e]), int(v[e])))
        groups = int(self.whole_groups[chosen])
        return chosen if width > (1.5 / groups if groups else MIN_WIDTH) else -1

    def _resource_rows(self, kind: int, streams: list[int]) -> list[Inequality]:
        demand, n, capacity = self.demand, self.demand.n_operators, self._capacity[kind]
        cost = self._per_tuple[kind] * demand.tuples + self._per_bit[kind] * demand.bits
        cpu, egress, ingress = self._instructions.copy(), np.zeros(n), np.zeros(n)
        for e in streams:
            u, v = demand.source[e], demand.target[e]
            cpu[u] += cost[e]
            cpu[v] += cost[e]
            egress[u] += demand.bits[e]
            ingress[v] += demand.bits[e]
        resources = (
            (CPU, cpu, -2 * cost),
            (MEMORY, self._memory, None),
            (EGRESS, egress, -demand.bits),
            (INGRESS, ingress, -demand.bits),
        )
        return [
            _scaled(need, None if local is None else local[streams], capacity[r])
            for r, need, local in resources
            if np.isfinite(capacity[r])
        ]

    def _slot_rows(self, kind: int, first: int) -> list[Inequality]:
        """Limit of slots, with one variable for each group of operators that share slots.

        A group takes no fewer slots than any of its operators.
        """
        capacity = self._capacity[kind][SLOTS]
        if not np.isfinite(capacity):
            return []
        need = self._slots / capacity
        slots = dict(enumerate(need.tolist()))
        rows = []
        for i, group in enumerate(self._sharing, first):
            rows += [Inequality({v: slots.pop(v), i: -1.0}, 0.0) for v in group]
            slots[i] = 1.0
        return [Inequality(slots, 1.0), *rows]

    def _apart_rows(self, high: Floats) -> list[Inequality]:
        """Σ f(v) / high(v) ≤ 1 over operators of which a machine holds at most one."""
        rows = []
        for group in self.demand.apart:
            weights = {v: 1 / float(high[v]) for v in group if high[v] > MIN_HIGH}
            rows += [Inequality(weights, float(MARGIN))] if len(weights) > 1 else []
        return rows

    def _unit_rows(self, first: int) -> list[Inequality]:
        """Limits low · y ≤ f(v) ≤ high · y by the part y of each unit of colocated operators."""
        rows = []
        for y, unit in enumerate(self._parts, first):
            for v, (low, high) in unit.items():
                rows.append(Inequality({v: 1.0, y: -high * float(MARGIN)}, 0.0))
                rows.append(Inequality({v: -1.0, y: low / float(MARGIN)}, 0.0))
        return rows

    def _largest_parts(self, high: Floats) -> list[float]:
        """Largest part of each unit within a box."""
        return [
            min([1.0, *(float(high[v] / least) * float(MARGIN) for v, (least, _) in unit.items())])
            for unit in self._parts
        ]

    def meeting(self, box: Box, shares: Floats) -> list[Box] | None:
        """Return boxes that separate operators that must not meet but do; None if none do."""
        for group in self.demand.apart:
            present = [v for v in group if shares[v] > WHOLE]
            if len(present) > 1:
                v = max(present, key=lambda v: float(shares[v]))
                absent = [w for w in group if w != v]
                return [
                    Box(box.low, _without(box.high, rows))
                    for rows in ([v], absent)
                    if not box.low[rows].any()
                ]
        return None

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
        offer, capacity = catalogue.offers[kind], self._capacity[kind]
        speed = subtask_speeds(demand, catalogue)[kind]
        high = np.ones(demand.n_operators)
        for need, r in ((self._instructions, CPU), (self._memory, MEMORY), (self._slots, SLOTS)):
            with np.errstate(divide="ignore"):
                high = np.minimum(high, np.where(need > 0, capacity[r] / need, 1.0))
        for v in range(demand.n_operators):
            runs = demand.requires[v] <= offer.tags
            if not runs or not least_parallelism(demand, v, float(speed[v])):
                high[v] = 0.0
        groups = np.maximum(self.whole_groups, 1)
        whole = np.floor(high * groups * (1 + SLACK)) / groups
        return Box(np.zeros(demand.n_operators), np.where(self.whole_groups > 0, whole, high))


def _without(high: Floats, rows: list[int]) -> Floats:
    fewer = np.array(high)
    fewer[rows] = 0.0
    return fewer


def _scaled(need: Floats, local: Floats | None, capacity: float) -> Inequality:
    values = need if local is None else np.r_[need, local]
    return Inequality(
        {j: float(values[j] / capacity) for j in np.flatnonzero(values).tolist()}, 1.0
    )


def _least_slots(demand: Demand, catalogue: Catalogue) -> Floats:
    """Least slots for the whole of each operator, [N]: 1 / share of its busiest subtask.

    If the parallelism does not divide the key groups, this is less than the number of subtasks: of
    two subtasks with two and one of three groups, the first holds two thirds in one slot.
    """
    fastest = subtask_speeds(demand, catalogue).max(axis=0)
    shares = [
        busiest_share(demand, v, max(1, least_parallelism(demand, v, float(fastest[v]))))
        for v in range(demand.n_operators)
    ]
    return 1 / np.array(shares)


def _sharing(demand: Demand, catalogue: Catalogue) -> list[list[int]]:
    """Groups of several operators that share slots."""
    groups = slot_groups(demand, catalogue)
    members = [np.flatnonzero(groups == group).tolist() for group in np.unique(groups)]
    return [group for group in members if len(group) > 1]


def total_worth(worth: Floats) -> Fraction:
    """Total worth of all operators, rounded as in `Polytope.upper_bound`."""
    return sum((_rounded(float(value)) for value in worth), Fraction(0))


def _rounded(value: float) -> Fraction:
    return Fraction(round(value * 2**DIGITS), 2**DIGITS)


class Optimum(NamedTuple):
    """Best contents of a machine, and the multipliers of the rows."""

    value: float
    shares: Floats  # [N]
    multipliers: Floats  # one for each row


class Covering(NamedTuple):
    """Solution of a linear program whose rows require some amount of each operator."""

    cost: float  # of machines or columns, and penalties of missing and surplus amounts
    worth: Floats  # dual value of a unit of each operator, [N]
    rent: Floats  # dual value of a machine of each type, if their numbers are limited, [T]


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
    if not is_solved(solver):
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


def separate(polytopes: Sequence[Polytope], counts: Sequence[int]) -> Covering:
    """Test whether these numbers of machines can hold all operators in fractional shares.

    If so, the cost is 0; else the worth makes a cut that excludes these numbers.
    """
    solver = new_solver()
    blocks = [
        _block(solver, polytope, float(count))[0]
        for polytope, count in zip(polytopes, counts, strict=True)
        if count
    ]
    return _covered(solver, blocks, polytopes[0].n_operators, 1.0)


def solve_master(
    amounts: Sequence[float],
    columns: Iterable[tuple[int, Sequence[float] | Floats]],
    prices: Sequence[float],
    penalty: float,
    counts: Sequence[int] | None = None,
) -> Covering:
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
    return _minimised(solver, cover, limits)


def _covered(solver: Any, blocks: list[list[Any]], n: int, penalty: float) -> Covering:
    """Solve with every operator held once; missing and surplus shares cost the penalty."""
    cover = _covering_rows(solver, [1.0] * n, penalty)
    for v, row in enumerate(cover):
        for block in blocks:
            row.SetCoefficient(block[v], 1.0)
    return _minimised(solver, cover, [])


def _minimised(solver: Any, cover: list[Any], limits: list[Any]) -> Covering:
    solver.Objective().SetMinimization()
    if not is_solved(solver):
        return Covering(0.0, np.zeros(len(cover)), np.zeros(len(limits)))
    worth, rent = (np.array([row.dual_value() for row in rows]) for rows in (cover, limits))
    return Covering(solver.Objective().Value(), worth, -rent)


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
    """Variables and rows of ``count`` machines, a number or a variable."""
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


@dataclass(frozen=True, slots=True, eq=False)
class CostBound:
    """A proven lower bound of the cost of every plan."""

    value: Fraction  # the bound, an exact fraction
    counts: tuple[int, ...]  # cheapest numbers of machines that no cut excludes
    cuts: tuple[ExactCut, ...]  # cuts that prove the bound
    # Bound of each relaxation, with the cuts of all weaker ones.
    by_strength: dict[str, Fraction] = field(default_factory=dict)


def proven_bound(
    demand: Demand,
    catalogue: Catalogue,
    stop: Callable[[], bool] = lambda: False,
    max_nodes: int = NODES,
    after_loss: Demand | None = None,
) -> CostBound | None:
    """Return a bound of the cost of every plan; None if no machines are enough.

    ``stop`` tells whether to end with the bound so far. Pricing explores `NODES` nodes for each
    type of machine at first, and restarts with four times as many up to about ``max_nodes``. With
    ``after_loss``, the machines must carry that demand without any one of them.
    """
    proofs = [_Proof(demand, catalogue, max_nodes, stop, after_loss=False)]
    if after_loss is not None:
        proofs.insert(0, _Proof(after_loss, catalogue, max_nodes, stop, after_loss=True))
    cuts: list[ExactCut] = []
    by_strength: dict[str, Fraction] = {}
    counts = all_machines = tuple(offer.at_most for offer in catalogue.offers)
    for strength in STRENGTHS:
        for proof in proofs:
            cuts += getattr(proof, strength)(cuts)
        if not all(cut.whole().holds(all_machines) for cut in cuts):
            return None  # all machines together are too few, since none has a worth below 0
        counts = cheapest_counts(cuts, catalogue) or all_machines
        goal = Prices.of(catalogue).cost(counts)
        by_strength[strength] = least_cost(cuts, catalogue, goal, stop)
        if stop():
            break
    return CostBound(max(by_strength.values()), counts, tuple(cuts), by_strength)


CutOf = Callable[[tuple[int, ...]], ExactCut | None]
"""Function that returns a cut that excludes numbers of machines, or None."""


def _any_lost(cut_of: CutOf, counts: tuple[int, ...]) -> ExactCut | None:
    """Cut that excludes these machines, because they are too few without one of them."""
    for t, number in enumerate(counts):
        if number:
            cut = cut_of((*counts[:t], number - 1, *counts[t + 1 :]))
            if cut is not None:
                return replace(cut, after_loss=True)
    return None


class _Proof:
    """Cuts that hold for machines that carry a demand, all together or without any one of them."""

    def __init__(
        self,
        demand: Demand,
        catalogue: Catalogue,
        max_nodes: int,
        stop: Callable[[], bool],
        *,
        after_loss: bool,
    ) -> None:
        self._demand, self._catalogue, self._stop = demand, catalogue, stop
        self._after_loss = after_loss
        self._relaxation = Relaxation(demand, catalogue)
        self._columns = Columns(self._relaxation, max_nodes)

    def resources(self, _: Sequence[ExactCut]) -> list[ExactCut]:
        """Cuts of single resources and of rules."""
        of_rules = rule_cuts(self._demand, self._catalogue)
        return self._noted(chain(resource_cuts(self._demand, self._catalogue), of_rules))

    def items(self, _: Sequence[ExactCut]) -> list[ExactCut]:
        """Cuts of items that cannot be divided."""
        return self._noted(item_cuts(self._demand, self._catalogue))

    def network(self, cuts: Sequence[ExactCut]) -> list[ExactCut]:
        """Cuts from the linear relaxation of a machine's contents, network included."""
        relaxation = self._relaxation
        polytopes = [relaxation.polytope(t) for t in range(relaxation.n_types)]

        def cut_of(worth: Floats) -> ExactCut:
            scaled = worth / max(float(np.abs(worth).max(initial=0.0)), 1e-300)
            bounds = [price(relaxation, t, scaled).bound for t in range(relaxation.n_types)]
            return Cut(tuple(bounds), total_worth(scaled), "network")

        def separated(counts: tuple[int, ...]) -> ExactCut | None:
            covering = separate(polytopes, counts)
            cut = cut_of(covering.worth)
            return None if covering.cost <= NO_GAP or cut.holds(counts) else cut

        first = self._noted([cut_of(cheapest_worth(polytopes, self._catalogue))])
        return [*first, *self._excluding(separated, [*cuts, *first])]

    def contents(self, cuts: Sequence[ExactCut]) -> list[ExactCut]:
        """Cuts from whole contents of machines."""
        return self._excluding(lambda counts: self._columns.cut(counts, self._stop), cuts)

    def _noted(self, cuts: Iterable[ExactCut]) -> list[ExactCut]:
        return [replace(cut, after_loss=self._after_loss) for cut in cuts]

    def _excluding(self, cut_of: CutOf, cuts: Sequence[ExactCut]) -> list[ExactCut]:
        """Cuts beyond these, each of which excludes the cheapest numbers of machines so far."""
        further: list[ExactCut] = []
        while len(further) < MAX_CUTS and not self._stop():
            counts = cheapest_counts([*cuts, *further], self._catalogue)
            if counts is None:
                break
            cut = _any_lost(cut_of, counts) if self._after_loss else cut_of(counts)
            if cut is None:
                break
            further.append(cut)
        return further


@dataclass(frozen=True, slots=True, eq=False)
class Priced:
    """Upper bound of the worth of one machine's contents."""

    bound: Fraction  # upper bound, an exact fraction
    # Shares of the operators at the node of the highest bound; 0 if nothing has positive worth.
    contents: Floats
    # Whether the relaxation is exact for the contents: up to rounding, a machine holds them.
    exact: bool
    nodes: int  # number of explored nodes


@dataclass(frozen=True, slots=True, eq=False)
class _Node:
    box: Box
    polytope: Polytope
    optimum: Optimum

    def __lt__(self, other: "_Node") -> bool:
        return self.optimum.value > other.optimum.value


def price(
    relaxation: Relaxation,
    kind: int,
    worth: Floats,
    nodes: int = 1,
    stop: Callable[[], bool] = lambda: False,
) -> Priced:
    """Bound the worth of the contents of a machine of a type, with at most ``nodes`` nodes.

    A single node gives the bound of the linear relaxation.
    """
    heap: list[_Node] = []
    _push(heap, relaxation, kind, worth, relaxation.boxes[kind])
    number = 0
    while True:
        number += 1
        node = heapq.heappop(heap)
        halves = _split(relaxation, node) if node.optimum.value > 0 else []
        if not halves or number >= nodes or stop():
            contents = node.optimum.shares * (node.optimum.value > 0)
            return Priced(_bound([node, *heap], worth), contents, not halves, number)
        for box in halves:
            _push(heap, relaxation, kind, worth, box)


def _push(heap: list[_Node], relaxation: Relaxation, kind: int, worth: Floats, box: Box) -> None:
    polytope = relaxation.polytope(kind, box)
    heapq.heappush(heap, _Node(box, polytope, best_contents(polytope, worth)))


def _split(relaxation: Relaxation, node: _Node) -> list[Box]:
    """Return two boxes that exclude the node's optimum; none if a machine can hold it.

    They separate operators that must not meet. If none do, they divide the operator whose share is
    furthest from a whole number of key groups or, if all are whole, an end of the stream that the
    relaxation overestimates most.
    """
    groups, shares = relaxation.whole_groups, node.optimum.shares
    apart = relaxation.meeting(node.box, shares)
    if apart is not None:
        return apart
    scaled = shares * groups
    distance = np.abs(scaled - np.round(scaled))
    if distance.max(initial=0.0) > WHOLE:
        v = int(np.argmax(distance / np.maximum(groups, 1)))
        return _halves(node.box, v, np.floor(scaled[v]) / groups[v], np.ceil(scaled[v]) / groups[v])
    v = relaxation.loosest(node.box, shares)
    if v < 0:
        return []
    low, high = node.box.low[v], node.box.high[v]
    middle = float(np.clip(shares[v], low + 0.25 * (high - low), high - 0.25 * (high - low)))
    if not groups[v]:
        return _halves(node.box, v, middle, middle)
    below = np.floor(middle * groups[v]) / groups[v]
    return _halves(node.box, v, below, below + 1 / groups[v])


def _halves(box: Box, v: int, below: float, above: float) -> list[Box]:
    high, low = np.array(box.high), np.array(box.low)
    high[v], low[v] = below, above
    return [Box(box.low, high), Box(low, box.high)]


def _bound(leaves: list[_Node], worth: Floats) -> Fraction:
    """Return the largest bound of the leaves, at least 0 for an empty machine."""
    bounds = [leaf.polytope.upper_bound(worth, leaf.optimum.multipliers) for leaf in leaves]
    return max([Fraction(0), *bounds])


class Columns:
    """Columns found so far; pricing restarts with more nodes up to about ``max_nodes``."""

    def __init__(self, relaxation: Relaxation, max_nodes: int) -> None:
        self._relaxation, self._max_nodes = relaxation, max_nodes
        self._columns: list[tuple[int, Priced]] = []  # with the type of machine
        self._nodes = 0

    def cut(self, counts: Sequence[int], stop: Callable[[], bool]) -> ExactCut | None:
        """Return a cut that excludes these numbers of machines; None if there is none.

        If the master is only feasible with columns that no real machine holds, pricing drops these
        columns and restarts with more nodes.
        """
        nodes = NODES
        while not stop():
            cut = self._cut(counts, nodes, stop)
            if cut is not None or nodes >= self._max_nodes or self._nodes > MAX_NODES:
                return cut
            columns = [(t, priced) for t, priced in self._columns if priced.exact]
            if len(columns) == len(self._columns):
                return None
            self._columns, nodes = columns, 4 * nodes
        return None

    def _cut(self, counts: Sequence[int], nodes: int, stop: Callable[[], bool]) -> ExactCut | None:
        for _ in range(MAX_PRICINGS):
            missing, worth, rent = solve_master(
                [1.0] * self._relaxation.demand.n_operators,
                [(t, priced.contents) for t, priced in self._columns],
                [0.0] * self._relaxation.n_types,
                1.0,
                counts,
            )
            if missing <= NO_GAIN or stop():
                return None
            priced = [
                price(self._relaxation, t, worth, nodes, stop)
                for t in range(self._relaxation.n_types)
            ]
            self._nodes += sum(p.nodes for p in priced)
            cut = Cut(tuple(p.bound for p in priced), total_worth(worth), "contents")
            if not cut.holds(tuple(counts)):
                return cut
            improving = [
                (t, p)
                for t, p in enumerate(priced)
                if counts[t] and float(p.contents @ worth) > rent[t] + NO_GAIN
            ]
            if not improving:
                return None
            self._columns += improving
        return None

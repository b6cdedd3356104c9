"""Lower bounds of the cost of every plan, from the cheapest relaxation to the strongest.

The bounds leave out messages between subtasks, which depend on the parallelism. Without this cost
they are lower, so they remain valid.

The strongest is a configuration linear program by column generation, which decides whether machines
can hold a job. A column is the contents of one machine of a type. The master program fills the
machines of each type with fractions of columns so that every operator is held once. Gaps and
surpluses are penalised, so that it is always feasible. Pricing looks for a column that improves the
master; where there is none, its bound is a cut (Gilmore and Gomory 1961; the bound is that of
Farley 1990, for numbers of machines).

Pricing is a branch and bound on the linear relaxation. A node is a box of shares. It is split where
the share of an operator is not a whole number of key groups, or where the relaxation keeps more of
a stream on the machine than the shares of its ends allow. The open nodes at the end prove the
bound.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from streamplace.model.arrays import Floats
from streamplace.planning.cuts import (
    Cut,
    cheapest_counts,
    enough,
    item_cuts,
    least_cost,
    resource_cuts,
)
from streamplace.planning.demand import Demand
from streamplace.planning.offers import Catalogue, Prices
from streamplace.planning.relaxation import (
    Box,
    Optimum,
    Polytope,
    Relaxation,
    best_contents,
    cheapest_worth,
    exact,
    separate,
    solve_master,
)

MOST_CUTS = 40
"""Cuts that the network and the contents may each add."""
MOST_PRICINGS = 60
"""Master programs that are solved for one cut."""
NODES = 64
"""Branch-and-bound nodes that pricing explores for each type of machine at first."""
MOST_NODES = 8_000
"""Nodes explored in total after which the limit of each type is not raised further."""
NO_GAP, NO_GAIN = 1e-7, 1e-6
"""Shares of operators, by separation and by the master program, that are 0 but for rounding."""
WHOLE = 1e-6
"""Tolerance within which a number of key groups is whole."""


@dataclass(frozen=True, slots=True, eq=False)
class CostBound:
    """A proven lower bound of the cost of every plan."""

    value: Fraction  # the bound, an exact fraction
    counts: tuple[int, ...]  # cheapest numbers of machines that no cut excludes
    cuts: tuple[Cut, ...]  # cuts that prove the bound
    # Bound of each relaxation, with the cuts of all weaker ones.
    by_strength: dict[str, Fraction] = field(default_factory=dict)


def proven_bound(
    demand: Demand,
    catalogue: Catalogue,
    stop: Callable[[], bool] = lambda: False,
    most_nodes: int = NODES,
) -> CostBound | None:
    """Return a bound of the cost of every plan; None where no machines are enough.

    ``stop`` tells whether to end with the bound so far. Pricing explores `NODES` for each type of
    machine at first; it may begin again with four times as many while these were fewer than
    ``most_nodes``.
    """
    cuts: list[Cut] = []
    by_strength: dict[str, Fraction] = {}
    relaxation = Relaxation(demand, catalogue)
    columns = Columns(relaxation, most_nodes)
    generators: dict[str, Iterable[Cut]] = {
        "resources": resource_cuts(demand, catalogue),
        "items": item_cuts(demand, catalogue),
        "network": _network_cuts(relaxation, catalogue, cuts, stop),
        "contents": _excluding(lambda counts: columns.cut(counts, stop), catalogue, cuts, stop),
    }
    counts = most = tuple(offer.at_most for offer in catalogue.offers)
    for strength, generator in generators.items():
        for cut in generator:
            cuts.append(cut)  # one by one: the next depends on those so far
        if not enough(cuts, catalogue):
            return None
        counts = cheapest_counts(cuts, catalogue) or most
        goal = Prices.of(catalogue).cost(counts)
        by_strength[strength] = least_cost(cuts, catalogue, goal, stop)
        if stop():
            break
    return CostBound(max(by_strength.values()), counts, tuple(cuts), by_strength)


def _excluding(
    cut_of: Callable[[tuple[int, ...]], Cut | None],
    catalogue: Catalogue,
    cuts: list[Cut],
    stop: Callable[[], bool],
) -> Iterator[Cut]:
    """Cuts that exclude the cheapest numbers of machines that satisfy those so far."""
    for _ in range(MOST_CUTS):
        counts = None if stop() else cheapest_counts(cuts, catalogue)
        cut = None if counts is None else cut_of(counts)
        if cut is None:
            return
        yield cut


def _network_cuts(
    relaxation: Relaxation, catalogue: Catalogue, cuts: list[Cut], stop: Callable[[], bool]
) -> Iterator[Cut]:
    """Cuts from the linear relaxation of a machine's contents, network included."""
    polytopes = [relaxation.polytope(t) for t in range(relaxation.n_types)]

    def cut_of(worth: Floats) -> Cut:
        scaled = worth / max(float(np.abs(worth).max(initial=0.0)), 1e-300)
        bounds = [price(relaxation, t, scaled).bound for t in range(relaxation.n_types)]
        return Cut(tuple(bounds), exact(scaled), "network")

    def separated(counts: tuple[int, ...]) -> Cut | None:
        missing, worth = separate(polytopes, counts)
        cut = cut_of(worth)
        return None if missing <= NO_GAP or cut.holds(counts) else cut

    yield cut_of(cheapest_worth(polytopes, catalogue))
    yield from _excluding(separated, catalogue, cuts, stop)


@dataclass(frozen=True, slots=True, eq=False)
class Priced:
    """Upper bound of the worth of one machine's contents."""

    bound: Fraction  # upper bound, an exact fraction
    # Shares of the operators at the node of the highest bound; 0 if nothing has positive worth.
    contents: Floats
    # Whether the relaxation is exact for these contents, so that a machine holds them up to
    # rounding.
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
    """Bound the worth of the contents of a machine of a type, with so many nodes at most.

    With a single one, the bound is that of the linear relaxation.
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

    Branches on the operator whose share is furthest from a whole number of key groups; if all are
    whole, on the stream that the relaxation overestimates most.
    """
    groups, shares = relaxation.whole_groups, node.optimum.shares
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
    bounds = [leaf.polytope.most(worth, leaf.optimum.multipliers) for leaf in leaves]
    return max([Fraction(0), *bounds])


class _Column(NamedTuple):
    kind: int
    contents: list[float]
    exact: bool


class Columns:
    """Columns found so far; pricing begins again while it explored less than ``most_nodes``."""

    def __init__(self, relaxation: Relaxation, most_nodes: int) -> None:
        self._relaxation, self._most_nodes = relaxation, most_nodes
        self._columns: list[_Column] = []
        self._nodes = 0

    def cut(self, counts: Sequence[int], stop: Callable[[], bool]) -> Cut | None:
        """Return a cut that excludes these numbers of machines; None where there is none.

        If the master is only feasible with columns that no real machine holds, those are dropped
        and pricing restarts with more nodes.
        """
        nodes = NODES
        while not stop():
            cut = self._cut(counts, nodes, stop)
            if cut is not None or nodes >= self._most_nodes or self._nodes > MOST_NODES:
                return cut
            columns = [column for column in self._columns if column.exact]
            if len(columns) == len(self._columns):
                return None
            self._columns, nodes = columns, 4 * nodes
        return None

    def _cut(self, counts: Sequence[int], nodes: int, stop: Callable[[], bool]) -> Cut | None:
        for _ in range(MOST_PRICINGS):
            missing, worth, rent = solve_master(
                [1.0] * self._relaxation.demand.n_operators,
                [(column.kind, column.contents) for column in self._columns],
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
            cut = Cut(tuple(p.bound for p in priced), exact(worth), "contents")
            if not cut.holds(tuple(counts)):
                return cut
            helpful = [
                _Column(t, p.contents.tolist(), p.exact)
                for t, p in enumerate(priced)
                if counts[t] and float(p.contents @ worth) > rent[t] + NO_GAIN
            ]
            if not helpful:
                return None
            self._columns += helpful
        return None

"""Lower bounds of the cost of every plan, from the cheapest relaxation to the strongest.

The bounds leave out messages between subtasks, which depend on the parallelism. Without this cost
they are lower, so they remain valid.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from streamplace.model.arrays import Floats
from streamplace.planning.columns import NODES, Columns, price
from streamplace.planning.counts import cheapest_counts, enough, least_cost
from streamplace.planning.cuts import Cut, item_cuts, resource_cuts
from streamplace.planning.demand import Demand
from streamplace.planning.linear import cheapest_worth, separate
from streamplace.planning.offers import Catalogue, Prices
from streamplace.planning.relaxation import Relaxation, exact

ENOUGH = 1e-7
ROUNDS = 40
"""Cuts that each relaxation may add."""
STRENGTHS = ("resources", "items", "network", "contents")


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
        "contents": _content_cuts(columns, catalogue, cuts, stop),
    }
    most = tuple(offer.at_most for offer in catalogue.offers)
    counts = most
    for strength in STRENGTHS:
        for cut in generators[strength]:
            cuts.append(cut)
        if not enough(cuts, catalogue):
            return None
        counts = cheapest_counts(cuts, catalogue) or most
        goal = Prices.of(catalogue).cost(counts)
        by_strength[strength] = least_cost(cuts, catalogue, goal, stop)
        if stop():
            break
    return CostBound(max(by_strength.values()), counts, tuple(cuts), by_strength)


def _network_cuts(
    relaxation: Relaxation, catalogue: Catalogue, cuts: list[Cut], stop: Callable[[], bool]
) -> Iterable[Cut]:
    """Cuts from the linear relaxation of a machine's contents, network included."""
    polytopes = [relaxation.polytope(t) for t in range(relaxation.n_types)]
    offers = catalogue.offers
    worth = cheapest_worth(
        polytopes,
        np.array([offer.price for offer in offers]),
        np.array([offer.at_least for offer in offers], np.float64),
        np.array([offer.at_most for offer in offers], np.float64),
    )
    yield _cut(relaxation, worth)
    for _ in range(ROUNDS):
        counts = None if stop() else cheapest_counts(cuts, catalogue)
        if counts is None:
            return
        separation = separate(polytopes, counts)
        cut = _cut(relaxation, separation.worth)
        if separation.missing <= ENOUGH or cut.holds(counts):
            return
        yield cut


def _content_cuts(
    columns: Columns, catalogue: Catalogue, cuts: list[Cut], stop: Callable[[], bool]
) -> Iterable[Cut]:
    """Cuts from contents with whole key groups."""
    for _ in range(ROUNDS):
        counts = None if stop() else cheapest_counts(cuts, catalogue)
        cut = None if counts is None else columns.cut(counts, stop)
        if cut is None:
            return
        yield cut


def _cut(relaxation: Relaxation, worth: Floats) -> Cut:
    scaled = worth / max(float(np.abs(worth).max(initial=0.0)), 1e-300)
    bounds = [price(relaxation, t, scaled).bound for t in range(relaxation.n_types)]
    return Cut(tuple(bounds), exact(scaled), "network")

"""Planning the machines for a rate."""

from collections.abc import Iterable
from pathlib import Path

from streamplace.api.arguments import (
    BudgetLike,
    ClusterLike,
    FilePath,
    GraphLike,
    budget_of,
    cluster_of,
    graph_of,
    is_path,
    seed_of,
    wrong,
)
from streamplace.errors import SettingError
from streamplace.model.units import Quantity
from streamplace.planning.given import planned_on
from streamplace.planning.headroom import Headroom
from streamplace.planning.offers import Catalogue, Offer, read_offers
from streamplace.planning.planner import planned
from streamplace.planning.result import PlanResult
from streamplace.planning.settings import USUAL_BUDGET, USUAL_ERROR, PlanSettings

OffersLike = Catalogue | Iterable[Offer] | FilePath
"""Offers, a catalogue of them, or the path of a file."""


def plan(
    graph: GraphLike,
    *,
    rate: Quantity | None = None,
    offers: OffersLike | None = None,
    cluster: ClusterLike | None = None,
    headroom: float | Headroom = 0.0,
    robust: int = 0,
    error: float = USUAL_ERROR,
    seed: int = 0,
    budget: BudgetLike | None = None,
) -> PlanResult:
    """Find the cheapest machines, parallelism and placement that carry a rate.

    Parameters
    ----------
    graph
        A graph, or the path of a file with one.
    rate
        Tuples/s of all sources together; by default the rate of the graph.
    offers
        Types of machines and their prices, or the path of the TOML file that holds them.
    cluster
        Machines that there are, instead of offers; the plan uses as few as possible.
    headroom
        Share of every resource that stays free, or a `Headroom` from which it is derived.
    robust
        The plan also carries the rate where so many operators on each machine cost more than the
        graph says.
    error
        Share by which they may cost more.
    seed
        The same seed gives the same plan, unless the budget ends the search.
    budget
        Time that the search may take, 10 s by default, or a number of moves.

    Examples
    --------
    >>> from streamplace import Offer, Operator, Stream, StreamGraph
    >>> graph = StreamGraph.of("pipe", [Operator("a", ipt=2e5, rate=1e4), Operator("b", ipt=2e5)],
    ...                        [Stream("a", "b")])
    >>> result = plan(graph, rate=3e4, offers=[Offer("small", 0.1, cores=4)])
    >>> result.machines, result.cost, float(result.bound)
    ({'small': 2}, 0.2, 0.2)
    """
    if (offers is None) == (cluster is None):
        raise SettingError("a plan needs either offers or a cluster; give one of them")
    spare = headroom if isinstance(headroom, Headroom) else Headroom(flat=headroom)
    limit = budget_of(budget) or USUAL_BUDGET
    settings = PlanSettings(spare, robust, error, seed_of(seed), limit)
    asked, machines = graph_of(graph, rate), cluster_of(cluster)
    if machines is not None:
        return planned_on(asked, machines, settings)
    return planned(asked, _catalogue(offers), settings)


def _catalogue(offers: OffersLike | None) -> Catalogue:
    if isinstance(offers, Catalogue):
        return offers
    if is_path(offers):
        return read_offers(Path(offers))
    if isinstance(offers, Iterable):
        listed = list(offers)
        if all(isinstance(offer, Offer) for offer in listed):
            return Catalogue.of(offer for offer in listed if isinstance(offer, Offer))
    raise wrong("offers", offers, "a list of Offer, or the path of a file with offers")

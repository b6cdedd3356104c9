"""Planning of machines for a rate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from streamplace.api.arguments import GraphLike
from streamplace.api.plan_request import PlanRequest
from streamplace.control.day import MoveTerms
from streamplace.control.policy import MakePolicy
from streamplace.control.schedule import PlanSchedule
from streamplace.model.units import Quantity, tuple_rate
from streamplace.planning.offers import Catalogue, Offer
from streamplace.planning.result import PlanCurve, PlanResult
from streamplace.planning.traces import RateTrace
from streamplace.settings.convert import BudgetLike, ClusterLike, FilePath
from streamplace.settings.plan import PlanningSettings

OffersLike = Catalogue | Iterable[Offer] | FilePath
"""Offers, a catalogue of them, or the path of a file."""
TraceLike = RateTrace | FilePath
"""Rates over time, or the path of a CSV file with them."""


def plan(
    graph: GraphLike,
    *,
    rate: Quantity | None = None,
    trace: TraceLike | None = None,
    quantile: float = 1.0,
    offers: OffersLike | None = None,
    cluster: ClusterLike | None = None,
    headroom: float = 0.0,
    keep_parallelism: bool | Iterable[str] = False,
    confidence: float | None = None,
    trust_profile: bool = False,
    seed: int = 0,
    budget: BudgetLike | None = None,
    jobs: int | None = None,
) -> PlanResult:
    """Find the cheapest machines, parallelism and placement that carry a rate.

    Parameters
    ----------
    graph
        A graph, or the path of a file with one.
    rate
        Tuples/s of all sources; by default the rate of the graph. ``"max"`` is the highest rate
        for which a plan on the machines is found.
    trace
        Rates over time instead, or the path of a CSV file with them. The result then has
        ``hours``: separate plans for each hour.
    quantile
        Quantile of each source's rates that the plan carries; with 1, the peaks, it carries the
        complete trace.
    offers
        Types of machines with prices, or the path of a TOML file with them.
    cluster
        Available machines, instead of offers; the plan uses as few as possible.
    headroom
        Share h of each resource whose use is proportional to the rate that stays free: the plan is
        for 1 / (1 − h) times the rate.
    keep_parallelism
        Whether operators keep the parallelism of the graph, so that only machines and placement
        are planned; or the name of an operator that keeps it, or several.
    confidence
        Confidence with which a graph that was measured on a running job carries the rate: the
        plan carries it at the lower end of its prediction. 0.9 by default; 0 plans with the
        prediction itself. Only for such graphs.
    trust_profile
        Whether to use a measured graph whose model is off by more than 30 % for the placement that
        was profiled.
    seed
        Random seed; equal seeds give equal plans, unless the budget ends the search.
    budget
        Time limit of the search, 10 s by default, or a number of moves; for each hour of a
        trace.
    jobs
        Number of processes that plan the hours of a trace; by default one per core if there are
        many hours.

    Examples
    --------
    >>> from streamplace import Offer, Operator, Stream, StreamGraph
    >>> graph = StreamGraph.of("pipe", [Operator("a", ipt=2e5, rate=1e4), Operator("b", ipt=2e5)],
    ...                        [Stream("a", "b")])
    >>> result = plan(graph, rate=3e4, offers=[Offer("small", 0.1, cores=4)])
    >>> result.machines, result.cost, float(result.bound)
    ({'small': 2}, 0.2, 0.2)
    """
    asked = PlanningSettings.of(locals())
    return PlanRequest.of(graph, asked).single(asked)


def plan_frontier(
    graph: GraphLike,
    rates: Sequence[Quantity],
    *,
    offers: OffersLike | None = None,
    cluster: ClusterLike | None = None,
    headroom: float = 0.0,
    keep_parallelism: bool | Iterable[str] = False,
    confidence: float | None = None,
    trust_profile: bool = False,
    seed: int = 0,
    budget: BudgetLike | None = None,
    jobs: int | None = None,
) -> PlanCurve:
    """Plan for several rates: the frontier of cost against rate, with its bound.

    Parameters
    ----------
    rates
        Tuples/s of all sources.
    graph, offers, cluster, headroom, keep_parallelism, confidence, trust_profile, seed
        As for `plan`.
    budget, jobs
        As for `plan`, for each of the plans.

    Examples
    --------
    >>> from streamplace import Offer, Operator, StreamGraph
    >>> graph = StreamGraph.of("alone", [Operator("a", ipt=2e5, rate=1e4)])
    >>> curve = plan_frontier(graph, [1e4, 2e4, 4e4], offers=[Offer("small", 0.1)])
    >>> [result.machines["small"] for result in curve.results]
    [1, 2, 4]
    """
    request = PlanRequest.of(graph, PlanningSettings.of(locals()))
    return request.frontier(map(tuple_rate, rates))


def plan_schedule(
    graph: GraphLike,
    trace: TraceLike,
    *,
    policies: str | Iterable[str | tuple[str, MakePolicy]] = (),
    slot: Quantity = "5 min",
    terms: MoveTerms | None = None,
    offers: OffersLike | None = None,
    cluster: ClusterLike | None = None,
    headroom: float = 0.0,
    keep_parallelism: bool | Iterable[str] = False,
    confidence: float | None = None,
    trust_profile: bool = False,
    seed: int = 0,
    budget: BudgetLike | None = None,
    jobs: int | None = None,
) -> PlanSchedule:
    """Find the cheapest sequence of plans for rates over time, and replay policies against it.

    Parameters
    ----------
    trace
        Rates over time, or the path of a CSV file with them.
    policies
        Names of registered policies, which do not know the rates to come, or pairs of a name and
        what makes a policy of a `PlanChoice`. ``"all"`` stands for all that are registered.
    slot
        Time between two decisions.
    terms
        What a move takes, and how late tuples may be.
    graph, offers, cluster, headroom, keep_parallelism, confidence, trust_profile, seed
        As for `plan`.
    budget, jobs
        As for `plan`, for each of the plans.

    Examples
    --------
    >>> import numpy as np
    >>> from streamplace import Offer, Operator, StreamGraph
    >>> from streamplace.planning.traces import RateTrace
    >>> graph = StreamGraph.of("alone", [Operator("a", ipt=2e5, rate=1e4)])
    >>> day = RateTrace(3600.0 * np.arange(4), ("rate",), 1e4 * np.array([[1], [1], [4], [4.0]]))
    >>> found = plan_schedule(graph, day, slot="1 h", offers=[Offer("small", 0.1)])
    >>> [(step.start / 3600, found.plans[step.level].cost) for step in found.steps]
    [(0.0, 0.1), (2.0, 0.4)]
    """
    asked = PlanningSettings.of({"schedule": True, **locals()})
    return PlanRequest.of(graph, asked).schedule(asked)

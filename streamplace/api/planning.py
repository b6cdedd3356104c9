"""Planning of machines for a rate."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
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
from streamplace.control.day import MoveTerms, control_day
from streamplace.control.policy import POLICIES, MakePolicy
from streamplace.control.replay import replay
from streamplace.control.result import PlanSchedule
from streamplace.control.schedule import cheapest_levels, lower_bound
from streamplace.errors import SettingError
from streamplace.evaluate.parallel import FEW, parallel_map
from streamplace.io.ledger import errors_for
from streamplace.model.cluster import Cluster
from streamplace.model.defaults import USUAL_ERROR
from streamplace.model.graph import StreamGraph
from streamplace.model.units import Quantity, seconds, tuple_rate
from streamplace.planning.bounds import proven_bound
from streamplace.planning.curve import PlanCurve
from streamplace.planning.headroom import Headroom
from streamplace.planning.offers import Catalogue, Offer, read_offers
from streamplace.planning.planner import planned, planned_most
from streamplace.planning.problem import PlanProblem
from streamplace.planning.result import PlanResult
from streamplace.planning.settings import USUAL_BUDGET, PlanSettings
from streamplace.planning.traces import RateTrace, planned_for_trace, read_trace

HIGHEST_RATE = "max"
"""Rate of a plan for the most that the machines can carry."""
BOUND_NODES = 200
"""Nodes of the branch and bound of each slot's bound."""
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
    headroom: float | Headroom = 0.0,
    robust: int = 0,
    error: float = USUAL_ERROR,
    keep_parallelism: bool | Iterable[str] = False,
    confidence: float | None = None,
    ledger: FilePath | None = None,
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
        Share of every resource that stays free, or a `Headroom` that determines it.
    robust
        Number of operators on each machine that may cost more than the graph states; the plan
        carries the rate nevertheless.
    error
        Relative cost by which they may exceed the graph.
    keep_parallelism
        Whether operators keep the parallelism of the graph, so that only machines and placement
        are planned; or the names of those that keep it.
    confidence
        Confidence with which a graph that was measured on a running job carries the rate: the
        plan carries it at the lower end of its prediction. 0.9 by default; 0 plans with the
        prediction itself. Only for such graphs.
    ledger
        File of predicted and measured rates, by default the user's.
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
    machines = _machines(offers, cluster)
    settings = _settings(headroom, robust, error, keep_parallelism, seed, budget)
    settings = _confident(settings, graph, confidence, ledger)
    if trace is None and rate == HIGHEST_RATE:
        return planned_most(graph_of(graph), machines, settings)
    if trace is None:
        return _planned(machines, (graph_of(graph, rate), settings))
    if rate is not None:
        raise SettingError("a trace has its own rates; drop the rate, or the trace")
    rates = _trace_of(trace)

    def plan_each(graphs: list[StreamGraph]) -> Iterable[PlanResult]:
        return _planned_all(machines, [(each, settings) for each in graphs], jobs)

    return planned_for_trace(graph_of(graph), rates, quantile, plan_each)


def plan_frontier(
    graph: GraphLike,
    rates: Sequence[Quantity],
    *,
    offers: OffersLike | None = None,
    cluster: ClusterLike | None = None,
    headroom: float | Headroom = 0.0,
    robust: int = 0,
    error: float = USUAL_ERROR,
    keep_parallelism: bool | Iterable[str] = False,
    confidence: float | None = None,
    ledger: FilePath | None = None,
    seed: int = 0,
    budget: BudgetLike | None = None,
    jobs: int | None = None,
) -> PlanCurve:
    """Plan for several rates: the frontier of cost against rate, with its bound.

    Parameters
    ----------
    rates
        Tuples/s of all sources.
    graph, offers, cluster, headroom, robust, error, keep_parallelism, confidence, ledger, seed
        As for `plan`.
    budget
        Budget of each plan.
    jobs
        Number of processes; by default one per core if there are many rates.

    Examples
    --------
    >>> from streamplace import Offer, Operator, StreamGraph
    >>> graph = StreamGraph.of("alone", [Operator("a", ipt=2e5, rate=1e4)])
    >>> curve = plan_frontier(graph, [1e4, 2e4, 4e4], offers=[Offer("small", 0.1)])
    >>> [result.machines["small"] for result in curve.results]
    [1, 2, 4]
    """
    machines = _machines(offers, cluster)
    settings = _settings(headroom, robust, error, keep_parallelism, seed, budget)
    settings = _confident(settings, graph, confidence, ledger)
    values = sorted({tuple_rate(rate) for rate in rates})
    if not values:
        raise SettingError("there are no rates; give at least one")
    asked = [(graph_of(graph, value), settings) for value in values]
    return PlanCurve("rate", tuple(values), tuple(_planned_all(machines, asked, jobs)))


def plan_schedule(
    graph: GraphLike,
    trace: TraceLike,
    *,
    policies: Iterable[str | tuple[str, MakePolicy]] = (),
    slot: Quantity = "5 min",
    terms: MoveTerms | None = None,
    offers: OffersLike | None = None,
    cluster: ClusterLike | None = None,
    headroom: float | Headroom = 0.0,
    robust: int = 0,
    error: float = USUAL_ERROR,
    keep_parallelism: bool | Iterable[str] = False,
    confidence: float | None = None,
    ledger: FilePath | None = None,
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
        Names of registered policies that do not know the rates to come, ``"all"`` among them, or
        pairs of a name and what makes a policy of a `PlanChoice`.
    slot
        Time between two decisions.
    terms
        What a move takes, and how late tuples may be.
    graph, offers, cluster, headroom, robust, error, keep_parallelism, confidence, ledger, seed
        As for `plan`.
    budget
        Of each plan.
    jobs
        Processes that plan.

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
    whole, rates = graph_of(graph), _trace_of(trace)
    machines = _machines(offers, cluster)
    settings = _settings(headroom, robust, error, keep_parallelism, seed, budget)
    settings = _confident(settings, graph, confidence, ledger)
    chosen = [made for one in policies for made in _policies_of(one)]

    def plan_each(graphs: list[StreamGraph]) -> Iterable[PlanResult]:
        return _planned_all(machines, [(each, settings) for each in graphs], jobs)

    def bound_of(graph: StreamGraph) -> float:
        problem = PlanProblem.of(graph, machines, settings)
        bound = proven_bound(problem.demand, problem.catalogue, most_nodes=BOUND_NODES)
        return 0.0 if bound is None else float(bound.value)

    day = control_day(whole, rates, seconds(slot), terms or MoveTerms(), plan_each, bound_of)
    replays = tuple(replay(day, name, make) for name, make in chosen)
    return PlanSchedule(day, cheapest_levels(day), lower_bound(day), replays)


def _policies_of(policy: str | tuple[str, MakePolicy]) -> list[tuple[str, MakePolicy]]:
    """Names and makers of policies; of all that are registered for the name ``"all"``."""
    if not isinstance(policy, str):
        return [policy]
    names = list(POLICIES) if policy == "all" else [policy]
    return [(name, POLICIES[name].make) for name in names]


def _trace_of(trace: TraceLike) -> RateTrace:
    if isinstance(trace, RateTrace):
        return trace
    if is_path(trace):
        return read_trace(Path(trace))
    raise wrong("trace", trace, "a RateTrace, or the path of a CSV file with rates")


def plan_robustness(
    graph: GraphLike,
    protected: Sequence[int],
    *,
    rate: Quantity | None = None,
    offers: OffersLike | None = None,
    cluster: ClusterLike | None = None,
    headroom: float | Headroom = 0.0,
    error: float = USUAL_ERROR,
    keep_parallelism: bool | Iterable[str] = False,
    confidence: float | None = None,
    ledger: FilePath | None = None,
    seed: int = 0,
    budget: BudgetLike | None = None,
    jobs: int | None = None,
) -> PlanCurve:
    """Plan for several numbers of operators that may cost more: the price of robustness.

    Parameters
    ----------
    protected
        Numbers Γ of operators on each machine that may cost more than the graph states, as
        ``robust`` of `plan`.
    graph, rate, offers, cluster, headroom, error, keep_parallelism, confidence, ledger, seed
        As for `plan`.
    budget
        Budget of each plan.
    jobs
        Number of processes; by default one per core if there are many numbers.
    """
    machines = _machines(offers, cluster)
    settings = _settings(headroom, 0, error, keep_parallelism, seed, budget)
    settings = _confident(settings, graph, confidence, ledger)
    values = sorted(set(protected))
    if not values:
        raise SettingError("there are no numbers of protected operators; give at least one")
    whole = graph_of(graph, rate)
    asked = [(whole, replace(settings, robust=number)) for number in values]
    results = tuple(_planned_all(machines, asked, jobs))
    return PlanCurve("robust", tuple(map(float, values)), results)


def _settings(
    headroom: float | Headroom,
    robust: int,
    error: float,
    keep_parallelism: bool | Iterable[str],
    seed: int,
    budget: BudgetLike | None,
) -> PlanSettings:
    spare = headroom if isinstance(headroom, Headroom) else Headroom(flat=headroom)
    limit = budget_of(budget) or USUAL_BUDGET
    keeping = keep_parallelism
    names = keeping if isinstance(keeping, bool) else frozenset(keeping)
    return PlanSettings(spare, robust, error, names, seed_of(seed), limit)


def _confident(
    settings: PlanSettings,
    graph: GraphLike,
    confidence: float | None,
    ledger: FilePath | None,
) -> PlanSettings:
    """Add the prediction errors for a graph to settings."""
    file = None if ledger is None else Path(ledger)
    return replace(settings, errors=errors_for(graph_of(graph), confidence, file))


def _planned(machines: Catalogue | Cluster, asked: tuple[StreamGraph, PlanSettings]) -> PlanResult:
    graph, settings = asked
    return planned(graph, machines, settings)


def _planned_all(
    machines: Catalogue | Cluster,
    asked: list[tuple[StreamGraph, PlanSettings]],
    jobs: int | None,
) -> Iterable[PlanResult]:
    few = FEW if jobs is None else 1
    return parallel_map(partial(_planned, machines), asked, jobs, few=few)


def _machines(offers: OffersLike | None, cluster: ClusterLike | None) -> Catalogue | Cluster:
    """Offers or machines, of which exactly one is required."""
    if (offers is None) == (cluster is None):
        words = "exclude each other; drop one" if offers is not None else "are missing; give one"
        raise SettingError(
            f"a plan needs either offers or a cluster: --offers and --cluster {words}"
        )
    given = cluster_of(cluster)
    if given is not None:
        return given
    if isinstance(offers, Catalogue):
        return offers
    if is_path(offers):
        return read_offers(Path(offers))
    if isinstance(offers, Iterable):
        listed = list(offers)
        if all(isinstance(offer, Offer) for offer in listed):
            return Catalogue.of(offer for offer in listed if isinstance(offer, Offer))
    raise wrong("offers", offers, "a list of Offer, or the path of a file with offers")

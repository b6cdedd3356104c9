"""Planning of machines for a rate, for several of them, and for rates over time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Any, TypeVar

from streamplace.api.arguments import GraphLike, planned_graph
from streamplace.control.policy import MakePolicy
from streamplace.control.problem import MoveTerms, control_day
from streamplace.control.replay import replay
from streamplace.control.schedule import PlanSchedule, cheapest_levels, lower_bound
from streamplace.errors import GraphError, ProblemError, SettingError
from streamplace.evaluate.parallel import FEW, parallel_map
from streamplace.io.ledger import errors_for
from streamplace.model.cluster import Cluster
from streamplace.model.columns import checked_kind
from streamplace.model.graph import StreamGraph
from streamplace.model.profile_trust import check_trust, extrapolation
from streamplace.model.units import Quantity, tuple_rate
from streamplace.planning.bounds import proven_bound
from streamplace.planning.offers import Catalogue, Offer
from streamplace.planning.planner import planned, planned_most
from streamplace.planning.problem import PlannerSettings, PlanProblem
from streamplace.planning.result import PlanCurve, PlanResult
from streamplace.planning.traces import RateTrace, planned_for_trace
from streamplace.settings.convert import BudgetLike, ClusterLike, ConstraintsLike, FilePath
from streamplace.settings.plan import PlanSettings

R = TypeVar("R")
OffersLike = Catalogue | Iterable[Offer] | Mapping[str, Any] | FilePath
"""Offers, a catalogue of them, the tables of an offers file, or its path."""
TraceLike = RateTrace | Mapping[str, Sequence[Quantity]] | FilePath
"""Rates over time, the columns of a CSV file with them, or its path."""
BOUND_NODES = 200
"""Nodes of the branch and bound of each slot's bound."""


def plan(
    graph: GraphLike,
    *,
    rate: Quantity | None = None,
    trace: TraceLike | None = None,
    quantile: float = 1.0,
    offers: OffersLike | None = None,
    cluster: ClusterLike | None = None,
    constraints: ConstraintsLike | None = None,
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
        Available machines, instead of offers; the plan uses the cheapest of them or, if they have
        no prices, as few as possible.
    constraints
        Rules for the machines of operators. A machine is called as its offer if there is one only,
        else ``small-0``, ``small-1`` and so on; ``small`` stands for all of these in ``allowed``.
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
    settings = PlanSettings.of(locals())
    return PlanRequest.of(graph, settings).single(settings)


def plan_frontier(
    graph: GraphLike,
    rates: Sequence[Quantity],
    *,
    offers: OffersLike | None = None,
    cluster: ClusterLike | None = None,
    constraints: ConstraintsLike | None = None,
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
    graph, offers, cluster, constraints, headroom, keep_parallelism, confidence, trust_profile, seed
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
    request = PlanRequest.of(graph, PlanSettings.of(locals()))
    return request.frontier(map(tuple_rate, checked_kind(rates, Iterable)))


def plan_schedule(
    graph: GraphLike,
    trace: TraceLike,
    *,
    policies: str | Iterable[str | tuple[str, MakePolicy]] = (),
    slot: Quantity = "5 min",
    terms: MoveTerms | None = None,
    offers: OffersLike | None = None,
    cluster: ClusterLike | None = None,
    constraints: ConstraintsLike | None = None,
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
    graph, offers, cluster, constraints, headroom, keep_parallelism, confidence, trust_profile, seed
        As for `plan`.
    budget, jobs
        As for `plan`, for each of the plans.

    Examples
    --------
    >>> import numpy as np
    >>> from streamplace import Offer, Operator, StreamGraph
    >>> from streamplace.planning.traces import RateTrace
    >>> graph = StreamGraph.of("alone", [Operator("a", ipt=2e5, rate=1e4)])
    >>> day = RateTrace(3600.0 * np.arange(4), ("rate",), 1e4 * np.array([[2], [2], [4], [4.0]]))
    >>> found = plan_schedule(graph, day, slot="1 h", offers=[Offer("small", 0.1)])
    >>> [(step.start / 3600, found.plans[step.level].cost) for step in found.steps]
    [(0.0, 0.2), (2.0, 0.4)]
    """
    settings = PlanSettings.of({"schedule": True, **locals()})
    return PlanRequest.of(graph, settings).schedule(settings)


@dataclass(frozen=True, slots=True, eq=False)
class PlanRequest:
    """A graph, the machines that there are or that can be bought, and the settings of its plans."""

    graph: StreamGraph
    machines: Catalogue | Cluster
    settings: PlannerSettings
    # Processes that make several plans; by default one per core if there are many.
    jobs: int | None = None

    @classmethod
    def of(cls, graph: GraphLike, settings: PlanSettings) -> PlanRequest:
        """Read a graph, and the machines of the settings.

        A graph that contradicts its measurement is refused, unless it is trusted.
        """
        machines, read = settings.machines(), planned_graph(graph)
        check_trust(read, trusts=settings.trust_profile)
        errors = errors_for(read, settings.confidence)
        return cls(read, machines, replace(settings.of_plans(), errors=errors), settings.jobs)

    def plan(self) -> PlanResult:
        """Plan for the rate of the graph."""
        return planned(self.graph, self.machines, self.settings)

    def plan_if_any(self) -> PlanResult | None:
        """Plan for the rate of the graph; None if none is found, or the graph cannot have it."""
        try:
            return self.plan()
        except (ProblemError, GraphError):
            return None

    def single(self, settings: PlanSettings) -> PlanResult:
        """Plan for the trace, for the rate, for the highest one, or for that of the graph."""
        rates = settings.rate or ()
        if len(rates) > 1:
            raise SettingError("a plan has one rate; plan_frontier plans for several")
        if settings.trace is not None:
            each = partial(self._each, PlanRequest.plan_if_any)
            return planned_for_trace(self.graph, settings.trace, settings.quantile, self._of, each)
        if rates == (inf,):
            return self._told(planned_most(self.graph, self.machines, self.settings))
        return self._told(self._of(self.graph.at_rate(*rates))) if rates else self.plan()

    def _told(self, result: PlanResult) -> PlanResult:
        """Plan that says if its rate is far beyond what was measured."""
        far = extrapolation(self.graph, result.rate)
        return result if far is None else replace(result, notes=(*result.notes, f"Note: {far}."))

    def frontier(self, rates: Iterable[float]) -> PlanCurve:
        """Plan for several rates."""
        values = sorted(set(rates))
        if not values:
            raise SettingError("there are no rates; give at least one")
        results = self._each(PlanRequest.plan, map(self.graph.at_rate, values))
        return PlanCurve(tuple(values), tuple(map(self._told, results)))

    def schedule(self, settings: PlanSettings) -> PlanSchedule:
        """Find the cheapest sequence of plans for a trace, and replay policies against it."""
        assert settings.trace is not None  # a schedule without one is refused
        each = partial(self._each, PlanRequest.plan)
        day = control_day(
            self.graph, settings.trace, settings.slot, settings.moves(), each, self._bound
        )
        replays = tuple(replay(day, name, make) for name, make in settings.policies)
        return PlanSchedule(day, cheapest_levels(day), lower_bound(day), replays)

    def _of(self, graph: StreamGraph) -> PlanResult:
        """Plan for another graph."""
        return replace(self, graph=graph).plan()

    def _each(
        self, function: Callable[[PlanRequest], R], graphs: Iterable[StreamGraph]
    ) -> Iterator[R]:
        """Results for other graphs, in order."""
        requests = [replace(self, graph=graph) for graph in graphs]
        few = FEW if self.jobs is None else 1
        return parallel_map(function, requests, self.jobs, few=few)

    def _bound(self, graph: StreamGraph) -> float:
        """Cost that no plan for a graph is below, also without any headroom."""
        bare = replace(self.settings, headroom=0.0, errors=None)
        problem = PlanProblem.of(graph, self.machines, bare)
        bound = proven_bound(problem.demand, problem.catalogue, most_nodes=BOUND_NODES)
        return 0.0 if bound is None else float(bound.value)

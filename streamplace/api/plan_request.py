"""Requests for plans: the same for one rate, for a range of them and for a trace."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypedDict, TypeVar

from streamplace.api.arguments import GraphLike, planned_graph
from streamplace.control.day import MoveTerms, control_day
from streamplace.control.policy import POLICIES, MakePolicy
from streamplace.control.replay import replay
from streamplace.control.schedule import PlanSchedule, cheapest_levels, lower_bound
from streamplace.errors import GraphError, ProblemError, SettingError
from streamplace.evaluate.parallel import parallel_map
from streamplace.io.ledger import errors_for
from streamplace.model.cluster import Cluster
from streamplace.model.graph import StreamGraph
from streamplace.model.trust import check_trust
from streamplace.planning.bounds import proven_bound
from streamplace.planning.curve import PlanCurve
from streamplace.planning.offers import Catalogue, Offer, read_offers
from streamplace.planning.planner import planned, planned_most
from streamplace.planning.problem import USUAL_BUDGET, PlanProblem, PlanSettings
from streamplace.planning.result import PlanResult
from streamplace.planning.traces import RateTrace, planned_for_trace
from streamplace.settings.convert import (
    BudgetLike,
    ClusterLike,
    FilePath,
    budget_of,
    cluster_of,
    is_path,
    seed_of,
    texts_of,
    wrong,
)

R = TypeVar("R")
BOUND_NODES = 200
"""Nodes of the branch and bound of each slot's bound."""
SOON = 2.0
"""Seconds of planning from which on it pays off to start processes, which take as long to start."""
OffersLike = Catalogue | Iterable[Offer] | FilePath
"""Offers, a catalogue of them, or the path of a file."""


class PlanOptions(TypedDict, total=False):
    """Options that all kinds of plans share; `streamplace.plan` explains them."""

    offers: OffersLike | None
    cluster: ClusterLike | None
    headroom: float
    keep_parallelism: bool | Iterable[str]
    confidence: float | None
    ledger: FilePath | None
    trust_profile: bool
    seed: int
    budget: BudgetLike | None
    jobs: int | None


@dataclass(frozen=True, slots=True, eq=False)
class PlanRequest:
    """A graph, the machines that there are or that can be bought, and the settings of its plans."""

    graph: StreamGraph
    machines: Catalogue | Cluster
    settings: PlanSettings
    # Processes that make several plans; by default one per core if there are many.
    jobs: int | None = None

    @classmethod
    def of(cls, graph: GraphLike, options: PlanOptions) -> "PlanRequest":
        """Convert and check options; those that are missing have the defaults of `plan`.

        A graph that contradicts its measurement is refused, unless it is trusted.
        """
        for name in options.keys() - PlanOptions.__annotations__.keys():
            raise TypeError(f"unexpected keyword argument {name!r}")
        machines = _machines(options.get("offers"), options.get("cluster"))
        kept = options.get("keep_parallelism", False)
        settings = PlanSettings(
            options.get("headroom", 0.0),
            kept if isinstance(kept, bool) else frozenset(texts_of("keep_parallelism", kept)),
            budget=budget_of(options.get("budget")) or USUAL_BUDGET,
            seed=seed_of(options.get("seed", 0)),
        )
        read, ledger = planned_graph(graph), options.get("ledger")
        check_trust(read, trusts=options.get("trust_profile", False))
        file = None if ledger is None else Path(ledger)
        errors = errors_for(read, options.get("confidence"), file)
        return cls(read, machines, replace(settings, errors=errors), options.get("jobs"))

    def at_rate(self, rate: float) -> "PlanRequest":
        """Return the same request at another rate of the graph."""
        return replace(self, graph=self.graph.at_rate(rate))

    def plan(self) -> PlanResult:
        """Plan for the rate of the graph."""
        return planned(self.graph, self.machines, self.settings)

    def highest(self) -> PlanResult:
        """Plan for the highest rate for which a plan is found."""
        return planned_most(self.graph, self.machines, self.settings)

    def for_trace(self, trace: RateTrace, quantile: float) -> PlanResult:
        """Plan for a quantile of the rates of a trace, and for each of its hours."""
        return planned_for_trace(self.graph, trace, quantile, self._plan_of, self._plans_found)

    def plan_if_any(self) -> PlanResult | None:
        """Plan for the rate of the graph; None if none is found, or the graph cannot have it."""
        try:
            return self.plan()
        except (ProblemError, GraphError):
            return None

    def frontier(self, rates: Iterable[float]) -> PlanCurve:
        """Plan for several rates."""
        values = sorted(set(rates))
        if not values:
            raise SettingError("there are no rates; give at least one")
        results = _all_plans([self.at_rate(value) for value in values], self.jobs)
        return PlanCurve(tuple(values), tuple(results))

    def schedule(
        self,
        trace: RateTrace,
        slot: float,
        terms: MoveTerms,
        policies: str | Iterable[str | tuple[str, MakePolicy]] = (),
    ) -> PlanSchedule:
        """Find the cheapest sequence of plans for a trace, and replay policies against it."""
        chosen: list[tuple[str, MakePolicy]] = []
        for policy in (policies,) if isinstance(policies, str) else policies:
            chosen += [made for made in _policies_of(policy) if made not in chosen]
        day = control_day(self.graph, trace, slot, terms, self._plan_each, self._bound)
        replays = tuple(replay(day, name, make) for name, make in chosen)
        return PlanSchedule(day, cheapest_levels(day), lower_bound(day), replays)

    def _plan_each(self, graphs: Iterable[StreamGraph]) -> Iterable[PlanResult]:
        return _all_plans([replace(self, graph=graph) for graph in graphs], self.jobs)

    def _plan_of(self, graph: StreamGraph) -> PlanResult:
        return replace(self, graph=graph).plan()

    def _plans_found(self, graphs: Iterable[StreamGraph]) -> Iterable[PlanResult | None]:
        requests = [replace(self, graph=graph) for graph in graphs]
        return _mapped(PlanRequest.plan_if_any, requests, self.jobs)

    def _bound(self, graph: StreamGraph) -> float:
        """Cost that no plan for a graph is below, also without any headroom."""
        bare = replace(self.settings, headroom=0.0, errors=None)
        problem = PlanProblem.of(graph, self.machines, bare)
        bound = proven_bound(problem.demand, problem.catalogue, most_nodes=BOUND_NODES)
        return 0.0 if bound is None else float(bound.value)


def _all_plans(requests: list[PlanRequest], jobs: int | None) -> Iterable[PlanResult]:
    return _mapped(PlanRequest.plan, requests, jobs)


def _mapped(
    function: Callable[[PlanRequest], R], requests: list[PlanRequest], jobs: int | None
) -> Iterator[R]:
    """Results in order; without a number of jobs, processes start where they pay off."""
    if jobs is None:
        return parallel_map(function, requests, seconds=SOON)
    return parallel_map(function, requests, jobs, few=1)


def _policies_of(policy: str | tuple[str, MakePolicy]) -> list[tuple[str, MakePolicy]]:
    """Names and makers of policies; of all that are registered for the name ``"all"``."""
    if not isinstance(policy, str):
        return [policy]
    names = list(POLICIES) if policy == "all" else [policy]
    return [(name, POLICIES[name].make) for name in names]


def _machines(offers: OffersLike | None, cluster: ClusterLike | None) -> Catalogue | Cluster:
    """Offers or machines, of which exactly one is required."""
    if (offers is None) == (cluster is None):
        words = "both are given; drop one" if offers is not None else "neither is given"
        raise SettingError(f"a plan needs either offers or a cluster, and {words}")
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

"""Requests for plans: the same for one rate, for a range of them and for a trace."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import TypeVar

from streamplace.api.arguments import GraphLike, planned_graph
from streamplace.control.day import control_day
from streamplace.control.replay import replay
from streamplace.control.schedule import PlanSchedule, cheapest_levels, lower_bound
from streamplace.errors import GraphError, ProblemError, SettingError
from streamplace.evaluate.parallel import parallel_map
from streamplace.io.ledger import errors_for
from streamplace.model.cluster import Cluster
from streamplace.model.graph import StreamGraph
from streamplace.model.trust import check_trust
from streamplace.planning.bounds import proven_bound
from streamplace.planning.offers import Catalogue
from streamplace.planning.planner import planned, planned_most
from streamplace.planning.problem import PlanProblem, PlanSettings
from streamplace.planning.result import PlanCurve, PlanResult
from streamplace.planning.traces import planned_for_trace
from streamplace.settings.plan import PlanningSettings

R = TypeVar("R")
BOUND_NODES = 200
"""Nodes of the branch and bound of each slot's bound."""
SOON = 2.0
"""Seconds of planning from which on it pays off to start processes, which take as long to start."""


@dataclass(frozen=True, slots=True, eq=False)
class PlanRequest:
    """A graph, the machines that there are or that can be bought, and the settings of its plans."""

    graph: StreamGraph
    machines: Catalogue | Cluster
    settings: PlanSettings
    # Processes that make several plans; by default one per core if there are many.
    jobs: int | None = None

    @classmethod
    def of(cls, graph: GraphLike, asked: PlanningSettings) -> "PlanRequest":
        """Read a graph, and the machines of the settings.

        A graph that contradicts its measurement is refused, unless it is trusted.
        """
        machines, read = asked.machines(), planned_graph(graph)
        check_trust(read, trusts=asked.trust_profile)
        errors = errors_for(read, asked.confidence)
        return cls(read, machines, replace(asked.of_plans(), errors=errors), asked.jobs)

    def plan(self) -> PlanResult:
        """Plan for the rate of the graph."""
        return planned(self.graph, self.machines, self.settings)

    def plan_if_any(self) -> PlanResult | None:
        """Plan for the rate of the graph; None if none is found, or the graph cannot have it."""
        try:
            return self.plan()
        except (ProblemError, GraphError):
            return None

    def single(self, asked: PlanningSettings) -> PlanResult:
        """Plan for the trace, for the rate, for the highest one, or for that of the graph."""
        rates = asked.rate or ()
        if len(rates) > 1:
            raise SettingError("a plan has one rate; plan_frontier plans for several")
        if asked.trace is not None:
            each = partial(self._each, PlanRequest.plan_if_any)
            return planned_for_trace(self.graph, asked.trace, asked.quantile, self._of, each)
        if rates == (inf,):
            return planned_most(self.graph, self.machines, self.settings)
        return self._of(self.graph.at_rate(*rates)) if rates else self.plan()

    def frontier(self, rates: Iterable[float]) -> PlanCurve:
        """Plan for several rates."""
        values = sorted(set(rates))
        if not values:
            raise SettingError("there are no rates; give at least one")
        results = self._each(PlanRequest.plan, map(self.graph.at_rate, values))
        return PlanCurve(tuple(values), tuple(results))

    def schedule(self, asked: PlanningSettings) -> PlanSchedule:
        """Find the cheapest sequence of plans for a trace, and replay policies against it."""
        assert asked.trace is not None  # a schedule without one is refused
        each = partial(self._each, PlanRequest.plan)
        day = control_day(self.graph, asked.trace, asked.slot, asked.moves(), each, self._bound)
        replays = tuple(replay(day, name, make) for name, make in asked.policies)
        return PlanSchedule(day, cheapest_levels(day), lower_bound(day), replays)

    def _of(self, graph: StreamGraph) -> PlanResult:
        """Plan for another graph."""
        return replace(self, graph=graph).plan()

    def _each(
        self, function: Callable[["PlanRequest"], R], graphs: Iterable[StreamGraph]
    ) -> Iterator[R]:
        """Results for other graphs, in order.

        Without a number of jobs, processes start where they pay off.
        """
        requests = [replace(self, graph=graph) for graph in graphs]
        if self.jobs is None:
            return parallel_map(function, requests, seconds=SOON)
        return parallel_map(function, requests, self.jobs, few=1)

    def _bound(self, graph: StreamGraph) -> float:
        """Cost that no plan for a graph is below, also without any headroom."""
        bare = replace(self.settings, headroom=0.0, errors=None)
        problem = PlanProblem.of(graph, self.machines, bare)
        bound = proven_bound(problem.demand, problem.catalogue, most_nodes=BOUND_NODES)
        return 0.0 if bound is None else float(bound.value)

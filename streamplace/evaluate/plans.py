"""Plans for several graphs at a time, on all cores."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from streamplace.errors import GraphError, ProblemError
from streamplace.evaluate.parallel import MAX_SERIAL_ITEMS, parallel_map
from streamplace.model.cluster import Cluster
from streamplace.model.graph import StreamGraph
from streamplace.planning.bounds import proven_bound
from streamplace.planning.offers import Catalogue
from streamplace.planning.planner import planned
from streamplace.planning.problem import PlannerSettings, PlanProblem
from streamplace.planning.result import PlanResult

BOUND_NODES = 200
"""Nodes of the branch and bound of each slot's bound."""


@dataclass(frozen=True, slots=True, eq=False)
class Planner:
    """Plans for graphs: machines that exist or that can be bought, and settings."""

    machines: Catalogue | Cluster
    settings: PlannerSettings
    jobs: int | None = None  # processes; by default one per core for many plans

    def __call__(self, graph: StreamGraph) -> PlanResult:
        """Plan for the rate of a graph."""
        return planned(graph, self.machines, self.settings)

    def if_any(self, graph: StreamGraph) -> PlanResult | None:
        """Plan for the rate of a graph; None if none is found, or the graph cannot have it."""
        try:
            return self(graph)
        except (ProblemError, GraphError):
            return None

    def each(self, graphs: Iterable[StreamGraph]) -> Iterator[PlanResult]:
        """Plan for each of several graphs, in order."""
        return parallel_map(self, list(graphs), self.jobs, max_serial=self._max_serial)

    def each_if_any(self, graphs: Iterable[StreamGraph]) -> Iterator[PlanResult | None]:
        """Plan for each of several graphs, in order; None as for `if_any`."""
        return parallel_map(self.if_any, list(graphs), self.jobs, max_serial=self._max_serial)

    def bound(self, graph: StreamGraph) -> float:
        """Lower bound on the cost of any plan for a graph, without headroom."""
        bare = replace(self.settings, headroom=0.0, errors=None)
        problem = PlanProblem.of(graph, self.machines, bare)
        bound = proven_bound(
            problem.demand,
            problem.catalogue,
            max_nodes=BOUND_NODES,
            after_loss=problem.after_loss,
        )
        return 0.0 if bound is None else float(bound.value)

    @property
    def _max_serial(self) -> int:
        return MAX_SERIAL_ITEMS if self.jobs is None else 1

"""The verbs, from Python in the words of the command line."""

from collections.abc import Mapping

from streamplace.engines.deployment import Deployment
from streamplace.engines.reading import implied_cluster
from streamplace.engines.registry import EXPORTS
from streamplace.evaluate.explain import Explanation, explain
from streamplace.model.cluster import Cluster
from streamplace.model.constraints import Constraints
from streamplace.model.graph import StreamGraph
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.registry import PLACERS, Budget, Result

DEFAULT_PLACER = "auto"


def place(
    graph: StreamGraph,
    cluster: Cluster | None = None,
    *,
    placer: str = DEFAULT_PLACER,
    constraints: Constraints | None = None,
    seed: int = 0,
    budget: Budget | None = None,
) -> Result:
    """Find a placement of a graph on a cluster (five default devices where none is given).

    Examples
    --------
    >>> from streamplace import Operator, Stream, StreamGraph
    >>> graph = StreamGraph.of("pipe", [Operator("a", ipt=2e5, rate=1e4), Operator("b", ipt=2e5)],
    ...                        [Stream("a", "b")])
    >>> place(graph).value
    1.0
    """
    problem = Problem(graph, cluster or Cluster.uniform(5), constraints or Constraints())
    return PLACERS[placer].place(problem, OBJECTIVES["throughput"], seed=seed, budget=budget)


def simulate(
    graph: StreamGraph, placement: Placement | dict[str, str], cluster: Cluster | None = None
) -> Explanation:
    """Say what a placement sustains in the steady state, what limits it, and what to move.

    Examples
    --------
    >>> from streamplace import Operator, Stream, StreamGraph
    >>> graph = StreamGraph.of("pipe", [Operator("a", ipt=2e5, rate=1e4), Operator("b", ipt=2e5)],
    ...                        [Stream("a", "b")])
    >>> simulate(graph, {"a": "d0", "b": "d0"}).verdict
    "62.5 % of the sources' rate; the CPU of d0 is the limit"
    """
    problem = Problem(graph, cluster or Cluster.uniform(5))
    if not isinstance(placement, Placement):
        placement = Placement.of(graph.operators.name, problem.cluster.devices.name, placement)
    return explain(problem, placement)


def export(
    graph: StreamGraph,
    placement: Mapping[str, str],
    to: str,
    cluster: Cluster | None = None,
    *,
    constraints: Constraints | None = None,
) -> dict[str, str]:
    """Write a placement in the form of an engine: texts by file name.

    The placement may be one of subtasks (``join#0``, …). Without a cluster, the devices are those
    that it names.

    Examples
    --------
    >>> from streamplace import Operator, Stream, StreamGraph
    >>> graph = StreamGraph.of("pipe", [Operator("a", ipt=2e5, rate=1e4), Operator("b", ipt=2e5)],
    ...                        [Stream("a", "b")])
    >>> files = export(graph, {"a": "d0", "b": "d1"}, "csv")
    >>> files["placement.csv"].splitlines()[-1]
    'b,1,d1,,,'
    """
    problem = Problem(graph, cluster or implied_cluster(graph, placement), constraints)
    return dict(EXPORTS[to].files(Deployment.of(problem, placement)))

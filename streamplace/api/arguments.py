"""Arguments of the functions: objects, paths of files, and texts and numbers for them."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast, runtime_checkable

from streamplace.errors import SettingError
from streamplace.io.graphs import documents, graph_from_dict, only, read_graph
from streamplace.io.parsing import parse_tables
from streamplace.io.placements import order_given
from streamplace.io.problems import read_problem, usual_cluster
from streamplace.model.constraints import Constraints
from streamplace.model.expansion import named_problem
from streamplace.model.graph import StreamGraph
from streamplace.model.messages import quoted
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.relocation import Relocation
from streamplace.model.units import Quantity, tuple_rate
from streamplace.objectives.conditions import composed_objective
from streamplace.objectives.registry import Objective, suggested_by
from streamplace.placers.result import Result
from streamplace.settings.convert import (
    ClusterLike,
    ConstraintsLike,
    FilePath,
    checked_objective,
    checked_relocation,
    cluster_of,
    constraints_of,
    is_path,
    wrong,
)

if TYPE_CHECKING:
    from networkx import DiGraph
T = TypeVar("T")


@runtime_checkable
class NetworkxGraph(Protocol):
    """A graph of networkx, which is not imported for other graphs."""

    nodes: Any
    edges: Any

    def is_directed(self) -> bool:
        """Whether its edges have a direction."""
        ...


@runtime_checkable
class PandasSeries(Protocol):
    """A column of pandas, which is not imported for other placements."""

    index: Any
    dtype: Any

    def to_dict(self) -> dict[Any, Any]:
        """Values by index."""
        ...


GraphLike = StreamGraph | Problem | NetworkxGraph | Mapping[str, Any] | FilePath
"""A graph, a problem, a networkx graph, the tables of a graph file, or the path of a file."""
PLACEMENT_WANTED = (
    "a Placement, a Result, a mapping or Series of operators to devices, or the path of a file"
)
GRAPH_WANTED = (
    "a StreamGraph, a Problem, a directed networkx graph, a dictionary with operators and "
    "streams, or the path of a file"
)
PlacementLike = Placement | Result | Mapping[str, Any] | PandasSeries | FilePath
"""A placement, a result, operator → device as a mapping or a pandas Series, output of
``place --json``, or a path of a file."""


def problem_of(
    graph: GraphLike,
    cluster: ClusterLike | None = None,
    constraints: ConstraintsLike | None = None,
    rate: Quantity | None = None,
) -> Problem:
    """Problem of a graph; a problem is returned itself, at this rate if there is one."""
    devices, rules = cluster_of(cluster), constraints_of(constraints)
    graph = converted(graph)
    if isinstance(graph, Problem):
        if devices is not None or rules is not None:
            raise SettingError("a problem brings its cluster and its constraints along; drop yours")
        problem = graph
    elif isinstance(graph, StreamGraph):
        problem = Problem(graph, devices or usual_cluster(), rules)
    elif is_path(graph):
        problem = read_problem(Path(graph), devices, rules)
    else:
        raise wrong("graph", graph, GRAPH_WANTED)
    return problem if rate is None else problem.at_rate(tuple_rate(rate))


def graph_of(graph: GraphLike, rate: Quantity | None = None) -> StreamGraph:
    """Graph itself, of a problem, or of a file."""
    graph = converted(graph)
    if isinstance(graph, Problem):
        chosen = graph.graph
    elif isinstance(graph, StreamGraph):
        chosen = graph
    elif is_path(graph):
        chosen = read_graph(Path(graph))
    else:
        raise wrong("graph", graph, GRAPH_WANTED)
    return chosen if rate is None else chosen.at_rate(tuple_rate(rate))


def planned_graph(graph: GraphLike) -> StreamGraph:
    """Graph itself, of a problem, or of a file.

    Raises SettingError for constraints or costs of a problem: the cheapest plan of its graph alone
    is not that of the problem. Its cluster does not matter, because a plan has machines of its own.
    """
    graph, given = converted(graph), set()
    if isinstance(graph, Problem):
        given |= {"constraints"} if graph.constraints != Constraints() else set()
        given |= {"seconds"} if graph.seconds is not None else set()
    elif is_path(graph):
        document = only(documents(Path(graph)), Path(graph), "graph")
        graph, given = document.graph(), set(document.parts)
    if unused := [part for part in ("constraints", "seconds") if part in given]:
        raise SettingError(
            f"a plan cannot use the {' and '.join(unused)} of a problem; give its graph alone"
        )
    return graph_of(graph)


def converted(graph: T) -> T | StreamGraph:
    """Convert a networkx graph or a dictionary to a `StreamGraph`; return anything else as it is.

    >>> converted({"operators": [{"name": "a", "rate": 5}], "streams": []})
    <StreamGraph graph: 1 operator, 0 streams, 5 /s>
    """
    if isinstance(graph, Problem | StreamGraph | str):  # the rest takes longer than HEFT
        return graph
    if isinstance(graph, Mapping) and not isinstance(graph, Placement):
        return graph_from_dict(parse_tables("graph", dict(graph), "graph"))
    if isinstance(graph, NetworkxGraph):
        from streamplace.io.networkx import from_networkx

        return from_networkx(cast("DiGraph[Any]", graph))
    return graph


def placed_problem(problem: Problem, placement: PlacementLike) -> tuple[Problem, Placement]:
    """Placement of a problem's operators or of their subtasks, with the problem of these."""
    if isinstance(placement, Result):
        placement = placement.placement
    if isinstance(placement, Placement):
        return _named(problem, placement, placement.priorities(), placement.queue)
    if isinstance(placement, PandasSeries):
        return _named(problem, assignment_of(placement.to_dict()))
    if isinstance(placement, Mapping):
        assignment = assignment_of(placement)
        order = (None, "priority") if assignment is placement else order_of(placement)
        return _named(problem, assignment, *order)
    if is_path(placement):
        from streamplace.engines.reading import read_placed

        return read_placed(Path(placement), problem)
    raise wrong("placement", placement, PLACEMENT_WANTED)


def assignment_of(placement: Mapping[str, Any]) -> Mapping[str, str]:
    """Operator → device, from a mapping or from the ``assignment`` of a document."""
    inner = placement.get("assignment")
    assignment = inner if isinstance(inner, Mapping) else placement
    for operator, device in assignment.items():
        if not isinstance(operator, str) or not isinstance(device, str):
            pair = f"{quoted(operator)}: {quoted(device)}"
            raise SettingError(
                f"placement has {pair}; it must map names of operators to names of devices"
            )
    return assignment


def order_of(document: Mapping[str, Any]) -> tuple[dict[str, float] | None, str]:
    """Priorities of a document of a placement, and their discipline."""
    given = {key: document[key] for key in ("priority", "queue") if key in document}
    return order_given(parse_tables("placement", {**given, "assignment": {}}, "placement"))


def _named(
    problem: Problem,
    assignment: Mapping[str, str],
    priority: Mapping[str, float] | None = None,
    queue: str = "priority",
) -> tuple[Problem, Placement]:
    """Placement by the names of a problem's operators or of their subtasks."""
    placed = named_problem(problem, assignment)
    names = placed.graph.operators.name, placed.cluster.devices.name
    return placed, Placement.of(*names, assignment, priority, queue)


def objective_of(
    problem: Problem, objective: str | Objective = "", relocation: Relocation | None = None
) -> Objective:
    """Objective itself, by name, or the problem's default one, with the cost of moving."""
    chosen = checked_objective(objective) or suggested_by(problem.graph)
    return composed_objective(chosen, relocation=checked_relocation(relocation))

"""Arguments of Python functions: objects, paths of files, and texts, numbers and tables."""

from collections.abc import Iterable, Mapping
from itertools import chain, count
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast, runtime_checkable

from streamplace.errors import SettingError
from streamplace.io.files import located
from streamplace.io.graphs import Document, documents, graph_from_dict, only, read_graph
from streamplace.io.parsing import parse_tables
from streamplace.io.placements import order_of
from streamplace.io.problems import problem_from, read_problem, usual_cluster
from streamplace.model.cluster import Cluster
from streamplace.model.constraints import Constraints
from streamplace.model.graph import StreamGraph
from streamplace.model.message_text import quoted
from streamplace.model.paths import FilePath, is_path, wrong
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.units import Quantity, tuple_rate

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


@runtime_checkable
class HasPlacement(Protocol):
    """A result of a placer."""

    @property
    def placer(self) -> str:
        """Name of the placer."""
        ...

    @property
    def placement(self) -> Placement:
        """The placement."""
        ...


ClusterLike = Cluster | int | Mapping[str, Any] | FilePath
"""A cluster, a number of equal devices, the tables of a cluster file, or its path."""
ConstraintsLike = Constraints | Mapping[str, Any] | FilePath
"""Constraints, the tables of a constraints file, or its path."""
GraphLike = StreamGraph | Problem | Document | NetworkxGraph | Mapping[str, Any] | FilePath
"""A graph, a problem, a networkx graph, the tables of a graph or problem file, or its path."""
PlacementLike = Placement | HasPlacement | Mapping[str, Any] | PandasSeries | FilePath
"""A placement, a result, operator → device as a mapping or a pandas Series, output of
``place --json``, or a path of a file."""


def cluster_of(cluster: ClusterLike | None) -> Cluster | None:
    """Convert a description to a cluster; None for None.

    >>> cluster_of({"devices": [{"name": "a"}, {"name": "gpu", "count": 2}]}).devices.name
    ('a', 'gpu0', 'gpu1')
    """
    if cluster is None:
        return None
    from streamplace.io.clusters import cluster_from_tables, read_cluster

    if isinstance(cluster, Cluster):
        return cluster
    if isinstance(cluster, Integral) and not isinstance(cluster, bool):
        return Cluster.uniform(int(cluster))
    if isinstance(cluster, Mapping):
        tables = parse_tables("cluster", dict(cluster), "cluster")
        with located("cluster"):
            return cluster_from_tables(tables)
    if is_path(cluster):
        return read_cluster(Path(cluster))
    raise wrong(
        "cluster", cluster,
        "a Cluster, a number of equal devices, the tables of a cluster file, or its path",
    )  # fmt: skip


def constraints_of(constraints: ConstraintsLike | None) -> Constraints | None:
    """Convert a description to constraints; None for None."""
    if constraints is None:
        return None
    from streamplace.io.constraints import read_constraints

    if isinstance(constraints, Constraints):
        return constraints
    if isinstance(constraints, Mapping):
        tables = {
            name: _plain_groups(table) if name in ("colocate", "exlocate", "allowed") else table
            for name, table in constraints.items()
        }
        return Constraints(**parse_tables("constraints", tables, "constraints"))
    if is_path(constraints):
        return read_constraints(Path(constraints))
    raise wrong(
        "constraints", constraints,
        "Constraints, a mapping with pin, colocate, exlocate or allowed, or the path of a file",
    )  # fmt: skip


def _plain_groups(table: Any) -> Any:
    """Convert sets and tuples of names to lists, as in a file."""
    if isinstance(table, Mapping):
        return {name: _plain_groups(group) for name, group in table.items()}
    if isinstance(table, set | frozenset):
        return sorted(table, key=str)
    return [_plain_groups(group) for group in table] if isinstance(table, list | tuple) else table


def given_graph(graph: GraphLike) -> StreamGraph | Problem | Document | Path:
    """Graph, problem, the document of one, or path of a file with one."""
    source = converted(graph)
    if isinstance(source, StreamGraph | Problem | Document):
        return source
    if is_path(source):
        return Path(source)
    raise wrong(
        "graph", source,
        "a StreamGraph, a Problem, a directed networkx graph, a dictionary with operators and "
        "streams or with a graph, or the path of a file",
    )  # fmt: skip


def problem_of(
    graph: GraphLike,
    cluster: ClusterLike | None = None,
    constraints: ConstraintsLike | None = None,
    rate: Quantity | None = None,
) -> Problem:
    """Problem of a graph, or the problem itself; at this rate, if there is one."""
    devices, rules = cluster_of(cluster), constraints_of(constraints)
    source = given_graph(graph)
    if isinstance(source, Path):
        problem = read_problem(source, devices, rules)
    elif isinstance(source, Document):
        problem = problem_from(source, devices, rules)
    elif isinstance(source, StreamGraph):
        problem = Problem(source, devices or usual_cluster(), rules)
    elif devices is None and rules is None:
        problem = source
    else:
        raise SettingError("a problem has its own cluster and constraints; drop yours")
    return problem if rate is None else problem.at_rate(tuple_rate(rate))


def graph_of(graph: GraphLike, rate: Quantity | None = None) -> StreamGraph:
    """Graph itself, of a problem, or of a file."""
    source = given_graph(graph)
    if isinstance(source, Path):
        source = read_graph(source)
    if isinstance(source, Document):
        source = source.graph()
    chosen = source.graph if isinstance(source, Problem) else source
    return chosen if rate is None else chosen.at_rate(tuple_rate(rate))


def planned_graph(graph: GraphLike) -> tuple[StreamGraph, Constraints | None]:
    """Graph itself, of a problem, or of a file, and the constraints of the problem, if any.

    The cluster of the problem is ignored, as a plan has other machines. Costs in seconds, which
    hold on its devices alone, raise SettingError.
    """
    source = given_graph(graph)
    if isinstance(source, Path):
        source = only(documents(source), source, "graph")
    if isinstance(source, Document):
        rules, has_costs = source.parts.get("constraints"), "seconds" in source.parts
        with located(source.where), located("constraints"):
            constraints = None if rules is None else Constraints(**rules)
    elif isinstance(source, Problem):
        constraints, has_costs = source.constraints, source.seconds is not None
    else:
        return source, None
    if has_costs:
        raise SettingError("a plan cannot use the seconds of a problem; give its graph alone")
    return graph_of(source), None if constraints == Constraints() else constraints


def converted(graph: T) -> T | StreamGraph | Document:
    """Convert a networkx graph or a dictionary; return anything else unchanged.

    A dictionary with a ``graph`` is the document of a problem.

    >>> converted({"operators": [{"name": "a", "rate": 5}], "streams": []})
    <StreamGraph graph: 1 operator, 0 streams, 5 /s>
    """
    if isinstance(graph, Problem | StreamGraph | str):  # the checks below take longer than HEFT
        return graph
    if isinstance(graph, Mapping) and not isinstance(graph, Placement):
        if "graph" in graph and "operators" not in graph:
            return Document(parse_tables("problem", dict(graph), "problem"), "problem", "graph")
        return graph_from_dict(parse_tables("graph", dict(graph), "graph"))
    if isinstance(graph, NetworkxGraph):
        from streamplace.io.networkx import from_networkx

        return from_networkx(cast("DiGraph[Any]", graph))
    return graph


def given_placement(placement: PlacementLike) -> Mapping[str, str] | Path:
    """Operator or subtask → device, a `Placement` if there is an order; or the path of a file."""
    if isinstance(placement, Placement):
        return placement
    if is_path(placement):
        return Path(placement)
    if isinstance(placement, HasPlacement):
        return placement.placement
    if isinstance(placement, PandasSeries):
        return _assignment(placement.to_dict())
    if isinstance(placement, Mapping):
        assignment = _assignment(placement)
        if assignment is placement:
            return assignment
        devices = sorted(set(assignment.values()))
        return Placement.of(tuple(assignment), devices, assignment, *_order(placement))
    raise wrong(
        "placement", placement,
        "a Placement, a Result, a mapping or Series of operators to devices, or the path of a file",
    )  # fmt: skip


def _assignment(placement: Mapping[str, Any]) -> Mapping[str, str]:
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


def _order(document: Mapping[str, Any]) -> tuple[dict[str, float] | None, str]:
    """Priorities in a placement document, and their discipline."""
    order = {key: document[key] for key in ("priority", "queue") if key in document}
    return order_of(parse_tables("placement", {**order, "assignment": {}}, "placement"))


def named_placements(
    placements: PlacementLike | Iterable[PlacementLike] | Mapping[str, PlacementLike],
) -> dict[str, PlacementLike]:
    """Placements by their titles."""
    if isinstance(placements, Placement | HasPlacement | PandasSeries) or is_path(placements):
        return {title_of(placements): placements}
    if isinstance(placements, Mapping):
        is_several = "assignment" not in placements and all(
            isinstance(value, Placement | HasPlacement | PandasSeries | Mapping | Path)
            for value in placements.values()
        )
        return dict(placements) if is_several else {"placement": placements}
    if isinstance(placements, Iterable):
        named: dict[str, PlacementLike] = {}
        for placement in placements:
            name = title_of(placement)
            titles = chain([name], (f"{name} ({number})" for number in count(2)))
            named[next(title for title in titles if title not in named)] = placement
        return named
    raise wrong("placements", placements, "a placement, several, or several by name")


def title_of(placement: PlacementLike) -> str:
    """Name of a placement: that of its placer, or of its file."""
    if isinstance(placement, HasPlacement):
        return placement.placer
    return Path(placement).stem if is_path(placement) else "placement"

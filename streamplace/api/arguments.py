"""Arguments of the functions: objects, paths of files, and texts and numbers for them."""

from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, TypeVar, cast, runtime_checkable

from streamplace.errors import SettingError
from streamplace.io.clusters import cluster_from_tables, read_cluster, read_constraints
from streamplace.io.files import located, read_bytes, spot
from streamplace.io.graphs import documents, graph_from_dict, only, read_graph
from streamplace.io.parsing import parse_tables
from streamplace.io.placements import LARGEST_PLACEMENT, order_given, parse_document
from streamplace.io.problems import read_problem, usual_cluster
from streamplace.model.cluster import Cluster
from streamplace.model.constraints import Constraints
from streamplace.model.expansion import named_problem
from streamplace.model.graph import StreamGraph
from streamplace.model.messages import quoted
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.relocation import Relocation
from streamplace.model.units import Quantity, seconds, tuple_rate
from streamplace.objectives.conditions import composed_objective
from streamplace.objectives.registry import Objective, suggested_by
from streamplace.placers.named import named_placer, with_weights
from streamplace.placers.registry import Budget, Placer
from streamplace.placers.result import Result

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


FilePath = str | PathLike[str]
GraphLike = StreamGraph | Problem | NetworkxGraph | Mapping[str, Any] | FilePath
"""A graph, a problem, a networkx graph, the tables of a graph file, or the path of a file."""
PLACEMENT_WANTED = (
    "a Placement, a Result, a mapping or Series of operators to devices, or the path of a file"
)
GRAPH_WANTED = (
    "a StreamGraph, a Problem, a directed networkx graph, a dictionary with operators and "
    "streams, or the path of a file"
)
ClusterLike = Cluster | int | Mapping[str, Any] | FilePath
"""A cluster, a number of equal devices, the tables of a cluster file, or its path."""
ConstraintsLike = Constraints | Mapping[str, Any] | FilePath
"""Constraints, the tables of a constraints file, or its path."""
PlacementLike = Placement | Result | Mapping[str, Any] | PandasSeries | FilePath
"""A placement, a result, operator → device as a mapping or a pandas Series, output of
``place --json``, or a path of a file."""
BudgetLike = Budget | float | str
"""A budget, seconds, or a text such as ``"50 ms"``."""


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


def cluster_of(cluster: ClusterLike | None) -> Cluster | None:
    """Convert a description to a cluster; None for None.

    >>> cluster_of({"devices": [{"name": "a"}, {"name": "gpu", "count": 2}]}).devices.name
    ('a', 'gpu0', 'gpu1')
    """
    if cluster is None or isinstance(cluster, Cluster):
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
    if constraints is None or isinstance(constraints, Constraints):
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
        path = Path(placement)
        document = parse_document(read_bytes(path, LARGEST_PLACEMENT), spot(path))
        with located(spot(path)):
            return _named(problem, document["assignment"], *order_given(document))
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


def budget_of(budget: BudgetLike | None) -> Budget | None:
    """Convert a description to a budget; None for None.

    >>> budget_of("50 ms"), budget_of(2)
    (Budget(seconds=0.05, evaluations=None), Budget(seconds=2.0, evaluations=None))
    """
    if budget is None or isinstance(budget, Budget):
        return budget
    if isinstance(budget, str):
        return Budget(seconds(budget))
    if isinstance(budget, Real) and not isinstance(budget, bool):
        return Budget(float(budget))
    raise wrong("budget", budget, "a number of seconds, a text such as '50 ms', or a Budget")


def objective_of(
    problem: Problem, objective: str | Objective = "", relocation: Relocation | None = None
) -> Objective:
    """Objective itself, by name, or the problem's default one, with the cost of moving."""
    chosen = checked_objective(objective) or suggested_by(problem.graph)
    return composed_objective(chosen, relocation=checked_relocation(relocation))


def checked_objective(objective: str | Objective) -> str | Objective:
    """Objective or its name; raise SettingError for anything else."""
    if isinstance(objective, str | Objective):
        return objective
    raise wrong("objective", objective, "a name, as in 'makespan:network=link', or Objective")


def checked_relocation(relocation: Relocation | None) -> Relocation | None:
    """Relocation or None; raise SettingError for anything else."""
    if relocation is None or isinstance(relocation, Relocation):
        return relocation
    raise wrong("relocation", relocation, "a Relocation, as in Relocation(placement, 1000)")


def rates_of(rates: Quantity | Iterable[Quantity]) -> tuple[float, ...]:
    """Rates in tuples/s without duplicates, from one or several.

    >>> rates_of("10 k/s"), rates_of([1e4, "20 k/s"])
    ((10000.0,), (10000.0, 20000.0))
    """
    if isinstance(rates, str | Real):
        return (tuple_rate(rates),)
    if isinstance(rates, Iterable):
        return tuple(dict.fromkeys(map(tuple_rate, rates)))
    raise wrong("rates", rates, "a number of tuples/s, a text such as '10 k/s', or several")


def texts_of(argument: str, texts: str | Iterable[str]) -> tuple[str, ...]:
    """Texts of an argument that accepts one or several."""
    several = (texts,) if isinstance(texts, str) else texts
    if isinstance(several, Iterable):
        column = tuple(several)
        if all(isinstance(text, str) for text in column):
            return column
    raise wrong(argument, texts, "a text or several texts")


def placer_of(placer: str | Placer, weights: FilePath | None = None) -> Placer:
    """Placer itself or by name, with weights if there are any."""
    if isinstance(placer, str):
        chosen = named_placer(placer)
    elif isinstance(placer, Placer):
        chosen = placer
    else:
        raise wrong("placer", placer, "a name, as in 'metis:k=3', or a Placer")
    if weights is None:
        return chosen
    if not is_path(weights):
        raise wrong("weights", weights, "the path of a weights file")
    return with_weights(chosen, Path(weights))


def seed_of(seed: int) -> int:
    """Convert a seed to a plain integer."""
    if isinstance(seed, Integral) and not isinstance(seed, bool) and seed >= 0:
        return int(seed)
    raise wrong("seed", seed, "a whole number, 0 or more")


def path_of(argument: str, path: FilePath) -> Path:
    """Path of a file or folder."""
    if is_path(path):
        return Path(path)
    raise wrong(argument, path, "a path")


def is_path(value: object) -> TypeGuard[FilePath]:
    """Whether a value is a path."""
    return isinstance(value, str | PathLike)


def wrong(argument: str, value: object, wanted: str) -> SettingError:
    """Build the error for an argument of a wrong type."""
    return SettingError(f"{argument} is {quoted(value)}; it must be {wanted}")

"""Arguments of the functions: objects, paths of files, and texts and numbers for them."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast, runtime_checkable

from streamplace.errors import SettingError
from streamplace.io.graphs import documents, graph_from_dict, only, read_graph
from streamplace.io.parsing import parse_tables
from streamplace.io.placements import order_given
from streamplace.io.problems import read_problem, usual_cluster
from streamplace.model.constraints import Constraints
from streamplace.model.graph import StreamGraph
from streamplace.model.message_text import quoted
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.subtasks import named_problem
from streamplace.model.units import Quantity, tuple_rate
from streamplace.objectives.registry import Objective, named_objective, suggested_by
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
from streamplace.settings.verb import Progress

if TYPE_CHECKING:
    from networkx import DiGraph

    from streamplace.api.placing import Place
    from streamplace.api.simulating import Simulate
    from streamplace.model.relocation import Relocation
    from streamplace.placers.result import Result as Result
else:  # imported where something else than a placement is given
    Result = Any
LOG = logging.getLogger(__name__)
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
PlacementLike = Placement | Result | Mapping[str, Any] | PandasSeries | FilePath
"""A placement, a result, operator → device as a mapping or a pandas Series, output of
``place --json``, or a path of a file."""


def given_graph(graph: GraphLike) -> StreamGraph | Problem | Path:
    """Graph, problem, or path of a file with one."""
    source = converted(graph)
    if isinstance(source, StreamGraph | Problem):
        return source
    if is_path(source):
        return Path(source)
    raise wrong(
        "graph", source,
        "a StreamGraph, a Problem, a directed networkx graph, a dictionary with operators and "
        "streams, or the path of a file",
    )  # fmt: skip


def problem_of(
    graph: GraphLike,
    cluster: ClusterLike | None = None,
    constraints: ConstraintsLike | None = None,
    rate: Quantity | None = None,
) -> Problem:
    """Problem of a graph; a problem is returned itself, at this rate if there is one."""
    devices, rules = cluster_of(cluster), constraints_of(constraints)
    source = given_graph(graph)
    if isinstance(source, Path):
        problem = read_problem(source, devices, rules)
    elif isinstance(source, StreamGraph):
        problem = Problem(source, devices or usual_cluster(), rules)
    elif devices is None and rules is None:
        problem = source
    else:
        raise SettingError("a problem brings its cluster and its constraints along; drop yours")
    return problem if rate is None else problem.at_rate(tuple_rate(rate))


def problem_for(request: "Place | Simulate") -> Problem:
    """Problem of a request, with its cluster, its constraints and its changes."""
    problem = problem_of(request.graph, request.machines(), request.constraints)
    changes = request.changes()
    if any(changes.values()):
        from streamplace.model.what_if import changed_problem

        problem = changed_problem(problem, **changes)
    LOG.info(
        "%d operators, %d streams, %d devices, %g tuples/s",
        problem.n_operators,
        problem.graph.n_streams,
        problem.n_devices,
        problem.graph.source_rate,
    )
    return problem


def check_profile(graph: StreamGraph, progress: Progress, *, trusts: bool) -> None:
    """Warn if a measured graph contradicts its measurement; refuse one that is wrong."""
    from streamplace.model.profile_trust import check_trust

    if (warning := check_trust(graph, trusts=trusts)) is not None:
        progress.say(f"warning: {warning}")


def graph_of(graph: GraphLike, rate: Quantity | None = None) -> StreamGraph:
    """Graph itself, of a problem, or of a file."""
    source = given_graph(graph)
    if isinstance(source, Path):
        source = read_graph(source)
    chosen = source.graph if isinstance(source, Problem) else source
    return chosen if rate is None else chosen.at_rate(tuple_rate(rate))


def planned_graph(graph: GraphLike) -> StreamGraph:
    """Graph itself, of a problem, or of a file.

    Raises SettingError for constraints or costs of a problem: the cheapest plan of its graph alone
    is not that of the problem. Its cluster does not matter, because a plan has machines of its own.
    """
    source, parts = given_graph(graph), set[str]()
    if isinstance(source, Problem):
        parts |= {"constraints"} if source.constraints != Constraints() else set()
        parts |= {"seconds"} if source.seconds is not None else set()
    elif isinstance(source, Path):
        document = only(documents(source), source, "graph")
        source, parts = document.graph(), set(document.parts)
    if unused := [part for part in ("constraints", "seconds") if part in parts]:
        raise SettingError(
            f"a plan cannot use the {' and '.join(unused)} of a problem; give its graph alone"
        )
    return graph_of(source)


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


def given_placement(placement: PlacementLike) -> Mapping[str, str] | Path:
    """Operator or subtask → device, a `Placement` if there is an order; or the path of a file."""
    if isinstance(placement, Placement):
        return placement
    if is_path(placement):
        return Path(placement)
    from streamplace.placers.result import Result

    if isinstance(placement, Result):
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


def placed_problem(problem: Problem, placement: PlacementLike) -> tuple[Problem, Placement]:
    """Placement of a problem's operators or of their subtasks, with the problem of these."""
    assignment = given_placement(placement)
    if isinstance(assignment, Path):
        from streamplace.engines.reading import read_placed

        return read_placed(assignment, problem)
    expanded = named_problem(problem, assignment)
    operators, devices = expanded.graph.operators.name, expanded.cluster.devices.name
    return expanded, Placement.of(operators, devices, assignment)


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
    """Priorities of a document of a placement, and their discipline."""
    order = {key: document[key] for key in ("priority", "queue") if key in document}
    return order_given(parse_tables("placement", {**order, "assignment": {}}, "placement"))


def objective_of(
    problem: Problem, objective: str | Objective = "", relocation: "Relocation | None" = None
) -> Objective:
    """Objective itself, by name, or the problem's default one, with the cost of moving."""
    chosen = checked_objective(objective) or suggested_by(problem.graph)
    if relocation is None:
        return named_objective(chosen) if isinstance(chosen, str) else chosen
    from streamplace.objectives.conditions import composed_objective

    return composed_objective(chosen, relocation=checked_relocation(relocation))

"""Graphs of any source: changed, expanded to subtasks, or converted for another library."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from streamplace.api.arguments import placed_problem
from streamplace.io.datasets import DataSet, graph_or_problem
from streamplace.io.given import GraphLike, PlacementLike, given_graph, graph_of, problem_of
from streamplace.io.graphs import Document, only
from streamplace.model.expansion import Expansion
from streamplace.model.expansion import expand as expanded
from streamplace.model.graph import StreamGraph
from streamplace.model.paths import FilePath, wrong
from streamplace.model.problem import Problem
from streamplace.model.units import Quantity
from streamplace.model.what_if import changed_graph, changed_problem

if TYPE_CHECKING:
    from networkx import MultiDiGraph
    from torch_geometric.data import Data


@overload
def what_if(
    graph: StreamGraph, *, scale: Mapping[str, float] = ..., change: Mapping[str, Quantity] = ...
) -> StreamGraph: ...
@overload
def what_if(
    graph: Problem, *, scale: Mapping[str, float] = ..., change: Mapping[str, Quantity] = ...
) -> Problem: ...
@overload
def what_if(
    graph: FilePath | Mapping[str, Any],
    *,
    scale: Mapping[str, float] = ...,
    change: Mapping[str, Quantity] = ...,
) -> StreamGraph | Problem: ...
def what_if(
    graph: GraphLike,
    *,
    scale: Mapping[str, float] | None = None,
    change: Mapping[str, Quantity] | None = None,
) -> StreamGraph | Problem:
    """Copy of a graph or a problem in which some numbers are changed.

    Parameters
    ----------
    graph
        As for `place`; a file with a cluster holds a problem.
    scale
        Operator → factor of its CPU per tuple: of its ``ipt``, and of its row of the costs that a
        problem may state in seconds.
    change
        Field of an operator or a stream → its value, a number or a text with a unit:
        ``{"kafka.rate": "100k", "parse->sink.selectivity": 0.5}``. Operators have ``ipt``,
        ``payload``, ``rate``, ``memory``, ``constant``, ``max_rate``, ``cores``, ``parallelism``
        and ``max_parallelism``, streams ``selectivity``, ``payload`` and ``ipt``. Of a problem
        also those of a device, ``d0.mips``, and ``bandwidth`` and ``latency`` of a link,
        ``d0->d1.bandwidth``; a name that an operator has as well is the operator's.

    Examples
    --------
    >>> from streamplace import Operator, Stream
    >>> ends = [Operator("kafka", rate=1000, ipt=5), Operator("sink", ipt=10)]
    >>> graph = StreamGraph.of("pipe", ends, [Stream("kafka", "sink")])
    >>> busier = what_if(graph, scale={"sink": 2}, change={"kafka.rate": "100k"})
    >>> busier.operators.ipt.tolist(), busier.source_rate
    ([5.0, 20.0], 100000.0)
    """
    for argument, changes in (("scale", scale), ("change", change)):
        if not isinstance(changes, Mapping | None):
            raise wrong(argument, changes, "a dictionary by the names of operators")
    original, factors, values = _graph_or_problem(graph), scale or {}, change or {}
    if isinstance(original, StreamGraph):
        return changed_graph(original, factors, values)
    return changed_problem(original, factors, values)


def expand(graph: GraphLike, shares: Mapping[str, Sequence[float]] | None = None) -> Expansion:
    """Return the graph of subtasks of a graph; see `streamplace.model.expansion`.

    Parameters
    ----------
    graph
        As for `place`.
    shares
        Operator → part of its tuples that each of its subtasks gets.
    """
    return expanded(graph_of(graph), shares)


def to_networkx(graph: GraphLike) -> "MultiDiGraph[str]":
    """Convert a graph to networkx; see `streamplace.io.networkx`.

    Parameters
    ----------
    graph
        As for `place`.
    """
    from streamplace.io import networkx

    return networkx.to_networkx(graph_of(graph))


def to_torch_geometric(graph: GraphLike, placement: PlacementLike | None = None) -> "Data":
    """Convert a graph or a problem to torch-geometric; see `streamplace.io.torch_geometric`.

    Parameters
    ----------
    graph
        As for `place`; a file with a cluster holds a problem.
    placement
        As for `simulate`; it becomes the label ``y``.
    """
    from streamplace.io import torch_geometric

    source = _graph_or_problem(graph)
    if placement is not None:
        _, placement = placed_problem(problem_of(source), placement)
    return torch_geometric.to_torch_geometric(source, placement)


def _graph_or_problem(graph: GraphLike) -> StreamGraph | Problem:
    """Graph or problem itself, or of a file: a problem if the file has a cluster."""
    source = given_graph(graph)
    if isinstance(source, Path):
        return only(DataSet(source).graphs_and_problems(), source, "graph")
    return graph_or_problem(source) if isinstance(source, Document) else source

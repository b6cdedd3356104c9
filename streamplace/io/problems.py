"""Problem documents: a graph, and optionally its cluster, constraints and costs.

A document of a graph alone is a problem, too, so every file of graphs is a file of problems. Like
graphs, problems are in ``.json`` files, or one per line in data sets.
"""

from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from streamplace.errors import FormatError
from streamplace.io.fields import plain
from streamplace.io.files import encoded, file_path, json_line, json_text, located, write_text
from streamplace.io.graphs import (
    Document,
    documents,
    graph_line,
    graph_to_dict,
    only,
    write_graph,
    write_lines,
)
from streamplace.io.suffixes import LINES
from streamplace.model.arrays import Floats
from streamplace.model.cluster import Cluster
from streamplace.model.columns import checked_kind
from streamplace.model.constraints import Constraints
from streamplace.model.graph import StreamGraph
from streamplace.model.message_text import quoted
from streamplace.model.problem import Moving, Problem


class Draft(NamedTuple):
    """A graph with its constraints, for any cluster."""

    graph: StreamGraph
    constraints: Constraints


AnyProblem = StreamGraph | Draft | Problem
"""A graph, possibly with other parts of a problem."""


@cache
def usual_cluster() -> Cluster:
    """Default cluster: five equal devices."""
    return Cluster.uniform()


def read_problem(
    path: str | Path, cluster: Cluster | None = None, constraints: Constraints | None = None
) -> Problem:
    """Read the only problem of a file; see `read_problems`."""
    return only(read_problems(path, cluster, constraints), path, "problem")


def read_problems(
    path: str | Path, cluster: Cluster | None = None, constraints: Constraints | None = None
) -> Iterator[Problem]:
    """Read the problems of a file, of the files of a folder or of shards, one after the other.

    Parameters
    ----------
    cluster, constraints
        For documents without them; by default five equal devices, and no constraints. A document
        that has its own raises FormatError.
    """
    return (problem_from(document, cluster, constraints) for document in documents(path))


def write_problem(problem: AnyProblem, path: str | Path) -> None:
    """Write one problem as readable JSON, or as the only line of a data set."""
    if isinstance(problem, StreamGraph):
        write_graph(problem, path)
    elif file_path(path).name.endswith(LINES):
        write_problems([problem], path)
    else:
        write_text(file_path(path), json_text(problem_to_dict(problem)))


def write_problems(problems: Iterable[AnyProblem], path: str | Path) -> int:
    """Write a data set of problems or graphs, one per line, and return their number."""
    lines = map(_named_line, checked_kind(problems, Iterable))
    return write_lines(lines, file_path(path), "problem")


def _named_line(problem: AnyProblem) -> tuple[str, bytes]:
    line = problem_line(problem)
    return problem.name if isinstance(problem, StreamGraph) else problem.graph.name, line


def problem_line(problem: AnyProblem) -> bytes:
    """One line of a data set: of a problem, or of a graph alone."""
    if isinstance(problem, StreamGraph):
        return graph_line(problem)
    return encoded(json_line(problem_to_dict(problem)), f"problem {quoted(problem.graph.name)}")


def problem_to_dict(problem: Draft | Problem) -> dict[str, Any]:
    """Document of a problem, without fields that equal their defaults.

    >>> from streamplace import Operator, StreamGraph
    >>> pipe = StreamGraph.of("one", [Operator("a", rate=1.0)])
    >>> problem_to_dict(Problem(pipe, Cluster.uniform(1)))["cluster"]["devices"]
    [{'name': 'd0', 'mips': 2500}]
    """
    from streamplace.io.clusters import cluster_to_tables
    from streamplace.io.constraints import constraints_to_tables

    if not isinstance(problem, Draft):
        checked_kind(problem, Problem)
    document: dict[str, Any] = {"graph": graph_to_dict(problem.graph)}
    if isinstance(problem, Problem):
        document["cluster"] = cluster_to_tables(problem.cluster)
    if rules := constraints_to_tables(problem.constraints):
        document["constraints"] = rules
    if isinstance(problem, Problem) and problem.seconds is not None:
        document["seconds"] = _rows(problem.seconds)
    if isinstance(problem, Problem) and problem.moving is not None:
        state = [plain(cell) for cell in problem.moving.state.tolist()]
        document["moving"] = {"state": state, "startup": _rows(problem.moving.startup)}
    return document


def problem_from(
    document: Document, cluster: Cluster | None, constraints: Constraints | None
) -> Problem:
    """Problem of a document; cluster and constraints come from it or from the arguments."""
    graph, parts = document.graph(), document.parts
    with located(document.where):
        if "cluster" in parts:
            if cluster is not None:
                raise FormatError("contains its own cluster; drop yours, or remove this one")
            from streamplace.io.clusters import cluster_from_tables

            with located("cluster"):
                cluster = cluster_from_tables(parts["cluster"])
        if "constraints" in parts:
            if constraints is not None:
                raise FormatError("contains its own constraints; drop yours, or remove these")
            with located("constraints"):
                constraints = Constraints(**parts["constraints"])
    is_graph = len(parts) == 1  # then the document is not at fault
    with nullcontext() if is_graph else located(document.where):
        cluster = cluster or usual_cluster()
        moving = None
        if (part := parts.get("moving")) is not None:
            startup = part.get("startup", np.zeros((graph.n_operators, cluster.n_devices)))
            moving = Moving(part.get("state", graph.operators.memory), startup)
        return Problem(graph, cluster, constraints, parts.get("seconds"), moving)


def _rows(matrix: Floats) -> list[list[float]]:
    return [[plain(cell) for cell in row] for row in matrix.tolist()]

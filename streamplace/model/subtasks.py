"""Names of subtasks, and the problem that has them; `streamplace.model.expansion` makes it."""

import itertools
import re
from collections.abc import Iterable
from dataclasses import replace

from streamplace.model.arrays import Ints
from streamplace.model.graph import StreamGraph
from streamplace.model.problem import Problem

_SECOND_SUBTASK = re.compile(r"(.+?)(#+)1")


def operators_by_subtask(names: Iterable[str]) -> dict[str, str]:
    """Operator of each name: the one that `expand` made the subtask of, or the operator itself.

    A numbered name belongs to a subtask if number 1 and all smaller numbers exist, too.

    >>> operators_by_subtask(["src", "join#0", "join#1", "filter#7"])
    {'src': 'src', 'join#0': 'join', 'join#1': 'join', 'filter#7': 'filter#7'}
    >>> operators_by_subtask(["join##0", "join##1", "join#0"])
    {'join##0': 'join', 'join##1': 'join', 'join#0': 'join#0'}
    """
    operators = {name: name for name in names}
    for name in operators:
        match = _SECOND_SUBTASK.fullmatch(name)
        if match is not None and f"{match[1]}{match[2]}0" in operators:
            for i in itertools.count():
                subtask = f"{match[1]}{match[2]}{i}"
                if subtask not in operators:
                    break
                operators[subtask] = match[1]
    return operators


def with_parallelism(graph: StreamGraph, parallelism: Ints) -> StreamGraph:
    """Return the graph with these numbers of subtasks per operator, [N]."""
    return graph.with_operators(replace(graph.operators, parallelism=parallelism))


def named_problem(problem: Problem, names: Iterable[str]) -> Problem:
    """Problem whose operators have these names: the problem itself, or that of its subtasks.

    Examples
    --------
    >>> from streamplace.model import Cluster, Operator, Problem
    >>> graph = StreamGraph.of("one", [Operator("join", rate=1.0, parallelism=2)])
    >>> problem = Problem(graph, Cluster.uniform(2))
    >>> named_problem(problem, ["join#0", "join#1"]).graph.operators.name
    ('join#0', 'join#1')
    """
    operators = problem.graph.operators
    if (operators.parallelism == 1).all():
        return problem
    from streamplace.model.expansion import expand

    expansion = expand(problem.graph)
    subtasks = expansion.graph.operators
    if any(name in subtasks and name not in operators for name in names):
        return expansion.problem(problem)
    return problem

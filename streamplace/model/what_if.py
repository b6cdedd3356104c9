"""What-ifs: a graph or a problem with some numbers changed, without an edited file."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from numbers import Real
from typing import Any, TypeVar

import numpy as np

from streamplace.errors import GraphError, ProblemError, UnitError
from streamplace.model.columns import CountRule, NumberRule, rules_of
from streamplace.model.graph import StreamGraph
from streamplace.model.message_text import quoted, suggestion
from streamplace.model.operators import Operators
from streamplace.model.problem import Problem
from streamplace.model.streams import Streams
from streamplace.model.units import Quantity, number

Row = TypeVar("Row", bound=Any)


def _whole(value: Quantity) -> int:
    """Whole number, perhaps with a prefix such as k."""
    read = number(value)
    if not read.is_integer():
        raise UnitError(f"number {quoted(value)} must be whole, such as 4")
    return int(read)


def _parsers(noun: type[Any]) -> dict[str, Callable[[Quantity], float]]:
    """Numbers of a row that can be set, and their parsers."""
    return {
        name: _whole if isinstance(rule, CountRule) else rule.parse or number
        for name, rule in rules_of(noun)
        if isinstance(rule, CountRule | NumberRule)
    }


def changed_problem(
    problem: Problem, scale: Mapping[str, float], change: Mapping[str, Quantity]
) -> Problem:
    """Copy of a problem with changed numbers; see `streamplace.what_if`."""
    seconds = problem.seconds
    if seconds is not None:
        for key in change:
            name, _, field = key.rpartition(".")
            if field == "ipt" and not _is_stream(problem.graph, name):
                raise ProblemError(
                    f"the problem states the CPU of its operators in seconds, so {key} has no "
                    "effect; scale the operator instead"
                )
        seconds = np.array(seconds)
        for name, factor in scale.items():
            seconds[_row(problem.graph, name)] *= _factor(name, factor)
    graph = changed_graph(problem.graph, scale, change)
    return Problem(graph, problem.cluster, problem.constraints, seconds, problem.moving)


def changed_graph(
    graph: StreamGraph, scale: Mapping[str, float], change: Mapping[str, Quantity]
) -> StreamGraph:
    """Copy of a graph with changed numbers; see `streamplace.what_if`."""
    if not scale and not change:
        return graph
    operators, streams = list(graph.operators), list(graph.streams)
    for name, factor in scale.items():
        v = _row(graph, name)
        operators[v] = replace(operators[v], ipt=operators[v].ipt * _factor(name, factor))
    for key, value in change.items():
        name, dot, field = key.rpartition(".")
        if not dot:
            raise GraphError(
                f"{quoted(key)} is no field; write OPERATOR.FIELD, such as {quoted(key + '.rate')}"
            )
        if _is_stream(graph, name):
            e = _stream_row(graph, name)
            streams[e] = _with(streams[e], key, field, value)
        else:
            v = _row(graph, name)
            operators[v] = _with(operators[v], key, field, value)
    columns = Operators.of(operators)
    return replace(graph, operators=columns, streams=Streams.of(columns, streams))


def _is_stream(graph: StreamGraph, name: str) -> bool:
    """Whether a name stands for a stream; names of operators may contain arrows, too."""
    return "->" in name and name not in graph.operators


def _row(graph: StreamGraph, name: str) -> int:
    """Row of an operator; an error suggests a similar one."""
    if name in graph.operators:
        return graph.operators.index(name)
    hint = suggestion(name, graph.operators.name)
    raise GraphError(f"{quoted(graph.name)} has no operator {quoted(name)}{hint}")


def _stream_row(graph: StreamGraph, name: str) -> int:
    """Row of the stream ``a->b``, of which there must be one."""
    source, _, target = name.partition("->")
    ends = _row(graph, source), _row(graph, target)
    found = np.flatnonzero((graph.streams.source == ends[0]) & (graph.streams.target == ends[1]))
    if len(found) == 1:
        return int(found[0])
    if len(found):
        raise GraphError(
            f"{quoted(graph.name)} has several streams {name}; change them in its file"
        )
    raise GraphError(f"{quoted(graph.name)} has no stream {name}")


def _factor(name: str, factor: float) -> float:
    if not isinstance(factor, Real) or not 0 <= factor < np.inf:
        raise GraphError(f"the factor of {quoted(name)} is {quoted(factor)}; it must be ≥ 0")
    return float(factor)


def _with(row: Row, key: str, field: str, value: Quantity) -> Row:
    fields = _parsers(type(row))
    if field not in fields:
        hint = suggestion(field, fields) or f"; choose one of {', '.join(fields)}"
        raise GraphError(f"{key}: {quoted(field)} cannot be set{hint}")
    try:
        read = fields[field](value)
    except UnitError as error:
        raise UnitError(f"{key}: {error}") from None
    return replace(row, **{field: read})

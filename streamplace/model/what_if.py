"""What-ifs: a graph or a problem with some numbers changed, without an edited file."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from numbers import Real
from typing import Any, TypeVar

import numpy as np

from streamplace.errors import ClusterError, GraphError, ProblemError, UnitError
from streamplace.model.cluster import Cluster
from streamplace.model.columns import CountRule, NamedColumns, NumberRule, rules_of
from streamplace.model.devices import Device
from streamplace.model.graph import StreamGraph
from streamplace.model.message_text import quoted, suggestion
from streamplace.model.operators import Operator, Operators
from streamplace.model.problem import Problem
from streamplace.model.streams import Stream, Streams
from streamplace.model.units import Quantity, bandwidth_bps, number
from streamplace.model.units import seconds as seconds_of

Row = TypeVar("Row", bound=Any)


def _whole(value: Quantity) -> int:
    """Whole number, perhaps with a prefix such as k."""
    parsed = number(value)
    if not parsed.is_integer():
        raise UnitError(f"number {quoted(value)} must be whole, such as 4")
    return int(parsed)


def _parsers(noun: type[Any]) -> dict[str, Callable[[Quantity], float]]:
    """Numbers of a row that can be set, and their parsers."""
    return {
        name: _whole if isinstance(rule, CountRule) else rule.parse or number
        for name, rule in rules_of(noun)
        if isinstance(rule, CountRule | NumberRule)
    }


OF_LINKS = {"bandwidth": bandwidth_bps, "latency": seconds_of}
"""Numbers of a link, and their parsers."""
OF_CLUSTER = {*OF_LINKS, *_parsers(Device)} - {*_parsers(Operator), *_parsers(Stream)}
"""Numbers that rows of a cluster alone have."""


def changed_problem(
    problem: Problem, scale: Mapping[str, float], change: Mapping[str, Quantity]
) -> Problem:
    """Copy of a problem with changed numbers; see `streamplace.what_if`."""
    seconds = problem.seconds
    of_cluster = {key: value for key, value in change.items() if _is_of_cluster(problem, key)}
    change = {key: value for key, value in change.items() if key not in of_cluster}
    if seconds is not None:
        for key in (*change, *of_cluster):
            name, _, field = key.rpartition(".")
            if field == "mips" or (field == "ipt" and not _is_stream(problem.graph, name)):
                remedy = "change the seconds" if field == "mips" else "scale the operator"
                raise ProblemError(
                    f"the problem states the CPU of its operators in seconds, so {key} has no "
                    f"effect; {remedy} instead"
                )
        seconds = np.array(seconds)
        for name, factor in scale.items():
            seconds[_row(problem.graph, name)] *= _factor(name, factor)
    graph = changed_graph(problem.graph, scale, change)
    cluster = changed_cluster(problem.cluster, of_cluster)
    return replace(problem, graph=graph, cluster=cluster, seconds=seconds)


def _is_of_cluster(problem: Problem, key: str) -> bool:
    """Whether a key names a device, or a link ``a->b``; operators and streams come first.

    What has an unknown name is of the cluster if only its rows have the field.
    """
    name, _, field = key.rpartition(".")
    operators, devices = problem.graph.operators, problem.cluster.devices
    if name in operators or _ends_of(name, operators) is not None:
        return False
    known = name in devices or _ends_of(name, devices) is not None
    return known or (bool(name) and field in OF_CLUSTER)


def _ends_of(name: str, rows: NamedColumns[Any]) -> tuple[int, int] | None:
    """Rows of both ends of ``a->b``; names may contain arrows, too."""
    parts = name.split("->")
    for i in range(1, len(parts)):
        source, target = "->".join(parts[:i]), "->".join(parts[i:])
        if source in rows and target in rows:
            return rows.index(source), rows.index(target)
    return None


def changed_cluster(cluster: Cluster, change: Mapping[str, Quantity]) -> Cluster:
    """Copy of a cluster with changed numbers of its devices and links."""
    if not change:
        return cluster
    devices = list[Device](cluster.devices)
    links = {"bandwidth": np.array(cluster.bandwidth_bps), "latency": np.array(cluster.latency_s)}
    for key, value in change.items():
        name, _, field = key.rpartition(".")
        if name in cluster.devices:
            d = cluster.devices.index(name)
            devices[d] = _with_field(devices[d], key, field, value)
            continue
        ends = _ends_of(name, cluster.devices)
        if ends is None:
            raise ClusterError(f"{key}: the cluster has no such device or link")
        if field not in links:
            raise ClusterError(f"{key}: a link has a bandwidth and a latency; set one of these")
        if ends[0] == ends[1]:
            raise ClusterError(f"{key}: a device has no link to itself")
        try:
            links[field][ends] = OF_LINKS[field](value)
        except UnitError as error:
            raise UnitError(f"{key}: {error}") from None
    columns = type(cluster.devices).of(devices)
    return replace(
        cluster, devices=columns, bandwidth_bps=links["bandwidth"], latency_s=links["latency"]
    )


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
            streams[e] = _with_field(streams[e], key, field, value)
        else:
            v = _row(graph, name)
            operators[v] = _with_field(operators[v], key, field, value)
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
    """Row of the only stream ``a->b``."""
    source, _, target = name.partition("->")
    ends = _row(graph, source), _row(graph, target)
    rows = np.flatnonzero((graph.streams.source == ends[0]) & (graph.streams.target == ends[1]))
    if len(rows) == 1:
        return int(rows[0])
    if len(rows):
        raise GraphError(
            f"{quoted(graph.name)} has several streams {name}; change them in its file"
        )
    raise GraphError(f"{quoted(graph.name)} has no stream {name}")


def _factor(name: str, factor: float) -> float:
    if not isinstance(factor, Real) or not 0 <= factor < np.inf:
        raise GraphError(f"the factor of {quoted(name)} is {quoted(factor)}; it must be ≥ 0")
    return float(factor)


def _with_field(row: Row, key: str, field: str, value: Quantity) -> Row:
    fields = _parsers(type(row))
    if field not in fields:
        hint = suggestion(field, fields) or f"; choose one of {', '.join(fields)}"
        raise GraphError(f"{key}: {quoted(field)} cannot be set{hint}")
    try:
        number = fields[field](value)
    except UnitError as error:
        raise UnitError(f"{key}: {error}") from None
    return replace(row, **{field: number})

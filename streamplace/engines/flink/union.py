"""Union of several jobs as one graph, for a common placement, and the placement of each job."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from streamplace.engines.names import slug
from streamplace.errors import PlacementError, SettingError
from streamplace.model.buffers import BUFFER_TIMEOUT, MESSAGE_IPT, MESSAGES_OF
from streamplace.model.graph import (
    CONSISTENCY_ERROR,
    CPU_OF,
    CULPRIT,
    KEEPS_PARALLELISM,
    PROFILE_DRIFT,
    PROFILE_SPREAD,
    PROFILE_WINDOWS,
    Attribute,
    StreamGraph,
)
from streamplace.model.messages import listed, quoted
from streamplace.model.operators import Operator
from streamplace.model.streams import Stream
from streamplace.model.trust import trust_of

BETWEEN = "/"
"""Separator of the names of a job and its operator."""


def job_names(graphs: Sequence[StreamGraph]) -> list[str]:
    """Names of the jobs in their union, each usable as the name of a file.

    >>> one = StreamGraph.of("shop", [Operator("in", rate=1)])
    >>> job_names([one, one])
    ['shop', 'shop-2']
    """
    names: list[str] = []
    for graph in graphs:
        name, number = slug(graph.name), 1
        while name in names:
            number += 1
            name = f"{slug(graph.name)}-{number}"
        names.append(name)
    return names


def union_of(graphs: Sequence[StreamGraph], weights: Mapping[str, float]) -> StreamGraph:
    """One graph with all operators and streams of several jobs.

    Operators are named JOB/OPERATOR.

    Parameters
    ----------
    weights
        Job → factor of the rates of its sources, 1 by default. If two jobs cannot both be carried
        in full, one with weight 2 gets twice the share of its rate.

    Examples
    --------
    >>> shop = StreamGraph.of("shop", [Operator("in", rate=10)])
    >>> pipe = StreamGraph.of("pipe", [Operator("in", rate=10), Operator("out")],
    ...                       [Stream("in", "out")])
    >>> both = union_of([shop, pipe], {"pipe": 2})
    >>> both.operators.name, both.input_rate.tolist()
    (('shop/in', 'pipe/in', 'pipe/out'), [10.0, 20.0, 20.0])
    """
    names = job_names(graphs)
    if unknown := weights.keys() - set(names):
        raise SettingError(
            f"{quoted(min(unknown))} is not one of the jobs; they are {listed(names)}"
        )
    pairs = list(zip(names, graphs, strict=True))
    operators = [
        operator
        for name, graph in pairs
        for operator in _operators(name, graph, weights.get(name, 1.0))
    ]
    streams = [stream for name, graph in pairs for stream in _streams(name, graph)]
    return StreamGraph.of(" + ".join(names), operators, streams, _attributes(pairs))


def split_placement(document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Placement document of each job, from that of their union.

    >>> placed = {"parallelism": {"a/in": 2}, "assignment": {"a/in": "d0", "b/in": "d1"}}
    >>> split_placement(placed)["a"]
    {'graph': 'a', 'parallelism': {'in': 2}, 'assignment': {'in': 'd0'}}
    """
    jobs: dict[str, dict[str, Any]] = {}
    for name in document["assignment"]:
        job, between, _ = name.partition(BETWEEN)
        if not between:
            raise PlacementError(
                f"operator {quoted(name)} belongs to no job; give a placement of the graph that "
                "'streamplace flink union' wrote"
            )
        jobs[job] = {"graph": job}
    for table in ("parallelism", "assignment"):
        if table in document:
            for job, part in jobs.items():
                start = job + BETWEEN
                part[table] = {
                    name.removeprefix(start): value
                    for name, value in document[table].items()
                    if name.startswith(start)
                }
    return jobs


def _operators(job: str, graph: StreamGraph, weight: float) -> Iterator[Operator]:
    for operator in graph.operators:
        yield replace(
            operator,
            name=job + BETWEEN + operator.name,
            rate=operator.rate * weight,
            slot_sharing_group=job + BETWEEN + operator.slot_sharing_group,
        )


def _streams(job: str, graph: StreamGraph) -> Iterator[Stream]:
    for stream in graph.streams:
        ends = (job + BETWEEN + stream.source, job + BETWEEN + stream.target)
        yield replace(stream, source=ends[0], target=ends[1])


def _attributes(pairs: Sequence[tuple[str, StreamGraph]]) -> dict[str, Attribute]:
    """Attributes that all jobs share, the doubts of each, and the worst quality of a profile."""
    speeds = {graph.attributes["mips"] for _, graph in pairs if "mips" in graph.attributes}
    if len(speeds) > 1:
        raise SettingError(
            "the jobs were measured with different --mips; profile them with the same value"
        )
    doubts = [
        f"{job}: {graph.attributes['unmeasured']}"
        for job, graph in pairs
        if "unmeasured" in graph.attributes
    ]
    attributes: dict[str, Attribute] = dict.fromkeys(["mips"], speeds.pop()) if speeds else {}
    if doubts:
        attributes["unmeasured"] = "; ".join(doubts)
    with_streams = [graph.attributes for _, graph in pairs if graph.n_streams]
    if with_streams and all(MESSAGE_IPT in own for own in with_streams):
        attributes[MESSAGE_IPT] = max(own[MESSAGE_IPT] for own in with_streams)
        attributes[BUFFER_TIMEOUT] = min(own[BUFFER_TIMEOUT] for own in with_streams)
    return (
        attributes
        | _quality(pairs)
        | {
            f"{prefix}{job}{BETWEEN}{key.removeprefix(prefix)}": value
            for job, graph in pairs
            for key, value in graph.attributes.items()
            for prefix in (CPU_OF, KEEPS_PARALLELISM, MESSAGES_OF)
            if key.startswith(prefix)
        }
    )


def _quality(pairs: Sequence[tuple[str, StreamGraph]]) -> dict[str, Attribute]:
    """Quality of the profiles of all jobs, which is that of the worst; empty if one has none."""
    graphs = [graph for _, graph in pairs]
    if not all(PROFILE_WINDOWS in graph.attributes for graph in graphs):
        return {}
    quality: dict[str, Attribute] = {}
    for name, worst in ((PROFILE_WINDOWS, min), (PROFILE_SPREAD, max), (PROFILE_DRIFT, max)):
        found = [graph.attributes.get(name) for graph in graphs]
        numbers = [one for one in found if isinstance(one, int | float)]
        if numbers:
            quality[name] = worst(numbers)
    checked = [(trust, job) for job, graph in pairs if (trust := trust_of(graph)) is not None]
    if checked:
        trust, job = max(checked, key=lambda one: abs(one[0].error))
        quality[CONSISTENCY_ERROR] = trust.error
        if trust.culprit:
            quality[CULPRIT] = job + BETWEEN + trust.culprit
    return quality

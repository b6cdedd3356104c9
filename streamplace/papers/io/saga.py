"""Problem instances of SAGA: a task graph with costs and sizes, and a network with speeds.

SAGA has no units; here a task of cost c takes c / s seconds on a node of speed s, and data of size
b takes b / r seconds over a link of speed r. Within a node it takes no time, whatever the speed of
the link from the node to itself.
"""

import math
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Annotated, NotRequired

import numpy as np
from pydantic import Field
from typing_extensions import TypedDict

from streamplace.errors import ClusterError
from streamplace.io.fields import Amount
from streamplace.io.files import located, spot
from streamplace.io.foreign import files_with, read_foreign
from streamplace.io.lines import name_of
from streamplace.io.registry import reader
from streamplace.model.arrays import Floats
from streamplace.model.cluster import Cluster, check_size
from streamplace.model.devices import Device
from streamplace.model.graph import StreamGraph
from streamplace.model.message_text import quoted
from streamplace.model.operators import ALL, Operator
from streamplace.model.problem import Problem
from streamplace.model.streams import Stream
from streamplace.model.units import MAX_VALUE, Stated

INSTRUCTIONS = 1e6
"""Instructions for a cost of 1, which a node of speed 1 executes in a second."""


class SagaTask(TypedDict):
    """A task."""

    name: str
    cost: Amount


class Dependency(TypedDict):
    """Data that one task sends to another."""

    source: str
    target: str
    size: NotRequired[Amount]


class TaskGraph(TypedDict):
    """Tasks and their dependencies."""

    tasks: list[SagaTask]
    dependencies: list[Dependency]


class SagaNode(TypedDict):
    """A machine."""

    name: str
    speed: Amount


class SagaLink(TypedDict):
    """A link, equal in both directions; a speed of null or infinity is unlimited."""

    source: str
    target: str
    speed: Annotated[float, Field(ge=0)] | None


class SagaNetwork(TypedDict):
    """Machines and links."""

    nodes: list[SagaNode]
    edges: list[SagaLink]


class SagaInstance(TypedDict):
    """Content of a file of SAGA's data sets."""

    name: NotRequired[str]
    task_graph: TaskGraph
    network: SagaNetwork


@reader("saga")
def read_saga(path: Path) -> Iterator[Problem]:
    """Problem instances of SAGA, task graph and network: a ``.json`` file, or a folder of them."""
    for file in files_with(path, ".json"):
        instance = read_foreign(SagaInstance, file)
        with located(spot(file)):
            tasks, scale = instance["task_graph"], _scale(instance["task_graph"])
            graph = _graph(tasks, instance.get("name") or name_of(file), scale)
            problem = Problem(graph, _cluster(instance["network"], scale))
        yield problem


def _scale(tasks: TaskGraph) -> float:
    """Factor of costs and speeds, which have no unit: a power of ten that keeps costs in range."""
    largest = max((task["cost"] for task in tasks["tasks"]), default=0.0)
    excess = largest / (MAX_VALUE / INSTRUCTIONS)
    return 1.0 if excess <= 1 else 10.0 ** -(math.floor(math.log10(excess)) + 1)


def _graph(tasks: TaskGraph, name: str, scale: float) -> StreamGraph:
    rows = sorted(tasks["tasks"], key=lambda task: task["name"])  # SAGA keeps them as sets
    lines = sorted(tasks["dependencies"], key=lambda line: (line["source"], line["target"]))
    operators = [Operator(row["name"], ipt=row["cost"] * scale * INSTRUCTIONS) for row in rows]
    streams = [
        Stream(line["source"], line["target"], payload=line.get("size", 0.0)) for line in lines
    ]
    return StreamGraph.of(name, operators, streams, fires=ALL)


def _cluster(network: SagaNetwork, scale: float) -> Cluster:
    nodes = sorted(network["nodes"], key=lambda node: node["name"])
    check_size(len(nodes))
    devices = [Device(node["name"], mips=Stated(node["speed"] * scale)) for node in nodes]
    row = {device.name: d for d, device in enumerate(devices)}
    return Cluster.of(devices, bandwidth=_bandwidth(row, len(devices), network["edges"]))


def _bandwidth(row: Mapping[str, int], n: int, links: list[SagaLink]) -> Floats:
    """Bandwidth in bit/s between every pair of n nodes."""
    matrix = np.zeros((n, n))
    for link in links:
        for end in (link["source"], link["target"]):
            if end not in row:
                raise ClusterError(
                    f"a link ends at {quoted(end)}, which is not a node; add the node"
                )
        a, b = row[link["source"]], row[link["target"]]
        speed = MAX_VALUE if link["speed"] is None else min(8 * link["speed"], MAX_VALUE)
        matrix[a, b] = matrix[b, a] = speed
    for source, target in combinations(row, 2):
        if not matrix[row[source], row[target]]:
            raise ClusterError(
                f"nodes {quoted(source)} and {quoted(target)} have no link, or one of speed 0; "
                "add its speed"
            )
    return matrix

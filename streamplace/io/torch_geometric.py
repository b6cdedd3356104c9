"""Conversion of graphs and problems from and to `torch_geometric.data.Data`."""

import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from streamplace.errors import FormatError
from streamplace.io.extras import importing
from streamplace.io.graphs import graph_from_dict, graph_to_dict
from streamplace.io.parsing import parse_tables
from streamplace.io.problems import problem_to_dict, usual_cluster
from streamplace.io.schema import OPERATOR
from streamplace.model.arrays import Floats, Singles
from streamplace.model.cluster import Cluster
from streamplace.model.columns import CountRule, NumberRule
from streamplace.model.constraints import Constraints
from streamplace.model.devices import NUMERIC_COLUMNS, Devices
from streamplace.model.graph import StreamGraph
from streamplace.model.message_text import quoted
from streamplace.model.placement import Placement
from streamplace.model.problem import Moving, Problem

if TYPE_CHECKING:
    from torch_geometric.data import Data

DEVICE_KEYS = {name: f"device_{name}" for name in NUMERIC_COLUMNS}
DEVICE_KEYS |= {name: f"device_{name}_bps" for name in ("egress", "ingress")}
"""Columns of devices, and their tensors."""
NODE_FEATURES = ("cpu", "network", "source", "parallelism")
"""Columns of ``x``: load of a device by the operator at full rate, averaged over the devices; load
of a link by its output; whether it is a source; number of subtasks."""
EDGE_FEATURES = ("network",)
"""Columns of ``edge_attr``: load of a link by the stream at full rate, averaged over the links."""
NODES = tuple(k for k, rule in OPERATOR.items() if isinstance(rule, NumberRule | CountRule))
WHERE = "torch-geometric data"
NETWORK = ("bandwidth_bps", "latency_s")
COSTS = ("overhead_s", "gap_s", "joules_per_byte", "overhead_s_per_byte")
REST = "rest"
"""Attribute with the other facts as JSON: names, kinds, tags, windows, costs, constraints."""


def to_torch_geometric(
    graph: StreamGraph | Problem, placement: Mapping[str, str] | None = None
) -> "Data":
    """Convert a graph or a problem to a graph of torch-geometric.

    Nodes are operators and edges are streams, in the same order.

    Parameters
    ----------
    placement
        Operator → device, which becomes the label ``y``.

    Returns
    -------
    Data
        ``x`` [N, 4] and ``edge_attr`` [E, 1] are features for learning (`NODE_FEATURES`,
        `EDGE_FEATURES`); those of a graph alone assume five default devices, which have the tags
        that operators require. The fields of the native format follow in float64: ``ipt``,
        ``payload``, ``rate``, ``memory``, ``parallelism``, ``max_parallelism``, ``constant``,
        ``max_rate``, ``cores`` [N]; ``selectivity``, ``stream_payload`` [E], NaN where a stream
        inherits the payload of its operator. A problem adds ``device_mips``, ``device_cores``, …
        [D], and ``bandwidth_bps`` and ``latency_s`` [D · D], row by row.

    Examples
    --------
    >>> from streamplace import Operator, Stream
    >>> graph = StreamGraph.of("pipe", [Operator("a", ipt=2e5, rate=1e4), Operator("b", ipt=1e5)],
    ...                        [Stream("a", "b")])
    >>> data = to_torch_geometric(graph)
    >>> data.edge_index.tolist(), data.x[:, 0].tolist()
    ([[0], [1]], [0.800000011920929, 0.4000000059604645])
    >>> from_torch_geometric(data) == graph
    True
    """
    with importing("torch-geometric"):
        import torch
        from torch_geometric.data import Data

    problem = graph if isinstance(graph, Problem) else _on_usual_devices(graph)
    streams = problem.graph.streams
    nodes, edges = _features(problem)
    ends = np.stack([streams.source, streams.target]).astype(np.int64)
    data = Data(torch.from_numpy(nodes), torch.from_numpy(ends), torch.from_numpy(edges))
    columns = {name: getattr(problem.graph.operators, name) for name in NODES}
    columns |= {"selectivity": streams.selectivity, "stream_payload": streams.payload}
    if isinstance(graph, Problem):
        columns |= _cluster_columns(graph)
    for name, column in columns.items():
        data[name] = torch.from_numpy(np.array(column))
    data[REST] = json.dumps(_rest(graph), ensure_ascii=False)
    if placement is not None:
        names, devices = problem.graph.operators.name, problem.cluster.devices.name
        row = Placement.of(names, devices, placement).index  # device of every operator
        data.y = torch.from_numpy(row.astype(np.int64))
    return data


def _on_usual_devices(graph: StreamGraph) -> Problem:
    cluster = usual_cluster()
    tags = frozenset(chain.from_iterable(graph.operators.requires))
    devices = replace(cluster.devices, tags=(tags,) * cluster.n_devices)
    return Problem(graph, replace(cluster, devices=devices))


def from_torch_geometric(data: "Data") -> StreamGraph | Problem:
    """Convert a graph of torch-geometric to a graph, or to a problem if it has devices.

    Numbers are read from the tensors that `to_torch_geometric` writes, so they may have been
    changed; missing ones have their defaults. Operators without names are numbered. ``x``,
    ``edge_attr`` and ``y`` are not read.

    Examples
    --------
    >>> import torch
    >>> from torch_geometric.data import Data
    >>> data = Data(edge_index=torch.tensor([[0, 0], [1, 2]]), num_nodes=3)
    >>> data.rate = torch.tensor([100.0, 0, 0])
    >>> from_torch_geometric(data).operators.name
    ('0', '1', '2')
    """
    if not hasattr(data, "num_nodes"):
        raise FormatError(f"{WHERE} is {quoted(data)}; it must be a Data of torch-geometric")
    rest = json.loads(data[REST]) if REST in data else {}
    document = rest.get("graph", {"name": "graph"})
    ends = _ends(data)
    operators = document.get("operators", [{"name": str(i)} for i in range(data.num_nodes or 0)])
    streams = document.get("streams", [{} for _ in ends])
    if len(streams) != len(ends):
        raise FormatError(
            f"{WHERE}: edge_index has {len(ends)} streams, but {REST} describes {len(streams)}; "
            f"delete {REST} where you add or remove streams"
        )
    numbers = {name: _numbers(data, name, len(operators)) for name in NODES}
    names = [row["name"] for row in operators]
    _check_ends(ends, len(names))
    weights = {
        "selectivity": _numbers(data, "selectivity", len(ends)),
        "payload": _numbers(data, "stream_payload", len(ends)),
    }
    document["operators"] = [row | _row(numbers, i) for i, row in enumerate(operators)]
    document["streams"] = [
        {"from": names[u], "to": names[v]} | row | _row(weights, i)
        for i, ((u, v), row) in enumerate(zip(ends, streams, strict=True))
    ]
    graph = graph_from_dict(parse_tables("graph", document, WHERE))
    return _problem(data, graph, rest) if "device_mips" in data else graph


def _features(problem: Problem) -> tuple[Singles, Singles]:
    """Features of the nodes [N, 4] and of the edges [E, 1]."""
    arrays, size = problem.instance, problem.n_devices
    links = arrays.seconds_per_byte[~np.eye(size, dtype=np.bool_)]
    share = arrays.traffic * (links.mean() if links.size else 0.0)
    output = np.bincount(arrays.source, weights=share, minlength=problem.n_operators)
    load = arrays.full_load[:, arrays.device_type].mean(axis=1)
    parts = arrays.parallelism / problem.graph.operators.cores
    nodes = np.stack([load, output, arrays.rate > 0, parts], axis=1)
    edges = share[np.argsort(arrays.stream_index)][:, None]
    return nodes.astype(np.float32), edges.astype(np.float32)


def _cluster_columns(problem: Problem) -> dict[str, Any]:
    """Numbers of the devices, of the links, and of operators on devices, as columns."""
    cluster = problem.cluster
    columns = {key: getattr(cluster.devices, name) for name, key in DEVICE_KEYS.items()}
    columns |= {name: getattr(cluster, name).ravel() for name in NETWORK}
    return columns if problem.seconds is None else columns | {"seconds": problem.seconds.ravel()}


def _rest(graph: StreamGraph | Problem) -> dict[str, Any]:
    """Document of the facts that are in no tensor."""
    inner = graph.graph if isinstance(graph, Problem) else graph
    document = graph_to_dict(inner)
    document["operators"] = [_without(row, NODES) for row in document["operators"]]
    document["streams"] = [
        _without(row, ("from", "to", "selectivity", "payload")) for row in document["streams"]
    ]
    if not isinstance(graph, Problem):
        return {"graph": document}
    devices, whole = graph.cluster.devices, problem_to_dict(graph)
    rest = {key: whole[key] for key in ("constraints", "moving") if key in whole}
    return rest | {
        "graph": document,
        "devices": devices.name,
        "tags": [sorted(tags) for tags in devices.tags],
        "costs": {name: getattr(graph.cluster, name) for name in COSTS},
    }


def _without(row: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in names}


def _ends(data: "Data") -> list[tuple[int, int]]:
    """Rows of the two operators of every stream."""
    if data.edge_index is None:
        raise FormatError(f"{WHERE}: edge_index is missing; add a tensor of shape [2, streams]")
    shape = list(data.edge_index.shape)
    if len(shape) != 2 or shape[0] != 2:
        raise FormatError(f"{WHERE}: edge_index has shape {shape}; it must have [2, streams]")
    return list(zip(*data.edge_index.tolist(), strict=True))


def _check_ends(ends: list[tuple[int, int]], size: int) -> None:
    """Raise FormatError for ends that are not rows of operators."""
    for end in chain.from_iterable(ends):
        if not isinstance(end, int) or not 0 <= end < size:
            raise FormatError(
                f"{WHERE}: edge_index has {end}, which is no row of the {size} operators; count "
                "them from 0, and set num_nodes"
            )


def _numbers(data: "Data", name: str, size: int) -> list[Any] | None:
    """Numbers of a tensor; None if it is missing."""
    if name not in data:
        return None
    numbers: list[Any] = data[name].flatten().tolist()
    if len(numbers) != size:
        raise FormatError(f"{WHERE}: {name} has {len(numbers)} numbers; it must have {size}")
    return numbers


def _row(columns: Mapping[str, list[Any] | None], i: int) -> dict[str, Any]:
    """Fields of an operator or a stream, without NaN."""
    cells = {name: column[i] for name, column in columns.items() if column is not None}
    return {name: cell for name, cell in cells.items() if cell == cell}


def _problem(data: "Data", graph: StreamGraph, rest: Mapping[str, Any]) -> Problem:
    """Problem of a graph on the devices that the tensors describe."""
    size = len(data["device_mips"])
    devices = Devices(
        rest.get("devices", [f"d{i}" for i in range(size)]),
        tags=rest.get("tags"),
        **{name: _numbers(data, key, size) for name, key in DEVICE_KEYS.items()},
    )
    bandwidth, latency = (_matrix(data, name, size, size) for name in NETWORK)
    cluster = Cluster(devices, bandwidth, latency, **rest.get("costs", {}))
    seconds = _matrix(data, "seconds", graph.n_operators, size) if "seconds" in data else None
    moving = Moving(**rest["moving"]) if "moving" in rest else None
    return Problem(graph, cluster, Constraints(**rest.get("constraints", {})), seconds, moving)


def _matrix(data: "Data", name: str, rows: int, columns: int) -> Floats:
    numbers = _numbers(data, name, rows * columns)
    if numbers is None:
        raise FormatError(f"{WHERE}: {name} is missing; add {rows} · {columns} numbers")
    return np.reshape(np.array(numbers, np.float64), (rows, columns))

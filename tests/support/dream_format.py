"""Graphs in the published format of the DREAM benchmark, to be read by tests."""

import json
import math
from pathlib import Path
from typing import Any

from streamplace.io.dream import MEGABIT
from streamplace.model.arrays import Floats
from streamplace.model.graph import StreamGraph


def write_dream(graph: StreamGraph, path: Path) -> None:
    """Write one graph in the published format."""
    path.write_text(json.dumps(_document(graph), indent=1, ensure_ascii=False) + "\n")


def _document(graph: StreamGraph) -> dict[str, Any]:
    """Document of a graph, all of whose sources have the same rate."""
    event_rate = float(graph.operators.rate.max())
    weight = graph.input_rate / event_rate
    sources, sinks = set(graph.sources.tolist()), set(graph.sinks.tolist())
    document: dict[str, Any] = {
        "operators": [
            {
                "idx": i,
                "is_source": i in sources,
                "is_sink": i in sinks,
                "name": operator.name,
                "cpu": operator.ipt,
                "payload": operator.payload / MEGABIT,
                "weight": float(weight[i]),
            }
            for i, operator in enumerate(graph.operators)
        ],
        "connections": [_connection(graph, i, weight) for i in range(graph.n_streams)],
        "event_rate": event_rate,
    }
    devices = graph.attributes.get("devices")
    if isinstance(devices, int | float) and devices > 0:
        document["num_vms"] = math.ceil(devices)
    return document


def _connection(graph: StreamGraph, i: int, weight: Floats) -> dict[str, Any]:
    streams = graph.streams
    source, selectivity = int(streams.source[i]), float(streams.selectivity[i])
    return {
        "from_vertex": source,
        "to_vertex": int(streams.target[i]),
        "selectivity": selectivity,
        "weight": float(weight[source]) * selectivity,
    }

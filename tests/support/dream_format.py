"""Graphs in the published format of the DREAM benchmark, to be read by tests."""

import json
from pathlib import Path
from typing import Any

from streamplace.io.dream import MEGABIT
from streamplace.model.graph import StreamGraph


def write_dream(graph: StreamGraph, path: Path) -> None:
    """Write a graph, all of whose sources have the same rate."""
    streams = graph.streams
    document: dict[str, Any] = {
        "operators": [
            {"idx": i, "name": o.name, "cpu": o.ipt, "payload": o.payload / MEGABIT}
            for i, o in enumerate(graph.operators)
        ],
        "connections": [
            {"from_vertex": source, "to_vertex": target, "selectivity": selectivity}
            for source, target, selectivity in zip(
                streams.source.tolist(),
                streams.target.tolist(),
                streams.selectivity.tolist(),
                strict=True,
            )
        ],
        "event_rate": float(graph.operators.rate.max()),
    }
    if "devices" in graph.attributes:
        document["num_vms"] = graph.attributes["devices"]
    path.write_text(json.dumps(document))

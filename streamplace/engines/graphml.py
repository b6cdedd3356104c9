"""GraphML: the graph with its placement as attributes, for networkx, igraph, Gephi and yEd."""

import io
import json
from typing import Any

from streamplace.engines.deployment import Deployment
from streamplace.engines.registry import export
from streamplace.engines.text import unique, xml_text
from streamplace.io.files import located
from streamplace.io.interchange import of_graphml
from streamplace.io.schema import OPERATOR, STREAM
from streamplace.model.columns import NumberRule

CHECK = (
    "Check: `streamplace export FILE --to json --graph GRAPH -o p.json` reads it back, "
    "`streamplace simulate GRAPH p.json` says what it carries."
)
FRACTIONS = {
    key for key, rule in [*OPERATOR.items(), *STREAM.items()] if isinstance(rule, NumberRule)
}
"""Attributes that are floats at all nodes and edges, as GraphML requires one type."""


def read_graphml(content: bytes, where: str) -> dict[str, str]:
    """Operator → device from the attribute ``device`` of the nodes."""
    nodes = of_graphml(content, where).nodes(data=True)
    with located(where):
        rows = ((str(v), facts.get("device")) for v, facts in nodes)
        return unique((name, None if device is None else str(device)) for name, device in rows)


@export("graphml", suffix=".graphml", read=read_graphml)
def as_graphml(deployment: Deployment) -> str:
    """Graph with PE, device and costs as attributes, for networkx, igraph, Gephi and yEd."""
    import networkx as nx

    from streamplace.io.networkx import to_networkx

    graph = to_networkx(deployment.unit_problem.graph)
    graph.graph["about"] = (
        f"{xml_text(deployment.title)}. Use: networkx.read_graphml(FILE), or open it in Gephi or "
        f"yEd and partition by the attribute device. {CHECK}"
    )
    groups = deployment.memberships()
    for element in deployment.elements:
        for name in element.operators:
            colocate, exlocate = groups[name]
            graph.nodes[name].update(
                pe=element.number, device=element.device, colocate=colocate, exlocate=exlocate
            )
    for number, flow in enumerate(deployment.flows):
        graph.edges[flow.source, flow.target, number].update(
            tuples_per_s=flow.tuples, bytes_per_s=flow.traffic, remote=flow.is_remote
        )
    for name, facts in graph.nodes(data=True):
        xml_text(name)
        _scalars(facts)
    for *_, facts in graph.edges(data=True):
        _scalars(facts)
    _scalars(graph.graph)
    out = io.BytesIO()
    nx.write_graphml_xml(graph, out, named_key_ids=True)
    return out.getvalue().decode()


def _scalars(facts: dict[str, Any]) -> None:
    """Turn lists and windows into text, and drop missing values: GraphML has none of these."""
    for key, value in [*facts.items()]:
        if value is None or value != value:
            del facts[key]
        elif isinstance(value, list):
            facts[key] = ";".join(value)
        elif isinstance(value, dict):
            facts[key] = json.dumps(value)
        elif key in FRACTIONS:
            facts[key] = float(value)
        if isinstance(facts.get(key), str):
            xml_text(facts[key])

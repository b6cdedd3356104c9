"""networkx graphs in and out: nodes are operators, edges streams, with the native field names."""

from collections.abc import Mapping
from typing import Any

import networkx as nx
import numpy as np

from streamplace.errors import GraphError
from streamplace.io.graphs import graph_from_dict, graph_to_dict
from streamplace.io.schema import parse_tables
from streamplace.model.graph import StreamGraph


def to_networkx(graph: StreamGraph) -> "nx.MultiDiGraph[str]":
    """Directed multigraph whose node and edge attributes are the fields of the native format.

    The key of an edge is the number of its stream, since networkx groups edges by their source.
    """
    document = graph_to_dict(graph)
    result: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    result.graph.update(graph.attributes, name=graph.name)
    if "fires" in document:
        result.graph["fires"] = document["fires"]
    for operator in document["operators"]:
        result.add_node(operator.pop("name"), **operator)
    for number, stream in enumerate(document["streams"]):
        result.add_edge(stream.pop("from"), stream.pop("to"), key=number, **stream)
    return result


def from_networkx(graph: "nx.DiGraph[Any] | nx.MultiDiGraph[Any]") -> StreamGraph:
    """Stream graph from a directed networkx graph; node names become texts.

    Streams are in the order of the edges' keys where these number all edges, else in networkx's.

    Examples
    --------
    >>> import networkx as nx
    >>> g = nx.DiGraph(name="pipe")
    >>> g.add_node("src", rate=100.0, ipt=10)
    >>> g.add_edge("src", "sink", selectivity=0.5)
    >>> from_networkx(g).input_rate.tolist()
    [100.0, 50.0]
    """
    if not graph.is_directed():
        raise GraphError("a stream graph needs directed edges; pass a DiGraph")
    attributes = _plain(graph.graph)
    document = {
        "name": str(attributes.pop("name", "graph")),
        **({"fires": attributes.pop("fires")} if "fires" in attributes else {}),
        "attributes": attributes,
        "operators": [{**_plain(facts), "name": str(v)} for v, facts in graph.nodes(data=True)],
        "streams": [
            {**_plain(facts), "from": str(u), "to": str(v)} for u, v, facts in _edges(graph)
        ],
    }
    return graph_from_dict(parse_tables("graph", document, "networkx graph"))


def _edges(graph: "nx.DiGraph[Any] | nx.MultiDiGraph[Any]") -> list[tuple[Any, Any, Any]]:
    """Edges with their attributes, by their keys where these number all of them."""
    if not isinstance(graph, nx.MultiDiGraph):
        return list(graph.edges(data=True))
    keyed = list(graph.edges(keys=True, data=True))
    if {key for _, _, key, _ in keyed} == set(range(len(keyed))):
        keyed.sort(key=lambda edge: int(edge[2]))
    return [(u, v, facts) for u, v, _, facts in keyed]


def _plain(facts: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return the facts with numpy's numbers as Python's."""
    return {k: v.item() if isinstance(v, np.generic) else v for k, v in facts.items()}

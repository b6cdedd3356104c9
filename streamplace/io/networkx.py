"""Conversion from and to networkx: nodes are operators, edges streams, with native field names."""

from math import nan
from typing import Any

import networkx as nx

from streamplace.errors import GraphError
from streamplace.io.graphs import graph_from_dict, graph_to_dict
from streamplace.io.interchange import tables_of
from streamplace.io.parsing import parse_tables
from streamplace.io.schema import OPERATOR, STREAM
from streamplace.model.graph import StreamGraph
from streamplace.model.message_text import quoted
from streamplace.model.operators import EACH

RARE: dict[str, Any] = {
    "requires": [],
    "window": None,
    "fires": EACH,
    **{
        key: OPERATOR[key].default
        for key in ("slot_sharing_group", "constant", "max_rate", "cores")
    },
}
"""Attributes that all nodes have if one of them does; GraphML cannot represent all of them."""
NODE = {key: rule.default for key, rule in OPERATOR.items() if key not in RARE}
EDGE = {key: nan if rule.default is None else rule.default for key, rule in STREAM.items()}
"""Attributes of every node and every edge, with their defaults."""
WHERE = "networkx graph"


def to_networkx(graph: StreamGraph) -> "nx.MultiDiGraph[str]":
    """Directed multigraph whose node and edge attributes are the fields of the native format.

    All nodes have the same attributes, and so have all edges, as other libraries require; the
    payload of a stream is NaN if it inherits that of its operator. The key of an edge is the number
    of its stream, since networkx groups edges by their source.

    Examples
    --------
    >>> from streamplace import Operator, Stream
    >>> graph = StreamGraph.of("pipe", [Operator("a", rate=9, kind="source"), Operator("b")],
    ...                        [Stream("a", "b")])
    >>> to_networkx(graph).nodes["b"]["kind"]
    ''
    """
    for key in ("name", "fires"):
        if key in graph.attributes:
            raise GraphError(
                f"the attribute {quoted(key)} of graph {quoted(graph.name)} has the name of a "
                "field of the graph in networkx; rename it"
            )
    document = graph_to_dict(graph)
    result: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    result.graph.update(graph.attributes, name=graph.name)
    if "fires" in document:
        result.graph["fires"] = document["fires"]
    rare = {key for row in document["operators"] for key in row if key in RARE}
    usual = NODE | {key: RARE[key] for key in RARE if key in rare}
    for operator in document["operators"]:
        result.add_node(operator.pop("name"), **usual | operator)
    for number, stream in enumerate(document["streams"]):
        result.add_edge(stream.pop("from"), stream.pop("to"), key=number, **EDGE | stream)
    return result


def from_networkx(graph: "nx.DiGraph[Any] | nx.MultiDiGraph[Any]") -> StreamGraph:
    """Stream graph from a directed networkx graph; node names become strings.

    Streams are sorted by the keys of edges if these are 0, 1, …, else in networkx's order.
    Attributes that are no fields are named in one warning.

    Examples
    --------
    >>> import networkx as nx
    >>> g = nx.DiGraph(name="pipe")
    >>> g.add_node("src", rate=100.0, ipt=10)
    >>> g.add_edge("src", "sink", selectivity=0.5)
    >>> from_networkx(g).input_rate.tolist()
    [100.0, 50.0]
    """
    if not (hasattr(graph, "is_directed") and graph.is_directed()):
        raise GraphError("a stream graph needs directed edges; pass a DiGraph")
    return graph_from_dict(parse_tables("graph", tables_of(graph, WHERE), WHERE))

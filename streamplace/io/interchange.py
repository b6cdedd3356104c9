"""Graphs of other tools through networkx: GraphML, DOT and node-link JSON.

Nodes are operators, edges streams, and their attributes fields of the native format.
"""

import json
import logging
import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import redirect_stdout
from io import StringIO
from itertools import chain, product
from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from streamplace.errors import FormatError, MissingPackageError
from streamplace.io.files import located
from streamplace.io.parsing import decoded, untyped
from streamplace.io.schema import OPERATOR, STREAM, OperatorJson, StreamJson
from streamplace.model.columns import CountRule, NumberRule
from streamplace.model.message_text import listed, quoted, suggestion

if TYPE_CHECKING:
    import networkx as nx

LOG = logging.getLogger(__name__)

MAX_DOT_BYTES = 2**20
_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:(?://|#)[^\n]*\s*|/\*.*?\*/\s*)*", re.DOTALL)
_DOT = re.compile(rb"(?:strict\s+)?(?:di)?graph\b", re.IGNORECASE)
_GML = re.compile(rb"graph\s*\[")
_QUOTED = re.compile(r'"(?:\\.|[^"\\])*"', re.DOTALL)
_NODES = re.compile(rb'"nodes"\s*:')
_DEFAULTS_OF_GRAPHML = ("node_default", "edge_default")
"""Attributes that networkx adds to every graph that it reads from GraphML."""
_NUMBERS = {
    key for rules in (OPERATOR, STREAM) for key, rule in rules.items()
    if isinstance(rule, NumberRule | CountRule)
}  # fmt: skip
_COSTS = ("ipt", "payload", "memory")
"""Fields of operators that must not be NaN; many tables state a rate for sources alone."""
_SYNONYMS = {
    **dict.fromkeys(("cost", "cpu", "work", "instructions", "time", "seconds", "load"), "ipt"),
    **{"bytes": "payload", "size": "payload", "tps": "rate", "mem": "memory", "ram": "memory"},
}
"""Usual names in other tools, and the fields of that meaning."""


def native(content: bytes, where: str) -> bytes:
    """Content of a file as a native document if it is GraphML, DOT or node-link JSON."""
    start = _START.match(content)
    assert start is not None  # it matches everything
    first = content[start.end() : start.end() + 1]
    if first == b"{" and _NODES.search(content):
        graph = _of_node_link(content, where)
    elif first == b"<":
        graph = of_graphml(content, where)
    elif _GML.match(content, start.end()):
        raise FormatError(f"{where}: is GML, which is not read; save it as GraphML")
    elif _DOT.match(content, start.end()):
        graph = _of_dot(content, where)
    else:
        return content
    return content if graph is None else json.dumps(tables_of(graph, where)).encode()


def of_graphml(content: bytes, where: str) -> "nx.MultiDiGraph[Any]":
    """Graph of a GraphML file."""
    import networkx as nx

    text = decoded(content, where)
    try:
        with warnings.catch_warnings(action="ignore"):  # about keys without a type
            graph = nx.parse_graphml(text)
    except (nx.NetworkXException, SyntaxError, ValueError, TypeError, LookupError):
        raise FormatError(f"{where}: is not valid GraphML; export or save it again") from None
    if not graph.is_directed():
        raise _undirected(where)
    return nx.MultiDiGraph(graph)


def _of_node_link(content: bytes, where: str) -> "nx.MultiDiGraph[Any] | None":
    """Graph of a JSON document of nodes and links; None if it is no such document."""
    import networkx as nx

    try:
        document = untyped(content)
    except ValueError:  # the parser of native documents reports the place
        return None
    if not isinstance(document, dict) or not {"nodes"} <= document.keys() - {"operators"}:
        return None
    links = document.get("links", document.get("edges"))  # newer networkx calls them edges
    if not document.get("directed", True):
        raise _undirected(where)
    usual = {"directed": True, "multigraph": True, "graph": {}}
    try:
        with warnings.catch_warnings(action="ignore"):  # about the names of that field
            graph = nx.node_link_graph({**usual, **document, "links": links, "edges": links})
    except (nx.NetworkXException, ValueError, TypeError, LookupError, AttributeError):
        raise FormatError(
            f"{where}: is no node-link document of networkx; save it with node_link_data"
        ) from None
    if len(graph) > len(document["nodes"]):
        end = quoted([*graph][len(document["nodes"])])
        raise FormatError(f"{where}: a link ends at {end}, which is the id of no node; correct it")
    return nx.MultiDiGraph(graph)


def _of_dot(content: bytes, where: str) -> "nx.MultiDiGraph[Any]":
    """Graph of a DOT file, whose operators may be in subgraphs."""
    import networkx as nx

    try:
        import pydot
    except ImportError:
        raise MissingPackageError(
            f"{where}: reading DOT needs pydot; install it with: pip install pydot"
        ) from None
    if len(content) > MAX_DOT_BYTES:
        raise FormatError(f"{where}: is larger than 1 MiB, too large for DOT; save it as GraphML")
    text = decoded(content, where)
    fault = FormatError(f"{where}: is not one valid DOT graph; correct or save it again")
    try:
        with redirect_stdout(StringIO()):  # for the messages of pydot
            graphs = pydot.graph_from_dot_data(text) or []
    except (ValueError, RecursionError):
        raise fault from None
    if len(graphs) != 1:
        raise fault
    (parsed,) = graphs
    if parsed.get_type() != "digraph":
        raise _undirected(where)
    graph: nx.MultiDiGraph[Any] = nx.MultiDiGraph()
    graph.graph["name"] = _unquoted(parsed.get_name() or "")
    for facts in (*parsed.get_graph_defaults(), parsed.get_attributes()):
        if "fires" in facts:  # the other attributes are for drawings
            graph.graph["fires"] = _unquoted(str(facts["fires"]))
    with located(where):
        _add_dot(graph, parsed, {}, {})
    return graph


def _add_dot(
    graph: "nx.MultiDiGraph[Any]", part: Any, of_nodes: dict[str, str], of_edges: dict[str, str]
) -> None:
    """Add the nodes and edges of a graph or subgraph, and of the subgraphs in it, in their order.

    Defaults hold for later edges and later new nodes, also for nodes that only edges name.
    """
    nodes = [node for node in part.get_nodes() if node.get_name() != "graph"]
    items = [*nodes, *part.get_edges(), *part.get_subgraphs()]
    for item in sorted(items, key=lambda item: item.get_sequence()):
        if item.obj_dict["type"] == "subgraph":
            _add_dot(graph, item, of_nodes, of_edges)
            continue
        facts = _unquoted_all(item.get_attributes())
        if item.obj_dict["type"] == "edge":
            ends = _dot_ends(item.get_source()), _dot_ends(item.get_destination())
            graph.add_nodes_from([v for v in chain(*ends) if v not in graph], **of_nodes)
            graph.add_edges_from(product(*ends), **of_edges | facts)
        elif item.get_name() == "node":
            of_nodes = of_nodes | facts
        elif item.get_name() == "edge":
            of_edges = of_edges | facts
        else:
            name = _dot_name(item.get_name())
            graph.add_node(name, **facts if name in graph else of_nodes | facts)


def _dot_ends(end: Any) -> list[str]:
    """Nodes at one end of an edge: one, or those of a subgraph."""
    names = [end] if isinstance(end, str) else end["nodes"]
    return [_dot_name(name) for name in names]


def _dot_name(text: str) -> str:
    """Name of a node without quotes and without its port."""
    quoted_name = _QUOTED.match(text)
    return _unquoted(quoted_name[0]) if quoted_name else text.partition(":")[0]


def _unquoted_all(facts: Mapping[str, Any]) -> dict[str, str]:
    for key, value in facts.items():
        if value is None:  # DOT reads 1e5 as 1 and e5
            raise FormatError(
                f'the attribute {quoted(key)} has no value; put quotes around values such as "1e5"'
            )
    return {key: _unquoted(str(value)) for key, value in facts.items()}


def _unquoted(text: str) -> str:
    return text[1:-1].replace('\\"', '"') if text.startswith('"') and len(text) > 1 else text


def tables_of(graph: "nx.DiGraph[Any]", where: str) -> dict[str, Any]:
    """Tables of a graph file from a directed graph; unknown attributes are named in one warning.

    Streams are sorted by the keys of edges if these are 0, 1, …, else in networkx's order.
    """
    attributes, unread = _stated(graph.graph), list[str]()
    for key in _DEFAULTS_OF_GRAPHML:
        attributes.pop(key, None)
    head = {"name": str(attributes.pop("name", "") or "graph")}
    if "fires" in attributes:
        head["fires"] = attributes.pop("fires")
    kept = {k: v for k, v in attributes.items() if isinstance(v, str | int | float)}
    unread += [f"{quoted(key)} of the graph" for key in attributes.keys() - kept.keys()]
    edges = [(str(u), str(v), facts) for u, v, facts in _edges(graph)]
    operators = {*OperatorJson.__annotations__} - {"name"}
    streams = {*StreamJson.__annotations__} - {"from", "to"}
    unread += _unread((facts for _, facts in graph.nodes(data=True)), operators, "operators")
    unread += _unread((facts for *_, facts in edges), streams, "streams")
    if unread:
        LOG.warning("%s: attributes that are not read: %s", where, ", ".join(unread))
    nodes = graph.nodes(data=True)
    for key in _COSTS:
        holes = [str(v) for v, facts in nodes if key in facts and key not in _stated(facts)]
        if holes:
            raise FormatError(f"{where}: {key} of {listed(holes)} is missing (NaN); give a number")
    return {
        **head,
        "attributes": kept,
        "operators": [{"name": str(v), **_fields(facts, operators)} for v, facts in nodes],
        "streams": [{"from": u, "to": v, **_fields(facts, streams)} for u, v, facts in edges],
    }


def _unread(rows: Iterable[Mapping[Any, Any]], fields: set[str], noun: str) -> Iterator[str]:
    """Attributes that are no fields, each with the field that may be meant."""
    for name in sorted({str(key) for row in rows for key in row} - fields):
        field = _SYNONYMS.get(name.lower(), "")
        meant = suggestion(field if field in fields else name, fields).removeprefix("; ")
        yield f"{quoted(name)} of {noun}" + (f" ({meant})" if meant else "")


def _fields(facts: Mapping[Any, Any], names: Collection[str]) -> dict[str, Any]:
    """Fields of an operator or a stream; numbers and lists may be texts, as in DOT and GraphML."""
    return {k: _value(k, v) for k, v in _stated(facts).items() if k in names}


def _value(key: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if key == "requires":
        return [tag for tag in value.split(";") if tag]
    try:
        if key in _NUMBERS:
            number = float(value)
            return int(number) if number.is_integer() else number
        return json.loads(value) if key == "window" else value
    except (ValueError, OverflowError, RecursionError):  # it may have a unit
        return value


def _edges(graph: "nx.DiGraph[Any]") -> list[tuple[Any, Any, dict[Any, Any]]]:
    """Edges with their attributes, sorted by their keys if these are 0, 1, ….

    GraphML has ids in place of keys; networkx reads them as attributes unless edges are parallel.
    """
    if graph.is_multigraph():
        keyed = [
            (u, v, facts.get("id", key), facts)
            for u, v, key, facts in graph.edges(keys=True, data=True)  # type: ignore[call-overload]
        ]
    else:
        keyed = [(u, v, facts.get("id"), facts) for u, v, facts in graph.edges(data=True)]
    if {str(key) for _, _, key, _ in keyed} == {*map(str, range(len(keyed)))}:
        keyed.sort(key=lambda edge: int(edge[2]))
    return [(u, v, {k: x for k, x in facts.items() if k != "id"}) for u, v, _, facts in keyed]


def _stated(facts: Mapping[Any, Any]) -> dict[Any, Any]:
    """Attributes with Python's numbers, without None and NaN."""
    plain = {k: v.item() if isinstance(v, np.generic) else v for k, v in facts.items()}
    is_nan = {k for k, v in plain.items() if isinstance(v, float) and isnan(v)}
    return {k: v for k, v in plain.items() if v is not None and k not in is_nan}


def _undirected(where: str) -> FormatError:
    return FormatError(f"{where}: a stream graph needs directed edges; save a directed graph")

"""GraphML: the graph with its placement as attributes, for networkx, igraph, Gephi and yEd."""

import io
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from streamplace.engines.deployment import Deployment
from streamplace.engines.registry import export
from streamplace.engines.text import CHECK, decoded, unique, xml_text
from streamplace.errors import FormatError
from streamplace.io.files import located
from streamplace.io.graphs import graph_from_dict
from streamplace.io.parsing import parse_tables
from streamplace.model.graph import StreamGraph

if TYPE_CHECKING:
    import networkx as nx


def read_graphml(content: bytes, where: str) -> dict[str, str]:
    """Operator → device from the attribute ``device`` of the nodes."""
    with located(where):
        rows = ((str(v), facts.get("device")) for v, facts in _parsed(content).nodes(data=True))
        return unique((name, None if device is None else str(device)) for name, device in rows)


def graph_in_graphml(content: bytes, where: str) -> StreamGraph:
    """The graph whose placement was exported: its CPU and traffic, without windows and the like."""
    with located(where):
        graph = _parsed(content)
        operators: dict[str, dict[str, Any]] = {
            str(name): {
                "name": str(name),
                **{key: facts[key] for key in ("ipt", "constant", "kind") if facts.get(key)},
                "requires": [tag for tag in str(facts.get("requires") or "").split(";") if tag],
            }
            for name, facts in graph.nodes(data=True)
        }
        streams, read = [], dict.fromkeys(operators, 0.0)
        flows = [
            (str(u), str(v), _rate(facts, "tuples_per_s"), _rate(facts, "bytes_per_s"))
            for u, v, facts in graph.edges(data=True)
        ]
        for _, target, tuples, _ in flows:
            read[target] += tuples
        for source, target, tuples, traffic in flows:
            if not read[source]:  # a source
                operators[source]["rate"] = read[source] = tuples
            streams.append(
                {
                    "from": source,
                    "to": target,
                    "selectivity": tuples / read[source] if read[source] else 1.0,
                    "payload": traffic / tuples if tuples else 0.0,
                }
            )
        name = str(graph.graph.get("name") or "graph")
        document = {"name": name, "operators": [*operators.values()], "streams": streams}
        return graph_from_dict(parse_tables("graph", document, "graph"))


def _rate(facts: dict[str, Any], key: str) -> float:
    rate = facts.get(key)
    if isinstance(rate, int | float):
        return float(rate)
    raise FormatError(f"a stream has no number {key}; give the graph with --graph")


def _parsed(content: bytes) -> "nx.MultiDiGraph[Any]":
    import networkx as nx

    text = decoded(content)
    try:
        with warnings.catch_warnings(action="ignore"):  # about keys that no placement needs
            return nx.MultiDiGraph(nx.parse_graphml(text))
    except (nx.NetworkXException, SyntaxError, ValueError, TypeError, LookupError):
        raise FormatError("is not valid GraphML; export or save it again") from None


@export("graphml", suffix=".graphml", read=read_graphml)
def as_graphml(deployment: Deployment) -> str:
    """Graph with PE, device and costs as attributes, for networkx, igraph, Gephi and yEd."""
    import networkx as nx

    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    graph.graph["name"] = xml_text(deployment.problem.graph.name)
    graph.graph["about"] = (
        f"{xml_text(deployment.title)}. Use: networkx.read_graphml(FILE), or open it in Gephi or "
        f"yEd and partition by the attribute device. {CHECK}"
    )
    for name, facts in _operators(deployment):
        graph.add_node(xml_text(name), **facts)
    for number, flow in enumerate(deployment.flows):
        facts = {
            "tuples_per_s": flow.tuples,
            "bytes_per_s": flow.traffic,
            "remote": flow.is_remote,
        }
        graph.add_edge(flow.source, flow.target, f"stream{number}", **facts)
    out = io.BytesIO()
    nx.write_graphml_xml(graph, out, named_key_ids=True)
    return out.getvalue().decode()


def _operators(deployment: Deployment) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names and attributes of the operators, device by device."""
    operators, groups = deployment.placed.graph.operators, deployment.memberships()
    for element in deployment.elements:
        for name in element.operators:
            operator = operators[name]
            yield (
                name,
                {
                    "pe": element.number,
                    "device": xml_text(element.device),
                    "kind": xml_text(operator.kind),
                    "ipt": operator.ipt,
                    **({"constant": operator.constant} if operator.constant else {}),
                    "requires": xml_text(";".join(sorted(operator.requires))),
                    "colocate": groups[name][0],
                    "exlocate": groups[name][1],
                },
            )

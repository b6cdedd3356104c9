"""GraphML: the graph with its placement as attributes, for networkx, igraph, Gephi and yEd."""

import io
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from streamplace.engines.deployment import Deployment
from streamplace.engines.registry import export
from streamplace.engines.text import decoded, unique, xml_text
from streamplace.errors import FormatError
from streamplace.io.files import located

if TYPE_CHECKING:
    import networkx as nx

CHECK = (
    "Check: `streamplace export FILE --to json --graph GRAPH -o p.json` reads it back, "
    "`streamplace simulate GRAPH p.json` says what it sustains."
)


def read_graphml(content: bytes, where: str) -> dict[str, str]:
    """Operator → device from the attribute ``device`` of the nodes."""
    with located(where):
        rows = ((str(v), facts.get("device")) for v, facts in _parsed(content).nodes(data=True))
        return unique((name, None if device is None else str(device)) for name, device in rows)


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
                    **({"cores": operator.cores} if operator.cores > 1 else {}),
                    "requires": xml_text(";".join(sorted(operator.requires))),
                    "colocate": groups[name][0],
                    "exlocate": groups[name][1],
                },
            )

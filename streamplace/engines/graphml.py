"""GraphML: the graph with its placement as attributes, for networkx, igraph, Gephi and yEd."""

import io
import re
import warnings
from collections.abc import Iterator
from typing import Any

from streamplace.engines.deployment import Deployment
from streamplace.engines.registry import export
from streamplace.engines.text import CHECK, decoded, unique
from streamplace.errors import FormatError
from streamplace.io.files import located
from streamplace.model.messages import quoted

NOT_XML = re.compile("[^\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def read_graphml(content: bytes, where: str) -> dict[str, str]:
    """Operator → device from the attribute ``device`` of the nodes."""
    import networkx as nx

    with located(where):
        try:
            with warnings.catch_warnings(action="ignore"):  # of keys that no placement needs
                graph = nx.parse_graphml(decoded(content))
        except (nx.NetworkXException, SyntaxError, ValueError, TypeError, LookupError):
            raise FormatError("is not valid GraphML; export or save it again") from None
        found = ((str(name), facts.get("device")) for name, facts in graph.nodes(data=True))
        return unique((name, None if device is None else str(device)) for name, device in found)


@export("graphml", suffix=".graphml", read=read_graphml)
def as_graphml(deployment: Deployment) -> str:
    """Graph with PE, device and costs as attributes, for networkx, igraph, Gephi and yEd."""
    import networkx as nx

    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    graph.graph["name"] = _xml(deployment.problem.graph.name)
    graph.graph["about"] = (
        f"{_xml(deployment.title)}. Use: networkx.read_graphml(FILE), or open it in Gephi or yEd "
        f"and partition by the attribute device. {CHECK}"
    )
    for name, facts in _operators(deployment):
        graph.add_node(_xml(name), **facts)
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
                    "device": _xml(element.device),
                    "kind": _xml(operator.kind),
                    "ipt": operator.ipt,
                    "requires": _xml(";".join(sorted(operator.requires))),
                    "colocate": groups[name][0],
                    "exlocate": groups[name][1],
                },
            )


def _xml(text: str) -> str:
    """Return the text unless it holds what no XML file can."""
    if bad := NOT_XML.search(text):
        raise FormatError(
            f"{quoted(text)} holds {bad[0]!r}, which GraphML cannot; rename it or export to json"
        )
    return text

"""DOT: the graph as Graphviz draws it, a box around each processing element."""

import urllib.parse
from collections.abc import Iterable, Iterator

from streamplace.engines.deployment import Deployment, Element, Flow
from streamplace.engines.dot_text import Node, nodes
from streamplace.engines.registry import export
from streamplace.engines.text import CHECK, comment, decoded, dot_label, listed, quoted_dot, unique
from streamplace.io.files import located
from streamplace.model.messages import shown
from streamplace.model.units import format_bandwidth


def read_dot(content: bytes, where: str) -> dict[str, str]:
    """Operator → device from nodes with a ``device``, also after `dot` has laid them out."""
    with located(where):
        return unique(_placed(nodes(decoded(content))))


@export("dot", suffix=".dot", read=read_dot)
def as_dot(deployment: Deployment) -> str:
    """Graphviz drawing: a box per device with its operators, streams with their rates."""
    notes = comment(
        [
            f"{deployment.title}.",
            "Use: dot -Tsvg FILE -o placement.svg",
            CHECK,
            *(f"Must share a device: {listed(group)}" for group in deployment.colocated),
            *(f"Must not share one: {listed(group)}" for group in deployment.exlocated),
        ],
        "//",
    )
    name = quoted_dot(deployment.placed.graph.name)
    boxes = "".join(map(_box, deployment.elements))
    streams = "".join(map(_stream, deployment.flows))
    return (
        f"{notes}digraph {name} {{\n"
        "  rankdir=LR;\n  node [shape=box, style=rounded];\n"
        f"{boxes}{streams}}}\n"
    )


def _box(element: Element) -> str:
    tags = f" ({shown(', '.join(element.tags))})" if element.tags else ""
    nodes = "".join(
        f"    {quoted_dot(name)} [label={dot_label(name)}, device={quoted_dot(element.device)}, "
        f"pe={element.number}];\n"
        for name in element.operators
    )
    title = dot_label(f"PE {element.number} on {element.device}{tags}")
    return f'  subgraph "cluster_{element.number}" {{\n    label={title};\n{nodes}  }}\n'


def _stream(flow: Flow) -> str:
    """Stream with its tuples/s and bytes/s at the sources' full rate, dashed inside a device."""
    style = "" if flow.is_remote else ", style=dashed"
    label = f"{flow.tuples:.4g}/s, {format_bandwidth(8 * flow.traffic)}"
    return f'  {quoted_dot(flow.source)} -> {quoted_dot(flow.target)} [label="{label}"{style}];\n'


def _placed(found: Iterable[Node]) -> Iterator[tuple[str, str]]:
    """Operator and device of every node that has one."""
    for name, attributes in found:
        if "device" in attributes:
            yield urllib.parse.unquote(name), urllib.parse.unquote(attributes["device"])

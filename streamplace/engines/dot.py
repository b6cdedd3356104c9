"""DOT: the graph as Graphviz draws it, a box around each processing element."""

import urllib.parse
from collections.abc import Iterable, Iterator

from streamplace.engines.deployment import Deployment, Element, Flow
from streamplace.engines.dot_text import Node, nodes
from streamplace.engines.registry import export
from streamplace.engines.text import CHECK, comment, decoded, listed, unique
from streamplace.io.files import located
from streamplace.model.messages import shown
from streamplace.model.units import format_bandwidth

PLAIN = "".join(chr(c) for c in range(32, 127) if chr(c) not in '%"\\')


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
    name = _id(deployment.placed.graph.name)
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
        f"    {_id(name)} [label={_label(name)}, device={_id(element.device)}, "
        f"pe={element.number}];\n"
        for name in element.operators
    )
    title = _label(f"PE {element.number} on {element.device}{tags}")
    return f'  subgraph "cluster_{element.number}" {{\n    label={title};\n{nodes}  }}\n'


def _stream(flow: Flow) -> str:
    """Stream with its tuples/s and bytes/s at the sources' full rate, dashed inside a device."""
    style = "" if flow.is_remote else ", style=dashed"
    label = f"{flow.tuples:.4g}/s, {format_bandwidth(8 * flow.traffic)}"
    return f'  {_id(flow.source)} -> {_id(flow.target)} [label="{label}"{style}];\n'


def _id(text: str) -> str:
    r"""Quoted ID; what DOT cannot hold or readers disagree on is percent-encoded.

    >>> print(_id("join"), _id("größe"), _id('a "b" 5%\n'))
    "join" "größe" "a %22b%22 5%25%0A"
    """
    safe = (
        c if c in PLAIN or (c.isprintable() and ord(c) > 126) else urllib.parse.quote(c, safe="")
        for c in text
    )
    return f'"{"".join(safe)}"'


def _label(text: str) -> str:
    r"""Quoted label, in which a backslash would be an escape.

    >>> print(_label("join"), _label('a "b" \\N'))
    "join" "a \"b\" \\N"
    """
    return '"' + shown(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _placed(found: Iterable[Node]) -> Iterator[tuple[str, str]]:
    """Operator and device of every node that has one."""
    for name, attributes in found:
        if "device" in attributes:
            yield urllib.parse.unquote(name), urllib.parse.unquote(attributes["device"])

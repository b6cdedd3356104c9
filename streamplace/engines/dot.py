"""DOT: the graph as Graphviz draws it, a box around each processing element."""

import contextlib
import io
import urllib.parse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from streamplace.engines.deployment import Deployment, Element, Flow
from streamplace.engines.registry import export
from streamplace.engines.text import CHECK, comment, decoded, dot_label, listed, quoted_dot, unique
from streamplace.errors import FormatError
from streamplace.io.files import located
from streamplace.model.messages import shown
from streamplace.model.units import format_bandwidth

if TYPE_CHECKING:
    import pydot


def read_dot(content: bytes, where: str) -> dict[str, str]:
    """Operator → device from nodes with a ``device``, also after `dot` has laid them out."""
    try:
        import pydot
    except ImportError:
        raise FormatError(f"{where}: reading DOT needs pydot; run pip install pydot") from None
    with located(where):
        text = decoded(content)
        with contextlib.redirect_stdout(io.StringIO()):  # pydot prints what it cannot parse
            graphs = pydot.graph_from_dot_data(text)
        if not graphs:
            raise FormatError("is not valid DOT; write it again with streamplace export --to dot")
        return unique(_placed(graphs[0]))


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


def _placed(graph: "pydot.Graph") -> Iterator[tuple[str | None, str | None]]:
    """Operator and device of every node that has one, inside boxes too."""
    for node in graph.get_nodes():
        device = node.get_attributes().get("device")
        if device is not None:
            yield _plain(node.get_name()), _plain(device)
    for box in graph.get_subgraphs():
        yield from _placed(box)


def _plain(text: Any) -> str:
    return urllib.parse.unquote(str(text).removeprefix('"').removesuffix('"'))

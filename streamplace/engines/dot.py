"""DOT: a drawing by Graphviz with a box around each processing element."""

from collections.abc import Callable

from streamplace.engines.deployment import DeployedFlow, Deployment, Element
from streamplace.engines.registry import export
from streamplace.engines.text import comment, dot_label, group_notes, quoted_dot
from streamplace.model.message_text import shown
from streamplace.model.units import format_bandwidth, format_bytes

GOLDEN = 0.618034
"""Difference of hue between consecutive devices, by which neighbours differ visibly."""


@export("dot", suffix=".dot")
def as_dot(deployment: Deployment) -> str:
    """Graphviz drawing: a box and a colour per device, streams with their rates or bytes."""
    notes = comment(
        [
            f"{deployment.title}.",
            "Use: dot -Tsvg FILE -o placement.svg",
            "Check: `streamplace simulate GRAPH PLACEMENT` says what the placement carries.",
            *group_notes(deployment),
        ],
        "//",
    )
    name = quoted_dot(deployment.unit_problem.graph.name)
    boxes = "".join(map(_box, deployment.elements))
    tasks = bool(deployment.unit_problem.graph.operators.fires_all.all())
    label = _bytes if tasks else _rates
    streams = "".join(_stream(flow, label) for flow in deployment.flows)
    return (
        f"{notes}digraph {name} {{\n"
        '  rankdir=LR;\n  node [shape=box, style="rounded,filled"];\n'
        f"{boxes}{streams}}}\n"
    )


def _box(element: Element) -> str:
    tags = f" ({shown(', '.join(element.tags))})" if element.tags else ""
    boxes = "".join(
        f"    {quoted_dot(name)} [label={dot_label(name)}, device={quoted_dot(element.device)}, "
        f"pe={element.number}];\n"
        for name in element.operators
    )
    title = dot_label(f"PE {element.number} on {element.device}{tags}")
    colour = f'    node [fillcolor="{element.number * GOLDEN % 1:.3f} 0.250 1.000"];\n'
    return f'  subgraph "cluster_{element.number}" {{\n    label={title};\n{colour}{boxes}  }}\n'


def _stream(flow: DeployedFlow, label: Callable[[DeployedFlow], str]) -> str:
    """Edge of a stream between two operators, dashed if it crosses the network."""
    style = ", style=dashed" if flow.is_remote else ""
    ends = f"{quoted_dot(flow.source)} -> {quoted_dot(flow.target)}"
    return f'  {ends} [label="{label(flow)}"{style}];\n'


def _rates(flow: DeployedFlow) -> str:
    """Tuples/s and bits/s at the sources' full rate."""
    tuples = float(f"{flow.tuples:.4g}")
    return f"{tuples:,.15g}/s, {format_bandwidth(8 * flow.traffic)}"


def _bytes(flow: DeployedFlow) -> str:
    """Bytes that one task sends to another."""
    return format_bytes(flow.traffic / flow.tuples) if flow.tuples else format_bytes(0)

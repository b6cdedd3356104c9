"""JSON: the native placement, with its processing elements listed explicitly."""

from typing import Any

from streamplace.engines.deployment import Deployment
from streamplace.engines.registry import export
from streamplace.io.files import json_text
from streamplace.io.placements import order_facts, parse_named_placement


@export("json", suffix=".json", read=parse_named_placement, keeps_order=True)
def as_json(deployment: Deployment) -> str:
    """Native placement with processing elements and groups, for programs and streamplace itself."""
    document: dict[str, Any] = {
        "about": [
            f"{deployment.title}.",
            "Use: every command that takes a placement takes this file.",
            "Check: `streamplace simulate GRAPH FILE` says what it carries.",
        ],
        "graph": deployment.problem.graph.name,
        "pes": [
            {
                "pe": element.number,
                "device": element.device,
                "requires": element.tags,
                "operators": element.operators,
            }
            for element in deployment.elements
        ],
        "colocate": deployment.colocated,
        "exlocate": deployment.exlocated,
        "parallelism": deployment.problem.graph.operators.parallel,
        "assignment": deployment.placement.as_dict(),
        **order_facts(deployment.placement),
    }
    return json_text(document)

"""The verbs: in Python by the names that they have on the command line."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamplace.api.comparing import compare
    from streamplace.api.data_sets import describe, generate, import_graphs
    from streamplace.api.drawing import draw
    from streamplace.api.exporting import export
    from streamplace.api.placing import place, simulate, simulate_queues
    from streamplace.api.planning import plan
    from streamplace.api.training import train

_HOME = {
    "compare": "comparing",
    "describe": "data_sets",
    "draw": "drawing",
    "export": "exporting",
    "generate": "data_sets",
    "import_graphs": "data_sets",
    "place": "placing",
    "plan": "planning",
    "simulate": "placing",
    "simulate_queues": "placing",
    "train": "training",
}

__all__ = [
    "compare",
    "describe",
    "draw",
    "export",
    "generate",
    "import_graphs",
    "place",
    "plan",
    "simulate",
    "simulate_queues",
    "train",
]


def __getattr__(name: str) -> Any:
    """Load a verb where it is first used: to place needs nothing of what trains."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)

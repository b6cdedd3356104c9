"""Functions for Python users, with the names of the commands."""

from typing import TYPE_CHECKING

from streamsim.lazy import loader

if TYPE_CHECKING:
    from streamplace.api.comparing import compare
    from streamplace.api.data_sets import describe, generate, import_graphs
    from streamplace.api.drawing import draw
    from streamplace.api.exporting import export
    from streamplace.api.graphs import expand, to_networkx, to_torch_geometric, what_if
    from streamplace.api.placing import place, simulate, simulate_queues
    from streamplace.api.planning import plan, plan_frontier, plan_schedule
    from streamplace.api.training import train

_MODULES = {
    "comparing": "compare",
    "data_sets": "describe generate import_graphs",
    "drawing": "draw",
    "exporting": "export",
    "graphs": "expand to_networkx to_torch_geometric what_if",
    "placing": "place simulate simulate_queues",
    "planning": "plan plan_frontier plan_schedule",
    "training": "train",
}

__all__ = [
    "compare",
    "describe",
    "draw",
    "expand",
    "export",
    "generate",
    "import_graphs",
    "place",
    "plan",
    "plan_frontier",
    "plan_schedule",
    "simulate",
    "simulate_queues",
    "to_networkx",
    "to_torch_geometric",
    "train",
    "what_if",
]

__getattr__ = loader(__name__, _MODULES)  # placing needs nothing of training

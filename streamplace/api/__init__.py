"""Functions for Python users, with the names of the commands."""

from typing import TYPE_CHECKING

from streamsim.lazy import loader

if TYPE_CHECKING:
    from streamplace.api.comparing import compare
    from streamplace.api.data_sets import describe, generate, import_graphs
    from streamplace.api.drawing import draw
    from streamplace.api.exporting import export
    from streamplace.api.placing import place, simulate, simulate_queues
    from streamplace.api.planning import (
        plan,
        plan_frontier,
        plan_robustness,
        plan_schedule,
    )
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
    "plan_frontier": "planning",
    "plan_robustness": "planning",
    "plan_schedule": "planning",
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
    "plan_frontier",
    "plan_robustness",
    "plan_schedule",
    "simulate",
    "simulate_queues",
    "train",
]

__getattr__ = loader(__name__, _HOME)  # placing needs nothing of training

"""The verbs: in Python by the names that they have on the command line."""

from streamplace.api.comparing import compare
from streamplace.api.data_sets import describe, generate, import_graphs
from streamplace.api.drawing import draw
from streamplace.api.exporting import export
from streamplace.api.placing import place, simulate, simulate_queues
from streamplace.api.planning import plan
from streamplace.api.training import train

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

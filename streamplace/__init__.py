"""streamplace decides where every operator of a stream-processing graph runs."""

import importlib

__version__ = "0.1.0"

TYPE_CHECKING = False  # importing typing would take a fifth of the time until Ctrl-C is handled
if TYPE_CHECKING:
    from typing import Any

    from streamplace.api import (
        compare,
        describe,
        draw,
        expand,
        export,
        generate,
        import_graphs,
        place,
        plan,
        plan_frontier,
        plan_schedule,
        simulate,
        simulate_queues,
        to_networkx,
        to_torch_geometric,
        train,
        what_if,
    )
    from streamplace.errors import StreamplaceError
    from streamplace.evaluate.comparison import Comparison
    from streamplace.io.clusters import read_cluster, write_cluster
    from streamplace.io.constraints import read_constraints, write_constraints
    from streamplace.io.datasets import DataSet
    from streamplace.io.graphs import read_graph, read_graphs, write_graph, write_graphs
    from streamplace.io.networkx import from_networkx
    from streamplace.io.placements import read_placement, read_placements, write_placement
    from streamplace.io.problems import read_problem, read_problems, write_problem, write_problems
    from streamplace.io.torch_geometric import from_torch_geometric
    from streamplace.learn.placement_dataset import PlacementDataset
    from streamplace.model.cluster import Cluster
    from streamplace.model.constraints import Constraints
    from streamplace.model.devices import Device
    from streamplace.model.graph import StreamGraph
    from streamplace.model.operators import Operator, Window
    from streamplace.model.placement import Placement
    from streamplace.model.problem import Problem
    from streamplace.model.relocation import Relocation
    from streamplace.model.streams import Stream
    from streamplace.objectives.explanation import Explanation
    from streamplace.objectives.registry import Objective
    from streamplace.placers.registry import Budget
    from streamplace.placers.result import Result
    from streamplace.planning.offers import Offer

_MODULES = {
    "streamplace.api": "compare describe draw expand export generate import_graphs place plan "
    "plan_frontier plan_schedule simulate simulate_queues to_networkx to_torch_geometric train "
    "what_if",
    "streamplace.errors": "StreamplaceError",
    "streamplace.evaluate.comparison": "Comparison",
    "streamplace.io.clusters": "read_cluster write_cluster",
    "streamplace.io.constraints": "read_constraints write_constraints",
    "streamplace.io.datasets": "DataSet",
    "streamplace.io.graphs": "read_graph read_graphs write_graph write_graphs",
    "streamplace.io.networkx": "from_networkx",
    "streamplace.io.placements": "read_placement read_placements write_placement",
    "streamplace.io.problems": "read_problem read_problems write_problem write_problems",
    "streamplace.io.torch_geometric": "from_torch_geometric",
    "streamplace.learn.placement_dataset": "PlacementDataset",
    "streamplace.model.cluster": "Cluster",
    "streamplace.model.constraints": "Constraints",
    "streamplace.model.devices": "Device",
    "streamplace.model.graph": "StreamGraph",
    "streamplace.model.operators": "Operator Window",
    "streamplace.model.placement": "Placement",
    "streamplace.model.problem": "Problem",
    "streamplace.model.relocation": "Relocation",
    "streamplace.model.streams": "Stream",
    "streamplace.objectives.explanation": "Explanation",
    "streamplace.objectives.registry": "Objective",
    "streamplace.placers.registry": "Budget",
    "streamplace.placers.result": "Result",
    "streamplace.planning.offers": "Offer",
}
_HOME = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = [
    "Budget",
    "Cluster",
    "Comparison",
    "Constraints",
    "DataSet",
    "Device",
    "Explanation",
    "Objective",
    "Offer",
    "Operator",
    "Placement",
    "PlacementDataset",
    "Problem",
    "Relocation",
    "Result",
    "Stream",
    "StreamGraph",
    "StreamplaceError",
    "Window",
    "compare",
    "describe",
    "draw",
    "expand",
    "export",
    "from_networkx",
    "from_torch_geometric",
    "generate",
    "import_graphs",
    "place",
    "plan",
    "plan_frontier",
    "plan_schedule",
    "read_cluster",
    "read_constraints",
    "read_graph",
    "read_graphs",
    "read_placement",
    "read_placements",
    "read_problem",
    "read_problems",
    "simulate",
    "simulate_queues",
    "to_networkx",
    "to_torch_geometric",
    "train",
    "what_if",
    "write_cluster",
    "write_constraints",
    "write_graph",
    "write_graphs",
    "write_placement",
    "write_problem",
    "write_problems",
    "__version__",
]


def __getattr__(name: str) -> "Any":
    """Load a public name at its first use, so that importing streamplace stays instant."""
    if name not in _HOME:
        raise AttributeError(f"module 'streamplace' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)

"""GiPH with fixed weights: on a problem, and from a weights file; needs no torch."""

from dataclasses import dataclass
from pathlib import Path

from streamplace.learn.loading import check_shapes, loaded, read_model
from streamplace.learn.walker import STEPS_PER_OPERATOR, Walked, Walker
from streamplace.model.arrays import Floats, Ints
from streamplace.model.problem import Problem
from streamplace.papers.giph.features import EDGE_FEATURES, NODE_FEATURES
from streamplace.papers.giph.network import GiphNetwork, network_of, shapes
from streamplace.papers.giph.options import GiphConfig
from streamplace.papers.giph.walk import WalkState, begin, go, new_record
from streamplace.papers.walks.graph import NodeGraph, node_graph_of

FEATURES = [
    *(f"node {name}" for name in NODE_FEATURES),
    *(f"edge {name}" for name in EDGE_FEATURES),
]
"""Features of GiPH; weights only fit those that they were trained on."""


@dataclass(slots=True)
class GiphWalker(Walker):
    """GiPH on one problem."""

    network: GiphNetwork
    graph: NodeGraph
    potential: bool
    walk: WalkState | None = None

    @property
    def length(self) -> int:
        """Steps of a whole walk, two per task."""
        return STEPS_PER_OPERATOR * self.graph.n_tasks

    def begin(self, place: Ints) -> None:
        """Start a walk at a placement."""
        self.walk = begin(self.graph, place, self.network.features)

    def walked(self, uniform: Floats, *, recorded: int) -> Walked:
        """Move one task for every number."""
        assert self.walk is not None
        record = new_record(self.graph, recorded, self.network.features)
        places = go(self.graph, self.network, self.potential, self.walk, uniform, record)
        return Walked(places, record)


@dataclass(frozen=True, slots=True)
class GiphImprover:
    """GiPH with fixed weights."""

    network: GiphNetwork
    config: GiphConfig

    def on(self, problem: Problem) -> GiphWalker:
        """Return the policy on one problem."""
        config = self.config
        graph = node_graph_of(problem, pairs=config.pairs)
        return GiphWalker(self.network, graph, config.potential)


@loaded
def trained(path: Path, model: str) -> GiphImprover:
    """GiPH, or a variant, from a weights file."""
    weights, config, where = read_model(path, model, GiphConfig, FEATURES)
    check_shapes(weights.tensors, shapes(config.form, config.edges), where)
    return GiphImprover(network_of(weights.tensors, config.form, config.steps), config)

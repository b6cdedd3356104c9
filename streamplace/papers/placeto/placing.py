"""Placeto with fixed weights: on a problem, and from a weights file; needs no torch."""

from dataclasses import dataclass
from pathlib import Path

from streamplace.learn.config import check_devices
from streamplace.learn.loading import check_shapes, loaded, read_model
from streamplace.learn.walker import Walked, Walker
from streamplace.model.arrays import Floats, Ints
from streamplace.model.problem import Problem
from streamplace.papers.placeto.network import PlacetoNetwork, network_of, shapes
from streamplace.papers.placeto.options import PlacetoConfig
from streamplace.papers.placeto.walk import (
    N_OPERATOR,
    OPERATOR_FEATURES,
    Tour,
    Visit,
    begin,
    go,
    new_record,
    tour_of,
)

FEATURES = [*OPERATOR_FEATURES, "device"]
"""Features of Placeto; weights only fit those that they were trained on."""


@dataclass(slots=True)
class PlacetoWalker(Walker):
    """Placeto on one problem."""

    network: PlacetoNetwork
    tour: Tour
    devices: int
    visit: Visit | None = None

    @property
    def length(self) -> int:
        """Steps of a whole walk, one per operator."""
        return self.tour.graph.n_tasks

    def begin(self, place: Ints) -> None:
        """Start a walk at a placement."""
        self.visit = begin(self.tour, place, self.devices)

    def walked(self, uniform: Floats, *, recorded: int) -> Walked:
        """Visit one operator for every number."""
        assert self.visit is not None
        record = new_record(self.tour, recorded, self.devices)
        return Walked(go(self.tour, self.network, self.visit, uniform, record), record)


@dataclass(frozen=True, slots=True)
class PlacetoImprover:
    """Placeto with fixed weights."""

    network: PlacetoNetwork
    config: PlacetoConfig

    def on(self, problem: Problem) -> PlacetoWalker:
        """Return the policy on one problem."""
        most = self.config.devices
        check_devices(problem, most)
        return PlacetoWalker(self.network, tour_of(problem, self.config.order), most)


@loaded
def trained(path: Path) -> PlacetoImprover:
    """Placeto from a weights file."""
    weights, config, where = read_model(path, "placeto", PlacetoConfig, FEATURES)
    check_shapes(weights.tensors, shapes(N_OPERATOR + config.devices, config.devices), where)
    return PlacetoImprover(network_of(weights.tensors), config)

"""Placeto with weights as they are: on a problem, and from a weights file; needs no torch."""

from dataclasses import dataclass
from pathlib import Path

from streamplace.errors import SettingError
from streamplace.learn.improving.policy import Walked
from streamplace.learn.loading import check_shapes, loaded, read_model
from streamplace.learn.models.placeto.network import PlacetoNetwork, network_of, shapes
from streamplace.learn.models.placeto.options import PlacetoConfig
from streamplace.learn.models.placeto.walk import (
    N_OPERATOR,
    OPERATOR_FEATURES,
    Tour,
    Visit,
    begin,
    go,
    new_record,
    tour_of,
)
from streamplace.model.arrays import Floats, Ints
from streamplace.model.problem import Problem

FEATURES = [*OPERATOR_FEATURES, "device"]
"""What Placeto looks at; weights fit only the features that they were trained on."""


@dataclass(slots=True)
class PlacetoWalker:
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
        """Stand at a placement."""
        self.visit = begin(self.tour, place, self.devices)

    def go(self, uniform: Floats) -> Ints:
        """Make so many visits; below 0 stands for the likeliest choice."""
        return self._go(uniform, recorded=0).places

    def recorded(self, place: Ints, uniform: Floats) -> Walked:
        """Walk from a placement and record what was seen."""
        self.begin(place)
        return self._go(uniform, recorded=len(uniform))

    def _go(self, uniform: Floats, recorded: int) -> Walked:
        assert self.visit is not None
        record = new_record(self.tour, recorded, self.devices)
        return Walked(go(self.tour, self.network, self.visit, uniform, record), record)


@dataclass(frozen=True, slots=True)
class PlacetoImprover:
    """Placeto with weights as they are."""

    network: PlacetoNetwork
    config: PlacetoConfig

    def on(self, problem: Problem) -> PlacetoWalker:
        """Return the policy on one problem."""
        most = self.config.devices
        if problem.n_devices > most:
            raise SettingError(
                f"the cluster has {problem.n_devices} devices, but the model supports at most "
                f"{most}; train one with devices = {problem.n_devices}, or use giph, which "
                "supports any number"
            )
        return PlacetoWalker(self.network, tour_of(problem, self.config.order), most)


def trained(path: Path) -> PlacetoImprover:
    """Placeto from a weights file."""
    return loaded(path, _read)


def _read(path: Path) -> PlacetoImprover:
    weights, config, where = read_model(path, "placeto", PlacetoConfig, FEATURES)
    check_shapes(weights.tensors, shapes(N_OPERATOR + config.devices, config.devices), where)
    return PlacetoImprover(network_of(weights.tensors), config)

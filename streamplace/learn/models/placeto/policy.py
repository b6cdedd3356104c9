"""Placeto as a policy that improves placements: with weights, and on a problem."""

from dataclasses import dataclass

from streamplace.errors import SettingError
from streamplace.learn.improving.policy import Walked
from streamplace.learn.models.placeto.network import Network
from streamplace.learn.models.placeto.options import PlacetoConfig
from streamplace.learn.models.placeto.walk import (
    OPERATOR_FEATURES,
    Tour,
    Visit,
    begin,
    go,
    new_trail,
    tour_of,
)
from streamplace.model.arrays import Floats, Ints
from streamplace.model.problem import Problem

FEATURES = [*OPERATOR_FEATURES, "device"]
"""What Placeto looks at; weights fit only the features that they were trained on."""


@dataclass(slots=True)
class PlacetoWalker:
    """Placeto on one problem."""

    network: Network
    tour: Tour
    devices: int
    visit: Visit | None = None

    @property
    def length(self) -> int:
        """Steps of a whole walk, one per operator."""
        return self.tour.tasks.n_tasks

    def begin(self, place: Ints) -> None:
        """Stand at a placement."""
        self.visit = begin(self.tour, place, self.devices)

    def go(self, uniform: Floats) -> Ints:
        """Make so many visits; below 0 stands for the likeliest choice."""
        return self._go(uniform, kept=0).places

    def seen(self, place: Ints, uniform: Floats) -> Walked:
        """Walk from a placement and keep what was seen."""
        self.begin(place)
        return self._go(uniform, kept=len(uniform))

    def _go(self, uniform: Floats, kept: int) -> Walked:
        assert self.visit is not None
        trail = new_trail(self.tour, kept, self.devices)
        return Walked(go(self.tour, self.network, self.visit, uniform, trail), trail)


@dataclass(frozen=True, slots=True)
class PlacetoImprover:
    """Placeto with weights as they are."""

    network: Network
    config: PlacetoConfig

    def on(self, problem: Problem) -> PlacetoWalker:
        """Return the policy on one problem."""
        known = self.config.devices
        if problem.n_devices > known:
            raise SettingError(
                f"the cluster has {problem.n_devices} devices, but the model knows {known}; train "
                f"one with devices = {problem.n_devices}, or take giph, to which any number will do"
            )
        return PlacetoWalker(self.network, tour_of(problem, self.config.order), known)

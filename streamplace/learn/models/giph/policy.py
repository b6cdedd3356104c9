"""GiPH as a policy that improves placements: with weights, on a problem, and to be trained."""

from dataclasses import dataclass

from streamplace.learn.improving.policy import STEPS_PER_OPERATOR, Walked
from streamplace.learn.models.giph.measures import EDGE_FEATURES, NODE_FEATURES
from streamplace.learn.models.giph.network import Network
from streamplace.learn.models.giph.options import GiphConfig
from streamplace.learn.models.giph.view import View, view_of
from streamplace.learn.models.giph.walk import Walk, begin, go, new_trail
from streamplace.model.arrays import Floats, Ints
from streamplace.model.problem import Problem

FEATURES = [
    *(f"node {name}" for name in NODE_FEATURES),
    *(f"edge {name}" for name in EDGE_FEATURES),
]
"""What GiPH looks at; weights fit only the features that they were trained on."""


@dataclass(slots=True)
class GiphWalker:
    """GiPH on one problem."""

    network: Network
    view: View
    potential: bool
    walk: Walk | None = None

    @property
    def length(self) -> int:
        """Steps of a whole walk, two per task."""
        return STEPS_PER_OPERATOR * self.view.n_tasks

    def begin(self, place: Ints) -> None:
        """Stand at a placement."""
        self.walk = begin(self.view, place, self.network.features)

    def go(self, uniform: Floats) -> Ints:
        """Take so many steps; below 0 stands for the likeliest choice."""
        return self._go(uniform, kept=0).places

    def seen(self, place: Ints, uniform: Floats) -> Walked:
        """Walk from a placement and keep what was seen."""
        self.begin(place)
        return self._go(uniform, kept=len(uniform))

    def _go(self, uniform: Floats, kept: int) -> Walked:
        assert self.walk is not None
        trail = new_trail(self.view, kept, self.network.features)
        places = go(self.view, self.network, self.potential, self.walk, uniform, trail)
        return Walked(places, trail)


@dataclass(frozen=True, slots=True)
class GiphImprover:
    """GiPH with weights as they are."""

    network: Network
    config: GiphConfig

    def on(self, problem: Problem) -> GiphWalker:
        """Return the policy on one problem."""
        config = self.config
        return GiphWalker(self.network, view_of(problem, pairs=config.pairs), config.potential)

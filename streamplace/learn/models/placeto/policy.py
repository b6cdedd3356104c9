"""Placeto to be trained: what was seen on tours, through torch."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from streamplace.learn.improving.policy import Walked
from streamplace.learn.models.placeto.module import PlacetoModule, Visits
from streamplace.learn.models.placeto.network import network_of
from streamplace.learn.models.placeto.options import PlacetoConfig
from streamplace.learn.models.placeto.placing import FEATURES, PlacetoImprover, PlacetoWalker
from streamplace.learn.parameters import arrays_of


class PlacetoPolicy:
    """Placeto with parameters; see `streamplace.learn.improving.policy.ImprovingPolicy`."""

    def __init__(self, config: PlacetoConfig) -> None:
        self._config = config
        self.module = PlacetoModule(config.devices)

    def improver(self) -> PlacetoImprover:
        """Return the policy with its parameters as they are now."""
        return PlacetoImprover(network_of(arrays_of(self.module)), self._config)

    def choices(self, walked: Sequence[tuple[PlacetoWalker, Walked]]) -> tuple[Tensor, Tensor]:
        """Log-probability and entropy [P] of all choices."""
        device = next(self.module.parameters()).device
        visits = Visits.of([(walker.tour, walk.record) for walker, walk in walked], str(device))
        log_p = self.module(visits)
        surprise = -log_p.exp() * log_p.masked_fill(~visits.open, 0.0)
        return log_p.gather(1, visits.chosen[:, None])[:, 0], surprise.sum(1)

    def features(self) -> dict[str, Any]:
        """Names of what it looks at."""
        return {"names": FEATURES}

"""GiPH to be trained: what was seen on walks, through torch."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from streamplace.learn.improving.policy import Walked
from streamplace.learn.models.giph.module import GiphModule
from streamplace.learn.models.giph.network import network_of
from streamplace.learn.models.giph.options import GiphConfig
from streamplace.learn.models.giph.placing import FEATURES, GiphImprover, GiphWalker
from streamplace.learn.node_graphs.module import NodeGraphBatch
from streamplace.learn.parameters import arrays_of


class GiphPolicy:
    """GiPH with parameters; see `streamplace.learn.improving.policy.ImprovingPolicy`."""

    def __init__(self, config: GiphConfig) -> None:
        self._config = config
        self.module = GiphModule(config.form, config.steps, config.edges)

    def improver(self) -> GiphImprover:
        """Return the policy with its parameters as they are now."""
        network = network_of(arrays_of(self.module), self._config.form, self._config.steps)
        return GiphImprover(network, self._config)

    def choices(self, walked: Sequence[tuple[GiphWalker, Walked]]) -> tuple[Tensor, Tensor]:
        """Log-probability and entropy [P] of all choices."""
        device = next(self.module.parameters()).device
        records = [(walker.graph, walk.record) for walker, walk in walked]
        steps = NodeGraphBatch.of(records, str(device))
        log_p = self.module(steps)
        surprise = -log_p.exp() * log_p.masked_fill(~steps.open, 0.0)
        entropy = surprise.new_zeros(len(steps.chosen)).index_add(0, steps.step, surprise)
        return log_p[steps.chosen], entropy

    def features(self) -> dict[str, Any]:
        """Names of what it looks at."""
        return {"names": FEATURES}

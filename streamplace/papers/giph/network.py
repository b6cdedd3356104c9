"""GiPH in torch: log-probabilities of all steps of many episodes in one pass, for training."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from streamplace.learn.algorithms.kernels import weights_of
from streamplace.learn.improver import Episode, Improver
from streamplace.learn.parameters import LinearMaps, arrays_of
from streamplace.papers.giph import GiphConfig
from streamplace.papers.giph.placing import (
    SAGE,
    GiphAgent,
    GiphNetwork,
    agent_on,
    maps_of,
    names_of_features,
)
from streamplace.papers.improving.messages import NodeGraphBatch, begin, directed, mean_of


class GiphModule(LinearMaps):
    """The policy, as in `placing`."""

    def __init__(self, config: GiphConfig) -> None:
        super().__init__(maps_of(config))
        self.form = config.form
        self.apply(begin)

    def scores(self, steps: NodeGraphBatch) -> Tensor:
        """Score of every node [X]."""
        h = steps.nodes
        if self.form in ("two-way", "no-edges"):
            edges = steps.edges if self.form == "two-way" else steps.edges[:, :0]
            h = torch.cat(
                [
                    directed(self, "along", h, edges, steps.along),
                    directed(self, "against", h, edges, steps.against),
                ],
                1,
            )
        elif self.form == "sage":
            for i in range(len(SAGE)):
                own, others = self.linear(f"layers.{i}.own"), self.linear(f"layers.{i}.others")
                mean = mean_of(h[steps.source], steps.target, len(h))
                h = torch.relu(own(h) + others(mean))
        score: Tensor = self.linear("out")(self.linear("hidden")(h).relu())[:, 0]
        return score

    def forward(self, steps: NodeGraphBatch) -> Tensor:
        """Log-probability [X] of choosing every node at its step; -inf where it is not open."""
        score = self.scores(steps).masked_fill(~steps.open, -torch.inf)
        n = len(steps.chosen)
        top = torch.full((n,), -torch.inf)
        top = top.scatter_reduce(0, steps.step, score.detach(), "amax")
        less = score - top[steps.step]
        total = less.new_zeros(n).index_add(0, steps.step, less.exp())
        return less - total.log()[steps.step]


class GiphPolicy:
    """GiPH with parameters; see `streamplace.papers.improving.reinforce.ImprovingPolicy`."""

    def __init__(self, config: GiphConfig) -> None:
        self._config = config
        self.module = GiphModule(config)

    def improver(self) -> Improver:
        """Return the policy with its present parameters."""
        network = weights_of(GiphNetwork, arrays_of(self.module))
        return partial(agent_on, network, self._config)

    def choices(self, episodes: Sequence[tuple[GiphAgent, Episode]]) -> tuple[Tensor, Tensor]:
        """Log-probability and entropy [P] of all choices."""
        records = [(agent.graph, episode.record) for agent, episode in episodes]
        steps = NodeGraphBatch.of(records)
        log_p = self.module(steps)
        entropy_terms = -log_p.exp() * log_p.masked_fill(~steps.open, 0.0)
        entropy = entropy_terms.new_zeros(len(steps.chosen))
        entropy = entropy.index_add(0, steps.step, entropy_terms)
        return log_p[steps.chosen], entropy

    def features(self) -> dict[str, Any]:
        """Names of the features."""
        return {"names": names_of_features(self._config)}

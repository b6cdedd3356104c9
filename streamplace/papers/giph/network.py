"""GiPH in torch: log-probabilities of all steps of many episodes in one pass, for training."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from streamplace.learn.improver import Episode
from streamplace.learn.parameters import arrays_of
from streamplace.papers.giph import GiphConfig
from streamplace.papers.giph.placing import (
    HIDDEN,
    SAGE,
    GiphAgent,
    GiphImprover,
    features_of,
    n_features,
    network_of,
)
from streamplace.papers.improving.gpnet import WIDTH
from streamplace.papers.improving.messages import DirectionLayer, NodeGraphBatch, begin, mean_of


class SageLayer(nn.Module):
    """One layer of GraphSAGE."""

    def __init__(self, size: int, out: int) -> None:
        super().__init__()
        self.own = nn.Linear(size, out)
        self.others = nn.Linear(size, out, bias=False)

    def forward(self, h: Tensor, source: Tensor, target: Tensor) -> Tensor:
        """States of the nodes after the layer."""
        return torch.relu(self.own(h) + self.others(mean_of(h[source], target, len(h))))


class GiphModule(nn.Module):
    """The policy; parameters carry the names that `network_of` reads."""

    def __init__(self, config: GiphConfig) -> None:
        super().__init__()
        self.form = form = config.form
        self.carried = config.features if form == "two-way" else 0
        size = n_features(config)
        if form in ("two-way", "no-edges"):
            self.along = DirectionLayer(size, self.carried)
            self.against = DirectionLayer(size, self.carried)
            size = 2 * WIDTH
        elif form == "sage":
            sizes = (size, *SAGE)
            self.layers = nn.ModuleList(map(SageLayer, sizes[:-1], sizes[1:]))
            size = SAGE[-1]
        self.hidden = nn.Linear(size, HIDDEN)
        self.out = nn.Linear(HIDDEN, 1)
        self.apply(begin)

    def scores(self, steps: NodeGraphBatch) -> Tensor:
        """Score of every node [X]."""
        summary = steps.nodes
        if self.form in ("two-way", "no-edges"):
            edges = steps.edges[:, : self.carried]
            directions = (
                self.along(steps.nodes, edges, steps.along),
                self.against(steps.nodes, edges, steps.against),
            )
            summary = torch.cat(directions, 1)
        elif self.form == "sage":
            for layer in self.layers:
                summary = layer(summary, steps.source, steps.target)
        return self.out(self.hidden(summary).relu())[:, 0]

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

    def improver(self) -> GiphImprover:
        """Return the policy with its present parameters."""
        return GiphImprover(network_of(arrays_of(self.module)), self._config)

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
        return {"names": features_of(self._config)}

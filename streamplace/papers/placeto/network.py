"""Placeto in torch: log-probabilities of all visits of many tours in one pass, for training."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from streamplace.learn.algorithms.kernels import weights_of
from streamplace.learn.improver import Episode, Improver
from streamplace.learn.parameters import LinearMaps, arrays_of
from streamplace.papers.improving.gpnet import StepRecord
from streamplace.papers.improving.messages import NodeGraphBatch, begin, directed, mean_of
from streamplace.papers.placeto import PlacetoConfig
from streamplace.papers.placeto.placing import (
    FEATURES,
    GROUPS,
    PlacetoAgent,
    PlacetoNetwork,
    Tour,
    VisitRecord,
    agent_on,
    maps_of,
)


@dataclass(frozen=True, slots=True)
class Visits:
    """P visits side by side (X operators in all)."""

    steps: NodeGraphBatch  # the graphs, and of each the current operator
    group: Tensor  # [X] upstream, downstream, beside the current operator, or that itself
    open: Tensor  # [P, D]
    chosen: Tensor  # [P] devices

    @classmethod
    def of(cls, tours: Sequence[tuple[Tour, VisitRecord]]) -> "Visits":
        """Concatenate the visits of tours."""
        steps = NodeGraphBatch.of([(tour.graph, _as_steps(tour, record)) for tour, record in tours])
        groups = []
        for tour, record in tours:
            above, below = tour.upstream[record.current], tour.upstream.T[record.current]
            group = np.where(above, 0, np.where(below, 1, 2))
            group[np.arange(len(group)), record.current] = len(GROUPS)
            groups.append(group.ravel())
        columns = (
            np.concatenate(groups),
            np.concatenate([record.open for _, record in tours]),
            np.concatenate([record.chosen for _, record in tours]).astype(np.int64),
        )
        return cls(steps, *(torch.from_numpy(column) for column in columns))


class PlacetoModule(LinearMaps):
    """The policy, as in `placing`."""

    def __init__(self, devices: int) -> None:
        super().__init__(maps_of(devices))
        self.apply(begin)

    def forward(self, visits: Visits) -> Tensor:
        """Log-probabilities [P, D] of all devices; -inf where a device was not open."""
        steps = visits.steps
        none = steps.edges[:, :0]
        directions = (
            directed(self, "along", steps.nodes, none, steps.along),
            directed(self, "against", steps.nodes, none, steps.against),
        )
        states = torch.cat(directions, 1)
        parts = [states[steps.chosen]]
        for number, name in enumerate(GROUPS):
            here = visits.group == number
            each = self.linear(f"{name}.each")(states[here]).relu()
            mean = mean_of(each, steps.step[here], len(steps.chosen))
            parts.append(self.linear(f"{name}.pooled")(mean).relu())
        logits = self.linear("out")(self.linear("hidden")(torch.cat(parts, 1)).relu())
        return logits.masked_fill(~visits.open, -torch.inf).log_softmax(-1)


def _as_steps(tour: Tour, record: VisitRecord) -> StepRecord:
    """Record of an episode through the operators alone, with the same streams at every visit."""
    t, graph = len(record.chosen), tour.graph
    return StepRecord(
        nodes=record.nodes,
        edges=np.zeros((t, graph.n_edges, 0), np.float32),
        source=np.tile(graph.tasks.source, (t, 1)),
        target=np.tile(graph.tasks.target, (t, 1)),
        open=np.ones((t, graph.n_nodes), np.bool_),
        chosen=record.current,
    )


class PlacetoPolicy:
    """Placeto with parameters; see `streamplace.papers.improving.reinforce.ImprovingPolicy`."""

    def __init__(self, config: PlacetoConfig) -> None:
        self._config = config
        self.module = PlacetoModule(config.devices)

    def improver(self) -> Improver:
        """Return the policy with its present parameters."""
        network = weights_of(PlacetoNetwork, arrays_of(self.module))
        return partial(agent_on, network, self._config)

    def choices(self, episodes: Sequence[tuple[PlacetoAgent, Episode]]) -> tuple[Tensor, Tensor]:
        """Log-probability and entropy [P] of all choices."""
        visits = Visits.of([(agent.tour, episode.record) for agent, episode in episodes])
        log_p = self.module(visits)
        entropy_terms = -log_p.exp() * log_p.masked_fill(~visits.open, 0.0)
        return log_p.gather(1, visits.chosen[:, None])[:, 0], entropy_terms.sum(1)

    def features(self) -> dict[str, Any]:
        """Names of the features."""
        return {"names": FEATURES}

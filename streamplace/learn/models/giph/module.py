"""GiPH in torch: the log-probabilities of all steps of many walks in one pass."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from streamplace.learn.models.giph.measures import N_EDGE
from streamplace.learn.models.giph.messages import Heard, Hearing, hearing_of
from streamplace.learn.models.giph.network import HIDDEN, SAGE, WIDTH, Form, n_features
from streamplace.learn.models.giph.view import View
from streamplace.learn.models.giph.walk import Trail


@dataclass(frozen=True, slots=True)
class Steps:
    """P gpNets side by side, one for each step of many walks (X nodes and Y edges in all)."""

    nodes: Tensor  # [X, F]
    edges: Tensor  # [Y, 5]
    source: Tensor  # [Y] nodes
    target: Tensor  # [Y]
    step: Tensor  # [X] of every node
    open: Tensor  # [X]
    chosen: Tensor  # [P] nodes
    along: Hearing
    against: Hearing

    @classmethod
    def of(cls, walks: Sequence[tuple[View, Trail]], device: str = "cpu") -> "Steps":
        """Put the steps of walks side by side."""
        h = np.array([view.n_nodes for view, trail in walks for _ in trail.chosen])
        base = np.concatenate(([0], np.cumsum(h)[:-1])).astype(np.int32)
        first = np.split(base, np.cumsum([len(trail.chosen) for _, trail in walks])[:-1])
        pairs = list(zip(walks, first, strict=True))
        source = np.concatenate([(t.source + b[:, None]).ravel() for (_, t), b in pairs])
        target = np.concatenate([(t.target + b[:, None]).ravel() for (_, t), b in pairs])
        down, up = (
            np.concatenate([(order(v) + b[:, None]).ravel() for (v, _), b in pairs])
            for order in (_downwards, _upwards)
        )

        def tensor(array: NDArray[np.generic]) -> Tensor:
            return torch.from_numpy(np.ascontiguousarray(array)).to(device)

        return cls(
            tensor(np.concatenate([t.nodes.reshape(-1, t.nodes.shape[2]) for _, t in walks])),
            tensor(
                np.concatenate([t.edges.reshape(t.source.size, t.edges.shape[2]) for _, t in walks])
            ),
            tensor(source),
            tensor(target),
            tensor(np.repeat(np.arange(len(h)), h)),
            tensor(np.concatenate([t.open.ravel() for _, t in walks])),
            tensor(np.concatenate([t.chosen + b for (_, t), b in pairs])),
            hearing_of(down, source, target),
            hearing_of(up, target, source),
        )


class Way(nn.Module):
    """Messages in one direction, as in `streamplace.learn.models.giph.network`."""

    def __init__(self, features: int, edges: int) -> None:
        super().__init__()
        self.enter = nn.Linear(features, features)
        self.lift = nn.Linear(features, WIDTH)
        self.message = nn.Linear(WIDTH + edges, WIDTH + edges)
        self.update = nn.Linear(WIDTH + edges, WIDTH)

    def forward(self, nodes: Tensor, edges: Tensor, hearing: Hearing, rounds: int = 0) -> Tensor:
        """What every node knows [X, 5] after so many rounds of messages, 0 for once through."""
        own = self.lift(self.enter(nodes).relu())
        node, edge = self.message.weight[:, :WIDTH], self.message.weight[:, WIDTH:]
        added = edges @ edge.T + self.message.bias
        parameters = node, self.update.weight, self.update.bias
        known: Tensor = Heard.apply(own, added, *parameters, hearing, rounds)  # type: ignore[no-untyped-call]
        return known


class Layer(nn.Module):
    """One layer of GraphSAGE."""

    def __init__(self, size: int, out: int) -> None:
        super().__init__()
        self.own = nn.Linear(size, out)
        self.others = nn.Linear(size, out, bias=False)

    def forward(self, h: Tensor, source: Tensor, target: Tensor) -> Tensor:
        """States of the nodes after the layer."""
        return torch.relu(self.own(h) + self.others(mean_of(h[source], target, len(h))))


class Giph(nn.Module):
    """The policy; parameters carry the names that `network_of` reads.

    Parameters
    ----------
    rounds
        Of messages, 0 for once through the graph.
    edges
        Whether messages carry features of their edges.
    """

    def __init__(self, form: Form, rounds: int, edges: bool) -> None:
        super().__init__()
        features, carried = n_features(form, edges), N_EDGE if edges else 0
        self.form, self.rounds, self.carries = form, rounds, edges
        size = features
        if form == "two-way":
            self.along, self.against = Way(features, carried), Way(features, carried)
            size = 2 * WIDTH
        elif form == "sage":
            sizes = (features, *SAGE)
            self.layers = nn.ModuleList(map(Layer, sizes[:-1], sizes[1:]))
            size = SAGE[-1]
        self.hidden = nn.Linear(size, HIDDEN)
        self.out = nn.Linear(HIDDEN, 1)
        self.apply(begin)

    def scores(self, steps: Steps) -> Tensor:
        """Score of every node [X]."""
        summary = steps.nodes
        if self.form == "two-way":
            edges = steps.edges if self.carries else steps.edges[:, :0]
            ways = (
                self.along(steps.nodes, edges, steps.along, self.rounds),
                self.against(steps.nodes, edges, steps.against, self.rounds),
            )
            summary = torch.cat(ways, 1)
        elif self.form == "sage":
            for layer in self.layers:
                summary = layer(summary, steps.source, steps.target)
        return self.out(self.hidden(summary).relu())[:, 0]

    def forward(self, steps: Steps) -> Tensor:
        """Log-probability [X] of choosing every node at its step; -inf where it is not open."""
        score = self.scores(steps).masked_fill(~steps.open, -torch.inf)
        n = len(steps.chosen)
        top = torch.full((n,), -torch.inf, device=score.device)
        top = top.scatter_reduce(0, steps.step, score.detach(), "amax")
        less = score - top[steps.step]
        total = less.new_zeros(n).index_add(0, steps.step, less.exp())
        return less - total.log()[steps.step]


def begin(module: nn.Module) -> None:
    """Begin as the paper's code does."""
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)


def mean_of(messages: Tensor, to: Tensor, size: int) -> Tensor:
    """Mean message to each of so many; 0 where there is none."""
    sums = messages.new_zeros(size, messages.shape[1]).index_add(0, to, messages)
    count = torch.bincount(to, minlength=size).clamp(min=1)
    return sums / count[:, None]


def _downwards(view: View) -> NDArray[np.int32]:
    """Nodes [H], task after task in topological order."""
    position = np.empty(view.n_tasks, np.int64)
    position[view.order] = np.arange(view.n_tasks)
    return np.argsort(position[view.task], kind="stable").astype(np.int32)


def _upwards(view: View) -> NDArray[np.int32]:
    """Nodes [H], task after task against the streams."""
    return _downwards(view)[::-1]

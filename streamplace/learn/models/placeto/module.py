"""Placeto in torch: the log-probabilities of all visits of many tours in one pass."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from streamplace.learn.models.giph.module import Steps, Way, begin, mean_of
from streamplace.learn.models.giph.walk import Trail as Seen
from streamplace.learn.models.placeto.network import GROUPS, HIDDEN, SUMMARY
from streamplace.learn.models.placeto.walk import N_OPERATOR, Tour, Trail


@dataclass(frozen=True, slots=True)
class Visits:
    """P visits side by side (X operators in all)."""

    steps: Steps  # the graphs, and of each the current operator
    group: Tensor  # [X] upstream, downstream, beside the current operator, or that itself
    open: Tensor  # [P, D]
    chosen: Tensor  # [P] devices

    @classmethod
    def of(cls, tours: Sequence[tuple[Tour, Trail]], device: str = "cpu") -> "Visits":
        """Put the visits of tours side by side."""
        steps = Steps.of([(tour.tasks, _seen(tour, trail)) for tour, trail in tours], device)
        groups = []
        for tour, trail in tours:
            above, below = tour.upstream[trail.current], tour.upstream.T[trail.current]
            found = np.where(above, 0, np.where(below, 1, 2))
            found[np.arange(len(found)), trail.current] = len(GROUPS)
            groups.append(found.ravel())
        columns = (
            np.concatenate(groups),
            np.concatenate([trail.open for _, trail in tours]),
            np.concatenate([trail.chosen for _, trail in tours]).astype(np.int64),
        )
        return cls(steps, *(torch.from_numpy(column).to(device) for column in columns))


class Group(nn.Module):
    """How operators are pooled."""

    def __init__(self) -> None:
        super().__init__()
        self.each = nn.Linear(SUMMARY, SUMMARY)
        self.pooled = nn.Linear(SUMMARY, SUMMARY)

    def forward(self, known: Tensor, of_visit: Tensor, visits: int) -> Tensor:
        """Pool [P, 10] of operators that belong to these visits."""
        return self.pooled(mean_of(self.each(known).relu(), of_visit, visits)).relu()


class Placeto(nn.Module):
    """The policy; parameters carry the names that `network_of` reads."""

    def __init__(self, devices: int) -> None:
        super().__init__()
        features = N_OPERATOR + devices
        self.along, self.against = Way(features, 0), Way(features, 0)
        self.upstream, self.downstream, self.beside = Group(), Group(), Group()
        self.hidden = nn.Linear((1 + len(GROUPS)) * SUMMARY, HIDDEN)
        self.out = nn.Linear(HIDDEN, devices)
        self.apply(begin)

    def forward(self, visits: Visits) -> Tensor:
        """Log-probabilities [P, D] of all devices; -inf where a device was not open."""
        steps = visits.steps
        none = steps.edges[:, :0]
        ways = (
            self.along(steps.nodes, none, steps.along),
            self.against(steps.nodes, none, steps.against),
        )
        known = torch.cat(ways, 1)
        parts = [known[steps.chosen]]
        for number, part in enumerate((self.upstream, self.downstream, self.beside)):
            here = visits.group == number
            parts.append(part(known[here], steps.step[here], len(steps.chosen)))
        logits = self.out(self.hidden(torch.cat(parts, 1)).relu())
        return logits.masked_fill(~visits.open, -torch.inf).log_softmax(-1)


def _seen(tour: Tour, trail: Trail) -> Seen:
    """What was seen as GiPH sees the operators alone: the same streams at every visit."""
    t, view = len(trail.chosen), tour.tasks
    return Seen(
        trail.nodes,
        np.zeros((t, view.n_edges, 0), np.float32),
        np.tile(view.source, (t, 1)),
        np.tile(view.target, (t, 1)),
        np.ones((t, view.n_nodes), np.bool_),
        trail.current,
    )

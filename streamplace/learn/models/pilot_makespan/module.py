"""The policy that rebuilds schedules, in torch: log-probabilities of many decisions in one pass."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from streamplace.learn.models.pilot_makespan.measures import AHEAD, N_DEVICE, N_STEP
from streamplace.learn.models.pilot_makespan.rollout import ScheduleRecord

FOREsight = -10.0
"""Weight of what foresight chooses by, before anything is learned."""
OTHERS = 0.1
"""Deviation of the last layer's weights then."""


@dataclass(frozen=True, slots=True)
class ScheduleSteps:
    """P decisions about up to D devices."""

    devices: Tensor  # [P, D, 14]
    steps: Tensor  # [P, 10]
    open: Tensor  # [P, D]

    @classmethod
    def of(cls, records: Sequence[ScheduleRecord], device: str) -> "ScheduleSteps":
        """All decisions of some records, one after the other."""
        most = max(record.open.shape[2] for record in records)

        def wide(parts: Sequence[NDArray[Any]]) -> Tensor:
            rows = [part.reshape(-1, *part.shape[2:]) for part in parts]
            room = ((0, 0),) * (rows[0].ndim - 2)
            rows = [np.pad(row, ((0, 0), (0, most - row.shape[1]), *room)) for row in rows]
            return torch.from_numpy(np.concatenate(rows)).to(device)

        steps = np.concatenate([record.steps.reshape(-1, N_STEP) for record in records])
        return cls(
            wide([record.devices for record in records]),
            torch.from_numpy(steps).to(device),
            wide([record.open for record in records]),
        )


class PilotMakespanModule(nn.Module):
    """The policy; parameters carry the names that `network_of` reads."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.device = nn.Linear(N_DEVICE, width)
        self.step = nn.Linear(N_STEP, width, bias=False)
        self.own = nn.Linear(width, width)
        self.mean = nn.Linear(width, width, bias=False)
        self.out = nn.Linear(width, 1, bias=False)
        self.skip = nn.Linear(N_DEVICE, 1, bias=False)
        with torch.no_grad():
            self.out.weight.normal_(std=OTHERS)
            self.skip.weight.zero_()
            self.skip.weight[0, AHEAD] = FOREsight

    def forward(self, decisions: ScheduleSteps) -> Tensor:
        """Log-probabilities [P, D]; -inf where a device was not open."""
        is_open = decisions.open[..., None]
        first = (self.device(decisions.devices) + self.step(decisions.steps)[:, None]).relu()
        mean = (first * is_open).sum(1) / is_open.sum(1)
        second = (self.own(first) + self.mean(mean)[:, None]).relu()
        logits = (self.out(second) + self.skip(decisions.devices)).squeeze(-1)
        return logits.masked_fill(~decisions.open, -torch.inf).log_softmax(-1)

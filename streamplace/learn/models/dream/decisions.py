"""What a decoder sees before each decision: earlier decisions, and which devices are open.

Both are linear maps of the one-hot decisions made so far, so one function serves a single step and
all steps at once. Shapes: G graphs, T steps, N operators, S samples, D devices.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from streamplace.learn.models.dream.graphs import GraphBatch


@dataclass(frozen=True, slots=True, eq=False)
class StepInputs:
    """What T steps see."""

    previous: Tensor  # [G, T, S, D] one-hot decision of the step before, zero at the first
    upstream: Tensor  # [G, T, S, D] share of the upstream operators on each device
    used: Tensor  # [G, T, S, D] operators on each device so far
    open: Tensor  # [G, T, S, D] whether the decision may fall on a device


class EarlierDecisions:
    """Linear maps from decisions to what later steps see of them."""

    def __init__(self, batch: GraphBatch) -> None:
        n, like = batch.n_operators, batch.upstream
        before = torch.ones(n, n, dtype=like.dtype, device=like.device).tril(-1)
        previous = before.triu(-1)
        maps = [previous.expand_as(like), like, before.expand_as(like)]
        if batch.mates is not None and batch.rivals is not None:
            maps += [batch.mates, batch.rivals]
        self.batch = batch
        self.before = before
        self.maps = torch.stack(maps, dim=1)

    def seen(self, chosen: Tensor, steps: slice) -> StepInputs:
        """What these steps see of the decisions ``chosen`` [G, N, S, D] made before them."""
        maps = self.maps[:, :, steps]
        looked = maps.flatten(1, 2) @ chosen.flatten(2)
        previous, upstream, used, *rules = looked.view(*maps.shape[:3], *chosen.shape[2:]).unbind(1)
        return StepInputs(previous, upstream, used, self._open(used, rules, steps))

    def device_state(self, chosen: Tensor, steps: slice) -> Tensor:
        """Load of every device so far and transfer from it to this operator, [G, T, S, 2 D]."""
        load = self.batch.load[:, :, None] * chosen
        loads = self.before[steps] @ load.flatten(2)
        inbound = self.batch.inbound[:, steps] @ chosen.flatten(2)
        shape = (*loads.shape[:2], *chosen.shape[2:])
        return torch.cat([loads.view(shape), inbound.view(shape)], dim=-1)

    def _open(self, used: Tensor, rules: list[Tensor], steps: slice) -> Tensor:
        """Open devices: allowed, and of interchangeable unused ones only the first.

        Whoever has a mate goes where it is, nobody where a rival is; where that leaves nothing,
        all allowed devices are open and the placement has to be repaired.
        """
        allowed = self.batch.allowed[:, steps, None]
        idle = (used == 0).to(used.dtype)
        earlier_idle = idle.flatten(1, 2) @ self.batch.lower
        opened = allowed & (earlier_idle.view_as(used) == 0)
        if not rules:
            return opened
        mates, rivals = rules
        opened = torch.where((mates > 0).any(-1, keepdim=True), mates > 0, opened)
        opened = opened & (rivals == 0)
        return torch.where(opened.any(-1, keepdim=True), opened, allowed)

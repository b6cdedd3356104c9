"""Random placements, and the best ones of every problem.

Shapes: G problems of a batch, S placements of each, N operators (of the largest of the batch, the
others padded), D devices. Padding operators come last, on device 0.
"""

import torch
from torch import Tensor

from streamplace.learn.env import Batch
from streamplace.learn.learner_base import RowMemory
from streamplace.model.arrays import Longs

EMPTY = -1.0
"""Reward of an empty place."""
FACTOR = 0x9E3779B97F4A7C15 - 2**64
"""Odd factor of the hashes of placements."""


def random_placements(
    batch: Batch, size: int, generator: torch.Generator, over: str = "devices"
) -> Tensor:
    """Placements [G, S, N]: uniform over k random devices, k uniform; or over all placements."""
    (graphs, n), device = batch.present.shape, batch.present.device

    def uniform(*shape: int) -> Tensor:
        return torch.rand(graphs, size, *shape, generator=generator, device=device)

    devices = batch.exists.sum(1)[:, None]
    count = 1 + (uniform() * devices).long() if over == "devices" else devices.expand(-1, size)
    drawn = (uniform(n) * count[..., None]).long().minimum(count[..., None] - 1)
    ranks = uniform(batch.exists.shape[1]).masked_fill(~batch.exists[:, None], 2.0)
    shuffled = ranks.argsort(dim=2)
    return torch.where(batch.present[:, None], shuffled.gather(2, drawn), 0)


def repeated(placements: Tensor, counted: Tensor) -> Tensor:
    """Whether counted placements [G, S] of [G, S, N] equal an earlier counted one."""
    factors = torch.full((placements.shape[2],), FACTOR, device=placements.device).cumprod(0)
    # Rows are compared by 64-bit hashes, which hardly ever collide.
    words = ((placements.long() + 1) * factors).sum(2)
    number = torch.arange(words.shape[1], device=words.device)
    by_word, at = torch.where(counted, words, number).sort(dim=1, stable=True)
    again = torch.zeros_like(by_word, dtype=torch.bool)
    again[:, 1:] = by_word[:, 1:] == by_word[:, :-1]
    return again.gather(1, at.argsort(1))


def best_distinct(placements: Tensor, rewards: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The best different placements [G, count, N] of candidates [G, S, N], best first.

    Of equal rewards, and of equal placements, the first counts. Rewards that are `EMPTY` do not.
    """
    again = repeated(placements, rewards > EMPTY)
    values, at = rewards.masked_fill(again, EMPTY).sort(dim=1, descending=True, stable=True)
    values, at = values[:, :count], at[:, :count]
    kept = placements.gather(1, at[..., None].expand(-1, -1, placements.shape[2]))
    return kept.masked_fill(values[..., None] == EMPTY, 0), values


class PlacementMemory(RowMemory):
    """The best different placements of every problem, in operator order."""

    def __init__(self, sizes: Longs, places: int, device: torch.device) -> None:
        size = len(sizes), places
        operators = int(sizes.max(initial=0))
        self.placements = torch.zeros(*size, operators, dtype=torch.int8, device=device)
        self.rewards = torch.full(size, EMPTY, dtype=torch.float64, device=device)
        super().__init__({"memory.placements": self.placements, "memory.rewards": self.rewards})

    def add(self, rows: Tensor, placements: Tensor, rewards: Tensor) -> None:
        """Keep the best of the remembered placements of problems and of new ones [G, S, N]."""
        n, places = placements.shape[2], self.rewards.shape[1]
        candidates = torch.cat([self.placements[rows, :, :n], placements.to(torch.int8)], dim=1)
        values = torch.cat([self.rewards[rows], rewards], dim=1)
        best, values = best_distinct(candidates, values, places)
        self.placements[:, :, :n].index_copy_(0, rows, best)
        self.rewards.index_copy_(0, rows, values)

    def replay(self, rows: Tensor, count: int, n: int) -> tuple[Tensor, Tensor]:
        """Best placements [G, R, N] and their rewards [G, R]."""
        return self.placements[rows, :count, :n].long(), self.rewards[rows, :count]

    def best(self, rows: Tensor) -> Tensor:
        """Best known rewards [G], 0 without any."""
        return self.rewards[rows, 0].clamp(min=0)

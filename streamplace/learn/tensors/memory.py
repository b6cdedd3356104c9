"""Placements in tensors: canonical forms, random ones, and the best ones of every problem.

Shapes: P problems, G of them in a batch, S placements of each, N operators (of the largest of the
batch, the others padded), D devices (of the largest cluster), C places of a memory. Padding
operators come last, on device 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from streamplace.learn.learner_base import RowMemory
from streamplace.learn.numba_kernels.arrays import canonical as renumbered
from streamplace.learn.numba_kernels.arrays import copy_rows
from streamplace.learn.numba_kernels.jit import kernel
from streamplace.learn.tensors.draws import GOLDEN, below, children, mixed, uniform
from streamplace.model.arrays import Longs
from streamplace.model.problem import Problem

EMPTY = -1.0
"""Reward of a place that holds nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Outlines:
    """Sizes of problems, and which of their devices are interchangeable."""

    operators: Tensor  # [P]
    devices: Tensor  # [P]
    classes: Tensor  # [P, D] class of every device, as in `Problem.interchangeable`

    @classmethod
    def of(cls, problems: Sequence[Problem]) -> "Outlines":
        """Outlines of problems; devices that a problem lacks are in classes of their own."""
        most = max(problem.n_devices for problem in problems)
        classes = np.tile(np.arange(most), (len(problems), 1))
        for row, problem in zip(classes, problems, strict=True):
            row[: problem.n_devices] = problem.interchangeable
        sizes = [[p.n_operators, p.n_devices] for p in problems]
        operators, devices = torch.tensor(sizes).unbind(1)
        return cls(operators, devices, torch.from_numpy(classes))

    def of_rows(self, rows: Tensor) -> "Outlines":
        """Outlines of some problems."""
        return Outlines(self.operators[rows], self.devices[rows], self.classes[rows])

    def present(self, n: int) -> Tensor:
        """Whether operators [G, N] are there."""
        return torch.arange(n) < self.operators[:, None]


def canonical(placements: Tensor, order: Tensor, outlines: Outlines) -> Tensor:
    """Placements [G, S, N] whose interchangeable devices are renumbered by first appearance.

    The same as `streamsim._core.canonical` along the orders [G, N].
    """
    parts = placements, order, outlines.operators, outlines.classes
    return torch.from_numpy(_each_canonical(*(part.contiguous().numpy() for part in parts)))


@kernel
def _each_canonical(placements: Longs, order: Longs, sizes: Longs, classes: Longs) -> Longs:
    result = np.zeros_like(placements)
    for graph in range(len(placements)):
        n = sizes[graph]
        rows, along = placements[graph, :, :n].astype(np.int32), order[graph, :n].astype(np.int32)
        copy_rows(result[graph, :, :n], renumbered(rows, along, classes[graph].astype(np.int32)))
    return result


def random_placements(keys: Tensor, size: int, n: int, outlines: Outlines) -> Tensor:
    """Placements [G, S, N]: uniform over k random devices, k uniform."""
    most, (of_count, of_place, of_rank) = outlines.devices[:, None], children(keys, 3)
    count = 1 + below(uniform(of_count, size), most)
    drawn = below(uniform(of_place, size, n), count[..., None])
    ranks = uniform(of_rank, size, outlines.classes.shape[1])
    absent = torch.arange(ranks.shape[2]) >= most
    shuffled = ranks.masked_fill(absent[:, None], 2.0).argsort(dim=2, stable=True)
    return torch.where(outlines.present(n)[:, None], shuffled.gather(2, drawn), 0)


def best_distinct(placements: Tensor, rewards: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """The best different placements [G, most, N] of candidates [G, S, N], best first.

    Of equal rewards, and of equal placements, the first counts. Rewards that are `EMPTY` do not.
    """
    n = placements.shape[2]
    factors = mixed(GOLDEN * torch.arange(1, n + 1))
    # Rows are compared by 64-bit hashes, which hardly ever collide.
    words = ((placements.long() + 1) * factors).sum(2)
    number = torch.arange(words.shape[1])
    words = torch.where(rewards > EMPTY, words, number)
    by_word, at = words.sort(dim=1, stable=True)
    again = torch.zeros_like(by_word, dtype=torch.bool)
    again[:, 1:] = by_word[:, 1:] == by_word[:, :-1]
    again = again.gather(1, at.argsort(1))
    values, at = rewards.masked_fill(again, EMPTY).sort(dim=1, descending=True, stable=True)
    values, at = values[:, :most], at[:, :most]
    kept = placements.gather(1, at[..., None].expand(-1, -1, n))
    return kept.masked_fill(values[..., None] == EMPTY, 0), values


class PlacementMemory(RowMemory):
    """The best different placements of every problem, in operator order."""

    def __init__(self, outlines: Outlines, places: int, operators: int) -> None:
        size = len(outlines.operators), places
        self.placements = torch.zeros(*size, operators, dtype=torch.int8)
        self.rewards = torch.full(size, EMPTY, dtype=torch.float64)
        super().__init__({"memory.placements": self.placements, "memory.rewards": self.rewards})

    def add(self, rows: Tensor, placements: Tensor, rewards: Tensor) -> None:
        """Keep the best of the remembered placements of problems and of new ones [G, S, N]."""
        n, places = placements.shape[2], self.rewards.shape[1]
        candidates = torch.cat([self.placements[rows, :, :n], placements.to(torch.int8)], dim=1)
        values = torch.cat([self.rewards[rows], rewards], dim=1)
        best, values = best_distinct(candidates, values, places)
        self.placements[:, :, :n].index_copy_(0, rows, best)
        self.rewards.index_copy_(0, rows, values)

    def replay(self, rows: Tensor, most: int, n: int) -> tuple[Tensor, Tensor]:
        """Best placements [G, R, N] and their rewards [G, R]."""
        return self.placements[rows, :most, :n].long(), self.rewards[rows, :most]

    def best(self, rows: Tensor) -> Tensor:
        """Best rewards [G] known, 0 where none is."""
        return self.rewards[rows, 0].clamp(min=0)

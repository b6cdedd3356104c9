"""A batch in shards, whose gradients are summed in fixed order, whoever computes them.

Every seed is derived from the run's seed and the place in the run (epoch, step, shard), so that
no state of a generator need be kept: a resumed run is the same run, on one thread or many machines.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
import torch
from torch import Tensor

from streamplace.learn.learner import Learner, StepReport
from streamplace.model.arrays import Floats, Longs


@dataclass(frozen=True, slots=True, eq=False)
class BatchShard:
    """Rows of a batch, and the seed of all that is drawn for them."""

    rows: Longs
    epoch: int
    seed: int


@dataclass(frozen=True, slots=True)
class Gradient:
    """Gradient of the sum of losses, one tensor per parameter (None where it has none)."""

    loss: float
    report: StepReport
    tensors: tuple[Tensor | None, ...]

    def __add__(self, other: "Gradient") -> "Gradient":
        pairs = zip(self.tensors, other.tensors, strict=True)
        tensors = tuple(_added(a, b) for a, b in pairs)
        return Gradient(self.loss + other.loss, self.report + other.report, tensors)

    def per_problem(self, problems: int) -> "Gradient":
        """Gradient of the mean loss of so many problems."""
        tensors = tuple(None if t is None else t / problems for t in self.tensors)
        return Gradient(self.loss / problems, self.report, tensors)


def seed_of(seed: int, *place: int) -> int:
    """Seed of a place in a run: another place or another run has another seed.

    >>> seed_of(0, 1, 2) == seed_of(0, 1, 2), seed_of(0, 1) == seed_of(0, 1, 0)
    (True, False)
    """
    words = np.random.SeedSequence(seed, spawn_key=place).generate_state(1, np.uint64)
    return int(words[0] >> np.uint64(1))


def batches(sizes: Longs, batch: int, seed: int, epoch: int) -> list[Longs]:
    """Rows of every batch of an epoch: problems of like sizes together, all else shuffled."""
    random = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(epoch,)))
    rows = random.permutation(len(sizes))
    rows = rows[np.argsort(np.asarray(sizes)[rows], kind="stable")]
    chunks = [rows[start : start + batch] for start in range(0, len(rows), batch)]
    return [chunks[i] for i in random.permutation(len(chunks))]


def dealt(rows: Longs, parts: int) -> list[Longs]:
    """Rows dealt in turn to at most so many parts, so that all have problems of like sizes."""
    return [part for i in range(parts) if len(part := rows[i::parts])]


def shards(rows: Longs, parts: int, seed: int, epoch: int, step: int) -> list[BatchShard]:
    """Shards of the batch of a step."""
    places = zip(dealt(rows, parts), count(), strict=False)
    return [BatchShard(part, epoch, seed_of(seed, epoch, step, shard)) for part, shard in places]


def gradient_of(learner: Learner, shard: BatchShard) -> Gradient:
    """Gradient over a shard, whose memories the learner updates."""
    loss, report = learner.loss(shard.rows, shard.epoch, shard.seed)
    parameters = [p for p in learner.module.parameters() if p.requires_grad]
    tensors = torch.autograd.grad(loss, parameters, allow_unused=True)
    return Gradient(float(loss.detach()), report, tensors)


def summed(gradients: Iterable[Gradient]) -> Gradient:
    """Sum from the first to the last: another order would give other bits."""
    first, *others = gradients
    for other in others:
        first = first + other
    return first


def gathered(parts: Sequence[Longs], of_parts: Iterable[Floats]) -> Floats:
    """Values of problems by number, from those of parts that were dealt."""
    values = np.empty(sum(map(len, parts)))
    for rows, some in zip(parts, of_parts, strict=True):
        values[rows] = some
    return values


def _added(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    if a is None or b is None:
        return b if a is None else a
    return a + b

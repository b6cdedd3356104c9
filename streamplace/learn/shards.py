"""A batch in shards, whose gradients are summed in a fixed order, on any number of workers.

Every seed is derived from the run's seed and the position in the run (epoch, step, shard), so no
state of a generator is kept: a resumed run is the same run, on one thread or many machines.
Torch computes in one thread at a time, since several threads sum in another order.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from streamplace.cores import available_cores
from streamplace.learn.device import device_of
from streamplace.learn.learner import Learner, StepReport
from streamplace.model.arrays import Floats, Longs
from streamplace.model.random_numbers import generator


@dataclass(frozen=True, slots=True, eq=False)
class BatchShard:
    """Rows of a batch, and the seed of all that is drawn for them."""

    rows: Longs
    epoch: int
    seed: int


@dataclass(frozen=True, slots=True)
class Gradient:
    """Gradient of the sum of losses, one tensor per parameter (None for parameters without one)."""

    loss: float
    report: StepReport
    tensors: tuple[Tensor | None, ...]

    def __add__(self, other: "Gradient") -> "Gradient":
        pairs = zip(self.tensors, other.tensors, strict=True)
        tensors = tuple(b if a is None else a if b is None else a + b for a, b in pairs)
        return Gradient(self.loss + other.loss, self.report + other.report, tensors)


def seed_of(seed: int, *place: int) -> int:
    """Seed of a position in a run: another position or another run has another seed."""
    words = np.random.SeedSequence(seed, spawn_key=place).generate_state(1, np.uint64)
    return int(words[0] >> np.uint64(1))


def batches(sizes: Longs, batch: int, seed: int, epoch: int) -> list[Longs]:
    """Rows of every batch of an epoch: problems of similar sizes together, otherwise shuffled."""
    random = generator(seed, epoch)
    rows = random.permutation(len(sizes))
    rows = rows[np.argsort(np.asarray(sizes)[rows], kind="stable")]
    chunks = [rows[start : start + batch] for start in range(0, len(rows), batch)]
    return [chunks[i] for i in random.permutation(len(chunks))]


def dealt(rows: Longs, parts: int) -> list[Longs]:
    """Rows in at most this number of parts, in turn, so that all have problems of similar sizes."""
    return [part for i in range(parts) if len(part := rows[i::parts])]


def shards(rows: Longs, parts: int, seed: int, epoch: int, step: int) -> list[BatchShard]:
    """Shards of the batch of a step."""
    return [
        BatchShard(part, epoch, seed_of(seed, epoch, step, shard))
        for shard, part in enumerate(dealt(rows, parts))
    ]


def gradient_of(learner: Learner, shard: BatchShard) -> Gradient:
    """Gradient on a shard, whose memories the learner updates."""
    loss, report = learner.loss(shard.rows, shard.epoch, shard.seed)
    parameters = [p for p in learner.module.parameters() if p.requires_grad]
    tensors = torch.autograd.grad(loss, parameters, allow_unused=True)
    return Gradient(float(loss.detach()), report, tensors)


def summed(gradients: Iterable[Gradient]) -> Gradient:
    """Sum from the first to the last; another order would give other bits."""
    return reduce(add, gradients)


def gathered(parts: Sequence[Longs], of_parts: Iterable[Floats]) -> Floats:
    """Values by row, from the values of the parts that `dealt` made."""
    values = np.empty(sum(map(len, parts)))
    for rows, of_rows in zip(parts, of_parts, strict=True):
        values[rows] = of_rows
    return values


class GradientWorkers(Protocol):
    """Compute for one learner: threads of this process, or the workers of a Ray cluster."""

    def gradient(self, shards: Sequence[BatchShard]) -> Gradient:
        """Sum of the shards' gradients, after which the learner has the memories of all shards."""

    def values(self, parts: Sequence[Longs]) -> Floats:
        """Values of all validation problems, which were dealt to parts."""


class ThreadWorkers:
    """Threads of this process that compute the shards of a learner."""

    def __init__(self, learner: Learner, each: Callable[..., Iterable[Any]]) -> None:
        self._learner, self._each = learner, each

    def gradient(self, shards: Sequence[BatchShard]) -> Gradient:
        """Sum of the shards' gradients."""
        each = self._each if len(shards) > 1 else map  # another core has no weights in its cache
        return summed(each(partial(gradient_of, self._learner), shards))

    def values(self, parts: Sequence[Longs]) -> Floats:
        """Values of all validation problems."""
        return gathered(parts, self._each(self._learner.validate, parts))


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute in one thread inside the block; more threads add in another order."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def thread_workers(learner: Learner) -> Iterator[ThreadWorkers]:
    """Start a thread per core, with one thread of torch in each; on a GPU, one thread computes."""
    on_cpu = device_of(learner.module).type == "cpu"
    with one_thread():
        cores = available_cores()
        if cores < 2 or not on_cpu:
            yield ThreadWorkers(learner, map)
            return
        with ThreadPoolExecutor(cores, "shard", torch.set_num_threads, (1,)) as pool:
            yield ThreadWorkers(learner, pool.map)

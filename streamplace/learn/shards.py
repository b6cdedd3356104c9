"""A step's gradient, from two fixed shards of its batch that two threads may work on at once.

Every seed is derived from the run's seed and the place in the run (epoch, step, shard), so that
no state of a generator need be kept: a resumed run is the same run, with one thread or two.
"""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from streamplace.learn.learner import Ints, Learner, StepReport
from streamplace.learn.threads import one_thread

N_SHARDS = 2


@dataclass(frozen=True, slots=True)
class Gradient:
    """Gradient of the mean loss of a batch, one tensor per parameter (None where it has none)."""

    loss: float
    report: StepReport
    tensors: tuple[Tensor | None, ...]


def seed_of(seed: int, *place: int) -> int:
    """Seed of a place in a run: another place or another run has another seed.

    >>> seed_of(0, 1, 2) == seed_of(0, 1, 2), seed_of(0, 1) == seed_of(0, 1, 0)
    (True, False)
    """
    words = np.random.SeedSequence(seed, spawn_key=place).generate_state(1, np.uint64)
    return int(words[0] >> np.uint64(1))


def batches(sizes: Ints, batch: int, seed: int, epoch: int) -> list[Ints]:
    """Rows of every batch of an epoch: problems of like sizes together, all else shuffled."""
    random = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(epoch,)))
    rows = random.permutation(len(sizes))
    rows = rows[np.argsort(np.asarray(sizes)[rows], kind="stable")]
    chunks = [rows[start : start + batch] for start in range(0, len(rows), batch)]
    return [chunks[i] for i in random.permutation(len(chunks))]


def shards(rows: Ints) -> list[Ints]:
    """Rows dealt in turn to at most two shards, so that both have problems of like sizes."""
    return [part for i in range(N_SHARDS) if len(part := rows[i::N_SHARDS])]


@contextmanager
def workers(device: str) -> Iterator[ThreadPoolExecutor | None]:
    """Threads for the shards, None where one does as well; torch uses one thread in each."""
    with one_thread():
        if device != "cpu" or len(os.sched_getaffinity(0)) < N_SHARDS:
            yield None
            return
        with ThreadPoolExecutor(N_SHARDS, "shard", torch.set_num_threads, (1,)) as threads:
            yield threads


def gradient(
    learner: Learner, rows: Ints, epoch: int, seeds: list[int], threads: ThreadPoolExecutor | None
) -> Gradient:
    """Gradient over a batch; shards are summed in fixed order, whoever is done first."""

    def work(part: Ints, seed: int) -> Gradient:
        return _of_shard(learner, part, epoch, seed)

    parts = shards(rows)
    seeds = seeds[: len(parts)]
    if threads is None or len(parts) == 1:
        found = list(map(work, parts, seeds))
    else:
        found = list(threads.map(work, parts, seeds))
    total = found[0]
    for other in found[1:]:
        pairs = zip(total.tensors, other.tensors, strict=True)
        added = tuple(_added(a, b) for a, b in pairs)
        total = Gradient(total.loss + other.loss, total.report + other.report, added)
    mean = tuple(None if t is None else t / len(rows) for t in total.tensors)
    return Gradient(total.loss / len(rows), total.report, mean)


def _of_shard(learner: Learner, rows: Ints, epoch: int, seed: int) -> Gradient:
    loss, report = learner.loss(rows, epoch, seed)
    parameters = [p for p in learner.module.parameters() if p.requires_grad]
    tensors = torch.autograd.grad(loss, parameters, allow_unused=True)
    return Gradient(float(loss.detach()), report, tensors)


def _added(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    if a is None or b is None:
        return b if a is None else a
    return a + b

"""Workers of a training: this process on its cores, or other processes as well.

`Workers` share the work that comes before training; the `GradientWorkers` that they provide compute
the training itself. Their inputs depend only on the run, and their results are added in a fixed
order, so the bits are the same for any number of workers.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Protocol

import torch

from streamplace.cores import available_cores
from streamplace.learn.learner import Learner
from streamplace.learn.shards import Arrays, BatchShard, Gradient, gathered, gradient_of, summed
from streamplace.learn.threads import deterministic, one_thread
from streamplace.model.arrays import Floats, Longs


class GradientWorkers(Protocol):
    """Compute for one learner."""

    def gradient(self, shards: Sequence[BatchShard]) -> Gradient:
        """Sum of the shards' gradients; the learner's memories then include those of all shards."""

    def values(self, parts: Sequence[Longs]) -> Floats:
        """Values of all validation problems, which were dealt to parts."""


class Workers(ABC):
    """Processes that train together; one, which leads, unless a subclass says otherwise."""

    on: str | None = None
    """Address of the Ray that solves problems before training, None for this machine."""

    @property
    def leads(self) -> bool:
        """Whether this is the process that writes files and messages."""
        return True

    def shared(self, make: Callable[[], Arrays]) -> Arrays:
        """Return the result of the leading process to every process."""
        return make()

    @abstractmethod
    def gradient_workers(
        self, learner: Learner, make: Callable[[], Learner], device: str
    ) -> AbstractContextManager[GradientWorkers]:
        """Provide workers for a learner that ``make`` built, until training ends."""


class LocalWorkers(Workers):
    """One process, on all its cores."""

    @contextmanager
    def gradient_workers(
        self, learner: Learner, make: Callable[[], Learner], device: str
    ) -> Iterator["ThreadWorkers"]:
        """A thread for every core."""
        with working(learner, device, available_cores()) as threads:
            yield threads


class ThreadWorkers:
    """Threads of this process; one where there is a single core, or a GPU."""

    def __init__(self, learner: Learner, pool: ThreadPoolExecutor | None) -> None:
        self._learner = learner
        self._map = map if pool is None else pool.map

    def gradient(self, shards: Sequence[BatchShard]) -> Gradient:
        """Sum of the shards' gradients."""
        return summed(self.gradients(shards))

    def gradients(self, shards: Sequence[BatchShard]) -> list[Gradient]:
        """Gradient of every shard."""
        return list(self._map(partial(gradient_of, self._learner), shards))

    def values(self, parts: Sequence[Longs]) -> Floats:
        """Values of all validation problems."""
        return gathered(parts, self.values_of(parts))

    def values_of(self, parts: Sequence[Longs]) -> list[Floats]:
        """Values of every part."""
        return list(self._map(self._learner.validate, parts))


@contextmanager
def working(learner: Learner, device: str, most: int) -> Iterator[ThreadWorkers]:
    """Start at most so many threads, in each of which torch uses one; a single one on a GPU."""
    with one_thread(), deterministic(device):
        if device != "cpu" or most < 2:
            yield ThreadWorkers(learner, None)
            return
        with ThreadPoolExecutor(most, "shard", torch.set_num_threads, (1,)) as pool:
            yield ThreadWorkers(learner, pool)

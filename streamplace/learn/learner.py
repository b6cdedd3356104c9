"""Contract between training and a model: losses on its problems, and greedy placements."""

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from operator import add
from typing import TYPE_CHECKING, Any, Protocol

from numpy.typing import NDArray

from streamplace.model.arrays import Floats, Longs

if TYPE_CHECKING:
    import torch

Selection = Longs | slice
"""Numbers of some problems, or all."""

ALL = slice(None)


@dataclass(frozen=True, slots=True)
class StepReport:
    """Report on the samples of a part of a batch; sums over problems, so that reports can be added.

    Examples
    --------
    >>> (StepReport(2, 1.0, 1.5, 0.2, 8) + StepReport(1, 0.5, 0.5, 0.1, 4)).mean.reward
    0.5
    """

    problems: int
    reward: float  # mean reward of a problem's on-policy samples, summed over problems
    best: float  # best reward of a problem so far, summed over problems
    entropy: float  # mean entropy of a problem's decisions in nats, summed over problems
    evaluations: int  # placements that were rewarded

    def __add__(self, other: "StepReport") -> "StepReport":
        return StepReport(*map(add, astuple(self), astuple(other)))

    @property
    def mean(self) -> "StepReport":
        """Report with all sums divided by the number of problems."""
        n = max(self.problems, 1)
        return StepReport(1, self.reward / n, self.best / n, self.entropy / n, self.evaluations)


class Learner(Protocol):
    """A model on its training problems, as `streamplace.learn.training_loop` drives it.

    ``loss`` may run for different rows in two threads at once, and on other machines, to which the
    memories of these rows are sent: it changes these memories and nothing else.
    """

    @property
    def module(self) -> "torch.nn.Module":
        """The parameters that are trained."""

    def sizes(self, epoch: int) -> Longs:
        """Operators of each problem of an epoch; batches are made of problems of like sizes."""

    def loss(self, rows: Longs, epoch: int, seed: int) -> "tuple[torch.Tensor, StepReport]":
        """Sample and reward these training problems, update their memories, return a loss.

        The loss is a sum over the rows: training divides by the batch size. Epochs count from 0.
        All randomness comes from ``seed``.
        """

    def validate(self, rows: Selection = ALL) -> Floats:
        """Reward of the greedy placement of these validation problems."""

    def state(self, rows: Selection = ALL) -> dict[str, NDArray[Any]]:
        """Memories of these training problems: all state besides the parameters."""

    def restore(self, state: Mapping[str, NDArray[Any]], rows: Selection = ALL) -> None:
        """Restore the arrays of `state` for these training problems, perhaps of another machine."""

    def spec(self) -> dict[str, Any]:
        """Facts that placing needs besides the weights, for JSON: ``config`` and ``features``.

        ``features`` holds ``names``, and ``mean`` and ``std`` of the training set.
        """

"""Policies that build placements: their contract with the learner, and placing by trained ones.

Shapes: G problems of a batch, S samples of each, N operators of one problem.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
import torch
from torch import Tensor

from streamplace.errors import FormatError
from streamplace.learn.learner import ALL, Selection
from streamplace.learn.shards import one_thread
from streamplace.learn.tensors.draws import children, mixed
from streamplace.model.arrays import Floats, Ints
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem

CLOSED = -1e9
"""Logit of a device that is not open."""


@dataclass(frozen=True, slots=True, eq=False)
class Likelihood:
    """Likelihood of placements."""

    log_probability: Tensor  # [G, S] of the whole placement
    entropy: Tensor  # [G, S] mean entropy of its decisions, in nats


class EncodedBatch(Protocol):
    """Problems that were encoded once, for samples and for likelihoods."""

    @property
    def order(self) -> Tensor:
        """Operators [G, N] of each problem in the order of decision; padding comes last."""

    def drawn(self, samples: int, keys: Tensor) -> Tensor:
        """Placements [G, S, N], drawn by keys [G]; some may break constraints and need repair.

        Padding is on device 0.
        """

    def weights(self, samples: int) -> Tensor:
        """Weights [S] of the samples of a problem in the loss; by default all count the same."""
        return torch.ones(samples, dtype=torch.float64)

    def likelihood(self, placements: Tensor) -> Likelihood:
        """Likelihood of placements [G, S, N], with gradients."""


class PreparedProblems(Protocol):
    """Problems, prepared once for a policy."""

    def encoded(self, rows: Tensor, n: int, keys: Tensor) -> EncodedBatch:
        """Encode some of the problems with the present parameters, as in training.

        None of them has more than ``n`` operators; what is random comes from keys [G].
        """

    def greedy(self, rows: Selection = ALL) -> list[Ints]:
        """Likeliest placement [N] of some of the problems, legal."""


@dataclass(frozen=True, slots=True, eq=False)
class FeatureScale:
    """Features and their means and standard deviations [F] over a training set."""

    names: Sequence[str]
    mean: Floats
    std: Floats

    @classmethod
    def read(cls, document: Mapping[str, Any], names: Sequence[str], where: str) -> Self:
        """Read the scale of these features from a weights file, which errors call ``where``."""
        mean, std = (np.array(document.get(key, ()), np.float64) for key in ("mean", "std"))
        if document.get("names") != list(names) or not mean.shape == std.shape == (len(names),):
            raise FormatError(
                f"{where}: has other features than its options say, or lacks their mean and std; "
                "train again"
            )
        return cls(names, mean, std)

    def document(self) -> dict[str, Any]:
        """Names, means and standard deviations, fit for JSON."""
        return {"names": list(self.names), "mean": self.mean.tolist(), "std": self.std.tolist()}


@dataclass(frozen=True, slots=True, eq=False)
class ConstructivePolicy:
    """A module, the scale of its features, and what prepares problems for both.

    With trained parameters, it is a `streamplace.learn.registry.Allocator`.
    """

    module: Any
    scale: FeatureScale
    prepare: Callable[[Any, Any, Sequence[Problem]], PreparedProblems]

    def on(self, problems: Sequence[Problem]) -> PreparedProblems:
        """Prepare problems."""
        return self.prepare(self.module, self.scale, problems)

    def place_many(self, problems: Sequence[Problem]) -> list[Placement]:
        """Place every problem greedily."""
        with one_thread():
            rows = self.on(problems).greedy()
        return [p.placement(row) for p, row in zip(problems, rows, strict=True)]

    def sampled(self, problem: Problem, samples: int, seed: int) -> Ints:
        """Legal placements [S, N] of one problem, drawn from the policy."""
        of_order, of_devices = children(mixed(torch.tensor([seed % 2**63])), 2)
        with one_thread(), torch.no_grad():
            row = torch.tensor([0])
            batch = self.on([problem]).encoded(row, problem.n_operators, of_order)
            drawn = batch.drawn(samples, of_devices)[0]
        return problem.repaired(drawn.numpy().astype(np.int32))

"""What the learner and the placer ask of a policy that builds placements.

Shapes: G problems of a batch, S samples of each, N operators of one problem.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from streamplace.learn.learner import ALL, Selection
from streamplace.model.arrays import Floats, Ints, Longs
from streamplace.model.problem import Problem

Placements = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Likelihood:
    """How likely given placements are."""

    log_probability: Tensor  # [G, S] of the whole placement
    entropy: Tensor  # [G, S] mean entropy per decision on the way, in nats


class EncodedBatch(Protocol):
    """Selection problems, encoded once for all that is asked about them."""

    @property
    def orders(self) -> Sequence[Longs]:
        """Operators of each problem in the order in which they are decided about."""
        ...

    def drawn(self, samples: int, generator: torch.Generator) -> list[Placements]:
        """Placements [S, N] of each problem; where rules are at odds, they need to be repaired."""
        ...

    def worth(self, samples: int) -> Floats:
        """How much each of so many samples of a problem counts, [S]."""
        ...

    def likelihood(self, placements: Sequence[Placements]) -> Likelihood:
        """Likelihood of placements [≤ S, N] of each problem, with gradients."""
        ...


class PreparedProblems(Protocol):
    """Problems, prepared once for a policy."""

    def encoded(self, rows: Longs, rng: np.random.Generator) -> EncodedBatch:
        """Encode some of the problems with the parameters as they are, as in training."""
        ...

    def greedy(self, rows: Selection = ALL) -> list[Ints]:
        """Likeliest placement [N] of some of the problems, legal."""
        ...


class ConstructivePolicy(Protocol):
    """A policy whose parameters are trained."""

    @property
    def module(self) -> torch.nn.Module:
        """The parameters."""
        ...

    def on(self, problems: Sequence[Problem]) -> PreparedProblems:
        """Prepare problems."""
        ...

    def features(self) -> dict[str, Any]:
        """What it looks at, fit for JSON: ``names``, ``mean``, ``std``."""
        ...

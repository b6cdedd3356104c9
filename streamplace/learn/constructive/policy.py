"""Contract of policies that build placements, with the learner and the placer.

Shapes: G problems of a batch, S samples of each, N operators of one problem.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from streamplace.errors import SettingError
from streamplace.learn.learner import ALL, Selection
from streamplace.model.arrays import Floats, Ints, Longs
from streamplace.model.problem import Problem

Placements = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Likelihood:
    """Likelihood of placements."""

    log_probability: Tensor  # [G, S] of the whole placement
    entropy: Tensor  # [G, S] mean entropy of its decisions, in nats


class EncodedBatch(Protocol):
    """Problems that were encoded once, for samples and for likelihoods."""

    @property
    def orders(self) -> Sequence[Longs]:
        """Operators of each problem in the order of decision."""
        ...

    def drawn(self, samples: int, generator: torch.Generator) -> list[Placements]:
        """Placements [S, N] of each problem; some may break constraints and need repair."""
        ...

    def weights(self, samples: int) -> Floats:
        """Weights [S] of the samples of a problem in the loss."""
        ...

    def likelihood(self, placements: Sequence[Placements]) -> Likelihood:
        """Likelihood of placements [≤ S, N] of each problem, with gradients."""
        ...


class PreparedProblems(Protocol):
    """Problems, prepared once for a policy."""

    def encoded(self, rows: Longs, rng: np.random.Generator) -> EncodedBatch:
        """Encode some of the problems with the present parameters, as in training."""
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
        """Features for JSON: ``names``, ``mean``, ``std``."""
        ...


def check_devices(problem: Problem, most: int) -> None:
    """Raise SettingError where there are more devices than a model knows."""
    if problem.n_devices > most:
        raise SettingError(
            f"the cluster has {problem.n_devices} devices, but the model supports at most {most}; "
            f"train it with 'devices = {problem.n_devices}' under [model] in a --config file, or "
            "use the placer pilot, which supports any number"
        )

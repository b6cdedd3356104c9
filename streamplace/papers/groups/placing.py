"""Placing with a constructive policy from a weights file."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from streamplace.learn.config import Config
from streamplace.learn.constructive.policy import ConstructivePolicy
from streamplace.learn.loading import loaded, read_model
from streamplace.learn.parameters import fill
from streamplace.learn.threads import one_thread
from streamplace.model.arrays import Ints
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.papers.groups.traits import Traits

Build = Callable[[Traits, Any], ConstructivePolicy]


@dataclass(frozen=True, slots=True, eq=False)
class TrainedConstructor:
    """A policy with trained weights; see `streamplace.learn.registry.Allocator`."""

    policy: ConstructivePolicy

    def place_many(self, problems: Sequence[Problem]) -> list[Placement]:
        """Place every problem greedily."""
        with one_thread():
            rows = self.policy.on(problems).greedy()
        return [p.placement(row) for p, row in zip(problems, rows, strict=True)]

    def sampled(self, problem: Problem, samples: int, seed: int) -> Ints:
        """Legal placements [S, N] of one problem, drawn from the policy."""
        generator = torch.Generator().manual_seed(seed % 2**63)
        with one_thread(), torch.no_grad():
            batch = self.policy.on([problem]).encoded(np.array([0]), np.random.default_rng(seed))
            drawn = batch.drawn(samples, generator)[0]
        return problem.repaired(drawn[:samples].astype(np.int32))


def trained(path: Path, model: str, config: type[Config], build: Build) -> TrainedConstructor:
    """Policy of a model from a weights file."""
    return loaded(path, _read, model, config, build)


def _read(path: Path, model: str, config: type[Config], build: Build) -> TrainedConstructor:
    weights, options, where = read_model(path, model, config)
    traits = Traits.from_document(weights.document["features"], where)
    with torch.device("meta"):  # parameters get memory only once the weights fit the options
        policy = build(traits, options)
    fill(policy.module, weights.tensors, where)
    return TrainedConstructor(policy)

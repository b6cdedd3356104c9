"""Placing with a constructive policy from a weights file."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from streamplace.io.files import spot
from streamplace.io.weights import read_weights, stamped
from streamplace.learn.config import Config, parsed
from streamplace.learn.constructive.policy import Teachable
from streamplace.learn.constructive.traits import Traits
from streamplace.learn.parameters import check_arrays, put_arrays
from streamplace.learn.threads import one_thread
from streamplace.model.arrays import Ints
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem

Build = Callable[[Traits, Any], Teachable]


@dataclass(frozen=True, slots=True, eq=False)
class TrainedConstructor:
    """A policy with trained weights; see `streamplace.learn.registry.Allocator`."""

    policy: Teachable

    def place_many(self, problems: Sequence[Problem]) -> list[Placement]:
        """Place every problem greedily."""
        with one_thread():
            rows = self.policy.on(problems).greedy()
        return [p.placement(row) for p, row in zip(problems, rows, strict=True)]

    def sampled(self, problem: Problem, samples: int, seed: int) -> Ints:
        """Legal placements [S, N] of one problem, drawn from the policy."""
        generator = torch.Generator().manual_seed(seed % 2**63)
        with one_thread(), torch.no_grad():
            attempt = self.policy.on([problem]).attempt(np.array([0]), np.random.default_rng(seed))
            drawn = attempt.drawn(samples, generator)[0]
        return problem.repaired(drawn[:samples].astype(np.int32))


def trained(path: Path, model: str, config: type[Config], build: Build) -> TrainedConstructor:
    """Policy of a model from a weights file, read once as long as the file stays what it is."""
    return _trained(model, config, build, *stamped(path))


@lru_cache(maxsize=8)
def _trained(
    model: str, config: type[Config], build: Build, path: Path, stamp: tuple[int, int]
) -> TrainedConstructor:
    weights, where = read_weights(path, model=model), spot(path)
    options = parsed(config, weights.document["config"], f"{where}: config")
    traits = Traits.from_document(weights.document["features"], where)
    with torch.device("meta"):  # no memory for what a config alone asks for
        policy = build(traits, options)
    check_arrays(policy.module, weights.tensors, where)
    policy.module.to_empty(device="cpu")
    put_arrays(policy.module, weights.tensors, where)
    policy.module.eval()
    return TrainedConstructor(policy)

"""Placing with trained policies: greedily, or samples of one problem."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch

from streamplace.io.files import spot
from streamplace.io.weights import read_weights, stamped
from streamplace.learn.config import parsed
from streamplace.learn.models.doppler.episode import new_trail
from streamplace.learn.models.doppler.module import Doppler
from streamplace.learn.models.doppler.options import DopplerConfig
from streamplace.learn.models.doppler.plan import FEATURES
from streamplace.learn.models.doppler.policy import Seat
from streamplace.learn.parameters import check_arrays, put_arrays
from streamplace.learn.threads import one_thread
from streamplace.model.arrays import Ints
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem


@dataclass(frozen=True, slots=True)
class TrainedDoppler:
    """Both policies with trained weights."""

    module: Doppler
    config: DopplerConfig

    def place_many(self, problems: Sequence[Problem]) -> list[Placement]:
        """Place every problem greedily."""
        return [problem.placement(self._greedy(problem)) for problem in problems]

    def sampled(self, problem: Problem, samples: int, seed: int) -> Ints:
        """Legal placements [S, N] of one problem, drawn from both policies."""
        numbers = np.random.default_rng(seed).random((samples, problem.n_operators, 2))
        with one_thread(), torch.no_grad():
            seat = Seat.of(problem, self.config)
            said, trail = seat.said(self.module), new_trail(seat.plan, 0)
            return seat.run(said, self.config, numbers, trail, taught=False)

    def _greedy(self, problem: Problem) -> Ints:
        with one_thread(), torch.no_grad():
            seat = Seat.of(problem, self.config)
            return seat.greedy(seat.said(self.module), self.config)


def trained(path: Path) -> TrainedDoppler:
    """Doppler from a weights file, read once as long as the file stays what it is."""
    return _trained(*stamped(path))


@lru_cache(maxsize=8)
def _trained(path: Path, stamp: tuple[int, int]) -> TrainedDoppler:
    weights, where = read_weights(path, model="doppler", features=FEATURES), spot(path)
    config: DopplerConfig = parsed(DopplerConfig, weights.document["config"], f"{where}: config")
    with torch.device("meta"):  # no memory for what a config alone asks for
        module = Doppler(config)
    check_arrays(module, weights.tensors, where)
    module.to_empty(device="cpu")
    put_arrays(module, weights.tensors, where)
    return TrainedDoppler(module.eval(), config)

"""Placing with trained policies: greedily, or samples of one problem."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from streamplace.learn.loading import loaded, read_model
from streamplace.learn.models.doppler.episode import new_record
from streamplace.learn.models.doppler.features import FEATURES
from streamplace.learn.models.doppler.module import DopplerModule
from streamplace.learn.models.doppler.options import DopplerConfig
from streamplace.learn.models.doppler.policy import PreparedProblem
from streamplace.learn.parameters import fill
from streamplace.learn.threads import one_thread
from streamplace.model.arrays import Ints
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem


@dataclass(frozen=True, slots=True)
class TrainedDoppler:
    """Both policies with trained weights."""

    module: DopplerModule
    config: DopplerConfig

    def place_many(self, problems: Sequence[Problem]) -> list[Placement]:
        """Place every problem greedily."""
        return [problem.placement(self._greedy(problem)) for problem in problems]

    def sampled(self, problem: Problem, samples: int, seed: int) -> Ints:
        """Legal placements [S, N] of one problem, drawn from both policies."""
        numbers = np.random.default_rng(seed).random((samples, problem.n_operators, 2))
        with one_thread(), torch.no_grad():
            prepared = PreparedProblem.of(problem, self.config)
            outputs, record = prepared.outputs(self.module), new_record(prepared.features, 0)
            return prepared.run(outputs, self.config, numbers, record, taught=False)

    def _greedy(self, problem: Problem) -> Ints:
        with one_thread(), torch.no_grad():
            prepared = PreparedProblem.of(problem, self.config)
            return prepared.greedy(prepared.outputs(self.module), self.config)


def trained(path: Path) -> TrainedDoppler:
    """Doppler from a weights file."""
    return loaded(path, _read)


def _read(path: Path) -> TrainedDoppler:
    weights, config, where = read_model(path, "doppler", DopplerConfig, FEATURES)
    with torch.device("meta"):  # no memory for what a config alone asks for
        module = DopplerModule(config)
    fill(module, weights.tensors, where)
    return TrainedDoppler(module, config)

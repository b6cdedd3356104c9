"""Doppler's two policies on one problem: for training, and from a weights file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from streamplace.learn.loading import loaded, read_model
from streamplace.learn.parameters import fill
from streamplace.learn.shards import one_thread
from streamplace.model.arrays import Floats, Ints
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.papers.doppler.episode import (
    LIKELIEST,
    DecisionRules,
    DopplerHeads,
    EpisodeRecord,
    episodes,
    new_record,
)
from streamplace.papers.doppler.features import FEATURES, DopplerFeatures, features_of
from streamplace.papers.doppler.model import DopplerConfig
from streamplace.papers.doppler.module import DopplerModule, GraphTensors, NetworkOutputs


@dataclass(frozen=True, slots=True)
class PreparedProblem:
    """A problem, prepared for its episodes."""

    problem: Problem
    features: DopplerFeatures
    graph: GraphTensors

    @classmethod
    def of(cls, problem: Problem, config: DopplerConfig, device: str = "cpu") -> "PreparedProblem":
        """Prepare a problem."""
        features = features_of(problem, config.looks)
        return cls(problem, features, GraphTensors.of(features, device))

    def outputs(self, module: DopplerModule) -> NetworkOutputs:
        """Outputs of the networks before the first step."""
        outputs: NetworkOutputs = module(self.graph)
        return outputs

    def run(
        self,
        outputs: NetworkOutputs,
        config: DopplerConfig,
        numbers: Floats,
        record: EpisodeRecord,
        *,
        taught: bool,
    ) -> Ints:
        """Legal placements [S, N] of episodes with these numbers; see `episode.episodes`."""
        rules = DecisionRules(
            int(config.select == "learned"), int(config.place == "learned"), int(taught)
        )
        heads = _ordered(self.features, outputs.heads(), config.select)
        return self.problem.repaired(episodes(self.features, heads, rules, numbers, record))

    def greedy(self, outputs: NetworkOutputs, config: DopplerConfig) -> Ints:
        """Placement [N] of the likeliest choices."""
        numbers = np.full((1, self.problem.n_operators, 2), LIKELIEST)
        return self.run(outputs, config, numbers, new_record(self.features, 0), taught=False)[0]


def numbers_of(
    rng: np.random.Generator, shape: tuple[int, ...], config: DopplerConfig, exploration: float
) -> Floats:
    """Numbers that a share of the choices explores by, and the others are as the options say."""
    explores, uniform = rng.random(shape) < exploration, rng.random(shape)
    usual = uniform if config.drawn == "softmax" else np.full(shape, LIKELIEST)
    return np.where(explores, 1.0 + uniform, usual)


def _ordered(features: DopplerFeatures, heads: DopplerHeads, select: str) -> DopplerHeads:
    """Heads with the scores of the rule that selects tasks, if that is not learned."""
    if select == "critical-path":
        return heads._replace(score=features.to_exit.astype(np.float32))
    if select == "topological":
        position = np.empty(features.tasks.n_tasks, np.float32)
        position[features.tasks.order] = np.arange(len(position))
        return heads._replace(score=-position)
    return heads


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


@loaded
def trained(path: Path) -> TrainedDoppler:
    """Doppler from a weights file."""
    weights, config, where = read_model(path, "doppler", DopplerConfig, FEATURES)
    with torch.device("meta"):  # parameters get memory only once the weights fit the options
        module = DopplerModule(config)
    fill(module, weights.tensors, where)
    return TrainedDoppler(module, config)

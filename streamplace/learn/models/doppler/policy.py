"""Both policies on a problem: what is prepared once, and episodes by the networks as they are."""

from dataclasses import dataclass

import numpy as np

from streamplace.learn.models.doppler.episode import (
    LIKELIEST,
    DecisionRules,
    DopplerHeads,
    EpisodeRecord,
    episodes,
    new_record,
)
from streamplace.learn.models.doppler.features import DopplerFeatures, features_of
from streamplace.learn.models.doppler.module import DopplerModule, GraphTensors, NetworkOutputs
from streamplace.learn.models.doppler.options import DopplerConfig
from streamplace.model.arrays import Floats, Ints
from streamplace.model.problem import Problem


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
